"""The one place in a file where a hunk belongs, or why there is none."""

from __future__ import annotations

import functools
import re
from bisect import bisect_left
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass
from typing import Literal

from constrained_agent.patch.blocks import Blocks
from constrained_agent.patch.match import Level, LineIndex, equal, fold
from constrained_agent.patch.sections import Hunk

_LINE_RANGE = re.compile(r"\s*-\d+(?:,\d+)?\s+\+\d+(?:,\d+)?\s*(?:@@\s*)?(.*)", re.DOTALL)

Span = tuple[int, int]
"""First line and the line behind the last, 0-based."""


@dataclass(frozen=True, slots=True)
class Place:
    """Where a hunk lands.

    Attributes:
        start: 0-based line of its first old line; for additions alone, the line they go before.
        level: how its old lines had to be compared.
    """

    start: int
    level: Level


@dataclass(frozen=True, slots=True)
class Miss:
    """Why a hunk lands nowhere.

    Attributes:
        kind: the error kind.
        lines: 0-based lines it speaks of: all candidates for `ambiguous`, where the old lines do stand for
            `eof_mismatch` and `context_not_found`.
        header: the `@@` text that is missing or fits several lines.
    """

    kind: Literal["anchor_not_found", "context_not_found", "ambiguous", "eof_mismatch"]
    lines: tuple[int, ...] = ()
    header: str | None = None


class Searcher:
    """Finds the hunks of one section in one file.

    Args:
        texts: the file's lines; not to be changed afterwards.
        hunks: every hunk that will be looked for.
    """

    def __init__(self, texts: Sequence[str], hunks: Iterable[Hunk]) -> None:
        self.texts = texts
        wanted: list[str] = []
        for hunk in hunks:
            wanted += hunk.old()
            wanted += hunk.new() if hunk.headers else []
            wanted += [spelling for header in hunk.headers for spelling, _ in _spellings(header)]
        self.index = LineIndex(texts, wanted)
        self._starting_with: dict[str, list[int]] = {}

    def locate(self, hunk: Hunk, after: int = 0) -> Place | Miss:
        """The hunk's place.

        Args:
            after: the line behind the previous hunk; breaks a tie of a hunk without headers.
        """
        heads = self._headers(hunk)
        if isinstance(heads, Miss):
            return heads
        old = hunk.old()
        if not old:
            return self._place_of_additions(hunk, heads)
        if hunk.end_of_file:
            return self._at_end(old, heads)
        for domain in [None] if heads is None else self._domains(heads, with_header=True):
            level, hits = self._strictest(old, domain)
            if hits and heads is not None and self._is_elsewhere(hunk, hits, heads):
                return Miss("context_not_found")
            if len(hits) == 1:
                return Place(hits[0], level)
            if hits:
                later = [hit for hit in hits if hit >= after] if heads is None else []
                return Place(later[0], level) if len(later) == 1 else Miss("ambiguous", tuple(hits))
        return Miss("context_not_found", tuple(self._strictest(old, None)[1]))

    def _is_elsewhere(self, hunk: Hunk, hits: list[int], heads: list[int]) -> bool:
        """Whether the old lines stand only beyond the header's block, and the block holds the new ones already.

        Then the hunk was applied before, and what is left beyond the block is a lookalike.
        """
        block = [(head, max(head + 2, self._blocks.end(head))) for head in heads]
        if _within(hits, block) or not any(line.strip() for line in hunk.new()):
            return False
        return bool(_within(self.index.hits(hunk.new(), Level.EXACT), block))

    def _place_of_additions(self, hunk: Hunk, heads: list[int] | None) -> Place | Miss:
        if heads is None or hunk.end_of_file:
            return Place(len(self.texts), Level.EXACT)
        if len(heads) > 1:
            return Miss("ambiguous", tuple(heads), hunk.headers[-1])
        return Place(heads[0] + 1, Level.EXACT)

    def _at_end(self, old: list[str], heads: list[int] | None) -> Place | Miss:
        start = len(self.texts) - len(old)
        if start >= 0 and (heads is None or heads[0] <= start):
            last = self.texts[start:]
            for level in Level:
                if all(equal(a, b, level) for a, b in zip(old, last, strict=True)):
                    return Place(start, level)
        _, hits = self._strictest(old, None)
        return Miss("eof_mismatch" if hits else "context_not_found", tuple(hits))

    def _strictest(self, lines: Sequence[str], domain: list[Span] | None) -> tuple[Level, list[int]]:
        """The hits at the strictest level that has any, within the starts that `domain` allows."""
        for level in Level:
            hits = self.index.hits(lines, level)
            if domain is not None:
                hits = _within(hits, domain)
            if hits:
                return level, hits
        return Level.FOLDED, []

    def _headers(self, hunk: Hunk) -> list[int] | Miss | None:
        """Lines of the innermost header; None if nothing narrows the search."""
        heads: list[int] | None = None
        for header in hunk.headers:
            spellings = _spellings(header)
            if not spellings:
                continue
            found = self._header(spellings, heads)
            if (not found or isinstance(found, Miss)) and _LINE_RANGE.fullmatch(header):
                # What a diff tool writes behind a line range is a hint, not a line that must exist.
                continue
            if isinstance(found, Miss):
                return found
            if not found:
                return Miss("anchor_not_found", tuple(heads or ()), header)
            heads = found
        return heads

    def _header(self, spellings: list[tuple[str, str]], heads: list[int] | None) -> list[int] | Miss:
        """Lines that a header means: whole lines first, then one line that starts with it, domain by domain."""
        for domain in [None] if heads is None else self._domains(heads, with_header=False):
            for spelling, folded in spellings:
                if hits := self._strictest([spelling], domain)[1]:
                    return hits
                starts = self._lines_starting_with(folded)
                starts = starts if domain is None else _within(starts, domain)
                if len(starts) > 1:
                    return Miss("ambiguous", tuple(starts), spelling)
                if starts:
                    return starts
        return []

    def _domains(self, heads: list[int], *, with_header: bool) -> Iterator[list[Span]]:
        """Where to look below headers, nearest first: their blocks, directly below them, anywhere below.

        Models often repeat the header as the first context line, so a hunk may also start with it.
        """
        yield [(head + 1, self._blocks.end(head)) for head in heads]
        if with_header:
            yield [(head, head + 1) for head in heads]
        yield [(head + 1, head + 2) for head in heads]
        yield [(heads[0] + 1, len(self.texts))]

    @functools.cached_property
    def _blocks(self) -> Blocks:
        return Blocks(self.texts)

    @functools.cached_property
    def _sorted_lines(self) -> list[tuple[str, int]]:
        return sorted((key, i) for i, key in enumerate(self.index.keys(Level.FOLDED)))

    def _lines_starting_with(self, start: str) -> list[int]:
        """Lines that begin with a header's text, up to a word boundary."""
        if start in self._starting_with:
            return self._starting_with[start]
        found: list[int] = []
        ordered = self._sorted_lines
        for at in range(bisect_left(ordered, (start, -1)), len(ordered)):
            key, i = ordered[at]
            if not key.startswith(start):
                break
            rest = key[len(start) : len(start) + 1]
            if not (_in_word(start[-1]) and _in_word(rest)):
                found.append(i)
        self._starting_with[start] = sorted(found)
        return self._starting_with[start]


def _spellings(header: str) -> list[tuple[str, str]]:
    """What to look for, each with its folded form: the header, then without a closing `@@`; nothing for a range."""
    if line_range := _LINE_RANGE.fullmatch(header):
        header = line_range[1]
    spellings = [header, header.rstrip().removesuffix("@@")]
    if not fold(spellings[-1]):
        return []
    return [(text, folded) for text in dict.fromkeys(spellings) if (folded := fold(text))]


def _in_word(char: str) -> bool:
    return char.isalnum() or char == "_"


def _within(hits: list[int], domain: list[Span]) -> list[int]:
    """The hits that lie in a union of spans."""
    if len(domain) == 1:
        low, high = domain[0]
        return hits[bisect_left(hits, low) : bisect_left(hits, high)]
    kept: list[int] = []
    for low, high in domain:
        kept += hits[bisect_left(hits, low) : bisect_left(hits, high)]
    return sorted(set(kept))
