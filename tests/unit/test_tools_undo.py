"""Patches taken back: byte for byte, in order, refused where somebody else was at work, also from a transcript."""

from __future__ import annotations

import errno
import json
import os
import stat
import subprocess
import sys
import tempfile
import textwrap
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest
from hypothesis import event, given, settings
from hypothesis import strategies as st

from constrained_agent.agent.transcript import Transcript
from constrained_agent.errors import PatchError, UserError
from constrained_agent.messages import ToolCall, ToolResult
from constrained_agent.patch import derive, parse, render
from constrained_agent.tools.permissions import Policy
from constrained_agent.tools.registry import Tools
from constrained_agent.tools.undo import MAX_RECORDED_BYTES, last_applied, undo_recorded
from constrained_agent.tools.workspace import Workspace
from tests.patch_texts import text, tree, update

CALLS = ("open", "rename", "link", "unlink", "mkdir", "rmdir", "symlink", "fchmod", "fsync")


@pytest.fixture(autouse=True, scope="module")
def _state(tmp_path_factory: pytest.TempPathFactory) -> Iterator[None]:
    with pytest.MonkeyPatch.context() as monkeypatch:
        monkeypatch.setenv("XDG_STATE_HOME", str(tmp_path_factory.mktemp("state")))
        yield


@pytest.fixture
def root(tmp_path: Path) -> Path:
    (tmp_path / "root").mkdir()
    (tmp_path / "root" / "f.txt").write_text("one\ntwo\nthree\n")
    return tmp_path / "root"


@pytest.fixture
def tools(root: Path) -> Tools:
    return Tools(Workspace(root), Policy(yes=True))


def patch(tools: Tools, *sections: str, call_id: str = "call-1") -> ToolResult:
    result = tools.run(ToolCall(call_id, "apply_patch", {"patch": text(*sections)}))
    assert result.ok, result.text
    return result


def as_event(result: ToolResult) -> dict[str, Any]:
    """A result as a transcript holds it."""
    fields = {"call_id": result.call_id, "ok": result.ok, "text": result.text, "data": dict(result.data)}
    return json.loads(json.dumps({"event": "result", **fields}))


# One patch


def lay_out(root: Path) -> None:
    (root / "sub" / "deep").mkdir(parents=True)
    for name in ("a", "b", "gone", "moved", "linked", "sub/inner", "sub/deep/only"):
        (root / name).write_text(f"{name}\n")
    (root / "gone").chmod(0o750)
    (root / "moved").chmod(0o755)
    (root / "binary").write_bytes(b"\x00\xff\n")
    (root / "odd").write_bytes(b"\xef\xbb\xbfx\r\ncaf\xe9\nend")
    (root / "empty").touch()
    os.link(root / "linked", root / "twin")
    (root / "link").symlink_to("sub/inner")


@pytest.mark.parametrize(
    "sections",
    [
        [update("a", "a", "A")],
        ["*** Add File: new\n+x"],
        ["*** Add File: x/y/z\n+x", "*** Add File: x/y/u", "*** Add File: x/v\n+x"],
        ["*** Add File: sub/x/y\n+x"],
        ["*** Delete File: gone"],
        ["*** Delete File: binary"],
        ["*** Delete File: empty"],
        ["*** Delete File: sub/deep/only"],
        ["*** Update File: moved\n*** Move to: there/m"],
        [update("moved", "moved", "M", move_to="there/m")],
        ["*** Update File: binary\n*** Move to: sub/binary"],
        ["*** Update File: odd\n@@\n-x\n+y\n+z"],
        ["*** Update File: odd\n@@\n-end\n+end\n+more"],
        ["*** Update File: odd\n@@\n-x\n*** Update File: odd\n*** Move to: o\n@@\n+first\n end"],
        ["*** Update File: a\n@@\n-a", "*** Update File: empty\n@@\n+x"],
        [update("linked", "linked", "other")],
        ["*** Delete File: twin"],
        [update("link", "sub/inner", "I")],
        ["*** Delete File: link"],
        ["*** Update File: link\n*** Move to: copy"],
        [update("link", "sub/inner", "I", move_to="copy")],
        ["*** Update File: a\n*** Move to: c", "*** Update File: b\n*** Move to: a"],
        ["*** Update File: a\n*** Move to: c", "*** Add File: a\n+new"],
        ["*** Update File: a\n*** Move to: A"],
        ["*** Add File: n\n+x", update("n", "x", "y", move_to="m/n")],
    ],
    ids=lambda sections: " ".join(" ".join(sections).replace("***", "").split())[:60],
)
@pytest.mark.parametrize("recorded", [False, True], ids=["at once", "from its record"])
def test_everything_comes_back(root: Path, tools: Tools, sections: list[str], recorded: bool) -> None:
    lay_out(root)
    before = tree(root)
    result = patch(tools, *sections)
    assert tree(root) != before
    back = undo_recorded(root, as_event(result)) if recorded else tools.undo()
    assert back.ok, back.text
    assert tree(root) == before
    assert back.text.startswith("the patch is taken back:\n")
    assert back.data["undone"] == "call-1"
    json.dumps(back.data)


def test_a_moved_file_is_the_same_file_again(root: Path, tools: Tools) -> None:
    inode = (root / "f.txt").stat().st_ino
    patch(tools, "*** Update File: f.txt\n*** Move to: g.txt")
    tools.undo()
    assert (root / "f.txt").stat().st_ino == inode


def test_hard_links_stay_one_file(root: Path, tools: Tools) -> None:
    os.link(root / "f.txt", root / "twin")
    patch(tools, update("f.txt", "one", "1"))
    tools.undo()
    assert (root / "twin").read_text() == "one\ntwo\nthree\n"
    assert (root / "twin").samefile(root / "f.txt")


def test_a_folder_with_something_else_in_it_stays(root: Path, tools: Tools) -> None:
    patch(tools, "*** Add File: a/b/new\n+x")
    (root / "a" / "mine").touch()
    assert tools.undo().ok
    assert sorted(tree(root)) == ["a", "a/mine", "f.txt"]


def test_a_mode_that_was_set_since_stays(root: Path, tools: Tools) -> None:
    patch(tools, update("f.txt", "one", "1"))
    (root / "f.txt").chmod(0o755)
    assert tools.undo().ok
    assert stat.S_IMODE((root / "f.txt").stat().st_mode) == 0o755


def test_what_came_back_is_shown(tools: Tools) -> None:
    patch(tools, update("f.txt", "two", "2"))
    result = tools.undo()
    lines = ["the patch is taken back:", "update f.txt (+1 -1)", "1│one", "2│two", "3│three"]
    assert result.text.split("\n") == lines
    assert (result.call_id, result.error_kind) == ("undo", "")
    assert "-2\n+two\n" in result.data["diff"]


# Several


def test_patches_go_one_by_one_the_last_one_first(root: Path, tools: Tools) -> None:
    trees = [tree(root)]
    for i, old in enumerate(["one", "two", "three"]):
        patch(tools, update("f.txt", old, f"{old}!"), f"*** Add File: new/n{i}", call_id=f"call-{i}")
        trees.append(tree(root))
    for i in (2, 1, 0):
        assert tools.undo().data["undone"] == f"call-{i}"
        assert tree(root) == trees[i]
    result = tools.undo()
    assert (result.ok, result.error_kind) == (False, "tool_error")
    assert result.text == "there is no patch to take back"


def test_a_patch_after_an_undo_is_the_last_one(root: Path, tools: Tools) -> None:
    patch(tools, update("f.txt", "one", "1"))
    patch(tools, update("f.txt", "two", "2"))
    tools.undo()
    patch(tools, update("f.txt", "three", "3"))
    tools.undo()
    assert (root / "f.txt").read_text() == "1\ntwo\nthree\n"
    tools.undo()
    assert (root / "f.txt").read_text() == "one\ntwo\nthree\n"


def test_patches_of_the_run_before_can_go_too(root: Path, tools: Tools) -> None:
    patch(tools, update("f.txt", "one", "1"))
    tools.start_run(None)
    patch(tools, update("f.txt", "two", "2"))
    assert tools.undo().ok
    assert tools.changes().paths == ()
    assert tools.undo().ok
    assert (root / "f.txt").read_text() == "one\ntwo\nthree\n"
    assert tools.changes().paths == ()


def test_what_a_run_changed_in_all_is_counted_without_them(tools: Tools) -> None:
    patch(tools, update("f.txt", "one", "1"))
    patch(tools, update("f.txt", "two", "2"), "*** Add File: new\n+x")
    assert tools.changes().paths == ("f.txt", "new")
    tools.undo()
    assert tools.changes().paths == ("f.txt",)
    assert "+2" not in tools.changes().diff
    tools.undo()
    assert tools.changes().paths == ()


def test_a_refused_patch_is_not_on_the_stack(root: Path, tools: Tools) -> None:
    patch(tools, update("f.txt", "one", "1"))
    assert not tools.run(ToolCall("c", "apply_patch", {"patch": text(update("f.txt", "none", "x"))})).ok
    assert tools.undo().ok
    assert (root / "f.txt").read_text() == "one\ntwo\nthree\n"


# Somebody else


def _write(path: Path) -> None:
    path.write_text("theirs\n")


def _remove(path: Path) -> None:
    path.unlink()


def _link(path: Path) -> None:
    path.rename(path.with_name("away"))
    path.symlink_to("away")


def _folder(path: Path) -> None:
    path.unlink()
    path.mkdir()


@pytest.mark.parametrize("disturb", [_write, _remove, _link, _folder])
@pytest.mark.parametrize("name", ["updated", "added", "moved-to"])
def test_a_file_that_something_else_changed_is_named_and_nothing_is_done(
    root: Path, tools: Tools, name: str, disturb: Callable[[Path], None]
) -> None:
    for old in ("updated", "moved", "gone"):
        (root / old).write_text("x\n")
    patch(
        tools,
        update("f.txt", "one", "1"),
        update("updated", "x", "y"),
        update("moved", "x", "y", move_to="moved-to"),
        "*** Add File: added\n+x",
        "*** Delete File: gone",
    )
    after = tree(root)
    disturb(root / name)
    disturbed = tree(root)
    result = tools.undo()
    assert (result.ok, result.error_kind) == (False, "changed_on_disk")
    assert result.text.startswith(f"changed_on_disk: {name}: ")
    assert result.data["path"] == name
    assert tree(root) == disturbed
    (root / name).rmdir() if (root / name).is_dir() else (root / name).unlink(missing_ok=True)
    (root / "away").unlink(missing_ok=True)
    (root / name).write_bytes(after[name][1])
    assert tools.undo().ok, "it is still there to be taken back"
    assert sorted(tree(root)) == ["f.txt", "gone", "moved", "updated"]


@pytest.mark.parametrize("section", ["*** Delete File: f.txt", "*** Update File: f.txt\n*** Move to: g.txt"])
def test_what_stands_in_the_way_is_not_overwritten(root: Path, tools: Tools, section: str) -> None:
    patch(tools, section)
    (root / "f.txt").write_text("theirs\n")
    before = tree(root)
    result = tools.undo()
    assert result.error_kind == "exists"
    assert result.text == (
        "exists: f.txt: something stands now where the file would come back; move it away first"
    )
    assert tree(root) == before


def test_a_folder_that_has_become_a_link_is_not_followed(root: Path, tools: Tools) -> None:
    (root / "sub").mkdir()
    (root / "sub" / "f").write_text("x\n")
    patch(tools, "*** Delete File: sub/f")
    (root / "sub").rmdir()
    (root / "sub").symlink_to("..")
    result = tools.undo()
    assert not result.ok
    assert not (root.parent / "f").exists()


def test_a_patch_of_another_program_is_not_lost(root: Path, tools: Tools) -> None:
    patch(tools, update("f.txt", "one", "1"))
    Workspace(root).apply(parse(text(update("f.txt", "two", "2"))).patch)
    assert tools.undo().error_kind == "changed_on_disk"
    assert (root / "f.txt").read_text() == "1\n2\nthree\n"


# What counts as read


def seen(tools: Tools) -> dict[str, set[int]]:
    return {reading.path: {i for part in reading.ranges for i in part} for reading in tools.readings()}


def test_files_count_as_read_as_they_are_then(root: Path, tools: Tools) -> None:
    for name in ("gone", "moved", "unread"):
        (root / name).write_text("1\n2\n3\n")
    for name in ("f.txt", "gone", "moved"):
        tools.run(ToolCall("r", "read_file", {"path": name, "offset": 1, "limit": 2}))
    before = seen(tools)
    patch(
        tools,
        update("f.txt", "one", "1\n+1.5"),
        update("unread", "1", "x"),
        "*** Delete File: gone",
        "*** Update File: moved\n*** Move to: there",
        "*** Add File: new\n+x",
    )
    assert seen(tools) == {"f.txt": {0, 1, 2}, "there": {0, 1}, "new": {0}}
    assert tools.undo().ok
    assert seen(tools) == before == {"f.txt": {0, 1}, "gone": {0, 1}, "moved": {0, 1}}
    patch(tools, update("f.txt", "two", "2"), update("gone", "1", "x"), update("moved", "2", "x"))


def test_what_was_read_since_stays_read(tools: Tools) -> None:
    tools.run(ToolCall("r", "read_file", {"path": "f.txt", "offset": 1, "limit": 1}))
    patch(tools, update("f.txt", "one", "1"))
    tools.run(ToolCall("r", "read_file", {"path": "f.txt", "offset": 3, "limit": 1}))
    tools.undo()
    assert seen(tools) == {"f.txt": {0, 2}}


# All or nothing


class Failing:
    """Lets the n-th system call fail; flushes are counted, but not made."""

    def __init__(self, monkeypatch: pytest.MonkeyPatch, at: int) -> None:
        self.n, self.at = 0, at
        for name in CALLS:
            monkeypatch.setattr(os, name, self._wrapped(getattr(os, name), name))

    def _wrapped(self, real: Callable[..., Any], name: str) -> Callable[..., Any]:
        def call(*args: Any, **kwargs: Any) -> Any:
            self.n += 1
            if self.n == self.at:
                raise OSError(errno.ENOSPC, "No space left on device", str(args[0]))
            return None if name == "fsync" else real(*args, **kwargs)

        return call


BROAD = [
    update("a", "a", "A"),
    update("linked", "linked", "a much longer line than before"),
    update("moved", "moved", "M", move_to="there/m"),
    "*** Add File: new/er/n\n+n",
    "*** Delete File: gone",
    "*** Delete File: link",
]


def test_every_failing_call_rolls_back(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(os, "fsync", lambda handle: None)
    outcomes = set()
    for at in range(1, 1000):
        root = tmp_path / str(at)
        lay_out(root)
        before = tree(root)
        workspace = Workspace(root)
        back = workspace.apply(parse(text(*BROAD)).patch).back
        after = tree(root)
        assert back is not None
        with pytest.MonkeyPatch.context() as monkeypatch:
            failing = Failing(monkeypatch, at)
            try:
                workspace.take_back(back)
                outcome = "undone"
            except PatchError as error:
                outcome = error.kind
        if failing.n < at:
            break
        workspace.recover()
        now = tree(root)
        if outcome == "undone":  # an empty folder may stay where it could not be removed
            folders = {path for path in now.keys() - before.keys() if (root / path).is_dir()}
            now = {path: facts for path, facts in now.items() if path not in folders}
        assert now == (before if outcome == "undone" else after), f"call {at}"
        outcomes.add(outcome)
    assert {"undone", "write_failed"} <= outcomes <= {"undone", "write_failed", "changed_on_disk"}
    assert at > 100


KILLED = textwrap.dedent(
    """
    import os, signal, sys
    sys.path.insert(0, sys.argv[1])
    from pathlib import Path
    from constrained_agent.patch import parse
    from constrained_agent.tools.workspace import Workspace
    from tests.unit.test_tools_undo import BROAD, CALLS, lay_out, text, tree

    base, step = Path(sys.argv[2]), int(sys.argv[3])
    os.fsync = lambda handle: None
    mixed, counts, at = [], {"before": 0, "after": 0}, 1
    while True:
        root = base / str(at)
        lay_out(root)
        before = tree(root)
        workspace = Workspace(root)
        back = workspace.apply(parse(text(*BROAD)).patch).back
        after = tree(root)
        child = os.fork()
        if child == 0:
            made = 0
            def wrapped(real):
                def call(*args, **kwargs):
                    global made
                    made += 1
                    if made == at:
                        os.kill(os.getpid(), signal.SIGKILL)
                    return real(*args, **kwargs)
                return call
            for name in CALLS:
                setattr(os, name, wrapped(getattr(os, name)))
            workspace.take_back(back)
            os._exit(0)
        _, status = os.waitpid(child, 0)
        Workspace(root).recover()
        now = tree(root)
        counts["before"] += now == before
        counts["after"] += now == after
        if now not in (before, after):
            mixed.append(at)
        if os.WIFEXITED(status):
            break
        at += step
    print(mixed, counts["before"] > 1, counts["after"] > 1, at > 100)
    """
)


def test_killed_anywhere(tmp_path: Path) -> None:
    """After recovery the tree is as before the undo or as after it, its folders included."""
    here = Path(__file__).parent.parent.parent
    done = subprocess.run(
        [sys.executable, "-c", KILLED, here, tmp_path, "3"], capture_output=True, text=True, check=False
    )
    assert done.returncode == 0, done.stderr
    assert done.stdout == "[] True True True\n"


# From a transcript


def test_a_transcript_is_enough(root: Path, tmp_path: Path) -> None:
    before = tree(root)
    file = tmp_path / "run.jsonl"
    transcript, tools = Transcript(str(file)), Tools(Workspace(root), Policy())
    for i, section in enumerate(
        ["*** Add File: new\n+é\n+x", update("new", "x", "y"), "*** Delete File: new"]
    ):
        transcript.result(patch(tools, section, call_id=f"call-{i}"))
    transcript.result(tools.undo())
    for i in (1, 0):
        events = [json.loads(line) for line in file.read_text(encoding="utf-8").splitlines()]
        last = last_applied(events)
        assert last is not None
        assert last["call_id"] == f"call-{i}"
        untouched = tree(root)
        assert undo_recorded(root, last, dry_run=True).text.startswith("the patch would be taken back:")
        assert tree(root) == untouched
        Transcript(str(file)).result(undo_recorded(root, last))
    events = [json.loads(line) for line in file.read_text(encoding="utf-8").splitlines()]
    assert last_applied(events) is None
    assert tree(root) == before


def test_of_two_runs_with_the_same_numbers_the_later_patch_goes_first() -> None:
    def made(n: int) -> dict[str, Any]:
        return {"event": "result", "call_id": "call-1", "n": n, "data": {"undo": {}}}

    undone = {"event": "result", "call_id": "undo", "data": {"undone": "call-1"}}
    other = [
        {"event": "turn"},
        {"event": "result", "data": None},
        {"event": "result", "data": {"undone": "no"}},
    ]
    assert last_applied([made(1), *other, made(2), *other]) == made(2)
    assert last_applied([made(1), made(2), undone]) == made(1)
    assert last_applied([made(1), undone, made(2)]) == made(2)
    assert last_applied([made(1), made(2), undone, undone, *other]) is None


@pytest.mark.parametrize(
    "change",
    [
        lambda data: data.pop("undo"),
        lambda data: data.update(undo=None),
        lambda data: data.update(undo={"files": [], "folders": []}),
        lambda data: data["undo"].pop("files"),
        lambda data: data["undo"]["files"][0].pop("path"),
        lambda data: data["undo"]["files"][0].update(action="replace"),
        lambda data: data["undo"]["files"][0].update(path=3),
        lambda data: data["undo"]["files"][0].update(pieces=[[1]]),
        lambda data: data["undo"]["files"][0].update(pieces=[[0, 1, {"base64": "?"}]]),
        lambda data: data["undo"].update(folders=[1]),
    ],
)
def test_an_event_that_cannot_be_read_is_the_persons_to_mend(
    root: Path, tools: Tools, change: Callable[[dict[str, Any]], Any]
) -> None:
    recorded = as_event(patch(tools, update("f.txt", "one", "1")))
    before = tree(root)
    change(recorded["data"])
    with pytest.raises(UserError):
        undo_recorded(root, recorded)
    with pytest.raises(UserError):
        undo_recorded(root, {"event": "turn"})
    assert tree(root) == before


@pytest.mark.parametrize(
    ("path", "kind"),
    [
        ("../f.txt", "outside_root"),
        ("/etc/passwd", "outside_root"),
        (".git/config", "outside_root"),
        ("./f.txt", "outside_root"),
        ("sub//f.txt", "outside_root"),
        ("", "bad_path"),
        ("out/f.txt", "outside_root"),
        ("in/f.txt", "changed_on_disk"),
    ],
)
def test_a_record_cannot_lead_out(root: Path, tools: Tools, path: str, kind: str) -> None:
    (root / "real").mkdir()
    (root / "in").symlink_to("real")
    (root / "out").symlink_to("..")
    recorded = as_event(patch(tools, "*** Delete File: f.txt"))
    before = tree(root.parent)
    recorded["data"]["undo"]["files"][0]["path"] = path
    assert undo_recorded(root, recorded).error_kind == kind
    recorded["data"]["undo"]["files"][0]["path"] = "f.txt"
    recorded["data"]["undo"]["folders"] = [path]
    assert undo_recorded(root, recorded).error_kind == kind
    assert tree(root.parent) == before


@pytest.mark.parametrize(
    ("section", "word"), [(update("f.txt", "one", "1"), "one"), ("*** Delete File: f.txt", "two")]
)
def test_a_text_that_was_masked_is_never_written(root: Path, tools: Tools, section: str, word: str) -> None:
    recorded = json.dumps(as_event(patch(tools, section)))
    before = tree(root)
    result = undo_recorded(root, json.loads(recorded.replace(word, "***")))
    assert (result.ok, result.error_kind) == (False, "tool_error")
    assert "the record does not give the old file" in result.text
    assert tree(root) == before


def test_what_was_too_large_is_said(root: Path, tools: Tools) -> None:
    large = "".join(f"{i} {'x' * 100}\n" for i in range(MAX_RECORDED_BYTES // 100))
    (root / "f.txt").write_text(large)
    removed = "\n".join(f"-{line}" for line in large.split("\n")[:-1])
    for section in ("*** Delete File: f.txt", f"*** Update File: f.txt\n@@\n{removed}\n+x"):
        result = patch(tools, section)
        assert len(json.dumps(result.data["undo"])) < 1000
        before = tree(root)
        refused = undo_recorded(root, as_event(result))
        assert (refused.ok, refused.error_kind) == (False, "tool_error")
        assert "too large for the record" in refused.text
        assert tree(root) == before
        assert tools.undo().ok, "in the run itself it is known"
        assert (root / "f.txt").read_text() == large
    (root / "f.txt").write_text(large)
    small = as_event(patch(tools, f"*** Update File: f.txt\n@@\n-0 {'x' * 100}\n+x"))
    assert undo_recorded(root, small).ok, "of a large file, only what differs is kept"


def test_another_repository(root: Path, tools: Tools, tmp_path: Path) -> None:
    recorded = as_event(patch(tools, update("f.txt", "one", "1")))
    (tmp_path / "other").mkdir()
    assert undo_recorded(tmp_path / "other", recorded).error_kind == "changed_on_disk"
    with pytest.raises(UserError, match="is not a folder"):
        undo_recorded(tmp_path / "none", recorded)


# The law

LINES = ["a", "b", "  a", "", "def f():", "}", "x\r", "é", "\ufeffq"]
NAMES = ["a", "b.py", "sub/a", "sub/deep/c", "other/d"]
MODES = [0o644, 0o755, 0o600, 0o444]


@st.composite
def contents(draw: st.DrawFn) -> bytes:
    if draw(st.integers(0, 9)) == 0:
        return draw(st.sampled_from([b"\0\xff", b"\xff\xfea\0", b"\xef\xbb\xbf", b"caf\xe9\nx\n"]))
    ending = draw(st.sampled_from(["\n", "\n", "\r\n"]))
    lines = "".join(line + ending for line in draw(st.lists(st.sampled_from(LINES), max_size=8)))
    return (lines.rstrip("\r\n") if draw(st.integers(0, 3)) == 0 else lines).encode()


@st.composite
def edited(draw: st.DrawFn, old: bytes) -> bytes:
    *lines, last = old.split(b"\n")
    start = draw(st.integers(0, len(lines)))
    end = draw(st.integers(start, min(len(lines), start + 2)))
    carriage = b"\r" if b"\r\n" in old else b""
    new = draw(st.lists(st.sampled_from(LINES), max_size=2))
    return b"\n".join([*lines[:start], *(line.encode() + carriage for line in new), *lines[end:], last])


@st.composite
def changed(draw: st.DrawFn, files: dict[str, bytes]) -> dict[str, bytes]:
    """Another tree: some files edited, moved, removed, added."""
    new: dict[str, bytes] = {}
    for name, content in files.items():
        what = draw(st.sampled_from(["keep", "edit", "edit", "remove", "move", "move and edit"]))
        if what == "remove":
            continue
        target = name
        if what.startswith("move"):
            target = f"{draw(st.sampled_from(['', 'sub/', 'm/n/']))}{draw(st.integers(0, 99))}"
        if target in new or (target != name and target in files):
            target = name
        new[target] = draw(edited(content)) if "edit" in what else content
    for name in draw(st.sets(st.sampled_from([*NAMES, "n/e/w", "n/x"]), max_size=2)):
        content = draw(contents())
        new.setdefault(name, content if content.endswith(b"\n") else b"")
    return new


@settings(deadline=None, database=None, max_examples=150)
@given(st.data())
def test_n_patches_taken_back_give_the_start(data: st.DataObject) -> None:
    """Modes and empty folders included; each step back gives the tree that was there, at once or by its record."""
    with tempfile.TemporaryDirectory() as folder, pytest.MonkeyPatch.context() as monkeypatch:
        monkeypatch.setattr(os, "fsync", lambda handle: None)
        root = Path(folder)
        for name in data.draw(st.sets(st.sampled_from(NAMES), min_size=1)):
            (root / name).parent.mkdir(parents=True, exist_ok=True)
            (root / name).write_bytes(data.draw(contents()))
            (root / name).chmod(data.draw(st.sampled_from(MODES)))
        tools = Tools(Workspace(root), Policy())
        trees, events = [tree(root)], []
        for i in range(data.draw(st.integers(2, 6))):
            if events and data.draw(st.integers(0, 3)) == 0:
                take_one_back(root, tools, trees, events, recorded=data.draw(st.booleans()))
                continue
            result = some_patch(root, tools, data, f"call-{i}")
            if result is not None:
                trees.append(tree(root))
                events.append(as_event(result))
        event(f"{len(events)} patches at the end")
        while events:
            take_one_back(root, tools, trees, events, recorded=data.draw(st.booleans()))
        assert tree(root) == trees.pop()


def some_patch(root: Path, tools: Tools, data: st.DataObject, call_id: str) -> ToolResult | None:
    """Apply a patch to another tree; None where the language cannot say it, or a file would be where a folder is."""
    paths = [path for path in sorted(root.rglob("*")) if path.is_file()]
    files = {path.relative_to(root).as_posix(): path.read_bytes() for path in paths}
    try:
        derived = derive(files, data.draw(changed(files)))
        patched = render(derived)
        patched.encode()
    except (PatchError, UnicodeEncodeError) as error:
        event(f"not said: {type(error).__name__}")
        return None
    if not derived.sections:
        return None
    result = tools.run(ToolCall(call_id, "apply_patch", {"patch": patched}))
    # The same lines added in the same place once more are the same patch sent again.
    assert result.ok or result.error_kind in ("is_directory", "exists", "bad_path", "already_applied"), (
        result.text
    )
    return result if result.ok else None


def take_one_back(
    root: Path,
    tools: Tools,
    trees: list[dict[str, tuple[int, bytes]]],
    events: list[dict[str, Any]],
    *,
    recorded: bool,
) -> None:
    assert tree(root) == trees.pop()
    last = events.pop()
    if recorded:
        # As by another program, after which what was read would have to be read again.
        assert undo_recorded(root, last).ok
        tools._standing.pop()
        for file in last["data"]["undo"]["files"]:
            for path in (file["path"], file.get("new_path", file["path"])):
                tools.forget(path)
    else:
        assert tools.undo().ok
    assert tree(root) == trees[-1]
