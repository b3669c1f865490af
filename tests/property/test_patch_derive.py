"""Laws of `derive`: applied to the old tree it gives the new one, with least context, refused only where it must be."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import replace

from hypothesis import event, given, settings
from hypothesis import strategies as st

from constrained_agent.errors import PatchError
from constrained_agent.patch import Hunk, Patch, Section, UpdateFile, derive, parse, plan, plan_back, render
from constrained_agent.patch.locate import Place, Searcher
from constrained_agent.patch.textfile import decode

RELAXED = settings(deadline=None, database=None, max_examples=400)

# Few lines, so that most stand several times; among them all that a patch could trip over.
LINES = [
    "a",
    "b",
    "  a",
    "",
    " ",
    "def f():",
    "}",
    "@@ a",
    "*** End Patch",
    "x\r",
    "\r",
    "\ufeffq",
    "é",
    "\udce9",
]
ENDINGS = {"LF": ["\n"], "CRLF": ["\r\n"], "mixed": ["\n", "\r\n"]}


def encoded(text: str) -> bytes:
    return text.encode("utf-8", "surrogateescape")


@st.composite
def texts(draw: st.DrawFn, lines: Sequence[str] = LINES) -> bytes:
    words = draw(st.lists(st.sampled_from(lines), min_size=1, max_size=4))
    endings = ENDINGS[draw(st.sampled_from(["LF", "LF", "CRLF", "mixed"]))]
    line = st.tuples(st.sampled_from(words), st.sampled_from(endings)).map("".join)
    text = "".join(draw(st.lists(line, max_size=10)))
    text = text.rstrip("\r\n") if draw(st.integers(0, 3)) == 0 else text
    return encoded(("\ufeff" if draw(st.integers(0, 5)) == 0 else "") + text)


@st.composite
def pairs(draw: st.DrawFn) -> tuple[bytes, bytes]:
    """A text and another one, most often an edit of it."""
    old = draw(texts())
    if draw(st.integers(0, 3)) == 0:
        return old, draw(texts())
    pieces = old.split(b"\n")
    for _ in range(draw(st.integers(1, 3))):
        start = draw(st.integers(0, len(pieces)))
        end = min(len(pieces), start + draw(st.integers(0, 2)))
        line = st.sampled_from(LINES).map(encoded)
        carriage = b"\r" if start < len(pieces) and pieces[start].endswith(b"\r") else b""
        pieces[start:end] = [text + carriage for text in draw(st.lists(line, max_size=2))]
    return old, b"\n".join(pieces)


@st.composite
def similar_functions(draw: st.DrawFn) -> tuple[bytes, bytes]:
    """Functions that differ in their names, and one line changed: a header saves most of the context."""
    body = [f"    x{i} = {i}" for i in range(9)]
    old = [line for name in "fgh" for line in [f"def {name}():", *body, "    return 0", *body]]
    at = draw(st.integers(0, len(old) - 1))
    new = [*old[:at], *draw(st.lists(st.sampled_from(LINES), max_size=2)), *old[at + 1 :]]
    return encoded("\n".join(old) + "\n"), encoded("\n".join(new) + "\n")


def is_inherited(endings: Sequence[str], old: Sequence[str]) -> bool:
    """Whether each ending can come from an old line, none further up than the one before."""
    at = 0
    for ending in endings:
        while at < len(old) and old[at] != ending:
            at += 1
        if at == len(old):
            return False
    return True


def is_expressible(old: bytes, new: bytes) -> bool:
    """What the docstrings of `steps` and `derive` say about one file, spelled out once more."""
    a, b = decode(old, "a"), decode(new, "b")
    if a.bom and not b.bom:
        return False
    endings = list(b.endings) if b.texts or a.bom == b.bom else [""]  # a mark alone is a line without newline
    if endings[-1:] == [""]:
        if a.endings[-1:] != [""]:
            return False
        endings.pop()
    sources = [ending for ending in a.endings if ending]
    return is_inherited(endings, sources) or set(endings) == {"\n"}


def derived(old: bytes, new: bytes) -> Patch | PatchError:
    try:
        return derive({"f": old}, {"f": new})
    except PatchError as error:
        return error


@settings(RELAXED, max_examples=800)
@given(pairs())
def test_applied_to_the_old_text_it_gives_the_new_one(pair: tuple[bytes, bytes]) -> None:
    old, new = pair
    patch = derived(old, new)
    assert isinstance(patch, Patch) == is_expressible(old, new)
    if isinstance(patch, PatchError):
        event("refused")
        assert (patch.kind, patch.path, len(patch.lines)) == ("bad_line", "f", 1)
        return
    if old == new:
        assert patch.sections == ()
        return
    event(f"{len(patch.sections)} sections")
    assert parse(render(patch), lenient=False).patch == patch
    (file,) = plan(patch, {"f": old}.get).files
    assert file.new == new


@RELAXED
@given(pairs() | similar_functions())
def test_without_headers_it_gives_the_new_text_as_well(pair: tuple[bytes, bytes]) -> None:
    old, new = pair
    patch = derived(old, new)
    if isinstance(patch, PatchError) or old == new:
        return
    plain = derive({"f": old}, {"f": new}, headers=False)
    hunks = [hunk for section in plain.sections if isinstance(section, UpdateFile) for hunk in section.hunks]
    assert all(hunk.headers == () for hunk in hunks)
    event("other hunks than with headers" if plain != patch else "the same hunks")
    assert parse(render(plain), lenient=False).patch == plain
    (file,) = plan(plain, {"f": old}.get).files
    assert file.new == new


def smaller(hunk: Hunk) -> list[tuple[Hunk, int]]:
    """The hunk without one thing at its edge, and by how many lines it then starts later."""
    found = [(replace(hunk, lines=hunk.lines[1:]), 1)] if hunk.lines[0].op == " " else []
    found += [(replace(hunk, lines=hunk.lines[:-1]), 0)] if hunk.lines[-1].op == " " else []
    found += [(replace(hunk, end_of_file=False), 0)] if hunk.end_of_file else []
    return [(less, shift) for less, shift in found if less.old()]


def lines_after(sections: tuple[Section, ...], old: bytes) -> list[str]:
    """The lines in which the next section is located."""
    data = plan(Patch(sections), {"f": old}.get).files[0].new if sections else old
    assert data is not None
    file = decode(data, "f")
    lines = list(file.texts)
    if file.bom and not decode(old, "f").bom:  # not a mark, but the first character of a line
        lines[:1] = ["\ufeff" + "".join(lines[:1])]
    return lines


@RELAXED
@given(pairs())
def test_nothing_at_the_edge_of_a_hunk_can_be_left_out(pair: tuple[bytes, bytes]) -> None:
    old, new = pair
    patch = derived(old, new)
    sections = patch.sections if isinstance(patch, Patch) else ()
    for n, section in enumerate(sections):
        assert isinstance(section, UpdateFile)
        lines = lines_after(sections[:n], old)
        for hunk in section.hunks:
            others = smaller(hunk)
            searcher = Searcher(lines, [hunk, *(less for less, _ in others)])
            place = searcher.locate(hunk)
            assert isinstance(place, Place)
            assert hunk.old() or not lines
            for less, shift in others:
                found = searcher.locate(less)
                assert not isinstance(found, Place) or found.start != place.start + shift


names = st.sampled_from(["a", "b", "sub/a", "sub/deep/c", "d d", "é"])
plain = texts(lines=["a", "b", "c", "d", ""]).map(
    lambda data: data.replace(b"\r", b"").removeprefix(b"\xef\xbb\xbf")
)
trees = st.dictionaries(
    names, plain.map(lambda data: data if data[-1:] in (b"", b"\n") else data + b"\n"), max_size=5
)


def applied(patch: Patch, tree: Mapping[str, bytes]) -> dict[str, bytes]:
    files = dict(tree)
    for file in plan(parse(render(patch), lenient=False).patch, tree.get).files:
        files.pop(file.path, None)
        if file.new is not None:
            files[file.new_path or file.path] = file.new
    return files


@RELAXED
@given(trees, trees)
def test_whole_trees(old: dict[str, bytes], new: dict[str, bytes]) -> None:
    """Files with LF and a final newline have no limits: every tree leads to every other one."""
    patch = derive(old, new)
    if old == new:
        assert patch == Patch(())
        return
    event(
        "with a rename" if any(getattr(section, "move_to", None) for section in patch.sections) else "without"
    )
    assert applied(patch, old) == new


@RELAXED
@given(trees, trees)
def test_a_derived_patch_can_be_taken_back(old: dict[str, bytes], new: dict[str, bytes]) -> None:
    """Unless it deletes a file, or where lines stood that were removed is not said."""
    if old == new or old.keys() - new.keys():
        return
    patch = derive(old, new)
    try:
        files = plan_back(patch, new.get).files
    except PatchError as error:
        event(error.kind)
        return
    back = dict(new)
    for file in files:
        del back[file.path]
        if file.new is not None:
            back[file.new_path or file.path] = file.new
    event("the same tree" if back == old else "another tree")
    assert applied(patch, back) == new
