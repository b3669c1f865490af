"""The workspace on a real disk: paths, links, modes, stamps, and what happens when a write fails."""

from __future__ import annotations

import errno
import os
import stat
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from constrained_agent.errors import PatchError, UserError
from constrained_agent.patch import Patch, parse
from constrained_agent.tools.reads import Reading
from constrained_agent.tools.workspace import Workspace
from tests.patch_texts import text, tree, update

CALLS = ("open", "rename", "link", "unlink", "mkdir", "fsync", "ftruncate", "fchmod")
FSYNC = os.fsync


@pytest.fixture(autouse=True)
def state(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    monkeypatch.setenv("XDG_STATE_HOME", str(tmp_path / "state"))
    return tmp_path / "state"


@pytest.fixture
def root(tmp_path: Path) -> Path:
    (tmp_path / "root").mkdir()
    (tmp_path / "outside.txt").write_text("o\n")
    return tmp_path / "root"


def patch(*sections: str) -> Patch:
    return parse(text(*sections)).patch


def kind_of(call: Callable[[], Any]) -> str:
    with pytest.raises(PatchError) as caught:
        call()
    return caught.value.kind


# Paths


@pytest.mark.parametrize(
    ("path", "kind"),
    [
        ("", "bad_path"),
        ("  ", "bad_path"),
        ("a\0b", "bad_path"),
        ("\ud800", "bad_path"),
        ("a\\b", "bad_path"),
        ("..", "outside_root"),
        ("../outside.txt", "outside_root"),
        ("a/../../outside.txt", "outside_root"),
        ("a/../b", "outside_root"),
        ("/etc/passwd", "outside_root"),
        ("~/x", "outside_root"),
        ("C:\\x", "outside_root"),
        ("C:/x", "outside_root"),
        ("out", "outside_root"),
        ("out/x", "outside_root"),
        ("file_out", "outside_root"),
        (".git", "outside_root"),
        (".git/config", "outside_root"),
        ("sub/.GIT/hooks/x", "outside_root"),
        (".g\u200cit/config", "outside_root"),
        ("to_git/config", "outside_root"),
    ],
)
def test_refused_paths(root: Path, path: str, kind: str) -> None:
    (root / ".git").mkdir()
    (root / "out").symlink_to("..")
    (root / "file_out").symlink_to("../outside.txt")
    (root / "to_git").symlink_to(".git")
    assert kind_of(lambda: Workspace(root).resolve(path)) == kind


def test_paths_inside(root: Path) -> None:
    (root / "sub").mkdir()
    (root / "in").symlink_to("sub")
    workspace = Workspace(root)
    assert workspace.resolve(".") == workspace.root
    assert workspace.resolve("in/new.txt") == workspace.root / "sub" / "new.txt"
    assert workspace.resolve(".gitignore") == workspace.root / ".gitignore"


def test_root_must_be_a_folder(root: Path) -> None:
    with pytest.raises(UserError):
        Workspace(root / "absent")


def test_root_may_be_a_link(root: Path, tmp_path: Path) -> None:
    (tmp_path / "link").symlink_to("root")
    Workspace(tmp_path / "link").apply(patch("*** Add File: a\n+x"))
    assert (root / "a").read_text() == "x\n"


def test_what_is_no_file(root: Path) -> None:
    os.mkfifo(root / "pipe")
    (root / "folder").mkdir()
    (root / "loop").symlink_to("loop")
    workspace = Workspace(root)
    assert kind_of(lambda: workspace.read_bytes("pipe")) == "bad_path"
    assert kind_of(lambda: workspace.read_bytes("folder")) == "is_directory"
    assert kind_of(lambda: workspace.read_bytes("loop")) == "bad_path"
    assert kind_of(lambda: workspace.read_bytes("absent")) == "file_not_found"
    assert kind_of(lambda: workspace.read_bytes("x" * 300)) == "bad_path"
    assert kind_of(lambda: workspace.apply(patch("*** Delete File: folder"))) == "is_directory"
    assert kind_of(lambda: workspace.apply(patch("*** Add File: folder"))) == "is_directory"
    assert kind_of(lambda: workspace.apply(patch(f"*** Add File: {'x' * 300}"))) == "bad_path"


@pytest.mark.parametrize(
    ("section", "kind"),
    [
        ("*** Add File: a.txt/b", "bad_path"),
        ("*** Add File: dangling", "exists"),
        ("*** Add File: a.txt\n+x", "exists"),
        ("*** Update File: a.txt\n*** Move to: dangling", "exists"),
        ("*** Update File: a.txt\n*** Move to: b.txt", "exists"),
        ("*** Update File: a.txt\n*** Move to: ../c.txt", "outside_root"),
        ("*** Update File: a.txt\n*** Move to: out/c.txt", "outside_root"),
        ("*** Add File: out/c.txt", "outside_root"),
        ("*** Add File: .git/hooks/pre-commit\n+x", "outside_root"),
        ("*** Delete File: file_out", "outside_root"),
        ("*** Update File: dangling\n@@\n-a\n+b", "file_not_found"),
        ("*** Update File: a.txt/b\n@@\n-a\n+b", "file_not_found"),
        ("*** Add File: n\n*** Add File: n/m", "bad_path"),
        ("*** Update File: a.txt\n@@\n-a\n+b\n*** Delete File: link.txt", "duplicate_path"),
    ],
)
def test_refused_patches_leave_the_tree(root: Path, section: str, kind: str) -> None:
    (root / "a.txt").write_text("a\n")
    (root / "b.txt").write_text("b\n")
    (root / "link.txt").symlink_to("a.txt")
    (root / "dangling").symlink_to("nowhere")
    (root / "out").symlink_to("..")
    (root / "file_out").symlink_to("../outside.txt")
    before = tree(root.parent)
    good = update("b.txt", "b", "B")
    assert kind_of(lambda: Workspace(root).apply(patch("*** Add File: new/x", good, section))) == kind
    after = {name: entry for name, entry in tree(root.parent).items() if not name.startswith("state")}
    assert after == before


# Links, modes, moves


def test_links_inside_are_written_through(root: Path) -> None:
    (root / "real").mkdir()
    (root / "real" / "a.txt").write_text("a\n")
    (root / "folder").symlink_to("real")
    (root / "file").symlink_to("folder/a.txt")
    Workspace(root).apply(
        patch(update("file", "a", "b"), update("folder/a.txt", "b", "c"), "*** Add File: folder/n")
    )
    assert (root / "real" / "a.txt").read_text() == "c\n"
    assert (root / "file").is_symlink()
    assert (root / "folder").is_symlink()
    assert (root / "real" / "n").read_bytes() == b""


def test_a_deleted_or_moved_link_leaves_its_target(root: Path) -> None:
    (root / "a.txt").write_text("a\n")
    (root / "link").symlink_to("a.txt")
    (root / "other").symlink_to("a.txt")
    Workspace(root).apply(patch("*** Delete File: link"))
    Workspace(root).apply(patch(update("other", "a", "b", move_to="new/b.txt")))
    assert sorted(path.name for path in root.iterdir()) == ["a.txt", "new"]
    assert (root / "a.txt").read_text() == "a\n"
    assert (root / "new" / "b.txt").read_text() == "b\n"
    assert stat.S_IMODE((root / "new" / "b.txt").stat().st_mode) == stat.S_IMODE(
        (root / "a.txt").stat().st_mode
    )


def test_a_link_moved_onto_its_target_is_an_update(root: Path) -> None:
    (root / "a.txt").write_text("a\n")
    (root / "link").symlink_to("a.txt")
    done = Workspace(root).apply(patch(update("link", "a", "b", move_to="a.txt")))
    assert [file.action for file in done.files] == ["update"]
    assert (root / "a.txt").read_text() == "b\n"
    assert (root / "link").is_symlink()


def test_hard_links_stay_together(root: Path) -> None:
    (root / "a").write_text("one\ntwo\nthree\n")
    os.link(root / "a", root / "b")
    inode = (root / "a").stat().st_ino
    two = "*** Update File: a\n@@\n-one\n+1\n*** Update File: b\n@@\n-three\n+3"
    Workspace(root).apply(patch(two))
    assert (root / "a").read_text() == (root / "b").read_text() == "1\ntwo\n3\n"
    assert (root / "a").stat().st_ino == (root / "b").stat().st_ino == inode


def test_modes_and_plain_moves(root: Path) -> None:
    (root / "run.sh").write_text("a\n")
    (root / "run.sh").chmod(0o750)
    (root / "secret").write_text("a\n")
    (root / "secret").chmod(0o400)
    (root / "data").write_bytes(b"\0\1")
    inode = (root / "data").stat().st_ino
    Workspace(root).apply(
        patch(
            update("run.sh", "a", "b"),
            update("secret", "a", "b", move_to="deep/er/s"),
            "*** Update File: data\n*** Move to: d2",
        )
    )
    assert stat.S_IMODE((root / "run.sh").stat().st_mode) == 0o750
    assert stat.S_IMODE((root / "deep" / "er" / "s").stat().st_mode) == 0o400
    assert (root / "d2").stat().st_ino == inode, "a move without a change keeps the file itself"
    assert not (root / "data").exists()


def test_a_moved_file_makes_room(root: Path) -> None:
    (root / "a").write_text("old\n")
    Workspace(root).apply(patch("*** Update File: a\n*** Move to: b", "*** Add File: a\n+shim"))
    assert (root / "b").read_text() == "old\n"
    assert (root / "a").read_text() == "shim\n"


def test_nothing_else_is_left_behind(root: Path, state: Path) -> None:
    (root / "a").write_text("a\n")
    Workspace(root).apply(patch(update("a", "a", "b"), "*** Add File: n/m\n+x"))
    assert sorted(tree(root)) == ["a", "n", "n/m"]
    assert [path.name for path in state.rglob("*") if path.is_file()] == ["lock"]


def test_dry_run_writes_nothing(root: Path, state: Path) -> None:
    (root / "a").write_text("a\n")
    before = tree(root)
    told = Workspace(root).apply(patch(update("a", "a", "b"), "*** Add File: n/m\n+x"), dry_run=True)
    assert told.dry_run
    assert [(file.path, file.action) for file in told.files] == [("a", "update"), ("n/m", "add")]
    assert "+b\n" in told.diff
    assert tree(root) == before
    assert not state.exists()


# What was read


def test_a_file_changed_since_it_was_read_is_refused(root: Path) -> None:
    (root / "a").write_text("one\n")
    workspace = Workspace(root)
    assert workspace.seen("a") is None
    workspace.record_read("a", workspace.read_bytes("a"))
    (root / "a").write_text("other\n")
    for section in (update("a", "other", "x"), update("a", "one", "x"), "*** Delete File: a"):
        with pytest.raises(PatchError, match="changed since it was read") as caught:
            workspace.apply(patch(section))
        assert caught.value.kind == "changed_on_disk"
    assert workspace.readings() == []


def test_the_runs_own_patches_refresh_the_stamp(root: Path) -> None:
    for name in "abc":
        (root / name).write_text("1\n")
    workspace = Workspace(root)
    for name in "ab":
        workspace.record_read(name, workspace.read_bytes(name))
    for old, new in (("1", "2"), ("2", "3")):
        workspace.apply(patch(update("a", old, new), update("c", old, new)))
    assert workspace.seen("c") is None, "a file that was never read does not become read by a patch"
    workspace.apply(patch(update("a", "3", "4", move_to="d"), "*** Delete File: b", "*** Add File: e\n+x"))
    assert workspace.readings() == [Reading("d", b"4\n", (range(1),)), Reading("e", b"x\n", (range(1),))]
    assert workspace.seen("a") is None
    assert workspace.seen("b") is None


def ranges(workspace: Workspace) -> dict[str, list[tuple[int, int]]]:
    """The lines that were read of each file, in whatever order, as ranges that do not touch."""
    found: dict[str, list[tuple[int, int]]] = {}
    for reading in workspace.readings():
        lines = sorted({line for one in reading.ranges for line in one})
        starts = [line for line in lines if line - 1 not in lines]
        found[reading.path] = [
            (start, next(line for line in range(start, lines[-1] + 2) if line not in lines))
            for start in starts
        ]
    return found


def test_lines_add_up_until_the_content_changes(root: Path) -> None:
    (root / "a").write_text("x\n" * 30)
    (root / "empty").touch()
    workspace = Workspace(root)
    for lines in (range(20, 22), range(5, 10), range(8, 12), range(12, 13)):
        workspace.record_read("a", workspace.read_bytes("a"), lines)
    workspace.record_read("empty", b"")
    assert ranges(workspace) == {"a": [(5, 13), (20, 22)], "empty": []}
    (root / "a").write_text("y\n" * 30)
    assert ranges(workspace) == {"empty": []}
    workspace.record_read("a", workspace.read_bytes("a"), range(1, 2))
    assert ranges(workspace) == {"empty": [], "a": [(1, 2)]}
    workspace.record_read("a", workspace.read_bytes("a"))
    assert ranges(workspace)["a"] == [(0, 30)]


def test_the_last_read_or_patched_file_comes_last(root: Path) -> None:
    for name in "abc":
        (root / name).write_text("1\n")
    workspace = Workspace(root)
    for name in "abca":
        workspace.record_read(name, b"1\n")
    assert list(ranges(workspace)) == ["b", "c", "a"]
    workspace.apply(patch(update("c", "1", "2"), update("b", "1", "2")))
    assert list(ranges(workspace)) == ["a", "c", "b"]


def test_readings_are_what_stands_on_the_disk(root: Path) -> None:
    """Whatever another program does: nothing else is handed out, and nothing fails."""
    (root / "sub").mkdir()
    names = ("sub/a", "b", "c", "d", "e")
    for name in names:
        (root / name).write_text("1\n")
    workspace = Workspace(root)
    for name in names:
        workspace.record_read(name, b"1\n")
    (root / "sub").rename(root / "was")
    (root / "sub").symlink_to("was")
    (root / "b").unlink()
    (root / "c").unlink()
    (root / "c").mkdir()
    (root / "d").unlink()
    (root / "d").symlink_to("e")
    assert list(ranges(workspace)) == ["e"]
    (root / "b").write_text("1\n")
    assert list(ranges(workspace)) == ["b", "e"], "the same content again"


def test_links_are_read_under_the_real_path(root: Path) -> None:
    (root / "sub").mkdir()
    (root / "sub" / "a").write_text("1\n")
    (root / "in").symlink_to("sub")
    (root / "link").symlink_to("in/a")
    os.link(root / "sub" / "a", root / "twin")
    workspace = Workspace(root)
    for path in ("link", "in/a", "./sub//a"):
        workspace.record_read(path, b"1\n")
    workspace.record_read("twin", b"1\n")
    assert list(ranges(workspace)) == ["twin"], "one file has one name at a time"
    workspace.apply(patch(update("link", "1", "2")))
    assert list(ranges(workspace)) == ["sub/a"], (
        "the twin has new text that the model was not shown as its own"
    )


def test_a_moved_link_takes_what_was_seen_along(root: Path) -> None:
    (root / "a").write_text("1\n2\n3\n")
    (root / "link").symlink_to("a")
    workspace = Workspace(root)
    workspace.record_read("link", b"1\n2\n3\n", range(2))
    workspace.apply(patch(update("link", "1", "x", move_to="b")))
    assert ranges(workspace) == {"a": [(0, 2)], "b": [(0, 2)]}


def test_names_that_no_patch_can_spell_are_no_readings(root: Path) -> None:
    workspace = Workspace(root)
    for name in ("line\nbreak", "blank ", " a", "a b"):
        (root / name).touch()
        workspace.record_read(name, b"")
    assert list(ranges(workspace)) == ["a b"]


def test_a_patch_shifts_what_was_seen(root: Path) -> None:
    (root / "a").write_text("".join(f"{i}\n" for i in range(40)))
    workspace = Workspace(root)
    workspace.record_read("a", workspace.read_bytes("a"), range(5, 12))
    workspace.record_read("a", workspace.read_bytes("a"), range(20, 30))
    workspace.apply(patch(update("a", "2", "two\n+three"), "@@\n-8\n-9\n@@\n 24\n+x", "@@\n-39\n+y"))
    assert ranges(workspace) == {"a": [(2, 4), (6, 11), (19, 30), (39, 40)]}


def test_files_that_change_places(root: Path) -> None:
    """One file moves away, and another one takes its name, though the patch named that one first."""
    for name, n in (("a", 3), ("b", 5)):
        (root / name).write_text("".join(f"{name}{i}\n" for i in range(n)))
    workspace = Workspace(root)
    workspace.record_read("a", workspace.read_bytes("a"), range(1, 2))
    workspace.record_read("b", workspace.read_bytes("b"), range(2, 4))
    sections = (
        update("a", "a0", "A0"),
        update("b", "b0", "B0", move_to="c"),
        update("a", "a2", "A2", move_to="b"),
    )
    workspace.apply(patch(*sections, "*** Add File: a\n+1\n+2"))
    assert (root / "b").read_text() == "A0\na1\nA2\n"
    assert ranges(workspace) == {"b": [(0, 3)], "c": [(0, 1), (2, 4)], "a": [(0, 2)]}


def test_names_of_files_that_are_gone_are_free_again(root: Path) -> None:
    for name in "abc":
        (root / name).write_text("1\n" * 9)
    workspace = Workspace(root)
    for name in "abc":
        workspace.record_read(name, workspace.read_bytes(name))
    (root / "a").unlink()
    (root / "b").unlink()
    workspace.apply(patch("*** Add File: b\n+x\n+y", "*** Update File: c\n*** Move to: a"))
    assert list(ranges(workspace).items()) == [("b", [(0, 2)]), ("a", [(0, 9)])]


def test_a_file_of_a_byte_order_mark_has_no_lines(root: Path) -> None:
    (root / "a").write_bytes(b"\xef\xbb\xbf1\n")
    workspace = Workspace(root)
    workspace.record_read("a", workspace.read_bytes("a"))
    workspace.apply(patch("*** Update File: a\n@@\n-1"))
    assert workspace.readings() == [Reading("a", b"\xef\xbb\xbf", ())]
    workspace.apply(patch("*** Update File: a\n@@\n+1\n+2"))
    assert ranges(workspace) == {"a": [(0, 2)]}


def test_a_refused_or_tried_patch_changes_no_reading(root: Path) -> None:
    (root / "a").write_text("1\n2\n")
    workspace = Workspace(root)
    workspace.record_read("a", workspace.read_bytes("a"), range(1))
    workspace.apply(patch(update("a", "2", "3")), dry_run=True)
    assert (
        kind_of(lambda: workspace.apply(patch(update("a", "2", "3"), "*** Delete File: n")))
        == "file_not_found"
    )
    assert ranges(workspace) == {"a": [(0, 1)]}
    workspace.apply(patch(update("a", "2", "3")))
    workspace.apply(patch(update("a", "2", "3")), reverse=True)
    assert ranges(workspace) == {"a": [(0, 2)]}


def test_a_patch_that_raced_with_another_program_is_no_reading(
    root: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The text changes after the check of the stamp: the lines that were seen are not those of the new file."""
    (root / "a").write_text("1\n2\n")
    workspace = Workspace(root)
    workspace.record_read("a", workspace.read_bytes("a"))
    monkeypatch.setattr(workspace, "_check_stamp", lambda path: (root / "a").write_text("secret\n1\n2\n"))
    workspace.apply(patch(update("a", "2", "3")))
    assert workspace.seen("a") is None
    assert workspace.readings() == []


# What is taken


def test_what_is_taken_is_what_adding_refuses(root: Path) -> None:
    (root / "sub" / "deep").mkdir(parents=True)
    (root / "sub" / "f").touch()
    (root / ".git").mkdir()
    (root / ".git" / "config").touch()
    (root / "link").symlink_to("sub/f")
    (root / "gone").symlink_to("nowhere")
    os.mkfifo(root / "pipe")
    workspace = Workspace(root)
    names = workspace.taken()
    assert names.files == (".git", "gone", "link", "pipe", "sub/f")
    assert names.folders == ("sub", "sub/deep")
    before = tree(root)
    # Applying does write through links to folders; then the name says nothing about the place.
    below = [f"{path}/x" for path in names.files if path != "gone"]
    for path in (*names.files, *below, *names.folders):
        with pytest.raises(PatchError):
            workspace.apply(patch(f"*** Add File: {path}\n+x"))
    assert tree(root) == before
    for path in names.folders:
        workspace.apply(patch(f"*** Add File: {path}/x\n+x"))
    assert workspace.taken().files == (*names.files[:4], "sub/deep/x", "sub/f", "sub/x")


def test_suggestions_come_from_the_tree(root: Path) -> None:
    (root / "src" / "app").mkdir(parents=True)
    (root / "src" / "app" / "main.py").write_text("x\n")
    (root / ".git").mkdir()
    (root / ".git" / "main.py").write_text("x\n")
    (root / os.fsdecode(b"main\xe9.py")).write_text("x\n")
    with pytest.raises(PatchError, match=r"did you mean src/app/main\.py\?"):
        Workspace(root).apply(patch(update("app/main.py", "x", "y")))


# Failing writes


def lay_out(root: Path) -> Patch:
    (root / "sub").mkdir()
    for name in ("a", "sub/b", "gone", "moved", "linked"):
        (root / name).write_text(f"{name}\n")
    (root / "a").chmod(0o755)
    os.link(root / "linked", root / "twin")
    (root / "link").symlink_to("sub/b")
    return patch(
        update("a", "a", "A"),
        "*** Add File: new/er/n\n+n",
        update("link", "sub/b", "B"),
        "*** Delete File: gone",
        update("moved", "moved", "M", move_to="other/m"),
        update("linked", "linked", "a much longer line than before"),
    )


class Failing:
    """Lets the n-th system call of the writers fail; counts them all. Flushes are counted, but not made."""

    def __init__(self, monkeypatch: pytest.MonkeyPatch, at: int) -> None:
        self.n, self.at = 0, at
        for name in CALLS:
            monkeypatch.setattr(os, name, self._wrapped(getattr(os, name)))

    def _wrapped(self, real: Callable[..., Any]) -> Callable[..., Any]:
        def call(*args: Any, **kwargs: Any) -> Any:
            self.n += 1
            if self.n == self.at:
                raise OSError(errno.ENOSPC, "No space left on device", str(args[0]))
            return None if real is FSYNC else real(*args, **kwargs)

        return call


def test_every_failing_call_rolls_back(tmp_path: Path) -> None:
    """Whichever single call fails, the tree is as before and the error says so, or the patch has landed."""
    at, outcomes = 0, set()
    while True:
        at += 1
        root = tmp_path / f"root{at}"
        root.mkdir()
        planned = lay_out(root)
        before = tree(root)
        workspace = Workspace(root)
        with pytest.MonkeyPatch.context() as monkeypatch:
            failing = Failing(monkeypatch, at)
            outcome = "applied"
            try:
                workspace.apply(planned)
            except PatchError as error:
                outcome = error.kind
        if failing.n < at:
            break
        workspace.recover()
        after = tree(root)
        outcomes.add(outcome)
        if outcome != "applied":
            assert after == before, f"call {at}"
        else:
            assert after["a"][1] == b"A\n"
            assert after["twin"][1] == b"a much longer line than before\n"
            assert not [name for name in after if "constrained-agent" in name], f"call {at}"
    assert {"applied", "write_failed"} <= outcomes <= {"applied", "write_failed", "changed_on_disk"}
    assert at > 100


def test_a_disk_without_hard_links(root: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    planned = lay_out(root)

    def link(*args: Any, **kwargs: Any) -> None:
        raise OSError(errno.EPERM, "Operation not permitted")

    monkeypatch.setattr(os, "link", link)
    Workspace(root).apply(planned)
    after = tree(root)
    assert after["a"] == (stat.S_IFREG | 0o755, b"A\n")
    assert after["new/er/n"][1] == b"n\n"
    assert after["other/m"][1] == b"M\n"
    assert "gone" not in after
    assert not [name for name in after if "constrained-agent" in name]


def test_a_link_swapped_in_between_is_not_followed(root: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """The folder becomes a link out of the root after the checks: nothing outside is written."""
    (root / "sub").mkdir()
    (root / "sub" / "outside.txt").write_text("o\n")
    workspace = Workspace(root)
    real = workspace._steps

    def swap(file: Any) -> Any:
        steps = list(real(file))
        (root / "sub").rename(root / "was")
        (root / "sub").symlink_to("..")
        return steps

    monkeypatch.setattr(workspace, "_steps", swap)
    with pytest.raises(PatchError):
        workspace.apply(patch(update("sub/outside.txt", "o", "evil")))
    assert (root.parent / "outside.txt").read_text() == "o\n"
    assert sorted(path.name for path in root.parent.iterdir()) == ["outside.txt", "root", "state"]


def test_a_file_changed_between_plan_and_write_is_kept(root: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    (root / "a").write_text("a\n")
    (root / "b").write_text("b\n")
    workspace = Workspace(root)
    real = workspace._steps

    def change(file: Any) -> Any:
        steps = list(real(file))
        (root / "b").write_text("theirs\n")
        return steps

    monkeypatch.setattr(workspace, "_steps", change)
    assert (
        kind_of(lambda: workspace.apply(patch(update("a", "a", "A"), update("b", "b", "B"))))
        == "changed_on_disk"
    )
    assert (root / "a").read_text() == "a\n"
    assert (root / "b").read_text() == "theirs\n"
    assert sorted(tree(root)) == ["a", "b"]


def test_a_file_created_between_plan_and_write_is_kept(root: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    workspace = Workspace(root)
    real = workspace._steps

    def create(file: Any) -> Any:
        steps = list(real(file))
        (root / "n").write_text("x\n")
        return steps

    monkeypatch.setattr(workspace, "_steps", create)
    assert kind_of(lambda: workspace.apply(patch("*** Add File: n\n+x"))) == "exists"
    assert (root / "n").read_text() == "x\n", "the same content, but not our file"


def test_the_journal_stays_outside_the_root(root: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("XDG_STATE_HOME", str(root / "state"))
    monkeypatch.setattr("tempfile.tempdir", str(root.parent))
    Workspace(root).apply(patch("*** Add File: n"))
    assert sorted(tree(root)) == ["n"]


def test_no_journal_no_write(root: Path, state: Path) -> None:
    state.write_text("not a folder")
    with pytest.MonkeyPatch.context() as monkeypatch:
        monkeypatch.setattr("tempfile.tempdir", str(state))
        assert kind_of(lambda: Workspace(root).apply(patch("*** Add File: n"))) == "write_failed"
    assert tree(root) == {}
