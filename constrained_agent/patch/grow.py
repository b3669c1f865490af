"""Changes of a file's lines to hunks, each with the least context that makes its place the only one."""

from __future__ import annotations

import functools
from collections import Counter
from collections.abc import Sequence
from itertools import accumulate
from typing import NamedTuple

from constrained_agent.patch.blocks import Blocks, enclosing
from constrained_agent.patch.edits import Change
from constrained_agent.patch.locate import Place, Searcher
from constrained_agent.patch.sections import Hunk, HunkLine
from constrained_agent.patch.unique import shortest_unique

_LONG_CONTEXT = 6
"""With more context lines than this, an `@@` header is looked for that needs fewer."""

_MAX_CONTEXT_BELOW_HEADER = 4
_MAX_BLOCK = 300  # lines below a header that are compared for each hunk
_UNWRITABLE = 1000  # what an old line counts that is no UTF-8; an ordinary one counts 1


class _Window(NamedTuple):
    """Old lines `start` up to `end` (0-based): the changes number `first` to `last`, and context around them.

    `cost` is about the number of lines of the patch. `header` is the line (0-based) behind the `@@`.
    """

    first: int
    last: int
    start: int
    end: int
    cost: int
    at_end: bool = False
    header: int | None = None


def hunks(texts: Sequence[str], changes: Sequence[Change], *, headers: bool = True) -> tuple[Hunk, ...]:
    """Hunks that make the changes, in file order.

    The old lines of each stand in the file only once, or are its last ones and bound to the end. Neither a context
    line nor the `*** End of File` at the edge of a hunk can be left out; of several smallest windows it takes the
    highest. Neighbours share a hunk where apart they would find no place, or need more lines. A hunk names an old
    line wherever the file has one: additions alone would land at the end of any file. Where more than
    `_LONG_CONTEXT` lines of context would be needed, and some unique line that encloses the change saves most of
    them, that line becomes the hunk's `@@` header.

    Args:
        texts: the file's lines.
        changes: in file order, with at least one line between two of them.
        headers: whether a hunk may have an `@@` header at all.

    Cost: that of `shortest_unique`.
    """
    if not texts:
        return tuple(Hunk((), tuple(HunkLine("+", _spelt(text)) for text in c.added)) for c in changes)
    grower = _Grower(texts, changes)
    windows = grower.windows(headers=headers)
    found = [grower.hunk(window) for window in windows]
    headed = [at for at, hunk in enumerate(found) if hunk.headers]
    searcher = Searcher(texts, [found[at] for at in headed])
    # How a header is read has more rules than are looked at here: what counts is where the hunk lands.
    for at in headed:
        place = searcher.locate(found[at])
        if not isinstance(place, Place) or place.start != windows[at].start:
            return tuple(grower.hunk(window) for window in grower.windows(headers=False))
    return tuple(found)


class _Grower:
    """The windows of one file's changes."""

    def __init__(self, texts: Sequence[str], changes: Sequence[Change]) -> None:
        self._texts, self._changes = texts, changes
        numbers: dict[str, int] = {}
        self._lines = [numbers.setdefault(text, len(numbers)) for text in texts]
        self._least = shortest_unique(self._lines)
        # How many lines above each line are no UTF-8.
        odd = (not text.isascii() and any("\udc80" <= char <= "\udcff" for char in text) for text in texts)
        self._n_odd = list(accumulate(odd, initial=0))

    def windows(self, *, headers: bool) -> list[_Window]:
        """Windows that do not overlap, in file order."""
        found: list[_Window] = []
        n_taken = 0
        while n_taken < len(self._changes):
            first = last = n_taken
            while (window := self._window(first, last, _end_of(found, 1), headers)) is None:
                # There is too little room up to the neighbours.
                if last + 1 < len(self._changes):
                    last += 1
                else:
                    first = found.pop().first
            while found:
                both = self._window(found[-1].first, last, _end_of(found, 2), headers)
                # Apart, the second one also has its own @@ line.
                if both is None or both.cost > found[-1].cost + window.cost + 1:
                    break
                found.pop()
                window = both
            found.append(window)
            n_taken = last + 1
        return found

    def _window(self, first: int, last: int, low: int, headers: bool) -> _Window | None:
        """The cheapest window that starts at line `low` or below; None if its neighbours leave no room for one."""
        plain = self._plain_window(first, last, low)
        start, end = self._span(first, last)
        if headers and (plain is None or plain.cost - (end - start) > _LONG_CONTEXT):
            return self._headed_window(first, last, low) or plain
        return plain

    def _plain_window(self, first: int, last: int, low: int) -> _Window | None:
        start, end = self._span(first, last)
        high = self._room(last)
        top = min(start, len(self._texts) - 1)
        if low > top:
            return None
        best: _Window | None = None
        if last + 1 == len(self._changes):
            best = _Window(first, last, top, high, self._cost(top, high) + 1, at_end=True)
        elif low + self._least[low] > high:
            return None
        for i in range(top, low - 1, -1):
            if best is not None and end - i > best.cost:
                break
            behind = max(end, i + self._least[i])
            if behind <= high and (best is None or self._cost(i, behind) <= best.cost):
                best = _Window(first, last, i, behind, self._cost(i, behind))
        return best

    def _headed_window(self, first: int, last: int, low: int) -> _Window | None:
        """The smallest window that is unique below a unique line which encloses the changes."""
        start, end = self._span(first, last)
        high = self._room(last)
        for head in enclosing(self._texts, start if start < end else max(start - 1, 0), _MAX_BLOCK):
            block = range(head + 1, self._blocks.end(head))
            # A header above the hunk before would be lost on readers that only go down.
            if head < low or len(block) > _MAX_BLOCK:
                break
            if self._n_of[self._lines[head]] > 1:
                continue
            for n in range(_MAX_CONTEXT_BELOW_HEADER + 1):
                for i in range(max(start - n, low, block.start), start + 1):
                    behind = end + n - (start - i)
                    if i < behind <= high and i in block and self._is_unique(i, behind, block):
                        return _Window(first, last, i, behind, self._cost(i, behind), header=head)
        return None

    def _is_unique(self, start: int, end: int, block: range) -> bool:
        lines, needle = self._lines, self._lines[start:end]
        return not any(
            lines[i] == needle[0] and i != start and lines[i : i + len(needle)] == needle for i in block
        )

    def _span(self, first: int, last: int) -> tuple[int, int]:
        """First changed line, and the line behind the last."""
        return self._changes[first].start, self._changes[last].start + self._changes[last].n_removed

    def _room(self, last: int) -> int:
        """The line that context below a change must not reach."""
        return self._changes[last + 1].start if last + 1 < len(self._changes) else len(self._texts)

    def _cost(self, start: int, end: int) -> int:
        return end - start + (_UNWRITABLE - 1) * (self._n_odd[end] - self._n_odd[start])

    def hunk(self, window: _Window) -> Hunk:
        # A hunk with an old line that ends in CR says that CRs are no line endings in this file.
        spelt = str if any(text.endswith("\r") for text in self._texts[window.start : window.end]) else _spelt
        lines: list[HunkLine] = []
        at = window.start
        for change in self._changes[window.first : window.last + 1]:
            lines += [HunkLine(" ", text) for text in self._texts[at : change.start]]
            at = change.start + change.n_removed
            lines += [HunkLine("-", text) for text in self._texts[change.start : at]]
            lines += [HunkLine("+", spelt(text)) for text in change.added]
        lines += [HunkLine(" ", text) for text in self._texts[at : window.end]]
        headers = () if window.header is None else (self._texts[window.header],)
        return Hunk(headers, tuple(lines), window.at_end)

    @functools.cached_property
    def _n_of(self) -> Counter[int]:
        return Counter(self._lines)

    @functools.cached_property
    def _blocks(self) -> Blocks:
        return Blocks(self._texts)


def _end_of(found: Sequence[_Window], n_back: int) -> int:
    return found[-n_back].end if len(found) >= n_back else 0


def _spelt(text: str) -> str:
    """An added line as a patch has to spell it: one CR at its end counts as the line ending, a second one stays."""
    return text + "\r" if text.endswith("\r") else text
