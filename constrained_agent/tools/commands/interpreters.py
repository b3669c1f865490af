"""Shells and interpreters: text that they run as a program, from an argument, a pipe or a file."""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass

from constrained_agent.tools.commands import builtins, little, options, paths, programs
from constrained_agent.tools.commands.code import judge_code
from constrained_agent.tools.commands.options import names
from constrained_agent.tools.commands.programs import Judge
from constrained_agent.tools.commands.scene import UNKNOWN, Call
from constrained_agent.tools.commands.verdict import Judgement, danger, reads, remote, worst, writes

_SHELL_VALUED = frozenset(["-o", "+o", "-O", "+O", "--rcfile", "--init-file"])


def _shell(call: Call) -> Judgement:
    """`sh -c TEXT`, `sh FILE`, `... | sh`."""
    args, position, text_follows = list(call.args), 0, False
    while position < len(args) and re.match(r"[-+].", args[position]) and args[position] != "--":
        word = args[position]
        if word in ("--version", "--help"):
            return reads("asks for its version")
        if word in ("--rcfile", "--init-file") or word.startswith(("--rcfile=", "--init-file=")):
            return danger("reads another file of commands first")
        text_follows |= not word.startswith("--") and word.startswith("-") and "c" in word
        position += 2 if word in _SHELL_VALUED else 1
    rest = args[position + (args[position : position + 1] == ["--"]) :]
    if text_follows:
        return _text(call, rest)
    if not rest or options.flag(args[:position], "s"):
        return builtins.run_input(call)
    if UNKNOWN in rest[0]:
        return danger("runs a script that is only known when it runs")
    if paths.secret(rest[0], call.scene):
        return danger(f"reads credentials ({paths.shown(rest[0])})")
    return builtins.run_file(call, rest[0], rest[1:])


def _text(call: Call, rest: Sequence[str]) -> Judgement:
    if not rest:
        return reads("runs nothing")
    if UNKNOWN in rest[0]:
        return danger("runs text that is only known when it runs")
    inner = call.scene.copy()
    inner.positional = tuple(rest[2:])
    if rest[1:]:
        inner.variables["0"] = (rest[1],)
    return call.scene.engine.line(rest[0], inner)


@dataclass(frozen=True, slots=True)
class _Kind:
    """How an interpreter takes its program.

    Attributes:
        code: letters of options that hold program text.
        code_names: long options that do.
        valued: letters of options with another value.
    """

    code: str
    code_names: tuple[str, ...] = ()
    valued: str = ""


_KINDS: Mapping[str, _Kind] = {
    **dict.fromkeys(["python", "pypy", "ipython", "jython", "micropython"], _Kind("c", (), "WX")),
    **dict.fromkeys(["node", "nodejs", "bun", "tsx", "ts-node"], _Kind("ep", ("--eval", "--print"), "r")),
    "deno": _Kind("", ()),
    "perl": _Kind("eE", (), "IMm"),
    **dict.fromkeys(["ruby", "jruby"], _Kind("e", (), "rI")),
    "php": _Kind("rBRE", ("--run",), "df"),
    **dict.fromkeys(["lua", "luajit"], _Kind("e", (), "l")),
    **dict.fromkeys(
        ["rscript", "r", "julia", "elixir", "groovy", "scala", "ghc", "guile", "racket"],
        _Kind("eE", ("--eval",)),
    ),
    "osascript": _Kind("e", (), "l"),
    **dict.fromkeys(["tclsh", "wish", "swift", "pwsh", "powershell"], _Kind("c", ("--command",))),
}


def _interpreter(call: Call) -> Judgement:
    """`python -c TEXT`, `python -m MODULE`, `python FILE`, `... | python`."""
    kind = _KINDS[programs.name_of(call.argv[0])]
    codes: list[str] = []
    args, position = list(call.args), 0
    while position < len(args) and args[position].startswith("-") and args[position] not in ("-", "--"):
        word, following = args[position], args[position + 1] if position + 1 < len(args) else ""
        position += 1
        head, sign, value = word.partition("=")
        if word.startswith("--"):
            if head in kind.code_names:
                codes.append(value if sign else following)
                position += not sign
            continue
        letter = next((one for one in word[1:] if one in kind.code or one in kind.valued or one == "m"), "")
        rest = word[word.index(letter) + 1 :] if letter else ""
        if letter == "m" and kind.code == "c":
            return _module(call, [rest, *args[position:]] if rest else args[position:])
        if letter in kind.code and letter:
            codes.append(rest or following)
        position += bool(letter) and not rest and letter != "m"
        if letter in kind.code and letter and kind.code == "c":
            break
    operands = [word for word in args[position:] if word != "--"]
    if operands[:1] == ["eval"] and programs.name_of(call.argv[0]) == "deno":
        codes = [word for word in operands[1:] if not word.startswith("-")]
    if not codes:
        return _file(call, operands)
    edits = any(re.match(r"-\w*i", word) for word in args[:position]) and kind.code != "c"
    touch = paths.writing if edits else paths.reading
    return worst(
        *(_code(text, call) for text in codes),
        *(touch(word, call.scene) for word in operands if "/" in word or "." in word),
    )


def _code(text: str, call: Call) -> Judgement:
    if UNKNOWN in text:
        return danger("runs program text that is only known when it runs")
    return worst(judge_code(text, call.scene, programs.name_of(call.argv[0])), writes("runs program text"))


def _module(call: Call, rest: Sequence[str]) -> Judgement:
    """`python -m MODULE`: as if the module were a program; its name may also be a file of the repository."""
    if not rest:
        return reads("runs nothing")
    judged = programs.judge(Call(rest, call.scene, call.stdin))
    if rest[0] in ("timeit", "cProfile", "trace", "pdb", "profile"):
        judged = worst(
            judged,
            *(judge_code(text, call.scene, "python") for text in rest[1:] if re.search(r"[(\s]", text)),
        )
    return worst(writes(f"runs the module {rest[0][:40]}"), Judgement(judged.risk, judged.reason))


def _file(call: Call, rest: Sequence[str]) -> Judgement:
    scene = call.scene
    if not rest or builtins.INPUT.fullmatch(rest[0]):
        given = call.stdin
        if given is None:
            return writes("starts an interpreter")
        if given.text is None or UNKNOWN in given.text:
            return danger("runs text that is only known when it runs")
        return _code(given.text, call)
    words = [word for word in rest if not word.startswith("-")][:2] if rest[0] == "run" else rest[:1]
    if UNKNOWN in words[-1]:
        return danger("runs a script that is only known when it runs")
    if any(re.match(r"https?://|ftp://", word) for word in words):
        return danger("runs a download, unseen")
    written = [scene.files[full] for full in paths.absolute(words[-1], scene) if full in scene.files]
    if written:
        text = written[0].text
        return danger("runs a file that this line makes, unseen") if text is None else _code(text, call)
    found = writes("runs a script")
    if programs.names_shipping(words[-1]):
        found = worst(found, remote("runs a script that is named for publishing"))
    return worst(found, programs.arguments(Call([words[-1], *rest[1:]], scene)))


def _awk(call: Call) -> Judgement:
    given, operands = options.split(call.args, ("-F", "-v", "-f", "-e", "-i", "-E", "-l"))
    texts = options.values(call.args, "e", "--source")
    if options.flag(given, "fEli", "--file", "--exec", "--load", "--include"):
        return worst(writes("runs a script"), programs.arguments(call))
    if not texts:
        texts, operands = operands[:1], operands[1:]
    if any(UNKNOWN in text for text in texts):
        return danger("runs program text that is only known when it runs")
    found = worst(*(little.judge_awk(text, call.scene) for text in texts))
    return worst(found, *(paths.reading(one, call.scene) for one in operands if "=" not in one))


def _sed(call: Call) -> Judgement:
    given, operands = options.split(call.args, ("-e", "-f", "-l", "--expression", "--file", "--line-length"))
    texts = options.values(call.args, "e", "--expression")
    if not options.flag(given, "ef", "--expression", "--file"):
        texts, operands = operands[:1], operands[1:]
    if any(UNKNOWN in text for text in texts):
        found = writes("edits by a script that is only known when it runs")
    else:
        found = worst(*(little.judge_sed(text, call.scene) for text in texts))
    if options.flag(given, "f", "--file"):
        found = worst(found, writes("edits by a script file"))
    if options.flag(given, "iI", "--in-place"):
        return worst(found, writes("edits files"), *(paths.writing(one, call.scene) for one in operands))
    return worst(found, *(paths.reading(one, call.scene) for one in operands if one != "-"))


JUDGES: Mapping[str, Judge] = {
    **dict.fromkeys(names("sh bash dash zsh ksh ash mksh rbash fish csh tcsh xonsh nu elvish"), _shell),
    **dict.fromkeys(_KINDS, _interpreter),
    **dict.fromkeys(["awk", "gawk", "mawk", "nawk"], _awk),
    "sed": _sed,
}
