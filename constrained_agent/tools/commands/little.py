"""The little languages of `sed` and `awk`: most scripts only print, some write files and run commands."""

from __future__ import annotations

import re

from constrained_agent.tools.commands import paths
from constrained_agent.tools.commands.scene import Scene
from constrained_agent.tools.commands.verdict import Judgement, danger, reads, worst, writes

_ADDRESS = re.compile(
    r"\s*(?:\d+(?:~\d+)?|\$|\+\d+|~\d+|/(?:[^/\\\n]|\\.)*/[IM]*|\\(.)(?:(?!\1)[^\\\n]|\\.)*?\1[IM]*)\s*"
)
_STRING = re.compile(r'"(?:[^"\\]|\\.)*"')
_REGEX = re.compile(r"/(?:[^/\\\n]|\\.)*/")
_MAX_COMMANDS = 200


def judge_sed(script: str, scene: Scene) -> Judgement:
    """What a script of sed may do: `e` runs commands, `w` writes files, `r` reads them."""
    found, rest = reads("prints edited text"), script
    for _ in range(_MAX_COMMANDS):
        rest = rest.lstrip(" \t\n;}")
        if not rest:
            return found
        rest = _skip_addresses(rest).lstrip(" \t!")
        if not rest:
            return worst(found, writes("edits by a script that is hard to read"))
        letter, rest = rest[0], rest[1:]
        judged, rest = _sed_command(letter, rest, scene)
        found = worst(found, judged)
    return danger("edits by a script that is too long to read")


def _skip_addresses(rest: str) -> str:
    if first := _ADDRESS.match(rest):
        rest = rest[first.end() :]
        if rest.startswith(",") and (second := _ADDRESS.match(rest[1:])):
            rest = rest[1 + second.end() :]
    return rest


def _sed_command(letter: str, rest: str, scene: Scene) -> tuple[Judgement, str]:
    """One command: what it may do, and the text after it."""
    if letter in "{pPdDnNgGhHxz=F#":
        return reads(), rest.partition("\n")[2] if letter == "#" else rest
    if letter in "qQlL":
        return reads(), re.sub(r"^\s*\d+", "", rest)
    if letter in "btT:":
        return reads(), re.sub(r"^\s*[^;\n}]*", "", rest)
    if letter in "aic":
        return reads(), re.sub(r"^(?:[^\n\\]|\\.|\\\n)*", "", rest, flags=re.DOTALL)
    if letter in "rRwW":
        name, _, rest = rest.partition("\n")
        return (paths.reading if letter in "rR" else paths.writing)(name.strip(), scene), rest
    if letter in "sy" and rest:
        return _substitution(letter, rest, scene)
    if letter == "e":
        return danger("runs commands inside sed"), rest.partition("\n")[2]
    return danger("edits by a script that cannot be read"), ""


def _substitution(letter: str, rest: str, scene: Scene) -> tuple[Judgement, str]:
    """`s/A/B/flags`: the flag `e` runs the result, `w` writes it."""
    first = _end_of_part(rest, 1, rest[0], brackets=letter == "s")
    second = _end_of_part(rest, first + 1, rest[0], brackets=False)
    if first < 0 or second < 0:
        return danger("edits by a script that cannot be read"), ""
    rest = rest[second + 1 :]
    if letter == "y":
        return reads(), rest
    flags = re.match(r"[gpiImM0-9]*", rest)
    assert flags is not None
    rest = rest[flags.end() :]
    if rest.startswith("e"):
        return danger("runs commands inside sed"), ""
    if rest.startswith("w"):
        name, _, rest = rest[1:].partition("\n")
        return paths.writing(name.strip(), scene), rest
    return reads(), rest


def _end_of_part(text: str, start: int, mark: str, *, brackets: bool) -> int:
    """Where the mark ends a part; -1 if nowhere. A mark in brackets (`[^/]`) does not."""
    position = start if start > 0 else len(text)
    while position < len(text):
        one = text[position]
        if one == mark:
            return position
        if one == "\\":
            position += 1
        elif one == "[" and brackets:
            skip = position + 1 + (text[position + 1 : position + 2] == "^")
            end = text.find("]", skip + 1)
            position = end if end > 0 else position
        position += 1
    return -1


def judge_awk(program: str, scene: Scene) -> Judgement:
    """What a program of awk may do: `system`, pipes to and from commands, output to files."""
    if re.search(r"\bsystem\s*\(|\|\s*getline", program):
        return danger("runs commands inside awk")
    if any(paths.secret(string[1:-1], scene) for string in _STRING.findall(program)[:_MAX_COMMANDS]):
        return danger("speaks of credentials inside awk")
    # A quote in /"/ and a slash in "a/b" hide each other's ends: both readings count.
    return worst(_judge_bare_awk(program, program), _judge_bare_awk(_REGEX.sub(" R ", program), program))


def _judge_bare_awk(text: str, program: str) -> Judgement:
    bare = _STRING.sub(" S ", text)
    if re.search(r"\bsystem\b|@\s*load|@\s*include|@\s*\w+\s*\(", bare):
        return danger("runs commands inside awk")
    if re.search(r"\|&|(?<!\|)\|\s*getline|(?<!\|)\|(?!\|)\s*S\b", bare):
        return danger("runs commands inside awk")
    statements = re.split(r"[;{}\n]", bare)
    if any(re.search(r"\bprintf?\b[^|]*(?<!\|)\|(?!\|)", one) for one in statements):
        return danger("runs commands inside awk")
    if re.search(r"\bprintf?\b[^;}\n]*>", bare) or re.search(r">\s*S\b|>\s*\(", bare):
        outside = re.search(r">\s*\"(?:/(?!dev/|tmp/)|~|\.\.)", program)
        return danger("writes outside the repository") if outside else writes("may write files inside awk")
    if re.search(r"\bgetline\b|\bENVIRON\b", bare):
        return writes("reads other files inside awk")
    return reads("prints edited text")
