"""git: the subcommands that change something, and what of it can be lost."""

from __future__ import annotations

import os
import re
from collections.abc import Callable, Mapping, Sequence

from constrained_agent.tools.commands import options, paths
from constrained_agent.tools.commands.scene import UNKNOWN, Call
from constrained_agent.tools.commands.verdict import Judgement, danger, reads, remote, worst, writes

RUNS_KEYS = re.compile(
    r"alias\.|core\.(?:pager|editor|sshcommand|fsmonitor|hookspath|askpass|gitproxy|attributesfile|worktree)|pager\.|"
    r"diff\..*(?:command|textconv|external)|diff\.external|filter\.|merge\..*driver|credential|gpg\.|"
    r"(?:diff|merge)tool\.|sequence\.editor|uploadpack|receive\.|remote\..*\.(?:uploadpack|receivepack|vcs|pushurl|url)|"
    r"url\.|protocol\.|include|submodule\..*\.update|browser|man\.|web\.|interactive\.|sendemail|http\.|user\.signingkey|trailer\.",
    re.IGNORECASE,
)
_OTHER_COMMIT = re.compile(
    r".*[~^].*|.*@\{.*|[0-9a-f]{7,40}|(?:origin|upstream)/.*|ORIG_HEAD|FETCH_HEAD|refs/.*|main|master|trunk|develop|"
    r"v?\d+(?:\.\d+)+"
)


def run_line(text: str, call: Call) -> Judgement:
    """Text that git runs as a command line."""
    if UNKNOWN in text:
        return danger("runs a program that is only known when it runs")
    judged = call.scene.engine.line(text, call.scene.copy())
    return Judgement(judged.risk, judged.reason)


def _push(rest: Sequence[str], _call: Call) -> Judgement:
    forced = options.flag(rest, "fd", "--force", "--force-with-lease", "--mirror", "--delete", "--prune")
    if forced or any(re.match(r"[+:]", word) for word in options.operands(rest)):
        return danger("overwrites or deletes what another repository holds")
    if options.flag(rest, "n", "--dry-run"):
        return writes("asks another repository what a push would change")
    return remote("sends commits to another repository")


def _commit(rest: Sequence[str], call: Call) -> Judgement:
    valued = ("-m", "-F", "-C", "-c", "-t", "--message", "--file", "--author", "--date", "--trailer")
    if options.flag(options.split(rest, valued)[0], "", "--amend"):
        return danger("rewrites the last commit")
    if any(paths.secret(value, call.scene) for value in options.values(rest, "F", "--file")):
        return danger("commits credentials")
    return writes("commits")


def _reset(rest: Sequence[str], _call: Call) -> Judgement:
    if options.flag(rest, "", "--hard", "--merge", "--keep"):
        return danger("throws away changes that are not committed")
    commits = list(rest[: rest.index("--")] if "--" in rest else rest)
    if options.flag(rest, "", "--soft") or any(_OTHER_COMMIT.fullmatch(w) or UNKNOWN in w for w in commits):
        return danger("takes commits off the branch")
    return writes("takes files back from the next commit")


def _checkout(rest: Sequence[str], call: Call) -> Judgement:
    """`checkout -b new` makes a branch; with paths it throws changes away."""
    if options.flag(rest, "fB", "--force", "--ours", "--theirs", "--pathspec-from-file", "--merge"):
        return danger("throws away changes that are not committed")
    if options.flag(rest, "b", "--orphan"):
        return writes("makes a branch")
    operands = options.operands([word for word in rest if word != "--"])
    if "--" in rest or len(operands) > 1 or any(_may_be_file(word, call) for word in operands):
        return danger("throws away changes of files that are not committed")
    return writes("changes to another branch")


def _may_be_file(word: str, call: Call) -> bool:
    """Whether `git checkout WORD` may mean a file rather than a branch."""
    if (
        UNKNOWN in word
        or re.search(r"[*?]", word)
        or word.startswith(("./", ":", "/"))
        or word in (".", "..")
    ):
        return True
    if call.scene.place.real:
        return any(os.path.lexists(full) for full in paths.absolute(word, call.scene))
    return re.search(r"\.[A-Za-z]{1,4}$", word) is not None


def _switch(rest: Sequence[str], _call: Call) -> Judgement:
    if options.flag(rest, "fC", "--force", "--discard-changes", "--force-create", "--merge"):
        return danger("throws away changes that are not committed, or a branch")
    return writes("changes to another branch")


def _restore(rest: Sequence[str], _call: Call) -> Judgement:
    staged_only = options.flag(rest, "S", "--staged") and not options.flag(rest, "W", "--worktree")
    return (
        writes("takes files back from the next commit")
        if staged_only
        else danger("throws away changes of files")
    )


def _branch(rest: Sequence[str], _call: Call) -> Judgement:
    if options.flag(rest, "DMCf", "--force"):
        return danger("deletes or moves a branch whose commits may be nowhere else")
    listing = options.flag(
        rest, "l", "--list", "--show-current", "--contains", "--merged", "--no-merged", "--all", "--remotes"
    )
    if not options.operands(rest) or listing:
        edits = options.flag(
            rest,
            "dmcutk",
            "--delete",
            "--move",
            "--copy",
            "--edit-description",
            "--set-upstream-to",
            "--unset-upstream",
        )
        return writes("changes branches") if edits else reads("lists branches")
    return writes("makes or changes a branch")


def _tag(rest: Sequence[str], _call: Call) -> Judgement:
    if options.flag(rest, "df", "--delete", "--force"):
        return danger("deletes or moves a tag")
    return reads("lists tags") if not rest or list(rest) in (["-l"], ["--list"]) else writes("makes a tag")


def _stash(rest: Sequence[str], _call: Call) -> Judgement:
    name = next(iter(rest), "push")
    if name in ("drop", "clear"):
        return danger("throws away changes that were put aside")
    return (
        reads("looks at what was put aside")
        if name in ("list", "show")
        else writes("puts changes aside or takes them back")
    )


def _rebase(rest: Sequence[str], _call: Call) -> Judgement:
    if options.flag(rest, "", "--show-current-patch", "--abort", "--quit") and len(rest) == 1:
        return writes("ends a rebase")
    return danger("rewrites history")


def _pull(rest: Sequence[str], _call: Call) -> Judgement:
    """`git pull`, `git fetch`: `+main:main` overwrites a branch."""
    if options.flag(rest, "rf", "--rebase", "--force") or any(
        w.startswith("+") for w in options.operands(rest)
    ):
        return danger("rewrites history, or overwrites branches")
    return writes("fetches from another repository")


def _reflog(rest: Sequence[str], _call: Call) -> Judgement:
    if rest and rest[0] in ("expire", "delete", "drop"):
        return danger("deletes the way back to lost commits")
    return reads("looks at the repository")


def _rm(rest: Sequence[str], _call: Call) -> Judgement:
    if options.flag(rest, "", "--cached"):
        return writes("takes files out of the next commit")
    if options.flag(rest, "f", "--force"):
        return danger("deletes files with changes that are not committed")
    return writes("deletes files that git still has")


def _remote_command(rest: Sequence[str], _call: Call) -> Judgement:
    if not rest or rest[0] in ("-v", "--verbose", "get-url"):
        return reads("lists other repositories")
    return danger("changes where commits are sent") if rest[0] == "set-url" else writes("changes remotes")


def _config(rest: Sequence[str], call: Call) -> Judgement:
    """Settings: reading may show credentials, writing may make git run programs."""
    if any(re.search(r"extraheader|credential|token|password", word, re.IGNORECASE) for word in rest):
        return danger("reads or changes credentials")
    files = options.values(rest, "f", "--file")
    if _asks_for_settings(rest):
        return worst(writes("reads settings"), *(paths.reading(one, call.scene) for one in files))
    if options.flag(rest, "", "--global", "--system"):
        return danger("changes settings outside the repository")
    if any(RUNS_KEYS.match(word) for word in rest):
        return danger("changes a setting that makes git run a program or talk to another machine")
    return worst(writes("changes settings"), *(paths.writing(one, call.scene) for one in files))


def _asks_for_settings(rest: Sequence[str]) -> bool:
    """`git config --get X`, `--list`, `git config X`."""
    edits = (
        "--unset",
        "--unset-all",
        "--add",
        "--replace-all",
        "--rename-section",
        "--remove-section",
        "--edit",
    )
    if options.flag(rest, "e", *edits) or any(UNKNOWN in word for word in rest):
        return False
    words = options.operands(rest, ("-f", "--file", "--type", "--default", "--blob"))
    asks = options.flag(rest, "l", "--get", "--get-all", "--get-regexp", "--get-urlmatch", "--list")
    return asks or len(words) == 1 or words[:1] in (["get"], ["list"])


def _submodule(rest: Sequence[str], call: Call) -> Judgement:
    name, more = options.first_of(rest, ())
    if name == "foreach":
        return worst(
            run_line(" ".join(word for word in more if word not in ("--recursive", "-q")), call), writes()
        )
    if name == "deinit" and options.flag(more, "f", "--force", "--all"):
        return danger("throws away changes in submodules")
    return writes("changes submodules")


def _bisect(rest: Sequence[str], call: Call) -> Judgement:
    if rest[:1] == ["run"]:
        judged = call.scene.engine.command(rest[1:], call.scene, None) if rest[1:] else reads()
        return worst(Judgement(judged.risk, judged.reason), writes("runs a command on many commits"))
    return writes("changes to other commits")


def _worktree(rest: Sequence[str], call: Call) -> Judgement:
    if rest[:1] == ["remove"] and options.flag(rest, "f", "--force"):
        return danger("throws away a folder with changes")
    if rest[:1] == ["list"]:
        return reads("lists folders")
    targets = options.operands(rest[1:], ("-b", "-B", "--reason")) if rest[:1] == ["add"] else []
    return worst(writes("changes working folders"), *(paths.writing(one, call.scene) for one in targets[:1]))


def _lfs(rest: Sequence[str], _call: Call) -> Judgement:
    return remote("sends files to another machine") if rest[:1] == ["push"] else writes("runs git lfs")


def _subtree(rest: Sequence[str], _call: Call) -> Judgement:
    return remote("sends commits to another repository") if "push" in rest else writes("runs git subtree")


def _symbolic_ref(rest: Sequence[str], _call: Call) -> Judgement:
    changes = len(options.operands(rest)) > 1 or options.flag(rest, "d", "--delete")
    return danger("moves a branch without a check") if changes else reads("looks at the repository")


SUBCOMMANDS: Mapping[str, Callable[[Sequence[str], Call], Judgement]] = {
    "push": _push,
    "commit": _commit,
    "reset": _reset,
    "checkout": _checkout,
    "switch": _switch,
    "restore": _restore,
    "branch": _branch,
    "tag": _tag,
    "stash": _stash,
    "rebase": _rebase,
    "pull": _pull,
    "fetch": _pull,
    "reflog": _reflog,
    "rm": _rm,
    "remote": _remote_command,
    "config": _config,
    "submodule": _submodule,
    "bisect": _bisect,
    "worktree": _worktree,
    "lfs": _lfs,
    "subtree": _subtree,
    "symbolic-ref": _symbolic_ref,
}
