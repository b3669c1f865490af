"""JSON of calls, read more strictly than Python does: a key that stands twice has no one meaning."""

from __future__ import annotations

import json
from typing import Any

BLANKS = " \t\r\n"
"""What JSON takes for white space."""

_MAX_DIGITS = 4_000
_NEAR = 12  # characters quoted on each side of a place

_HOW = {
    "invalid escape": "; a backslash in a string is written \\\\",
    "control character": "; in a string, a line break is written \\n and a tab \\t",
    "',' delimiter": '; a quote in a string is written \\", and each { has its }',
    "enclosed in double quotes": "; keys and strings stand in double quotes, and no comma before a }",
}
"""What to do about an error, by words in it."""


def _unique_keys(pairs: list[tuple[str, Any]]) -> dict[str, Any]:
    keys = [key for key, _ in pairs]
    for key in keys:
        if keys.count(key) > 1:
            raise ValueError(f"the key {key!r} stands twice in one object")
    return dict(pairs)


def what_is_wrong(error: ValueError | RecursionError) -> str:
    """What is wrong, where, and how it is written rightly; quotes the text there: positions mean little to a model."""
    if not isinstance(error, json.JSONDecodeError):
        return str(error)
    what = error.msg.lower().replace("invalid \\uxxxx escape", "invalid escape").replace("\\escape", "escape")
    near = error.doc[max(0, error.pos - _NEAR) : error.pos + _NEAR].replace("\n", "⏎")
    how = next((how for word, how in _HOW.items() if word in what), "")
    return f"{what.removesuffix(' at')} at position {error.pos}, near `{near}`{how}"


def _no_constant(name: str) -> Any:
    raise ValueError(f"{name} is no JSON value")


def _integer(digits: str) -> int | float:
    """An integer; beyond what Python reads at once (4,300 digits) it is infinite, and its schema's business."""
    return int(digits) if len(digits) <= _MAX_DIGITS else float(digits)


DECODER = json.JSONDecoder(object_pairs_hook=_unique_keys, parse_int=_integer, parse_constant=_no_constant)
"""Raises ValueError or RecursionError for what it cannot read."""
