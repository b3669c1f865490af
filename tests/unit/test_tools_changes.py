"""The diff of a whole run, over several patches of the same files."""

from constrained_agent.patch import parse
from constrained_agent.tools.changes import ChangeLog
from constrained_agent.tools.workspace import Workspace


def run(tmp_path, files, *bodies):
    for name, text in files.items():
        (tmp_path / name).write_text(text)
    workspace, log = Workspace(tmp_path), ChangeLog()
    for body in bodies:
        log.record(workspace.apply(parse(f"*** Begin Patch\n{body}*** End Patch").patch).files)
    return log.summary()


def update(path, old, new):
    return f"*** Update File: {path}\n@@\n-{old}\n+{new}\n"


def test_nothing_was_changed():
    assert ChangeLog().summary() == ChangeLog().summary()
    assert ChangeLog().summary().paths == ()
    assert ChangeLog().summary().diff == ""


def test_two_patches_of_one_file_make_one_diff(tmp_path):
    changes = run(tmp_path, {"a": "1\n2\n3\n"}, update("a", "1", "one"), update("./a", "3", "three"))
    assert changes.paths == ("a",)
    assert changes.diff.count("diff --git") == 1
    assert "-1\n+one\n 2\n-3\n+three\n" in changes.diff


def test_a_change_that_was_taken_back_is_none(tmp_path):
    changes = run(tmp_path, {"a": "1\n"}, update("a", "1", "2"), update("a", "2", "1"))
    assert changes.paths == ()
    assert changes.diff == ""


def test_a_file_that_was_added_and_edited_is_new(tmp_path):
    changes = run(tmp_path, {}, "*** Add File: n\n+x\n", update("n", "x", "y"))
    assert changes.paths == ("n",)
    assert "+y\n" in changes.diff
    assert "x" not in changes.diff.split("@@")[-1]


def test_a_rename_stays_a_rename(tmp_path):
    changes = run(tmp_path, {"a": "1\n"}, "*** Update File: a\n*** Move to: b\n")
    assert changes.paths == ("a", "b")
    assert "rename from a\nrename to b\n" in changes.diff


def test_an_edit_after_a_rename(tmp_path):
    changes = run(tmp_path, {"a": "1\n"}, "*** Update File: a\n*** Move to: b\n", update("b", "1", "2"))
    assert changes.paths == ("a", "b")
    assert "+2\n" in changes.diff


def test_a_binary_file_that_gave_way_to_a_text(tmp_path):
    (tmp_path / "b").write_bytes(b"\0\1")
    changes = run(tmp_path, {}, "*** Delete File: b\n", "*** Add File: b\n+x\n")
    assert changes.paths == ("b",)
