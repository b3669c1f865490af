"""Commands of the shell itself: those that move it, set something, or read text as commands."""

from __future__ import annotations

import os
import re
from collections.abc import Mapping, Sequence

from constrained_agent.tools.commands import options, paths, programs
from constrained_agent.tools.commands.programs import Judge
from constrained_agent.tools.commands.scene import UNKNOWN, UNKNOWN_OUTPUT, Call, Scene
from constrained_agent.tools.commands.verdict import Judgement, Risk, danger, reads, remote, worst, writes
from constrained_agent.tools.commands.words import holds_command

INPUT = re.compile(r"-|/dev/stdin|/dev/fd/\d+|/proc/\w+/fd/\d+")
"""Names of what is piped in, or was opened before."""


def _cd(call: Call) -> Judgement:
    """`cd`, `pushd`, `popd`: the folder is known from here on, if it can be entered."""
    scene = call.scene
    targets = options.operands(call.args) or ["-" if call.argv[0] in ("pushd", "popd") else "~"]
    target = targets[0]
    known = (
        target != "-"
        and call.argv[0] != "popd"
        and not re.search(f"[*?\\[{UNKNOWN}]", target)
        and scene.value("CDPATH") in ("", UNKNOWN)
    )
    scene.moved = frozenset(paths.absolute(target, scene)) if known else frozenset([UNKNOWN])
    return reads("changes the folder")


def surely_moves(argv: Sequence[str], scene: Scene) -> bool:
    """Whether a `cd` cannot fail: its folder is there, and nothing in the line before it could take that away."""
    if argv[0] != "cd" or len(argv) != 2 or argv[1].startswith("-") or not scene.place.real:
        return False
    undisturbed = all(one.risk is Risk.READ_ONLY for one in scene.record.found)
    return undisturbed and all(
        UNKNOWN not in full and os.path.isdir(full) and os.access(full, os.X_OK) for full in scene.moved or ()
    )


def _eval(call: Call) -> Judgement:
    """`eval WORDS`, and the first word of `trap`: text that is read as a line."""
    text = " ".join(options.operands(call.args)[:1] if call.argv[0] == "trap" else call.args)
    if text in ("", "-"):
        return reads("sets what happens on a signal")
    if UNKNOWN in text:
        return danger("runs text that is only known when it runs")
    return call.scene.engine.line(text, call.scene)


def _source(call: Call) -> Judgement:
    """A file read as commands: those of this line are known, those of the repository are its own."""
    if not call.args:
        return reads()
    call.scene.record.strangers = True
    target, *positional = call.args
    if (judgement := paths.reading(target, call.scene)) and paths.secret(target, call.scene):
        return judgement
    return run_file(call, target, positional)


def run_file(call: Call, target: str, positional: list[str]) -> Judgement:
    """A script that a shell reads: from this line, from a pipe, or from the disk."""
    scene = call.scene
    if INPUT.fullmatch(target):
        return run_input(call)
    written = [scene.files[full] for full in paths.absolute(target, scene) if full in scene.files]
    if written:
        if written[0].text is None:
            return danger("runs a file that this line makes, unseen")
        inner = scene if call.argv[0] in ("source", ".") else scene.copy()
        if positional:
            inner.positional = tuple(positional)
        return worst(scene.engine.line(written[0].text, inner), writes())
    found = writes("runs a script")
    if call.argv[0] in ("source", "."):
        scene.variables.update(dict.fromkeys(scene.variables, (UNKNOWN,)))  # the file may set them anew
    if programs.names_shipping(target):
        found = worst(found, remote("runs a script that is named for publishing"))
    return worst(found, programs.arguments(Call(["script", *positional], scene)))


def run_input(call: Call) -> Judgement:
    """A shell that reads its commands from a pipe or a here-document."""
    given = call.stdin
    if given is None:
        return writes("starts a shell")
    if given.text is not None and UNKNOWN not in given.text:
        return call.scene.engine.line(given.text, call.scene.copy())
    return danger("runs text that is only known when it runs")


def _set(call: Call) -> Judgement:
    """`set -- a b` sets `$1`, `$2`."""
    args = list(call.args)
    if "--" in args:
        call.scene.positional = tuple(args[args.index("--") + 1 :])
    elif args and not args[0].startswith(("-", "+")):
        call.scene.positional = tuple(args)
    return reads("sets options of the shell")


def _shift(call: Call) -> Judgement:
    count = int(call.args[0][:4]) if call.args and call.args[0].isdigit() else 1
    call.scene.positional = call.scene.positional[count:]
    return reads("moves the words of a call")


def _read(call: Call) -> Judgement:
    """`read X`, `mapfile X`, `printf -v X`: its value comes from elsewhere. `mapfile -C` runs its word."""
    if call.argv[0] == "printf" and not options.flag(call.args[:1], "v"):
        return reads("prints")
    for name in [*call.args, *(word[2:] for word in call.args)]:  # more than are set
        _set_variable(name.partition("[")[0], UNKNOWN, call.scene)
    if call.argv[0] in ("mapfile", "readarray") and options.flag(call.args, "C"):
        return danger("runs a command for the lines that it reads")
    return _evaluated(call)


def _set_variable(name: str, value: str, scene: Scene) -> None:
    scene.variables[name] = (value,)
    scene.record.strangers |= UNKNOWN in name


def _declare(call: Call) -> Judgement:
    """`declare` and its kin where something stands before them (`command export X=1`)."""
    for word in call.args:
        name, sign, value = word.partition("=")
        _set_variable(name, value if sign else UNKNOWN, call.scene)
    return worst(_evaluated(call), writes("sets variables"))


def _alias(call: Call) -> Judgement:
    """An alias is read like a function; it may be used from the next line on."""
    found = reads("names a command")
    for word in options.operands(call.args):
        name, sign, text = word.partition("=")
        if sign and UNKNOWN in text:
            return danger("names a command that is only known when it runs")
        if sign:
            inner = call.scene.copy()
            inner.functions.pop(name, None)
            found = worst(found, programs.hidden(text, inner))
            call.scene.engine.line(f'function {name} {{ \\command {text} "$@"\n}}', call.scene)
    return found


def _evaluated(call: Call) -> Judgement:
    """Builtins that evaluate their words once more: `let 'a[$(rm f)]'`."""
    if any(holds_command(word) for word in call.args):
        return danger("evaluates text that holds a command")
    return reads()


def _hash(call: Call) -> Judgement:
    """`hash -p FILE NAME`, `enable -f FILE NAME`."""
    if options.flag(call.args, "p" if call.argv[0] == "hash" else "f"):
        return danger("makes a name run another program")
    return reads()


def _history(call: Call) -> Judgement:
    if options.flag(call.args, "cdwanrs"):
        return danger("changes the history of the shell")
    return reads()


def _coproc(call: Call) -> Judgement:
    return call.scene.engine.command(call.args, call.scene, UNKNOWN_OUTPUT) if call.args else reads()


def _nothing(_call: Call) -> Judgement:
    return reads("does nothing")


JUDGES: Mapping[str, Judge] = {
    **dict.fromkeys(["cd", "pushd", "chdir", "popd"], _cd),
    **dict.fromkeys(["eval", "trap"], _eval),
    **dict.fromkeys(["source", "."], _source),
    "set": _set,
    "shift": _shift,
    **dict.fromkeys(["read", "getopts", "mapfile", "readarray", "printf"], _read),
    **dict.fromkeys(["declare", "typeset", "export", "readonly", "local"], _declare),
    "alias": _alias,
    **dict.fromkeys(["let", "test", "[", "[[", "unset"], _evaluated),
    **dict.fromkeys(["hash", "enable"], _hash),
    "history": _history,
    "coproc": _coproc,
    **dict.fromkeys(
        [
            ":",
            "true",
            "false",
            "exit",
            "return",
            "break",
            "continue",
            "wait",
            "umask",
            "shopt",
            "unalias",
        ],
        _nothing,
    ),
    **dict.fromkeys(["dirs", "ulimit", "times", "bg", "fg", "disown", "logout", "caller"], _nothing),
}
