"""What a command prints, where that is known beforehand: it may become a command, or a file that is deleted."""

from __future__ import annotations

import base64
import binascii
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

_DIRECTIVE = re.compile(r"%(?:[-+ 0#]*\d*(?:\.\d+)?)?([%sbdiqc])|%(.)")


def printed(call: Call) -> Output:
    """What goes to the command's standard output."""
    if UNKNOWN in call.argv[0]:
        return UNKNOWN_OUTPUT
    name = programs.name_of(call.argv[0])
    body = call.scene.functions.get(call.argv[0])
    output = UNKNOWN_OUTPUT if body else _PRINTERS.get(name, _unknown)(call)
    if output.text is not None and len(output.text) > MAX_TEXT_CHARS:
        return Output(None, (), output.downloaded)
    return output


def _unknown(call: Call) -> Output:
    """Text that passes through stays what it is: downloaded."""
    return Output(None, (), call.stdin is not None and call.stdin.downloaded)


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


def _printf(call: Call) -> Output:
    args = [arg for arg in call.args if arg != "--"]
    if not args or any(UNKNOWN in arg for arg in args):
        return UNKNOWN_OUTPUT
    form, rest = unescape(args[0]), list(args[1:])
    if any(match[2] for match in _DIRECTIVE.finditer(form)):
        return UNKNOWN_OUTPUT

    def one(match: re.Match[str]) -> str:
        if match[1] == "%":
            return "%"
        word = rest.pop(0) if rest else ""
        return unescape(word) if match[1] == "b" else word

    text = _DIRECTIVE.sub(one, form)
    while rest and any(match[1] != "%" for match in _DIRECTIVE.finditer(form)) and len(text) < MAX_TEXT_CHARS:
        text += _DIRECTIVE.sub(one, form)
    return Output(text)


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
    return output if options.split(call.args)[0] == [] else Output(None, (), output.downloaded)


def _through(call: Call) -> Output:
    return call.stdin or NO_OUTPUT


def _base64(call: Call) -> Output:
    text = _cat(Call(["cat", *options.operands(call.args, ("-w",))], call.scene, call.stdin)).text
    if text is None or not options.flag(call.args, "dD", "--decode"):
        return _unknown(call)
    try:
        return Output(base64.b64decode(re.sub(r"\s", "", text), validate=True).decode())
    except (binascii.Error, ValueError):
        return _unknown(call)


def _rev(call: Call) -> Output:
    if call.stdin is None or call.stdin.text is None or call.args:
        return _unknown(call)
    return Output("".join(line[::-1] + "\n" for line in call.stdin.text.splitlines()))


def _which(call: Call) -> Output:
    """`which rm`, `command -v rm`: the program itself."""
    names = options.operands(call.args)
    if call.argv[0] == "command" and not options.flag(call.args[:1], "vV"):
        return printed(Call(names, call.scene, call.stdin)) if names else UNKNOWN_OUTPUT
    return Output("\n".join(names) + "\n")


def _pwd(call: Call) -> Output:
    value = call.scene.value("PWD")
    return UNKNOWN_OUTPUT if UNKNOWN in value else Output(value + "\n")


def _basename(call: Call) -> Output:
    names = options.operands(call.args)
    if len(names) != 1 or UNKNOWN in names[0]:
        return UNKNOWN_OUTPUT
    return Output(names[0].rstrip("/").rpartition("/")[2] + "\n")


def _dirname(call: Call) -> Output:
    names = options.operands(call.args)
    if len(names) != 1 or UNKNOWN in names[0]:
        return UNKNOWN_OUTPUT
    return Output((names[0].rpartition("/")[0] or ".") + "\n")


def _realpath(call: Call) -> Output:
    names = options.operands(call.args)
    found = paths.absolute(names[0], call.scene) if len(names) == 1 else []
    return Output(found[0] + "\n") if len(found) == 1 and UNKNOWN not in found[0] else UNKNOWN_OUTPUT


def _number(_call: Call) -> Output:
    return Output("1\n")


def _date(call: Call) -> Output:
    """Digits, where the format has nothing but directives for digits."""
    args = call.args
    if len(args) == 1 and re.fullmatch(r"\+(?:%[YmdHMSsNFTjyuV]|[-_:.T])+", args[0]):
        return Output("1\n")
    return UNKNOWN_OUTPUT


def _mktemp(_call: Call) -> Output:
    return Output(paths.MADE_HERE + "\n")


def _download(_call: Call) -> Output:
    return Output(None, (), downloaded=True)


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
    return (
        _listing(call) if options.flag(call.args, "lL", "--files-with-matches", "--files") else _unknown(call)
    )


def _wrapped(call: Call) -> Output:
    """What a wrapper without options of its own prints: what it runs prints."""
    return printed(Call(list(call.args), call.scene, call.stdin)) if call.args else UNKNOWN_OUTPUT


_PRINTERS: Mapping[str, Callable[[Call], Output]] = {
    "echo": _echo,
    "printf": _printf,
    "cat": _cat,
    "tee": _through,
    "base64": _base64,
    "rev": _rev,
    **dict.fromkeys(["which", "command", "type"], _which),
    "pwd": _pwd,
    "basename": _basename,
    "dirname": _dirname,
    **dict.fromkeys(["realpath", "readlink"], _realpath),
    **dict.fromkeys(["nproc", "wc"], _number),
    "date": _date,
    "mktemp": _mktemp,
    **dict.fromkeys(
        ["curl", "wget", "fetch", "aria2c", "http", "https", "lynx", "ssh", "nc", "ncat"], _download
    ),
    "find": _find,
    **dict.fromkeys(["ls", "fd"], _listing),
    "git": _git,
    **dict.fromkeys(["grep", "egrep", "fgrep", "rg", "ag"], _grep),
    **dict.fromkeys(["time", "nohup", "builtin", "exec"], _wrapped),
    **dict.fromkeys([":", "true", "false", "cd", "mkdir", "touch", "chmod", "export", "set"], _nothing),
}
