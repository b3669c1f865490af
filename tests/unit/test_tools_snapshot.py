"""Looks at a folder: what is seen, what is left out, and what changed between two."""

import hashlib
import os

import pytest

from constrained_agent.errors import PatchError
from constrained_agent.tools import snapshot
from constrained_agent.tools.snapshot import Difference, differences, entry, look, put, same
from constrained_agent.tools.workspace import Workspace


def of(text, mode="100644"):
    return f"{mode} {hashlib.sha256(text.encode()).hexdigest()}"


@pytest.fixture
def root(tmp_path):
    (tmp_path / "d").mkdir()
    (tmp_path / "a").write_text("1\n")
    (tmp_path / "d" / "b").write_text("2\n")
    (tmp_path / "run").write_text("3\n")
    (tmp_path / "run").chmod(0o755)
    (tmp_path / "link").symlink_to("a")
    return tmp_path


def test_entries_are_modes_and_hashes(root):
    seen = look(root)
    assert {path: seen.entry(path) for path in seen.files} == {
        "a": of("1\n"),
        "d/b": of("2\n"),
        "run": of("3\n", "100755"),
        "link": of("a", "120000"),
    }
    assert seen.complete
    assert seen.digest() == look(root).digest()


def test_folders_that_other_programs_fill_are_left_out(root):
    for name, mark in ((".git", "x"), ("node_modules", "x"), ("c", "CACHEDIR.TAG"), ("env", "pyvenv.cfg")):
        (root / name).mkdir()
        (root / name / mark).write_text("x")
    os.mkfifo(root / "pipe")
    assert set(look(root).files) == {"a", "d/b", "run", "link"}
    assert "c/CACHEDIR.TAG" in look(root, also=["c/CACHEDIR.TAG"]).files


def test_what_changed_between_two_looks(root):
    first = look(root)
    (root / "a").write_text("9\n")  # as long as before, and at once: only its bytes tell
    (root / "run").chmod(0o644)
    (root / "d" / "b").unlink()
    (root / "n").write_text("")
    assert differences(first, look(root, first)) == [
        Difference("a", of("1\n"), of("9\n")),
        Difference("d/b", of("2\n"), None),
        Difference("n", None, of("")),
        Difference("run", of("3\n", "100755"), of("3\n")),
    ]
    assert differences(first, look(root, first, ignored={"a"}))[0] == Difference("a", of("1\n"), None)


def test_a_large_file_is_seen_to_change_without_being_read(root, monkeypatch):
    monkeypatch.setattr(snapshot, "MAX_FILE_BYTES", 10)
    (root / "large").write_text("x" * 11)
    first = look(root)
    assert first.entry("large") == "100644 ?"
    (root / "large").write_text("x" * 12)
    assert [found.path for found in differences(first, look(root, first))] == ["large"]
    assert same("100644 ?", entry(Workspace(root), "large"))
    assert not same("100755 ?", entry(Workspace(root), "large"))


def test_of_a_folder_with_too_many_files_only_those_asked_for_are_seen(root, monkeypatch):
    monkeypatch.setattr(snapshot, "MAX_FILES", 2)
    seen = look(root, also=["a", "not/there", "x" * 300])
    assert (seen.complete, list(seen.files)) == (False, ["a"])
    assert list(look(root, seen, also=["d/b"]).files) == ["d/b"]


def test_put_makes_and_removes_files_with_their_folders(root):
    workspace = Workspace(root)
    put(workspace, "x/y/z", "new", "100755 ?")
    assert entry(workspace, "x/y/z") == of("new", "100755")
    put(workspace, "x/y/z", "newer", "100644 ?")
    assert entry(workspace, "x/y/z") == of("newer")
    put(workspace, "x/y/z", None, None)
    assert not (root / "x").exists()
    put(workspace, "never/was", None, None)


@pytest.mark.parametrize("path", ["../out", "/etc/out", ".git/config", "away/out"])
def test_nothing_outside_is_looked_at_or_written(root, tmp_path_factory, path):
    (root / "away").symlink_to(tmp_path_factory.mktemp("away"))
    with pytest.raises(PatchError):
        put(Workspace(root), path, "x", None)
    with pytest.raises(PatchError):
        entry(Workspace(root), path)
