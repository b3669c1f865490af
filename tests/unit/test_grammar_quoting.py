"""What the text of a patch speaks of, and which texts come near to a wrong one."""

from __future__ import annotations

import pytest

from constrained_agent.grammar.located import quoting
from constrained_agent.grammar.located.likeness import nearest, sharing_most
from constrained_agent.grammar.located.quoting import Section

TEXT = """*** Begin Patch
*** Update File: a
@@
 one
-two
+new
@@
-three
*** Add File: b
+-no old line
*** Delete File: c\r
*** Ubdate File: d
*** Delete File: e"""


def spoken(lines: list[str], *hunks: list[str]) -> set[int]:
    return {line for part in quoting.near(lines, hunks) for line in part}


def test_files_and_old_lines() -> None:
    assert quoting.sections(TEXT.encode()) == [
        Section("a", [[], ["one", "two"], ["three"]]),
        Section("c", [[]]),
        Section("", [[]]),
        Section("e", [[]]),
    ]


@pytest.mark.parametrize(
    ("text", "path"),
    [
        ("", ""),
        ("*** Beg", ""),
        ("*** Begin Patch\n", ""),
        ("*** Begin Patch\n*** Update File: src/a", "src/a"),
        ("*** Begin Patch\n*** Delete File: ", ""),
        ("*** Begin Patch\n*** Delete File: a\n", None),
        ("*** Begin Patch\n*** Delete File: a\n*** End Patch", None),
    ],
)
def test_the_path_that_a_text_ends_in(text: str, path: str | None) -> None:
    assert quoting.begun_path(text.encode()) == path


def test_lines_around_the_place_of_a_hunk() -> None:
    lines = [str(i) for i in range(1_000)]

    assert spoken(lines, ["500", "501"]) == {*range(497, 505), 997, 998, 999}
    assert {699, 700, 701} <= spoken(lines, ["699", "7"]), "the last line may be the beginning of one"
    lines[650] = "def important(x):"
    assert 650 in spoken(lines, ["def imporant(x):"]), "lines like a wrong one"


def test_a_run_is_followed_to_where_it_is_the_only_one() -> None:
    block = [str(i) for i in range(100)]

    assert set(range(110, 202)) <= spoken([*block, *block, "end", *block[:5]], ["10"])


def test_texts_that_share_the_longest_beginning() -> None:
    names = ["a/b", "a/c", "b", "a/ü", "a/üb"]

    assert sharing_most(names, "a/x") == ("a/b", "a/üb")
    assert sharing_most(names, "a/ü") == ("a/üb", "a/üb")
    assert sharing_most(names, "a/\udcc3") == ("a/ü", "a/üb"), "half a character"
    assert sharing_most(["a"], "a") == ()


def test_texts_spelled_like_another() -> None:
    texts = ["x = 1", "", "    return area", "    return b"]

    assert nearest(texts, "retrun aera")[:2] == ["    return area", "    return b"]
    assert sorted(nearest(texts, "retrun aera")) == sorted(texts)
    assert nearest(texts, "  ") == texts
