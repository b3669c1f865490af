"""Laws of the patch language: render and parse are inverse, and three readers accept the same texts."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import Any

import lark
import llguidance
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from constrained_agent import resources
from constrained_agent.errors import PATCH_ERROR_KINDS, PatchError
from constrained_agent.patch import (
    AddFile,
    DeleteFile,
    Hunk,
    HunkLine,
    Parsed,
    Patch,
    UpdateFile,
    parse,
    render,
)
from constrained_agent.patch.lenient import read

RELAXED = settings(deadline=None, database=None, max_examples=150)

GRAMMAR = Path(str(resources.path("grammars", "apply_patch_strict", ".lark"))).read_text(encoding="utf-8")
LARK = lark.Lark(GRAMMAR, parser="lalr")
TOKENIZER = llguidance.LLTokenizer("byte")
COMPILED = llguidance.LLMatcher.grammar_from_lark(GRAMMAR)

texts = st.text(st.characters(codec="utf-8", exclude_characters="\n"), max_size=12) | st.sampled_from(
    [
        "",
        " ",
        "@@",
        "*** End Patch",
        "*** End of File",
        "-",
        "+",
        "\t",
        "x\r",
        "\u2028",
        "\x0c",
        "@@ -1 +1 @@",
        "\0",
    ]
)
parts = st.text(
    st.characters(codec="utf-8", exclude_categories=["Cc"], exclude_characters="/"), min_size=1, max_size=6
)
parts = parts.filter(lambda part: part.strip(" ") == part and part not in (".", ".."))
paths = st.lists(parts, min_size=1, max_size=3).map("/".join)
lines = st.builds(HunkLine, st.sampled_from([" ", "+", "-"]), texts)
headers = st.lists(texts.filter(lambda text: bool(text.strip())), max_size=2).map(tuple)
hunks = st.builds(
    Hunk,
    headers,
    st.lists(lines, min_size=1, max_size=6)
    .filter(lambda found: any(line.op != " " for line in found))
    .map(tuple),
)


@st.composite
def updates(draw: st.DrawFn) -> UpdateFile:
    found = draw(st.lists(hunks, max_size=3))
    if found and draw(st.booleans()):
        found[-1] = Hunk(found[-1].headers, found[-1].lines, end_of_file=True)
    move = draw(st.none() | paths) if found else draw(paths)
    return UpdateFile(draw(paths), move, tuple(found))


sections = st.one_of(
    st.builds(AddFile, paths, st.lists(texts, max_size=5).map(tuple)), st.builds(DeleteFile, paths), updates()
)
patches = st.lists(sections, min_size=1, max_size=4).map(lambda found: Patch(tuple(found)))


def accepted_by_lark(text: str) -> bool:
    try:
        LARK.parse(text)
    except lark.exceptions.LarkError:
        return False
    return True


def accepted_by_llguidance(text: str) -> bool:
    matcher = llguidance.LLMatcher(TOKENIZER, COMPILED, log_level=0)
    data = list(text.encode())
    return bool(matcher.try_consume_tokens(data) == len(data) and matcher.is_accepting())


def result_of(call: Callable[[], Parsed]) -> Parsed | PatchError:
    try:
        return call()
    except PatchError as error:
        return error


def accepted_by_us(text: str) -> bool:
    return isinstance(result_of(lambda: parse(text, lenient=False)), Parsed)


@RELAXED
@given(patches)
def test_parse_undoes_render(patch: Patch) -> None:
    text = render(patch)
    assert parse(text, lenient=False).patch == patch
    assert read(text).patch == patch, "the line reader reads the strict language, too"
    assert read(text).leniencies == {}
    assert accepted_by_llguidance(text)


FRAGMENTS = st.sampled_from(
    [
        "\n", " ", "*", "@@", "@@ ", "+", "-", "/", ".", "..", "\r", "\r\n", "\t", "x", "\0", "é", "\ufeff",
        "*** Begin Patch\n", "*** End Patch\n", "*** End Patch", "*** End of File\n", "*** Update File: f\n",
        "*** Add File: f\n", "*** Delete File: f\n", "*** Move to: g\n", "\\ No newline at end of file\n",
    ]
)  # fmt: skip


@st.composite
def mutated(draw: st.DrawFn) -> str:
    """The text of a patch with a few pieces cut out, put in, doubled or exchanged."""
    text = draw(patches.map(render))
    for _ in range(draw(st.integers(1, 3))):
        start = draw(st.integers(0, len(text)))
        end = min(len(text), start + draw(st.sampled_from([0, 0, 1, 2, 10])))
        text = text[:start] + draw(st.just("") | FRAGMENTS | st.just(text[start:end] * 2)) + text[end:]
    if draw(st.booleans()):
        whole = text.split("\n")
        i, j = draw(st.integers(0, len(whole) - 1)), draw(st.integers(0, len(whole) - 1))
        whole[i], whole[j] = whole[j], whole[i]
        text = "\n".join(whole)
    return text


@settings(RELAXED, max_examples=600)
@given(mutated())
def test_three_readers_accept_the_same(text: str) -> None:
    accepted = accepted_by_lark(text)
    assert accepted_by_llguidance(text) == accepted
    assert accepted_by_us(text) == accepted
    if accepted:
        assert read(text).patch == parse(text).patch
        assert read(text).leniencies == {}


@settings(RELAXED, max_examples=600)
@given(mutated() | st.text(max_size=60) | st.lists(FRAGMENTS, max_size=20).map("".join))
def test_whatever_comes_is_read_or_refused_by_kind(text: str) -> None:
    outcome = result_of(lambda: parse(text))
    if isinstance(outcome, PatchError):
        assert outcome.kind in PATCH_ERROR_KINDS
        assert str(outcome).count("\n") < 12
        assert all(1 <= line <= text.count("\n") + 1 for line in outcome.lines)
    else:
        assert parse(render(outcome.patch)).patch == outcome.patch
        assert outcome.leniencies or accepted_by_lark(text)


PATHS = """
a|..|../x|.x|. x|..x|...|a/../b|a/ b|a |a/b/..c| a|./a|a//b|/a|a/|
é à/x.y|.|a\tb|a\x7f|a\r|.git/x|C:/x|a\\b|~|a/.|. |..a/.b/...|\u00a0
""".replace("\n", "")


@pytest.mark.parametrize("path", PATHS.split("|"))
def test_three_readers_agree_on_paths(path: str) -> None:
    outcome: dict[str, Any] = {}
    text = f"*** Begin Patch\n*** Delete File: {path}\n*** End Patch"
    for reader in (accepted_by_lark, accepted_by_llguidance, accepted_by_us):
        outcome[reader.__name__] = reader(text)
    assert len(set(outcome.values())) == 1, outcome
