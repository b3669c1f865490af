"""git: what looks, what changes the repository, what loses work or history, what another machine sees."""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence

from constrained_agent.tools.commands import options, paths, tables
from constrained_agent.tools.commands.git_changes import RUNS_KEYS, SUBCOMMANDS, run_line
from constrained_agent.tools.commands.programs import Judge, arguments
from constrained_agent.tools.commands.scene import UNKNOWN, Call
from constrained_agent.tools.commands.verdict import Judgement, danger, reads, remote, worst, writes

GLOBAL_VALUED = frozenset(
    [
        "-C",
        "-c",
        "--git-dir",
        "--work-tree",
        "--namespace",
        "--exec-path",
        "--super-prefix",
        "--config-env",
        "--attr-source",
    ]
)
_READS = frozenset(tables.names("git", "reads"))
_WRITES = frozenset(tables.names("git", "writes"))
_REMOTE = {
    "send-email": "sends mail",
    "send-pack": "sends commits to another repository",
    "http-push": "sends commits to another repository",
    "p4": "sends changes to another system",
    "svn": "sends changes to another system",
    "cvsexportcommit": "sends changes to another system",
    "imap-send": "sends mail",
    "daemon": "offers the repository to other machines",
    "instaweb": "offers the repository to other machines",
    "shell": "starts a shell",
    "upload-pack": "talks to other machines",
    "receive-pack": "talks to other machines",
}
_LOSES: Mapping[str, str] = {
    "checkout-index": "throws away changes of files",
    "read-tree": "throws away changes of files",
    "filter-branch": "rewrites history",
    "filter-repo": "rewrites history",
    "fast-import": "rewrites history",
    "replace": "rewrites history",
    "update-ref": "moves or deletes branches without a check",
    "prune": "deletes what no branch holds",
    "clean": "deletes files that git does not know",
    "credential": "reads or changes credentials",
    "credential-store": "reads or changes credentials",
    "credential-cache": "reads or changes credentials",
    "prune-packed": "deletes what no branch holds",
}
_PROGRAM_OPTIONS = (
    "--upload-pack",
    "--receive-pack",
    "--exec",
    "--extcmd",
    "--upload-archive",
    "--open-files-in-pager",
)

_PROGRAM_LETTERS = {("grep", "--open-files-in-pager"): "O", ("difftool", "--extcmd"): "x"}


def _git(call: Call) -> Judgement:
    name, rest = options.first_of(call.args, GLOBAL_VALUED)
    before = list(call.args[: len(call.args) - len(rest) - bool(name)])
    found = _global_options(before, call)
    if UNKNOWN in name:
        return danger("runs a git command that is only known when it runs")
    for option in _PROGRAM_OPTIONS:
        if not (name in ("commit", "rebase", "bisect", "submodule") and option == "--exec"):
            letter = _PROGRAM_LETTERS.get((name, option), "")
            values = [one for one in options.values(rest, letter, option) if one]
            found = worst(
                found,
                *(worst(run_line(value, call), writes("runs a program of its own")) for value in values),
            )
    if any(re.match(r"ext::|fd::", word) for word in rest):
        return danger("runs a program in place of a connection")
    return worst(found, _subcommand(name, rest, call))


def _global_options(before: Sequence[str], call: Call) -> Judgement:
    """`-c alias.x=!CMD` runs commands; another folder may have settings that do."""
    found = reads()
    for setting in options.values(before, "c", "--config-env"):
        key, _, value = setting.partition("=")
        if UNKNOWN in key or key.casefold().startswith(("alias.", "include")):
            return danger("gives git a command of another name")
        if RUNS_KEYS.match(key):
            found = worst(found, run_line(value.removeprefix("!"), call), writes("makes git run a program"))
    if options.flag(
        [word for word in before if word.startswith("--")], "", "--exec-path", "--git-dir", "--work-tree"
    ):
        found = worst(found, writes("uses another repository or another git"))
    for folder in [*options.values(before, "C"), "."]:
        inside = all(full == call.scene.place.root for full in paths.absolute(folder, call.scene))
        if not inside:
            found = worst(found, writes("runs in a folder that may have settings of its own"))
    if any(word in ("-p", "--paginate") for word in before):
        found = worst(found, writes("runs a pager"))
    return found


def _subcommand(name: str, rest: Sequence[str], call: Call) -> Judgement:
    if not name:
        return reads("shows help")
    if (judge := SUBCOMMANDS.get(name)) is not None:
        return judge(rest, call)
    if name in _READS:
        return _reading(name, rest, call)
    if name in _LOSES:
        if name == "clean" and options.flag(rest, "n", "--dry-run"):
            return reads("lists files that git does not know")
        return danger(_LOSES[name])
    if name in _REMOTE:
        return remote(_REMOTE[name])
    if name in _WRITES:
        return _writing(name, rest, call)
    return remote("is no command of git itself: an alias may do anything")


def _reading(name: str, rest: Sequence[str], call: Call) -> Judgement:
    if options.flag(rest, "", "--output"):
        found = worst(*(paths.writing(value, call.scene) for value in options.values(rest, "", "--output")))
    elif name == "grep" and options.flag(rest, "O", "--open-files-in-pager", "--no-index"):
        found = writes("runs a pager")
    elif options.flag(rest, "", "--ext-diff", "--textconv", "--filters", "--no-index", "--contents"):
        found = writes("runs programs of the settings, or reads elsewhere")
    else:
        found = reads("looks at the repository")
    for word in options.operands(rest):
        outside = word.startswith(("/", "~", "../")) and paths.zone(word, call.scene) is not paths.Zone.INSIDE
        if outside:
            found = worst(found, writes("looks outside the repository"))
        if name not in ("check-ignore", "ls-files", "status", "check-attr", "rev-parse") and paths.secret(
            word, call.scene
        ):
            found = worst(found, danger(f"reads credentials ({paths.shown(word)})"))
    return found


def _writing(name: str, rest: Sequence[str], call: Call) -> Judgement:
    if name in ("gc", "repack", "maintenance") and options.flag(rest, "", "--prune", "--aggressive"):
        return danger("deletes what no branch holds")
    if name == "help" and not rest:
        return reads("shows help")
    if name in ("clone", "init", "archive", "format-patch", "bundle"):
        targets = options.operands(rest, ("-b", "--depth", "-o", "--branch"))[1 if name == "clone" else 0 :]
        targets = targets if name in ("clone", "init") else []
        targets += options.values(rest, "o", "--output", "--output-directory") if name != "clone" else []
        found = worst(writes(f"runs git {name}"), *(paths.writing(one, call.scene) for one in targets))
        return worst(
            found, danger("talks to another machine") if options.flag(rest, "", "--remote") else None
        )
    if name in ("add", "mv"):
        return worst(writes("stages or moves files"), arguments(Call(["git", *rest], call.scene)))
    return writes(f"runs git {name}")


JUDGES: Mapping[str, Judge] = {"git": _git}
