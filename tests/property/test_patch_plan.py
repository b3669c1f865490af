"""Laws of applying: an edit lands where it was made, and nothing else changes, byte for byte."""

from __future__ import annotations

import stat
import tempfile
from collections.abc import Iterator
from pathlib import Path

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from constrained_agent.errors import PATCH_ERROR_KINDS, PatchError
from constrained_agent.patch import FilePlan, Hunk, HunkLine, Patch, UpdateFile, parse, plan, render
from constrained_agent.patch.textfile import decode, encode
from constrained_agent.tools.workspace import Workspace

RELAXED = settings(deadline=None, database=None, max_examples=300)

# Few and similar lines, so that many are equal at one level or another.
words = st.sampled_from(
    ["a", "b", "a ", " a", "  b", "\tb", "", " ", "“a”", '"a"', "def f():", "}", "é", "x\ry"]
)
endings = st.sampled_from(["\n", "\n", "\r\n"])


def lines_of(data: bytes) -> list[bytes]:
    pieces = data.split(b"\n")
    last = pieces.pop()
    return [piece + b"\n" for piece in pieces] + ([last] if last else [])


@st.composite
def files(draw: st.DrawFn) -> bytes:
    text = "".join(draw(words) + draw(endings) for _ in range(draw(st.integers(0, 12))))
    if draw(st.booleans()):
        text = text.rstrip("\r\n")
    data = text.encode()
    if draw(st.booleans()):
        data = data.replace(b"}", b"\xe9\xff")
    return (b"\xef\xbb\xbf" if draw(st.booleans()) else b"") + data


def check_untouched(file: FilePlan) -> None:
    """Outside the changes that the plan names, old and new hold the same bytes."""
    old, new = lines_of(file.old or b""), lines_of(file.new or b"")
    old_at = new_at = 0
    for change in file.changes:
        assert old[old_at : change.old_start] == new[new_at : change.new_start]
        old_at, new_at = change.old_end, change.new_end
    assert old[old_at:] == new[new_at:]
    assert file.added == sum(change.new_end - change.new_start for change in file.changes)
    assert file.removed == sum(change.old_end - change.old_start for change in file.changes)


@st.composite
def edits(draw: st.DrawFn) -> tuple[bytes, Patch, list[str]]:
    """A file, a patch of hunks that are unique by their context, and the lines that must come out."""
    data = draw(files())
    texts = list(decode(data, "f").texts)
    hunks, expected, at = [], [], 0
    while at < len(texts):
        start = draw(st.integers(at, len(texts)))
        end = draw(st.integers(start, min(len(texts), start + 2)))
        added = draw(st.lists(words.map(lambda word: word + "!"), min_size=start == end, max_size=2))
        low, high = start, end
        # Grow the context until the old lines stand in the file only once, at any level.
        while high < len(texts) and (low == high or not _is_unique(texts, low, high)):
            high += 1
        while low > at and (low == high or not _is_unique(texts, low, high)):
            low -= 1
        if low == high or not _is_unique(texts, low, high):
            break
        hunks.append(
            Hunk(
                (),
                (
                    *(HunkLine(" ", text) for text in texts[low:start]),
                    *(HunkLine("-", text) for text in texts[start:end]),
                    *(HunkLine("+", text) for text in added),
                    *(HunkLine(" ", text) for text in texts[end:high]),
                ),
            )
        )
        expected += [*texts[at:start], *added, *texts[end:high]]
        at = high
    return data, Patch((UpdateFile("f", None, tuple(hunks)),)), expected + texts[at:]


def _is_unique(texts: list[str], low: int, high: int) -> bool:
    n = high - low
    return sum(texts[i : i + n] == texts[low:high] for i in range(len(texts) - n + 1)) == 1


@RELAXED
@given(edits())
def test_a_unique_edit_lands_where_it_was_made(edit: tuple[bytes, Patch, list[str]]) -> None:
    data, patch, expected = edit
    if not patch.sections[0].hunks:  # type: ignore[union-attr]
        return
    (file,) = plan(parse(render(patch)).patch, {"f": data}.get).files
    assert file.new is not None
    result = decode(file.new, "f")
    assert list(result.texts) == expected
    assert result.bom == decode(data, "f").bom
    assert encode(result) == file.new
    check_untouched(file)
    if decode(data, "f").endings[-1:] == [""] and expected and expected[-1].endswith("!"):
        assert not file.new.endswith(b"\n"), "the missing final newline stays missing"


@st.composite
def loose_hunks(draw: st.DrawFn) -> str:
    rows = draw(st.lists(st.tuples(st.sampled_from("  +-"), words), min_size=1, max_size=5))
    header = draw(st.sampled_from(["@@", "@@ a", "@@ def f", "@@ }", "@@ -1,2 +1,2 @@"]))
    end = draw(st.sampled_from(["", "", "*** End of File\n"]))
    return f"{header}\n" + "".join(f"{op}{text}\n" for op, text in rows) + end


def planned(data: bytes, text: str) -> FilePlan | PatchError:
    try:
        (file,) = plan(parse(text).patch, {"f": data}.get).files
    except PatchError as error:
        return error
    return file


@settings(RELAXED, max_examples=1000)
@given(files(), st.lists(loose_hunks(), min_size=1, max_size=3))
def test_any_patch_is_applied_or_refused_by_kind(data: bytes, hunks: list[str]) -> None:
    """No crash, bounded messages; what is applied changes only what it says."""
    file = planned(data, "*** Begin Patch\n*** Update File: f\n" + "".join(hunks) + "*** End Patch\n")
    if isinstance(file, PatchError):
        assert file.kind in PATCH_ERROR_KINDS
        assert str(file).count("\n") < 12
        str(file).encode()
        return
    assert file.new != data
    check_untouched(file)
    for landing in file.landings:
        assert 1 <= landing.line <= len(lines_of(data)) + 1


def tree(root: Path) -> dict[str, tuple[int, int, bytes]]:
    found = {}
    for path in root.rglob("*"):
        facts = path.lstat()
        content = path.read_bytes() if stat.S_ISREG(facts.st_mode) else b""
        found[str(path.relative_to(root))] = (facts.st_mode, facts.st_mtime_ns, content)
    return found


@pytest.fixture(scope="module")
def state(tmp_path_factory: pytest.TempPathFactory) -> Iterator[None]:
    with pytest.MonkeyPatch.context() as monkeypatch:
        monkeypatch.setenv("XDG_STATE_HOME", str(tmp_path_factory.mktemp("state")))
        yield


@pytest.mark.usefixtures("state")
@settings(RELAXED, max_examples=40)
@given(edits(), st.booleans())
def test_only_named_files_are_touched(edit: tuple[bytes, Patch, list[str]], fails: bool) -> None:
    """On the disk: the other files keep bytes, mode and time; a refused patch leaves all of them."""
    data, patch, _ = edit
    if not patch.sections[0].hunks:  # type: ignore[union-attr]
        return
    with tempfile.TemporaryDirectory() as folder:
        root = Path(folder)
        for name in ("f", "other", "sub/f"):
            (root / name).parent.mkdir(exist_ok=True)
            (root / name).write_bytes(data)
        before = tree(root)
        if fails:
            patch = Patch(
                (*patch.sections, UpdateFile("other", None, (Hunk((), (HunkLine("-", "no such line"),)),)))
            )
            with pytest.raises(PatchError):
                Workspace(root).apply(patch)
            assert tree(root) == before
            return
        Workspace(root).apply(patch)
        after = tree(root)
        assert after.pop("f") != before.pop("f")
        assert after == before
