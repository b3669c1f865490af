"""Lines of a file inside a message: with tabs, trailing blanks and odd characters made visible."""

from __future__ import annotations

import unicodedata
from collections.abc import Sequence

from constrained_agent.patch.match import is_lookalike

_MAX_CHARS = 100
_MAX_BLANKS = 8
_MAX_NAMED = 4


def visible(text: str) -> str:
    """A line with → for a tab, · for a trailing blank and escapes for what cannot be shown; cut."""
    body = text.rstrip(" ")
    shown = "".join([_shown(char) for char in body[:_MAX_CHARS]])
    return shown + ("..." if len(body) > _MAX_CHARS else "·" * min(len(text) - len(body), _MAX_BLANKS))


def quoted(text: str) -> str:
    """A visible line in quotes; an empty one says so."""
    return f'"{visible(text)}"' if text else "an empty line"


def excerpt(texts: Sequence[str], first: int, end: int) -> str:
    """Lines `first` up to `end` (0-based), one a row, behind their 1-based numbers."""
    return "\n".join(f"{i + 1:>5}|{visible(texts[i])}" for i in range(first, end))


def lookalikes(text: str) -> str:
    """The characters that are easily mistaken for others, with code and 1-based column; a few of them."""
    found = [f"U+{ord(char):04X} in column {i + 1}" for i, char in enumerate(text) if is_lookalike(char)]
    return ", ".join(found[:_MAX_NAMED]) or "other characters"


def _shown(char: str) -> str:
    if char == "\t":
        return "→"
    # Whoever has to copy a line needs its own characters, unless they cannot be seen or written at all.
    if char.isprintable() or unicodedata.category(char) == "Zs":
        return char
    return char.encode("unicode_escape").decode()
