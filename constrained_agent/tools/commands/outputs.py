"""What a command prints, where that is known beforehand: it may become a command, or a file that is deleted."""

from __future__ import annotations

import re
from collections.abc import Callable, Mapping

from constrained_agent.tools.commands import options, paths, programs, searching
from constrained_agent.tools.commands.quoting import unescape
from constrained_agent.tools.commands.scene import (
    MAX_TEXT_CHARS,
    NO_OUTPUT,
    UNKNOWN,
    UNKNOWN_OUTPUT,
    Call,
    Output,
)


def printed(call: Call) -> Output:
    """What goes to the command's standard output."""
    if UNKNOWN in call.argv[0]:
        return UNKNOWN_OUTPUT
    name = programs.name_of(call.argv[0])
    body = call.scene.functions.get(call.argv[0])
    output = UNKNOWN_OUTPUT if body else _PRINTERS.get(name, _unknown)(call)
    if output.text is not None and len(output.text) > MAX_TEXT_CHARS:
        return UNKNOWN_OUTPUT
    return output


def _unknown(_call: Call) -> Output:
    return UNKNOWN_OUTPUT


def _echo(call: Call) -> Output:
    args = list(call.args)
    escapes, newline = False, "\n"
    while args and re.fullmatch(r"-[neE]+", args[0]):
        word = args.pop(0)
        escapes, newline = escapes or "e" in word, "" if "n" in word else newline
    text = " ".join(args)
    if UNKNOWN in text or (not escapes and unescape(text) != text):
        return UNKNOWN_OUTPUT  # some shells' echo takes escapes without -e
    return Output((unescape(text) if escapes else text) + newline)


def _cat(call: Call) -> Output:
    """Files that this line wrote, or what is piped in."""
    names = options.operands(call.args) or ["-"]
    output = NO_OUTPUT
    for name in names:
        if name == "-":
            output += call.stdin if call.stdin is not None else NO_OUTPUT
            continue
        known = [
            call.scene.files[full] for full in paths.absolute(name, call.scene) if full in call.scene.files
        ]
        output += known[0] if known else UNKNOWN_OUTPUT
    return output if options.split(call.args)[0] == [] else UNKNOWN_OUTPUT


def _which(call: Call) -> Output:
    """`which rm`, `command -v rm`: the program itself."""
    names = options.operands(call.args)
    if call.argv[0] == "command" and not options.flag(call.args[:1], "vV"):
        return printed(Call(names, call.scene, call.stdin)) if names else UNKNOWN_OUTPUT
    return Output("\n".join(names) + "\n")


def _pwd(call: Call) -> Output:
    value = call.scene.value("PWD")
    return UNKNOWN_OUTPUT if UNKNOWN in value else Output(value + "\n")


def _number(_call: Call) -> Output:
    """A number; of a process, that of one that this line did not start."""
    return Output("1\n")


def _date(call: Call) -> Output:
    """Digits, where the format has nothing but directives for digits."""
    args = call.args
    if len(args) == 1 and re.fullmatch(r"\+(?:%[YmdHMSsNFTjyuV]|[-_:.T])+", args[0]):
        return Output("1\n")
    return UNKNOWN_OUTPUT


def _mktemp(_call: Call) -> Output:
    return Output(paths.MADE_HERE + "\n")


def _nothing(_call: Call) -> Output:
    return NO_OUTPUT


def _find(call: Call) -> Output:
    return Output(None, searching.found_paths(call))


def _listing(_call: Call) -> Output:
    """Names of files below this folder."""
    return Output(None, ("./*",))


def _git(call: Call) -> Output:
    if "ls-files" in call.args or "--name-only" in call.args:
        return _listing(call)
    return UNKNOWN_OUTPUT


def _grep(call: Call) -> Output:
    lists = options.flag(call.args, "lL", "--files-with-matches", "--files")
    return _listing(call) if lists else UNKNOWN_OUTPUT


_PRINTERS: Mapping[str, Callable[[Call], Output]] = {
    "echo": _echo,
    "cat": _cat,
    **dict.fromkeys(["which", "command", "type"], _which),
    "pwd": _pwd,
    **dict.fromkeys(["nproc", "wc", "pgrep", "pidof"], _number),
    "date": _date,
    "mktemp": _mktemp,
    "find": _find,
    **dict.fromkeys(["ls", "fd"], _listing),
    "git": _git,
    **dict.fromkeys(["grep", "egrep", "fgrep", "rg", "ag"], _grep),
    **dict.fromkeys([":", "true", "false", "cd", "mkdir", "touch", "chmod", "export", "set"], _nothing),
}
