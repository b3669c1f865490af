"""Tells several places of one hunk apart, and finds what would make the hunk unique."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace

from constrained_agent.patch.blocks import enclosing
from constrained_agent.patch.locate import Miss, Place, Searcher
from constrained_agent.patch.sections import Hunk, HunkLine
from constrained_agent.patch.visible import quoted, visible

_MAX_HEADERS = 3
_MAX_ADVISED = 3
_MAX_GROWN = 5
_MAX_COMPARED = 50


def described(texts: Sequence[str], line: int, rivals: Sequence[int]) -> str:
    """One candidate (0-based line) as a row of the message: its text and what stands around it."""
    row = f"  line {line + 1}: {quoted(texts[line])}"
    if headers := _headers(texts, line, rivals):
        return row + " in " + ", in ".join(quoted(text.strip()) for text in reversed(headers))
    return row + (f" below {quoted(texts[line - 1])}" if line else " at the top of the file")


def advice(texts: Sequence[str], hunk: Hunk, miss: Miss) -> str:
    """How to make the hunk unique: for each of the first candidates, tried out, so that it is sure to work.

    For each, since only the writer knows which one was meant: advice for one would be taken for a hint.
    """
    if miss.header is not None:
        return (
            "write the whole line of the file behind @@, or put a further @@ line with an outer line above it"
        )
    ways = [way for line in miss.lines[:_MAX_ADVISED] if (way := _way(texts, hunk, line, miss.lines))]
    if not ways:
        return "give more context lines, until the old lines of the hunk stand in the file only once"
    return f"give more context: {'; '.join(ways)}"


def _way(texts: Sequence[str], hunk: Hunk, line: int, rivals: Sequence[int]) -> str | None:
    """What makes the hunk fit one candidate (0-based line) alone; None if nothing was found."""
    headers = [header.strip() for header in _headers(texts, line, rivals)]
    if headers and _lands(texts, replace(hunk, headers=tuple(headers)), line):
        rows = " and ".join(f"@@ {visible(header)}" for header in headers)
        return f"for line {line + 1} the line above the change behind @@: {rows}"
    for grown, start in _grown(texts, hunk, line):
        if _lands(texts, replace(grown, headers=()), start):
            n_above = line - start
            lines = grown.lines[:n_above] or grown.lines[len(hunk.lines) :]
            where = "above" if n_above else "below"
            return f"for line {line + 1} the lines {where} it: {', '.join(quoted(one.text) for one in lines)}"
    return None


def _headers(texts: Sequence[str], line: int, rivals: Sequence[int]) -> list[str]:
    """The enclosing lines, outermost first, that tell `line` from its rivals; empty if none do."""
    own = [texts[i] for i in enclosing(texts, line)]
    others = [
        [texts[i] for i in enclosing(texts, rival)] for rival in rivals[:_MAX_COMPARED] if rival != line
    ]
    for n in range(1, min(_MAX_HEADERS, len(own)) + 1):
        if all(other[:n] != own[:n] for other in others):
            return own[:n][::-1]
    return []


def _grown(texts: Sequence[str], hunk: Hunk, start: int) -> list[tuple[Hunk, int]]:
    """The hunk with one, two ... more context lines above, then below, each with its start."""
    end = start + len(hunk.old())
    above = [HunkLine(" ", text) for text in texts[max(0, start - _MAX_GROWN) : start]]
    below = [HunkLine(" ", text) for text in texts[end : end + _MAX_GROWN]]
    grown = [(replace(hunk, lines=(*above[-n:], *hunk.lines)), start - n) for n in range(1, len(above) + 1)]
    return grown + [(replace(hunk, lines=(*hunk.lines, *below[:n])), start) for n in range(1, len(below) + 1)]


def _lands(texts: Sequence[str], hunk: Hunk, start: int) -> bool:
    place = Searcher(texts, [hunk]).locate(hunk)
    return isinstance(place, Place) and place.start == start
