"""Where a run of lines occurs in a file, at four levels of exactness.

Lines that a patch speaks of become one character each, all others a common one; a file is then one string and
a search is `str.find`, which is linear and runs in C. For a patch of many hunks even that would add up to hunks
times lines: then the rarest line of each run says where to look.
"""

from __future__ import annotations

import enum
import sys
import unicodedata
from collections.abc import Callable, Iterable, Sequence


class Level(enum.IntEnum):
    """How two lines are compared, strictest first."""

    EXACT = 0
    RIGHT_TRIMMED = 1
    TRIMMED = 2
    FOLDED = 3


# Look-alikes that models write as ASCII: dashes and minus, quotes, ellipsis, spaces; zero-width characters go.
_FOLD = {
    **dict.fromkeys([*range(0x2010, 0x2016), 0x2212, 0xFE58, 0xFE63, 0xFF0D], "-"),
    **dict.fromkeys([*range(0x2018, 0x201C), 0x2032, 0x2035], "'"),
    **dict.fromkeys([*range(0x201C, 0x2020), 0x2033, 0x2036], '"'),
    **dict.fromkeys([0x00A0, 0x1680, *range(0x2000, 0x200B), 0x202F, 0x205F, 0x3000], " "),
    **dict.fromkeys([0x200B, 0x2060, 0xFEFF, 0x00AD], None),
    0x2026: "...",
}
_FINDS_BEFORE_SCAN = 64
_FINDS_BEFORE_PLACES = 32
_MAX_PLACES = 100  # of its rarest line, at which a run is looked for; with more, `find` is as quick


def fold(text: str) -> str:
    """Trimmed, composed, look-alikes replaced by their ASCII forms."""
    if text.isascii():
        return text.strip()
    return unicodedata.normalize("NFC", text.translate(_FOLD)).strip()


def is_lookalike(char: str) -> bool:
    """Whether a character is easily mistaken for another one, or for none."""
    return ord(char) in _FOLD or unicodedata.combining(char) != 0


_KEYS: dict[Level, Callable[[str], str]] = {
    Level.EXACT: str,
    Level.RIGHT_TRIMMED: str.rstrip,
    Level.TRIMMED: str.strip,
    Level.FOLDED: fold,
}


def equal(a: str, b: str, level: Level) -> bool:
    """Whether two lines are equal at a level."""
    key = _KEYS[level]
    return key(a) == key(b)


class LineIndex:
    """The lines of one file, searchable for the lines of one section.

    Keys and strings of a level are made when it is first asked for: about 0.3 s for a million lines.

    Args:
        texts: the file's lines, without endings; not to be changed afterwards.
        wanted: every line that will be searched for.
    """

    def __init__(self, texts: Sequence[str], wanted: Iterable[str]) -> None:
        self.texts = texts
        self._wanted = list(wanted)
        self._keys: dict[Level, Sequence[str]] = {Level.EXACT: texts}
        self._strings: dict[Level, tuple[dict[str, str], str]] = {}
        self._places: dict[Level, dict[str, list[int]]] = {}
        self._found: dict[tuple[Level, str, int], list[int]] = {}

    def keys(self, level: Level) -> Sequence[str]:
        """The file's lines as the level compares them."""
        if level not in self._keys:
            # Each level starts from the one before: fewer and shorter strings to work on.
            self._keys[level] = [_KEYS[level](text) for text in self.keys(Level(level - 1))]
        return self._keys[level]

    def hits(self, lines: Sequence[str], level: Level, limit: int = sys.maxsize) -> list[int]:
        """First line (0-based) of every place where `lines` stand in a row, in order; may overlap.

        The list is shared: it is not to be changed.

        Args:
            limit: stop after so many.

        Raises:
            KeyError: a line was not announced as wanted.
        """
        alphabet, _ = self._string(level)
        needle = "".join([alphabet[_KEYS[level](line)] for line in lines])
        # Many hunks ask for the same header or the same common line.
        asked = level, needle, limit
        if asked not in self._found:
            self._found[asked] = self._search(level, needle, limit)
        return self._found[asked]

    def _search(self, level: Level, needle: str, limit: int) -> list[int]:
        haystack = self._string(level)[1]
        if len(self._found) >= _FINDS_BEFORE_PLACES:
            rarest, places = self._rarest(level, needle)
            if len(places) <= _MAX_PLACES:
                shift = needle.index(rarest)
                starts = [at - shift for at in places if at >= shift]
                return [start for start in starts if haystack.startswith(needle, start)][:limit]
        return _occurrences(haystack, needle, limit)

    def _rarest(self, level: Level, needle: str) -> tuple[str, list[int]]:
        """The line of a run that stands in the file least often, and where it does."""
        if level not in self._places:
            alphabet, haystack = self._string(level)
            places: dict[str, list[int]] = {char: [] for char in alphabet.values()}
            for at, char in enumerate(haystack):
                if char != "\0":
                    places[char].append(at)
            self._places[level] = places
        rarest = min(dict.fromkeys(needle), key=lambda char: len(self._places[level][char]))
        return rarest, self._places[level][rarest]

    def _string(self, level: Level) -> tuple[dict[str, str], str]:
        if level not in self._strings:
            distinct = dict.fromkeys(_KEYS[level](line) for line in self._wanted)
            alphabet = {key: chr(i) for i, key in enumerate(distinct, start=1)}
            get = alphabet.get
            self._strings[level] = alphabet, "".join([get(key, "\0") for key in self.keys(level)])
        return self._strings[level]


def _occurrences(haystack: str, needle: str, limit: int) -> list[int]:
    """Start of every occurrence. Each `find` looks at the needle anew, so many hits go to one plain scan."""
    found: list[int] = []
    at = haystack.find(needle)
    while at >= 0 and len(found) < limit:
        if len(found) == _FINDS_BEFORE_SCAN and len(needle) > 1:
            return (found + [at + i for i in _scan(haystack[at:], needle)])[:limit]
        found.append(at)
        at = haystack.find(needle, at + 1)
    return found


def _scan(haystack: str, needle: str) -> list[int]:
    """Every occurrence in one pass (Knuth, Morris, Pratt)."""
    found: list[int] = []
    borders = [0] * len(needle)
    length = 0
    for i in range(1, len(needle)):
        while length and needle[i] != needle[length]:
            length = borders[length - 1]
        length += needle[i] == needle[length]
        borders[i] = length
    length = 0
    for i, char in enumerate(haystack):
        while length and (length == len(needle) or char != needle[length]):
            length = borders[length - 1]
        length += char == needle[length]
        if length == len(needle):
            found.append(i - length + 1)
    return found
