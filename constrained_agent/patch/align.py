"""Which lines of two files are the same: a short edit script, in nearly linear time."""

from __future__ import annotations

from bisect import bisect_left
from collections import Counter
from collections.abc import Iterator, Sequence
from itertools import pairwise
from typing import NamedTuple

_MAX_EDITS = 64
"""Up to so many single edits a script is the shortest there is; finding it costs their square."""


class Gap(NamedTuple):
    """Lines `a_start` up to `a_end` of the one file stand for lines `b_start` up to `b_end` of the other."""

    a_start: int
    a_end: int
    b_start: int
    b_end: int


def gaps(a: Sequence[int], b: Sequence[int]) -> list[Gap]:
    """The ranges that differ, in order; between two of them stands at least one common line.

    A range that only adds or only removes, and could slide, stands where it joins a neighbour, or else as far down
    as it can. With more than `_MAX_EDITS` edits, the lines that each side has once divide the work, as in a
    patience diff; where there are none, it goes on from the furthest point reached.

    Args:
        a, b: the lines of the two files as numbers, equal lines as equal numbers.

    Cost: n log n, and `_MAX_EDITS` times n at worst: 3 s for 100,000 lines of two kinds in random order.
    """
    # A line that the other side does not have costs nothing if it is left out at first.
    in_a, in_b = set(a), set(b)
    kept_a = [i for i, line in enumerate(a) if line in in_b]
    kept_b = [j for j, line in enumerate(b) if line in in_a]
    equal = _equal_pairs([a[i] for i in kept_a], [b[j] for j in kept_b])
    pairs = [(-1, -1), *((kept_a[i], kept_b[j]) for i, j in equal), (len(a), len(b))]
    found = [
        Gap(i + 1, next_i, j + 1, next_j)
        for (i, j), (next_i, next_j) in pairwise(pairs)
        if next_i > i + 1 or next_j > j + 1
    ]
    return _settled(a, b, found)


def _settled(a: Sequence[int], b: Sequence[int], gaps: Sequence[Gap]) -> list[Gap]:
    """The gaps, after each that only adds or only removes has slid to where it joins a neighbour, or else down."""
    found: list[Gap] = []
    for gap in gaps:
        while found:
            above, room = found[-1], gap.a_start - found[-1].a_end
            if _slides_down(a, b, above, room) == room:
                gap = Gap(above.a_start + room, gap.a_end, above.b_start + room, gap.b_end)
            elif _slides_up(a, b, gap, room):
                gap = Gap(above.a_start, gap.a_end - room, above.b_start, gap.b_end - room)
            else:
                break
            found.pop()
        found.append(gap)
    for at, gap in enumerate(found):
        room = (found[at + 1].a_start if at + 1 < len(found) else len(a)) - gap.a_end
        shift = _slides_down(a, b, gap, room)
        found[at] = Gap(*(line + shift for line in gap))
    return found


def _slides_down(a: Sequence[int], b: Sequence[int], gap: Gap, room: int) -> int:
    """By how many of the common lines below it a gap can slide."""
    if gap.a_start < gap.a_end and gap.b_start < gap.b_end:
        return 0
    lines, start, end = (
        (a, gap.a_start, gap.a_end) if gap.a_start < gap.a_end else (b, gap.b_start, gap.b_end)
    )
    return next((i for i in range(room) if lines[start + i] != lines[end + i]), room)


def _slides_up(a: Sequence[int], b: Sequence[int], gap: Gap, room: int) -> bool:
    """Whether a gap can slide over all common lines between it and the one above."""
    if gap.a_start < gap.a_end and gap.b_start < gap.b_end:
        return False
    lines, start, end = (
        (a, gap.a_start, gap.a_end) if gap.a_start < gap.a_end else (b, gap.b_start, gap.b_end)
    )
    return all(lines[start - i] == lines[end - i] for i in range(1, room + 1))


def _equal_pairs(a: Sequence[int], b: Sequence[int]) -> Iterator[tuple[int, int]]:
    """The lines of `a` and of `b` that stay, pair by pair."""
    i = j = 0
    for gap in [*_gaps(a, b), Gap(len(a), len(a), len(b), len(b))]:
        yield from zip(range(i, gap.a_start), range(j, gap.b_start), strict=True)
        i, j = gap.a_end, gap.b_end


def _gaps(a: Sequence[int], b: Sequence[int]) -> list[Gap]:
    """The ranges that differ, in order; they may touch or be empty."""
    found: list[Gap] = []
    todo = [(Gap(0, len(a), 0, len(b)), len(a))]
    while todo:
        gap, worth_a_look = todo.pop()
        gap = _trimmed(a, b, gap)
        n_lines = gap.a_end - gap.a_start
        if n_lines == 0 or gap.b_start == gap.b_end:
            found.append(gap)
            continue
        edits, reached = _edits(a, b, gap)
        if reached == (gap.a_end, gap.b_end):
            found += edits
        elif n_lines <= worth_a_look and (anchors := _anchors(a, b, gap)):
            todo += reversed([(inner, n_lines) for inner in _between(anchors, gap)])
        else:
            found += edits
            # Looking for anchors costs the whole gap, so after a look in vain the next one waits for half of it.
            rest = gap._replace(a_start=reached[0], b_start=reached[1])
            todo.append((rest, n_lines // 2 if n_lines <= worth_a_look else worth_a_look))
    return found


def _trimmed(a: Sequence[int], b: Sequence[int], gap: Gap) -> Gap:
    """Without the common lines at both ends."""
    a_start, a_end, b_start, b_end = gap
    while a_start < a_end and b_start < b_end and a[a_start] == b[b_start]:
        a_start += 1
        b_start += 1
    while a_start < a_end and b_start < b_end and a[a_end - 1] == b[b_end - 1]:
        a_end -= 1
        b_end -= 1
    return Gap(a_start, a_end, b_start, b_end)


def _edits(a: Sequence[int], b: Sequence[int], gap: Gap) -> tuple[list[Gap], tuple[int, int]]:
    """The shortest script from the start of a gap, and where it ends: the gap's end, or as far as it came.

    Method: E. W. Myers, "An O(ND) difference algorithm and its variations", 1986, the greedy one. `far[k]` is the
    furthest line of `a` on diagonal k, where k = line of a - line of b.
    """
    a0, n, b0, m = gap.a_start, gap.a_end - gap.a_start, gap.b_start, gap.b_end - gap.b_start
    far = {1: 0}
    history: list[dict[int, int]] = []
    for n_edits in range(_MAX_EDITS + 1):
        history.append(dict(far))
        for k in range(-n_edits, n_edits + 1, 2):
            down = k == -n_edits or (k != n_edits and far[k - 1] < far[k + 1])
            x = far[k + 1] if down else far[k - 1] + 1
            y = x - k
            while x < n and 0 <= y < m and a[a0 + x] == b[b0 + y]:
                x += 1
                y += 1
            far[k] = x
            if x == n and y == m:
                return _walk_back(history, x, y, gap), (gap.a_end, gap.b_end)
    inside = [
        (2 * x - k, x, x - k)
        for k, x in far.items()
        if (k + _MAX_EDITS) % 2 == 0 and x <= n and 0 <= x - k <= m
    ]
    _, x, y = max(inside)
    return _walk_back(history, x, y, gap), (a0 + x, b0 + y)


def _walk_back(history: list[dict[int, int]], x: int, y: int, gap: Gap) -> list[Gap]:
    """The single edits on the way to a point, in order."""
    found: list[Gap] = []
    for n_edits in range(len(history) - 1, 0, -1):
        far, k = history[n_edits], x - y
        down = k == -n_edits or (k != n_edits and far[k - 1] < far[k + 1])
        x = far[k + 1] if down else far[k - 1]
        y = x - (k + 1 if down else k - 1)
        at, to = gap.a_start + x, gap.b_start + y
        found.append(Gap(at, at, to, to + 1) if down else Gap(at, at + 1, to, to))
    return found[::-1]


def _anchors(a: Sequence[int], b: Sequence[int], gap: Gap) -> list[tuple[int, int]]:
    """Pairs of equal lines that each side has once within the gap: the longest run that rises on both sides."""
    in_a, in_b = range(gap.a_start, gap.a_end), range(gap.b_start, gap.b_end)
    n_a, n_b = Counter(a[i] for i in in_a), Counter(b[i] for i in in_b)
    place = {b[i]: i for i in in_b if n_b[b[i]] == 1}
    pairs = [(i, place[a[i]]) for i in in_a if n_a[a[i]] == 1 and a[i] in place]
    lowest: list[int] = []  # for each length, the lowest end of a rising run
    ends: list[int] = []
    before: list[int] = []
    for at, (_, j) in enumerate(pairs):
        length = bisect_left(lowest, j)
        lowest[length : length + 1] = [j]
        ends[length : length + 1] = [at]
        before.append(ends[length - 1] if length else -1)
    found = []
    at = ends[-1] if ends else -1
    while at >= 0:
        found.append(pairs[at])
        at = before[at]
    return found[::-1]


def _between(anchors: list[tuple[int, int]], gap: Gap) -> Iterator[Gap]:
    edges = [(gap.a_start - 1, gap.b_start - 1), *anchors, (gap.a_end, gap.b_end)]
    for (i, j), (next_i, next_j) in pairwise(edges):
        yield Gap(i + 1, next_i, j + 1, next_j)
