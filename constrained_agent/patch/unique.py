"""How many lines it takes, from each line of a file on, until they stand in the file only once."""

from __future__ import annotations

from collections.abc import Sequence


def shortest_unique(lines: Sequence[int]) -> list[int]:
    """For each line, the least number of lines from it on that stand in this order nowhere else.

    Where even all lines down to the end stand elsewhere, it is one more than there are. It follows that
    `i + result[i]` never falls from one line to the next.

    Args:
        lines: a file's lines as numbers, equal lines as equal numbers.

    Cost: n log n; about 1 s for 100,000 lines of code, 3 s if all are equal.
    """
    order, rank = _sorted_suffixes(lines)
    n = len(lines)
    shared = [0] * (n + 1)  # with the suffix before, in sorted order
    length = 0
    for i in range(n):  # T. Kasai et al., 2001: one line further, and at most one line less is shared
        if rank[i]:
            j = order[rank[i] - 1]
            while max(i, j) + length < n and lines[i + length] == lines[j + length]:
                length += 1
            shared[rank[i]] = length
            length -= length > 0
        else:
            length = 0
    return [1 + max(shared[at], shared[at + 1]) for at in rank]


def _sorted_suffixes(lines: Sequence[int]) -> tuple[list[int], list[int]]:
    """Starts of all suffixes in sorted order, and the place of each in it.

    Method: N. J. Larsson and K. Sadakane, "Faster suffix sorting", 1999. Suffixes that agree in their first lines
    form a group; the rank of a group decides about those that reach it, so the agreed length doubles each round, and
    a suffix that is alone in its group is done.
    """
    groups: dict[int, list[int]] = {}
    for i, line in enumerate(lines):
        groups.setdefault(line, []).append(i)
    order: list[int] = []
    rank = [0] * len(lines)
    open_groups: list[tuple[int, int]] = []
    for group in groups.values():
        _place(group, order, len(order), rank, open_groups)
    agreed = 1
    while open_groups:
        todo, open_groups = open_groups, []
        for start, end in todo:
            _split(order, rank, start, end, agreed, open_groups)
        agreed *= 2
    return order, rank


def _place(
    group: list[int], order: list[int], start: int, rank: list[int], open_groups: list[tuple[int, int]]
) -> None:
    """Put a group where it belongs in the order; it stays open if it has several members."""
    order[start : start + len(group)] = group
    for i in group:
        rank[i] = start
    if len(group) > 1:
        open_groups.append((start, start + len(group)))


def _split(
    order: list[int], rank: list[int], start: int, end: int, agreed: int, open_groups: list[tuple[int, int]]
) -> None:
    """Divide a group by what stands behind the lines in which its members agree."""
    n = len(order)
    by_rank: dict[int, list[int]] = {}
    for i in order[start:end]:
        behind = i + agreed
        by_rank.setdefault(rank[behind] if behind < n else -1, []).append(i)
    for key in sorted(by_rank):
        group = by_rank[key]
        _place(group, order, start, rank, open_groups)
        start += len(group)
