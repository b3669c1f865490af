"""Searching runs of lines, blocks, and the place of a hunk."""

from __future__ import annotations

import itertools
import random

import pytest

from constrained_agent.patch.blocks import Blocks, enclosing
from constrained_agent.patch.locate import Miss, Place, Searcher
from constrained_agent.patch.match import Level, LineIndex, equal, fold
from constrained_agent.patch.sections import Hunk, HunkLine


def naive_hits(texts: list[str], lines: list[str], level: Level) -> list[int]:
    """The plain reference: try every start."""
    return [
        start
        for start in range(len(texts) - len(lines) + 1)
        if all(equal(a, b, level) for a, b in zip(lines, texts[start:], strict=False))
    ]


def test_hits_agree_with_the_reference() -> None:
    rng = random.Random(1)
    words = ["a", "a ", " a", "–", "-", "", " ", "b"]
    for _ in range(400):
        texts = rng.choices(words[: rng.randint(1, 8)], k=rng.randint(0, 12))
        lines = rng.choices(words, k=rng.randint(1, 4))
        index = LineIndex(texts, lines)
        for level in Level:
            assert index.hits(lines, level) == naive_hits(texts, lines, level)


@pytest.mark.parametrize("n_words", [3, 40])
def test_the_hundredth_search_agrees_too(n_words: int) -> None:
    """After some searches, the rarest line says where to look, if it is rare."""
    rng = random.Random(n_words)
    words = [f"{i}" for i in range(n_words)]
    texts = [*rng.choices(words, k=500), "last"]
    index = LineIndex(texts, [*words, "last", "nowhere"])
    for n in range(150):
        start = rng.randrange(490)
        lines = texts[start : start + rng.randint(1, 6)] if n % 10 else [rng.choice(words), "nowhere", "last"]
        expected = naive_hits(texts, lines, Level.TRIMMED)
        assert index.hits(lines, Level.TRIMMED) == expected
        assert index.hits(lines, Level.TRIMMED, 2) == expected[:2]


@pytest.mark.parametrize("n", [1, 2, 3, 63, 64, 65, 66, 130])
@pytest.mark.parametrize("length", [1, 2, 3])
def test_many_hits_and_the_limit(n: int, length: int) -> None:
    """Many hits go to another search than few; they overlap, and both give the same."""
    texts = ["x"] * (n + length - 1) + ["y"]
    index = LineIndex(texts, ["x"])
    assert index.hits(["x"] * length, Level.EXACT) == list(range(n))
    for limit in (1, 64, 70):
        assert index.hits(["x"] * length, Level.EXACT, limit) == list(range(min(n, limit)))


def test_overlapping_hits_of_a_mixed_run() -> None:
    texts = ["a", "b"] * 200 + ["a"]
    index = LineIndex(texts, ["a", "b"])
    assert index.hits(["a", "b", "a"], Level.EXACT) == list(range(0, 400, 2))


@pytest.mark.parametrize(
    ("text", "folded"),
    [
        ("a\u2013b\u2014c\u2212d", "a-b-c-d"),
        ("\u201cx\u201d \u2018y\u2019", "\"x\" 'y'"),
        ("\u00a0a\u3000b\u202fc\u2003", "a b c"),
        ("wait\u2026", "wait..."),
        ("cafe\u0301", "caf\u00e9"),
        ("\u200bzero\u2060", "zero"),
        ("\ufb01 \u00b2 \u00df A", "\ufb01 \u00b2 \u00df A"),
        ("\t plain ", "plain"),
    ],
)
def test_folding(text: str, folded: str) -> None:
    assert fold(text) == folded


def test_levels_are_nested() -> None:
    lines = ["a", "a ", " a", "\u00a0a", "a\u2013", "a-", "a\r", "\ta"]
    for a, b in itertools.product(lines, lines):
        for level in (Level.EXACT, Level.RIGHT_TRIMMED, Level.TRIMMED):
            assert not equal(a, b, level) or equal(a, b, Level(level + 1))


def test_blocks_agree_with_the_reference() -> None:
    rng = random.Random(2)
    choices = ["a", " a", "  a", "   a", "", "}", " }", "{", "\ta"]

    def depth(text: str) -> int:
        return len(text.expandtabs(8)) - len(text.lstrip())

    for _ in range(500):
        texts = rng.choices(choices, k=rng.randint(1, 12))
        blocks = Blocks(texts)
        for line, text in enumerate(texts):
            if not text.strip():
                continue
            end = line + 1
            while end < len(texts):
                below = texts[end]
                closing = below.strip()[:1] in tuple("{})]") and depth(below) == depth(text)
                if below.strip() and depth(below) <= depth(text) and not closing:
                    break
                end += 1
            assert blocks.end(line) == end, (texts, line)


def test_enclosing_lines() -> None:
    texts = ["class A:", "    def f(self,", "          b", "    ):", "        x", "", "        y"]
    assert enclosing(texts, 6) == [1, 0]
    assert enclosing(texts, 0) == []


def hunk(*lines: str, headers: tuple[str, ...] = (), eof: bool = False) -> Hunk:
    return Hunk(headers, tuple(HunkLine(line[0], line[1:]) for line in lines), eof)  # type: ignore[arg-type]


def locate(texts: str, looked_for: Hunk, after: int = 0) -> Place | Miss:
    return Searcher(texts.split("\n"), [looked_for]).locate(looked_for, after)


PY = "class A:\n  def f(self):\n    return 1\n  def g(self):\n    return 1\nclass B(A):\n  def f(self):\n    return 1"


@pytest.mark.parametrize(
    ("headers", "start"),
    [
        (("class B(A):",), 7),
        (("class B",), 7),
        (("class B(A): @@",), 7),
        (("  class B(A):  ",), 7),
        (("class A:", "def g(self):"), 4),
        (("class A", "def g"), 4),
        (("class A:", "@@", "def g"), 4),
        (("-1,2 +1,2 @@",), "ambiguous"),
        (("-1,2 +1,2 @@ class B(A):",), 7),
        (("-1 +1,2 @@ no such line", "class B(A):"), 7),
        (("class A:",), "ambiguous"),
        (("def f(self):",), "ambiguous"),
        (("def f",), "ambiguous"),
        (("class",), "ambiguous"),
        (("class B", "def g"), "anchor_not_found"),
        (("class C",), "anchor_not_found"),
        (("clas",), "anchor_not_found"),
    ],
)
def test_headers(headers: tuple[str, ...], start: int | str) -> None:
    found = locate(PY, hunk("-    return 1", "+    return 2", headers=headers))
    assert (found.start if isinstance(found, Place) else found.kind) == start


def test_equal_headers_mean_the_union_of_their_blocks() -> None:
    texts = "if x:\n  a\nif x:\n  b\nif y:\n  a"
    assert locate(texts, hunk("-  a", "+  c", headers=("if x:",))) == Place(1, Level.EXACT)
    assert locate(texts, hunk("-  b", "+  c", headers=("if x:",))) == Place(3, Level.EXACT)


def test_below_a_header_without_a_block() -> None:
    texts = "[a]\nx\n[b]\nx\ny\n[c]\nx"
    assert locate(texts, hunk("-x", "+z", headers=("[b]",))) == Place(3, Level.EXACT), "directly below"
    assert locate(texts, hunk("-y", "+z", headers=("[a]",))) == Place(4, Level.EXACT), "anywhere below"
    found = locate("h\nq\nx\nx", hunk("-x", "+z", headers=("h",)))
    assert isinstance(found, Miss)
    assert (found.kind, found.lines) == ("ambiguous", (2, 3))


def test_a_hunk_above_its_header_is_not_found() -> None:
    found = locate("x\nh\ny", hunk("-x", "+z", headers=("h",)))
    assert found == Miss("context_not_found", (0,))


def test_a_hunk_may_repeat_its_header() -> None:
    texts = "def f():\n  a\ndef g():\n  a"
    assert locate(texts, hunk(" def g():", "-  a", "+  b", headers=("def g():",))) == Place(2, Level.EXACT)


def test_stacked_headers_search_forward() -> None:
    assert locate("A\nA\nA\nold", hunk("-old", "+new", headers=("A", "A"))) == Place(3, Level.EXACT)
    found = locate("B\nA", hunk("+new", headers=("A", "B")))
    assert isinstance(found, Miss)
    assert found.kind == "anchor_not_found"


def test_braces_belong_to_their_block() -> None:
    texts = "int f()\n{\n  return 0;\n}\nint g(\n  int a\n)\n{\n  return 0;\n}\nint h()\n{\n  return 0;\n}"
    assert locate(texts, hunk("-  return 0;", "+  return 1;", headers=("int g(",))) == Place(8, Level.EXACT)


def test_the_strictest_level_with_a_hit_decides() -> None:
    texts = "  a\na \na"
    assert locate(texts, hunk("-a", "+b")) == Place(2, Level.EXACT)
    assert locate("  a\na ", hunk("-a", "+b")) == Place(1, Level.RIGHT_TRIMMED)
    assert locate("  a\n\u00a0a\u200b", hunk("-a", "+b")) == Place(0, Level.TRIMMED)
    assert locate("a\u2013", hunk("-a-", "+b")) == Place(0, Level.FOLDED)
    assert locate("a \na\t", hunk("-a", "+b")) == Miss("ambiguous", (0, 1))


def test_the_block_goes_before_the_level() -> None:
    texts = "f:\n    a\ng:\na"
    assert locate(texts, hunk("-a", "+b", headers=("f:",))) == Place(1, Level.TRIMMED)


def test_the_previous_hunk_breaks_a_tie() -> None:
    assert locate("x\ny\nx", hunk("-x", "+z"), after=2) == Place(2, Level.EXACT)
    assert locate("x\ny\nx\nx", hunk("-x", "+z"), after=2) == Miss("ambiguous", (0, 2, 3))
    assert locate("x\ny\ny", hunk("-x", "+z"), after=2) == Place(0, Level.EXACT), "order is no must"


def test_end_of_file() -> None:
    assert locate("x\ny\nx", hunk("-x", "+z", eof=True)) == Place(2, Level.EXACT)
    assert locate("x\ny\nx ", hunk("-x", "+z", eof=True)) == Place(2, Level.RIGHT_TRIMMED)
    assert locate("x\ny", hunk("-x", "+z", eof=True)) == Miss("eof_mismatch", (0,))
    assert locate("y", hunk(" x", " x", "-x", "+z", eof=True)) == Miss("context_not_found")
    assert locate("x\ny", hunk("+z", eof=True)) == Place(2, Level.EXACT)
    assert locate("x\nh\ny", hunk("-y", "+z", headers=("h",), eof=True)) == Place(2, Level.EXACT)


def test_additions_alone() -> None:
    assert locate("h\ny", hunk("+z", headers=("h",))) == Place(1, Level.EXACT)
    assert locate("h\nh", hunk("+z", headers=("h",))) == Miss("ambiguous", (0, 1), "h")
    assert Searcher([], [hunk("+z")]).locate(hunk("+z")) == Place(0, Level.EXACT)
    assert locate("h\ny", hunk("+z", headers=("-1,2 +1,3",))) == Place(2, Level.EXACT)


@pytest.mark.parametrize(
    ("text", "hunk"),
    [
        ("def f():\n    return 1\n\ndef g():\n    return 1\n", "@@ def f():\n-    return 1\n+    return 2\n"),
        (
            "class A:\n    def run(self):\n        return 1\nclass B:\n    def run(self):\n        return 1\n",
            "@@ class A:\n@@     def run(self):\n-        return 1\n+        return 2\n",
        ),
        ("[cpu]\nmax = 10\n[mem]\nmax = 10\n", "@@ [cpu]\n-max = 10\n+max = 20\n"),
    ],
)
def test_a_patch_sent_again_does_not_slide_into_the_next_block(tmp_path, text, hunk):
    """The header's block holds the new lines already; a lookalike beyond it is not what is meant."""
    from constrained_agent.errors import PatchError
    from constrained_agent.patch import parse
    from constrained_agent.tools.workspace import Workspace

    (tmp_path / "f").write_text(text)
    workspace = Workspace(tmp_path)
    patch = parse(f"*** Begin Patch\n*** Update File: f\n{hunk}*** End Patch").patch
    workspace.apply(patch)
    once = (tmp_path / "f").read_text()
    with pytest.raises(PatchError, match="already_applied"):
        workspace.apply(patch)
    assert (tmp_path / "f").read_text() == once
