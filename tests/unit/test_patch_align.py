"""The line comparison and the search for unique runs, against plain and slow versions of both."""

from __future__ import annotations

import random
from collections.abc import Sequence

import pytest

from constrained_agent.patch import align
from constrained_agent.patch.unique import shortest_unique


def n_common(a: Sequence[int], b: Sequence[int]) -> int:
    """Length of the longest common subsequence."""
    below = [0] * (len(b) + 1)
    for x in reversed(a):
        row = [0] * (len(b) + 1)
        for j in range(len(b) - 1, -1, -1):
            row[j] = below[j + 1] + 1 if x == b[j] else max(below[j], row[j + 1])
        below = row
    return below[0]


def n_kept(a: Sequence[int], b: Sequence[int]) -> int:
    """How many lines the gaps leave; checks that those are equal, and that the gaps are apart and not empty."""
    i = j = kept = 0
    for n, gap in enumerate(align.gaps(a, b)):
        assert gap.a_start > i or n == 0
        assert gap.a_end > gap.a_start or gap.b_end > gap.b_start
        assert a[i : gap.a_start] == b[j : gap.b_start]
        kept += gap.a_start - i
        i, j = gap.a_end, gap.b_end
    assert a[i:] == b[j:]
    return kept + len(a) - i


def random_lines(rng: random.Random, n: int) -> list[int]:
    kinds = rng.randint(1, 6)
    return [rng.randrange(kinds) for _ in range(rng.randrange(n))]


def test_few_edits_are_the_fewest_possible() -> None:
    rng = random.Random(1)
    for _ in range(1500):
        a, b = random_lines(rng, 14), random_lines(rng, 14)
        assert n_kept(a, b) == n_common(a, b), (a, b)


@pytest.mark.parametrize("limit", [1, 3])
def test_many_edits_are_still_right(limit: int, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(align, "_MAX_EDITS", limit)
    rng = random.Random(2)
    for _ in range(1000):
        n_kept(random_lines(rng, 30), random_lines(rng, 30))


def test_lines_that_each_side_has_once_divide_the_work() -> None:
    """Far more edits than are searched for, and yet the fewest: every tenth of 5,000 lines."""
    a = list(range(5000))
    b = [-1 if i % 10 == 5 else i for i in a]
    assert n_kept(a, b) == 4500
    blocks = [i if i % 10 else -1 for i in range(5000)]
    moved = blocks[2500:] + blocks[:2500]
    assert n_kept(blocks, moved) == 2500


def test_a_gap_that_could_slide_stands_low() -> None:
    assert align.gaps([1, 2, 2, 3], [1, 2, 3]) == [align.Gap(2, 3, 2, 2)]
    assert align.gaps([1, 2, 2, 2], [1, 2, 9, 2]) == [align.Gap(2, 3, 2, 3)], "it joins a neighbour"
    assert align.gaps([], [1]) == [align.Gap(0, 0, 0, 1)]
    assert align.gaps([1], [1]) == []


def test_shortest_unique_runs() -> None:
    rng = random.Random(3)
    for _ in range(600):
        lines = random_lines(rng, 16)
        n = len(lines)
        for i, found in enumerate(shortest_unique(lines)):
            lengths = [
                k
                for k in range(1, n - i + 1)
                if sum(lines[p : p + k] == lines[i : i + k] for p in range(n)) == 1
            ]
            assert found == (lengths[0] if lengths else n - i + 1), (lines, i)
