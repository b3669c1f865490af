"""Which lines were seen, and where they are after a change. (`test_workspace.py` has it on a disk.)"""

from __future__ import annotations

from pathlib import Path

import pytest

from constrained_agent.patch import FilePlan, LineChange
from constrained_agent.tools.reads import Reads, Route, carried

PATH = Path("repository/f")


@pytest.mark.parametrize(
    ("seen", "changes", "expected"),
    [
        ([], [], []),
        ([(2, 5)], [], [(2, 5)]),
        ([(2, 5)], [(0, 0, 0, 3)], [(0, 3), (5, 8)]),
        ([(2, 5)], [(0, 1, 0, 0)], [(1, 4)]),
        ([(2, 5)], [(1, 2, 1, 3)], [(1, 6)]),
        ([(2, 5)], [(3, 3, 3, 4)], [(2, 6)]),
        ([(2, 5)], [(3, 4, 3, 3)], [(2, 4)]),
        ([(2, 5)], [(0, 9, 0, 0)], []),
        ([(2, 5)], [(0, 9, 0, 2)], [(0, 2)]),
        ([(2, 5)], [(4, 7, 4, 5)], [(2, 5)]),
        ([(2, 5)], [(5, 5, 5, 6)], [(2, 6)]),
        ([(2, 5)], [(7, 8, 7, 9)], [(2, 5), (7, 9)]),
        ([(2, 3), (4, 5)], [(3, 4, 3, 3)], [(2, 4)]),
        ([(0, 2), (8, 9)], [(1, 1, 1, 2), (3, 4, 4, 4), (8, 8, 8, 9)], [(0, 3), (8, 10)]),
    ],
)
def test_carried(
    seen: list[tuple[int, int]], changes: list[tuple[int, int, int, int]], expected: list[tuple[int, int]]
) -> None:
    ranges = carried([range(*pair) for pair in seen], [LineChange(*change) for change in changes])
    assert {line for lines in ranges for line in lines} == {
        line for pair in expected for line in range(*pair)
    }


def test_the_latest_comes_last() -> None:
    ranges = carried([range(8, 9), range(3)], [LineChange(5, 5, 5, 6)])
    assert ranges == (range(9, 10), range(3), range(5, 6))
    reads = Reads()
    for lines in (range(3), range(7, 9), range(1, 2), range(4)):
        reads.add(PATH, b"x\n" * 10, lines)
    seen = reads.get(PATH)
    assert seen is not None
    assert seen.ranges == (range(7, 9), range(4))


@pytest.mark.parametrize(
    ("content", "n_lines"),
    [
        (b"", 0),
        (b"\n", 1),
        (b"a", 1),
        (b"a\nb\n", 2),
        (b"a\r\n\r\nb", 3),
        (b"\xef\xbb\xbf", 0),
        (b"\xef\xbb\xbf\n", 1),
    ],
)
def test_all_lines(content: bytes, n_lines: int) -> None:
    reads = Reads()
    reads.add(PATH, content)
    seen = reads.get(PATH)
    assert seen is not None
    assert sum(map(len, seen.ranges)) == n_lines
    reads.refresh([(FilePlan("f", "add", None, None, content, n_lines, 0, ()), Route(PATH, PATH, PATH))])
    assert reads.get(PATH) == seen
