"""Characters and sets of characters in words, for messages."""

from __future__ import annotations

import unicodedata
from collections.abc import Sequence, Set

ASCII = frozenset(range(0x80))
CONTROL = frozenset({*range(0x20), 0x7F})
WHITESPACE = frozenset(b" \t\n\r")

_NAMES = {
    0x00: "NUL",
    0x09: "tab",
    0x0A: "newline",
    0x0D: "carriage return",
    0x20: "blank",
    0x22: "double quote",
    0x7F: "delete",
    0xFEFF: "byte order mark",
}
# More exceptions than this and the characters themselves say it better.
_MAX_EXCEPTIONS = 8
_WELL_KNOWN = {
    "[0-9]": "a digit [0-9]",
    "[0-9A-Fa-f]": "a hex digit [0-9A-Fa-f]",
    "[A-Za-z]": "a letter [A-Za-z]",
}


def describe(character: str) -> str:
    """One character: quoted if it can be seen, named if it cannot or is easily mistaken for another."""
    code = ord(character)
    if code == 0x0A:
        return "newline"
    if code in CONTROL or code == 0xFEFF:
        return f"{name(code)} (U+{code:04X})" if code in _NAMES else f"control character (U+{code:04X})"
    if code < 0x80:
        return '" " (blank)' if code == 0x20 else f'"{character}"'
    shown = f'"{character}" ' if character.isprintable() else ""
    return f"{shown}(U+{code:04X} {unicodedata.name(character, 'unnamed')})"


def name(code: int) -> str:
    """One character within a list: its name, or itself quoted."""
    if code in _NAMES:
        return _NAMES[code]
    return f"U+{code:04X}" if code in CONTROL else f'"{chr(code)}"'


def one_of(codes: Set[int]) -> str:
    """A set of code points as a character class, with its usual name if it has one."""
    if codes == ASCII:
        return "any ASCII character"
    if codes == WHITESPACE:
        return "whitespace"
    if len(codes) > 1 and codes < WHITESPACE:
        return " or ".join(name(code) for code in sorted(codes))
    text = "[" + "".join(ranges(sorted(codes))) + "]"
    return _WELL_KNOWN.get(text, text)


def free(codes: Set[int]) -> str:
    """Some ASCII characters and all others.

    Args:
        codes: the ASCII code points that belong to the set.
    """
    if not codes:
        return "any non-ASCII character"
    missing = ASCII - codes
    tail: list[str] = []
    if missing >= CONTROL - WHITESPACE - {0x7F}:
        missing, tail = missing - CONTROL, ["control characters"]
    if len(missing) > _MAX_EXCEPTIONS:
        return f"{one_of(codes)} or any non-ASCII character"
    words = [*map(name, sorted(missing)), *tail]
    return "any character" + (f" except {_joined(words)}" if words else "")


def plainest(codes: Set[int]) -> int:
    """The member that reads best as an example: a letter or digit, else something visible."""
    return min(codes, key=lambda code: (code in CONTROL, not chr(code).isalnum(), code))


def ranges(points: Sequence[int]) -> list[str]:
    """Ascending code points as the inside of a character class: `0-9`, `A-Z`, `_`."""
    spans: list[list[int]] = []
    for point in points:
        if spans and spans[-1][1] == point - 1:
            spans[-1][1] = point
        else:
            spans.append([point, point])
    shown = []
    for low, high in spans:
        dash = "-" if high > low + 1 else ""
        shown.append(_in_class(low) + (dash + _in_class(high) if high > low else ""))
    return shown


def _in_class(point: int) -> str:
    character = chr(point)
    if character in "\\]^-[":
        return "\\" + character
    if character.isprintable():
        return character
    escape = {0x09: "\\t", 0x0A: "\\n", 0x0D: "\\r"}.get(point)
    return escape or (f"\\x{point:02x}" if point < 0x100 else f"\\u{{{point:x}}}")


def _joined(words: Sequence[str]) -> str:
    return words[0] if len(words) == 1 else ", ".join(words[:-1]) + " and " + words[-1]
