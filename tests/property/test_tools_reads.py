"""Laws of what counts as read: nothing that was not shown or written, and all of what was and is still there."""

from __future__ import annotations

import itertools
import tempfile
from collections.abc import Iterator
from pathlib import Path

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from constrained_agent.errors import PatchError
from constrained_agent.patch import Patch, derive, parse, plan
from constrained_agent.tools.reads import carried
from constrained_agent.tools.workspace import Workspace

RELAXED = settings(deadline=None, database=None, max_examples=300)
BOM = b"\xef\xbb\xbf"

# Every line is unlike all others, so that after a patch each can be told by its bytes: kept, or written.
Lines = list[bytes]


def lines_of(data: bytes) -> Lines:
    """With endings and mark; a mark alone is no line."""
    return [] if data == BOM else data.splitlines(keepends=True)


@st.composite
def old_files(draw: st.DrawFn, tag: str = "") -> Lines:
    ending = draw(st.sampled_from([b"\n", b"\r\n"]))
    lines = [f"{tag}old {i}".encode() + ending for i in range(draw(st.integers(0, 12)))]
    if lines and draw(st.booleans()):
        lines[-1] = lines[-1].removesuffix(ending)
    if lines and draw(st.booleans()):
        lines[0] = BOM + lines[0]
    return lines


@st.composite
def rewritten(draw: st.DrawFn, old: Lines) -> Lines:
    """Some lines removed, some added; neither the mark nor the final newline goes, which no patch could say."""
    kept = [line for line in old if draw(st.integers(0, 3))]
    new = []
    for i, line in enumerate([*kept, b""]):
        new += [f"new {i} {j}\n".encode() for j in range(draw(st.sampled_from([0, 0, 0, 1, 2])))]
        new.append(line)
    text = b"".join(line.removeprefix(BOM) + (b"" if line.endswith(b"\n") else b"\n") for line in new if line)
    if old and not old[-1].endswith(b"\n") and draw(st.booleans()):
        text = text.removesuffix(b"\n")
    text = text.replace(b"\r\n", b"\n").replace(b"\n", b"\r\n" if b"\r\n" in b"".join(old) else b"\n")
    return (BOM + text if old and old[0].startswith(BOM) else text).splitlines(keepends=True)


@st.composite
def seen_ranges(draw: st.DrawFn, n_lines: int) -> tuple[range, ...]:
    """Sorted ranges that do not touch."""
    shown = [draw(st.booleans()) for _ in range(n_lines)]
    starts = [i for i in range(n_lines) if shown[i] and not (i and shown[i - 1])]
    return tuple(range(i, next((j for j in range(i, n_lines) if not shown[j]), n_lines)) for i in starts)


def at(lines: Lines, ranges: tuple[range, ...]) -> set[bytes]:
    assert all(ranges), "no range is empty"
    for a, b in itertools.combinations(ranges, 2):
        assert not (b.start <= a.start and a.stop <= b.stop), "none lies within a later one"
    return {lines[i] for one in ranges for i in one}


def check(old: Lines, before: tuple[range, ...], new: Lines, after: tuple[range, ...]) -> None:
    seen, now = at(old, before), at(new, after)
    written = set(new) - set(old)
    assert now <= seen | written
    assert (seen | written) & set(new) <= now


@st.composite
def patches(draw: st.DrawFn) -> tuple[Lines, tuple[range, ...], Patch]:
    old = draw(old_files())
    new = draw(rewritten(old))
    try:
        patch = derive({"f": b"".join(old)}, {"f": b"".join(new)}, headers=draw(st.booleans()))
    except PatchError:  # the one final newline that cannot be taken away
        patch = Patch(())
    return old, draw(seen_ranges(len(old))), patch


@RELAXED
@given(patches())
def test_seen_lines_move_with_the_patch(case: tuple[Lines, tuple[range, ...], Patch]) -> None:
    old, before, patch = case
    for file in plan(patch, {"f": b"".join(old)}.get).files:
        assert file.new is not None
        check(old, before, file.new.splitlines(keepends=True), carried(before, file.changes))


@pytest.fixture(scope="module")
def state(tmp_path_factory: pytest.TempPathFactory) -> Iterator[None]:
    with pytest.MonkeyPatch.context() as monkeypatch:
        monkeypatch.setenv("XDG_STATE_HOME", str(tmp_path_factory.mktemp("state")))
        yield


@pytest.mark.usefixtures("state")
@settings(RELAXED, max_examples=60)
@given(st.data())
def test_readings_follow_the_files_of_a_run(data: st.DataObject) -> None:
    """Over several patches that change, move, add and delete files, with reads in between."""
    with tempfile.TemporaryDirectory() as folder:
        root = Path(folder)
        workspace = Workspace(root)
        tree = {name: data.draw(old_files(tag=name)) for name in ("a", "b", "c")}
        for name, lines in tree.items():
            (root / name).write_bytes(b"".join(lines))
        for i in range(3):
            for name in data.draw(st.sets(st.sampled_from(sorted(tree)))) if tree else ():
                shown = data.draw(seen_ranges(len(tree[name])))
                for one in shown or (range(0),):
                    workspace.record_read(name, (root / name).read_bytes(), one)
            before = {reading.path: reading for reading in workspace.readings()}
            text, origins = data.draw(sections(tree, i))
            if not origins:
                break
            workspace.apply(parse(text).patch)
            tree = {path.name: lines_of(path.read_bytes()) for path in root.iterdir()}
            after = {reading.path: reading for reading in workspace.readings()}
            for name, origin in origins.items():
                if origin is None:
                    assert at(tree[name], after.pop(name).ranges) == set(tree[name])
                elif origin in before:
                    was = lines_of(before[origin].content)
                    check(was, before[origin].ranges, tree[name], after.pop(name).ranges)
            assert not after, "what was neither read nor made"


@st.composite
def sections(draw: st.DrawFn, tree: dict[str, Lines], i: int) -> tuple[str, dict[str, str | None]]:
    """A patch, and for each file that is there after it, from which one it comes."""
    found, origins = [], {}
    for name, lines in tree.items():
        action = draw(st.sampled_from(["keep", "delete", "update", "move"]))
        target = f"{name}{i}" if action == "move" else name
        if action == "delete":
            found.append(f"*** Delete File: {name}\n")
            continue
        origins[target] = name
        if action == "keep":
            continue
        body = draw(edits(lines, f"{name}{i}")) if action == "update" or draw(st.booleans()) else ""
        if body or action == "move":
            move = f"*** Move to: {target}\n" if action == "move" else ""
            found.append(f"*** Update File: {name}\n{move}{body}")
    if draw(st.booleans()):
        added = [f"+{i} made {j}\n" for j in range(draw(st.integers(0, 3)))]
        found.append(f"*** Add File: n{i}\n{''.join(added)}")
        origins[f"n{i}"] = None
    return "*** Begin Patch\n" + "".join(found) + "*** End Patch\n", origins if found else {}


@st.composite
def edits(draw: st.DrawFn, lines: Lines, tag: str) -> str:
    """Hunks of one old line each, which is enough to fix a place; nothing for an empty file."""
    hunks = []
    for i, line in enumerate(lines):
        text = line.removeprefix(BOM).rstrip(b"\r\n").decode()
        kind = draw(st.sampled_from(["keep", "keep", "remove", "replace", "above", "below"]))
        new = f"+{tag} {i}\n"
        hunk = {"remove": f"-{text}\n", "replace": f"-{text}\n{new}"}
        hunk |= {"above": f"{new} {text}\n", "below": f" {text}\n{new}"}
        if kind in hunk:
            hunks.append(f"@@\n{hunk[kind]}")
    return "".join(hunks)
