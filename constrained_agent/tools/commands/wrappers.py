"""Programs that run another command: they are looked through, and what they run is judged."""

from __future__ import annotations

import re
from collections.abc import Collection, Mapping, Sequence

from constrained_agent.tools.commands import cloud, options, paths, programs, tables
from constrained_agent.tools.commands.programs import Judge
from constrained_agent.tools.commands.scene import UNKNOWN, Call, is_harmless
from constrained_agent.tools.commands.verdict import Judgement, Risk, danger, reads, remote, worst, writes

_ENV_VALUED = frozenset(["-u", "-C", "--unset", "--chdir", "-P"])
_RUNNER_VALUED = frozenset(
    ["--with", "--python", "-p", "--group", "--extra", "--project", "--directory", "--env-file", "-n", "-e"]
)


def after(args: Sequence[str], valued: Collection[str], n_operands: int = 0) -> list[str]:
    """What stands behind a wrapper's own options and operands."""
    position = 0
    while position < len(args) and args[position].startswith("-") and args[position] != "-":
        if args[position] == "--":
            position += 1
            break
        position += 2 if args[position] in valued else 1
    return list(args[position + n_operands :])


def _wrapper(valued: str = "", n_operands: int = 0) -> Judge:
    names = frozenset(valued.split())

    def judge(call: Call) -> Judgement:
        inner = after(call.args, names, n_operands)
        if not inner:
            return reads("runs nothing")
        return call.scene.engine.command(inner, call.scene, call.stdin)

    return judge


def _command(call: Call) -> Judgement:
    """`command -v X` asks; `command X` runs X, and no function or alias of that name."""
    if call.args and re.fullmatch(r"-p?[vV]", call.args[0]):
        return reads("looks for a program")
    inner = after(call.args, ())
    if not inner:
        return reads("runs nothing")
    hidden = call.scene.functions.pop(inner[0], None)
    judged = call.scene.engine.command(inner, call.scene, call.stdin)
    if hidden is not None:
        call.scene.functions[inner[0]] = hidden
    return judged


def _env(call: Call) -> Judgement:
    """`env -i A=b CMD`; `-S` splits a string into a command."""
    args, scene = list(call.args), call.scene
    found: Judgement | None = None
    position = 0
    while position < len(args):
        word = args[position]
        if split := re.match(r"-\w*S|--split-string=?", word):
            text = word[split.end() :] or " ".join(args[position + 1 : position + 2])
            rest = args[position + (1 if word[split.end() :] else 2) :]
            return scene.engine.line(" ".join([text, *rest]), scene.copy())
        if word in _ENV_VALUED or word.startswith("--chdir="):
            if word.startswith(("-C", "--chdir")):
                folder = word.partition("=")[2] or " ".join(args[position + 1 : position + 2])
                scene = scene.copy()
                scene.cwds = frozenset(paths.absolute(folder, scene))
            position += 1 if "=" in word else 2
        elif word.startswith("-"):
            position += 1
        elif "() {" in word or word.startswith("BASH_FUNC"):
            return danger("makes a name run other commands")
        elif re.match(r"[A-Za-z_]\w*=", word):
            if not is_harmless(word.partition("=")[0]):
                found = writes("runs with variables that may change what it does")
            scene.variables[word.partition("=")[0]] = (word.partition("=")[2],)
            position += 1
        else:
            break
    inner = args[position:]
    if not inner:
        return reads("prints the environment, which holds no secrets")
    return worst(found, scene.engine.command(inner, scene, call.stdin))


def _exec(call: Call) -> Judgement:
    inner = after(call.args, ("-a",))
    return call.scene.engine.command(inner, call.scene, call.stdin) if inner else reads("redirects")


def _time(call: Call) -> Judgement:
    """`time CMD`; as a program of its own it can write what it measures to a file."""
    inner = after(call.args, ("-f", "-o", "--format", "--output"))
    own = call.args[: len(call.args) - len(inner)]
    files = [paths.writing(one, call.scene) for one in options.values(own, "o", "--output")]
    return worst(*files, call.scene.engine.command(inner, call.scene, call.stdin) if inner else None)


def _runner(*subcommands: str) -> Judge:
    """`uv run CMD`, `poetry run CMD`: what follows is run; other subcommands are as of an unknown program."""

    def judge(call: Call) -> Judgement:
        rest = after(call.args, _RUNNER_VALUED)
        shipping = _shipping(rest[:1]) or (
            _shipping(rest[1:2]) if rest[:1] and rest[0] not in subcommands else None
        )
        if rest[:1] and rest[0] in subcommands and (inner := after(rest[1:], _RUNNER_VALUED)):
            scene = call.scene.copy()
            if any(word.startswith(("--directory", "--project", "-C")) for word in call.args):
                scene.cwds = frozenset([UNKNOWN])
            judged = scene.engine.command(inner, scene, call.stdin)
            return worst(
                Judgement(judged.risk, judged.reason, looked_through=judged.risk >= Risk.WRITES), writes()
            )
        return worst(shipping, programs.unknown(call))

    return judge


def _shipping(words: Sequence[str]) -> Judgement | None:
    if any(UNKNOWN in word for word in words):
        return remote("runs a task that is only known when it runs")
    if any(programs.names_shipping(word) for word in words):
        return remote("publishes or deploys")
    return None


def _targets(call: Call) -> Judgement:
    """`make deploy`: a target is what its name says. Variables may hold commands."""
    found = programs.unknown(call)
    position = 0
    while position < len(call.args):
        word = call.args[position]
        position += 2 if word in ("-C", "-f", "-j", "-I", "-o", "-W", "--directory", "--file") else 1
        if word.startswith("--eval") or word == "-E":
            found = worst(found, danger("runs rules that stand in the command"))
        elif re.match(r"[A-Za-z_]\w*:?=", word):
            found = worst(found, programs.hidden(word.partition("=")[2], call.scene))
        elif not word.startswith("-"):
            found = worst(found, _shipping([word]))
    if any(paths.zone(word, call.scene) is paths.Zone.SINK or word == "-" for word in _files(call.args)):
        found = worst(found, _makefile(call))
    return found


def _files(args: Sequence[str]) -> list[str]:
    return [args[n + 1] for n, word in enumerate(args[:-1]) if word in ("-f", "--file", "--makefile")] + [
        word[2:] for word in args if re.match(r"-f.", word)
    ]


def _makefile(call: Call) -> Judgement:
    """Rules from a pipe or a here-document: their recipes are lines for a shell."""
    if call.stdin is None or call.stdin.text is None:
        return danger("runs rules that are only known when it runs")
    recipes = [line.split(";", 1)[-1].lstrip("\t @+-") for line in call.stdin.text.splitlines()]
    return worst(*(programs.hidden(line, call.scene) for line in recipes))


_REGISTRY_VALUED = frozenset(
    options.names("-w -C -F --workspace --prefix --cwd --dir --filter --registry --userconfig --loglevel")
)
_RUN_ONE = frozenset(["npx", "pnpx", "bunx"])


def _tool(call: Call) -> Judgement:
    """Task runners: a task is what its name says (`npm run deploy`). Package managers also talk to registries."""
    name = programs.name_of(call.argv[0])
    words = [word for word in call.args if not word.startswith("-")]
    found = programs.unknown(call)
    if registry := tables.tools().get(name):
        command, rest = options.first_of(call.args, _REGISTRY_VALUED)
        command = rest[0] if command == "npm" and rest else command
        if re.fullmatch(registry.changes, command):
            return found if cloud.is_dry(call) else worst(found, remote(registry.reason))
    return worst(found, _shipping(words[: 1 if name in _RUN_ONE else 3]))


JUDGES: Mapping[str, Judge] = {
    "command": _command,
    "builtin": _wrapper(),
    "exec": _exec,
    "env": _env,
    "nohup": _wrapper(),
    "time": _time,
    "nice": _wrapper("-n --adjustment"),
    "timeout": _wrapper("-s -k --signal --kill-after", 1),
    "stdbuf": _wrapper("-i -o -e --input --output --error"),
    "uv": _runner("run", "tool"),
    **dict.fromkeys(
        ["poetry", "pipenv", "pdm", "rye", "hatch", "conda", "mamba", "micromamba"], _runner("run")
    ),
    **dict.fromkeys(["make", "bmake", "ninja", "remake"], _targets),
    **dict.fromkeys(tables.names("tasks", "names"), _tool),
}
