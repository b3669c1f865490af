"""Runs made once more without their model, and cut after one of their turns."""

import json
import shutil

import pytest

from constrained_agent.agent import records
from constrained_agent.agent.compared import own_paths
from constrained_agent.agent.cut import cut, temporary_copy
from constrained_agent.agent.replay import replay
from constrained_agent.agent.watch import NoWatcher
from constrained_agent.errors import PatchError, UserError
from constrained_agent.tools.state import state_places
from tests.agents import ScriptedAgent, call, patch_call

ONE_TO_TWO = patch_call("*** Update File: f.txt\n@@\n-one\n+two\n")
TWO_TO_THREE = patch_call("*** Update File: f.txt\n@@\n-two\n+three\n")
SECRET = "ghp_" + "a1B2" * 9


def tree(root):
    return {
        path.relative_to(root).as_posix(): (path.read_bytes(), bool(path.stat().st_mode & 0o100))
        for path in sorted(root.rglob("*"))
        if path.is_file()
    }


@pytest.fixture
def root(tmp_path):
    folder = tmp_path / "repo"
    (folder / "d").mkdir(parents=True)
    (folder / "f.txt").write_text("one\nx\n")
    (folder / "d" / "g.txt").write_bytes(b"\xef\xbb\xbfa\r\nb")
    return folder


@pytest.fixture
def recorded(tiny_runtime, root, tmp_path):
    """Runs answers in `root`; returns the run as read back, and a copy of the repository from before it."""

    def go(answers, files=(), **settings):
        start = tmp_path / "start"
        shutil.copytree(root, start, symlinks=True)
        agent = ScriptedAgent(tiny_runtime, root, [*answers, "Done."], **settings)
        agent.run("Change it.", files)
        return records.read(agent._log)[-1], start

    return go


ALL_KINDS = patch_call(
    "*** Add File: new/a.py\n+x = 1\n"
    "*** Update File: d/g.txt\n*** Move to: d/h.txt\n@@\n-a\n+A\n"
    "*** Delete File: f.txt\n"
)


class TestReplay:
    def test_the_same_tree_comes_out(self, recorded, root):
        run, start = recorded([call("read_file", path="f.txt"), ONE_TO_TWO, TWO_TO_THREE, ALL_KINDS])
        lines = []
        replayed = replay(run, start, report=lines.append)
        assert tree(start) == tree(root)
        assert (replayed.difference, replayed.patches, replayed.turn) == (None, 3, 5)
        assert {entry.path for entry in replayed.tree} == {"f.txt", "d/g.txt", "d/h.txt", "new/a.py"}
        assert lines[0] == "turn 2: patch applied: f.txt"

    def test_what_commands_wrote_is_written_without_running_them(self, recorded, root):
        command = "printf made > d/new; rm f.txt; mkdir f.txt; echo 1 > f.txt/x; chmod +x d/g.txt"
        run, start = recorded([call("exec_command", command=command)], test_command="date +%N > when")
        replayed = replay(run, start)
        assert tree(start) == tree(root)
        assert (replayed.commands, replayed.patches, replayed.difference) == (0, 0, None)

    def test_commands_are_run_again_on_demand(self, recorded, root):
        run, start = recorded(
            [call("exec_command", command="echo two > f.txt"), TWO_TO_THREE], test_command="test ! -e stop"
        )
        replayed = replay(run, start, run_commands=True)
        assert (replayed.commands, replayed.notes, replayed.difference) == (2, (), None)
        assert tree(start) == tree(root)

    def test_commands_that_do_something_else_this_time(self, recorded, root):
        command = 'test "${PWD##*/}" = repo && rm -f f.txt'
        run, start = recorded([call("exec_command", command=command)])
        replayed = replay(run, start, run_commands=True)
        assert replayed.notes == (f"turn 1: exit code 1, was 0: {command}",)
        assert str(replayed.difference) == "turn 1: f.txt: 100644 8d1ae43c96 here, no file on record"

    def test_what_was_read_of_an_output_is_no_part_of_it(self, recorded, root, tmp_path, monkeypatch):
        """Reads change nothing, so a replay does not look for outputs that are gone by then."""
        monkeypatch.setenv("XDG_STATE_HOME", str(tmp_path / "state"))
        answers = [
            call("exec_command", command="seq 100000; echo two > f.txt"),
            call("read_file", path="output:1/stdout", offset=5000),
            TWO_TO_THREE,
        ]
        run, start = recorded(answers)
        read = next(
            event for event in run.events if getattr(event, "call_id", "") == run.turns[1].calls[0].id
        )
        assert read.ok
        assert "5000│5000" in read.text
        assert read.reads == ()
        shutil.rmtree(tmp_path / "state")
        for run_commands in (False, True):
            copy = tmp_path / f"copy-{run_commands}"
            shutil.copytree(start, copy)
            replayed = replay(run, copy, run_commands=run_commands)
            assert (replayed.difference, replayed.notes, replayed.patches) == (None, (), 1)
            assert tree(copy) == tree(root)

    def test_patches_that_were_refused_are_left_out(self, recorded, root):
        wrong = patch_call("*** Update File: f.txt\n@@\n-nothing\n+x\n")
        run, start = recorded([wrong, ONE_TO_TWO])
        assert replay(run, start).patches == 1
        assert tree(start) == tree(root)

    def test_other_hands_are_followed(self, recorded, root):
        class Person(NoWatcher):
            def turn_started(self, number):
                if number == 2:
                    (root / "f.txt").write_text("two\nby hand\n")

        run, start = recorded([ONE_TO_TWO, TWO_TO_THREE], watcher=Person())
        assert replay(run, start).difference is None
        assert (start / "f.txt").read_text() == "three\nby hand\n"

    def test_up_to_a_turn(self, recorded, root):
        run, start = recorded([ONE_TO_TWO, TWO_TO_THREE])
        assert replay(run, start, to_turn=1).difference is None
        assert (start / "f.txt").read_text() == "two\nx\n"
        with pytest.raises(UserError, match="turn 4: run 1 has turns 1 to 3"):
            replay(run, start, to_turn=4)

    def test_turn_0_is_the_start(self, recorded, root):
        run, start = recorded([ONE_TO_TWO])
        before = tree(start)
        assert replay(run, start, to_turn=0).tree == ()
        assert tree(start) == before

    def test_a_folder_in_another_state_is_refused_untouched(self, recorded, root):
        run, start = recorded([call("read_file", path="d/g.txt"), ONE_TO_TWO])
        (start / "d" / "g.txt").write_text("other")
        before = tree(start)
        with pytest.raises(
            UserError, match=r"not as it was at the start of run 1: d/g\.txt: 100644 \w{10} here"
        ):
            replay(run, start)
        assert tree(start) == before

    def test_a_file_that_should_not_be_there_yet(self, recorded, root):
        run, start = recorded([patch_call("*** Add File: n\n+x\n")])
        (start / "n").write_text("x\n")
        with pytest.raises(UserError, match=r"n: 100644 \w{10} here, no file on record"):
            replay(run, start)

    def test_the_folder_that_the_run_left_says_so(self, recorded, root):
        run, _ = recorded([ONE_TO_TWO])
        with pytest.raises(UserError, match="it is as the run left it: `transcript cut`"):
            replay(run, root)

    def test_a_record_that_was_tampered_with_gives_a_difference(self, recorded, root, tmp_path):
        _, start = recorded([ONE_TO_TWO])
        log = root.parent / "repo.jsonl"
        log.write_text(log.read_text().replace("+two", "+TWO"))
        replayed = replay(records.read(log)[0], start)
        assert str(replayed.difference).startswith("turn 1: f.txt: 100644 ")

    def test_a_patch_that_does_not_apply_any_more(self, recorded, root):
        _, start = recorded([ONE_TO_TWO])
        log = root.parent / "repo.jsonl"
        log.write_text(log.read_text().replace("-one", "-nought"))
        replayed = replay(records.read(log)[0], start)
        assert "turn 1: the patch of call_1 does not apply here: context_not_found" in str(
            replayed.difference
        )

    def test_paths_of_a_strange_record_stay_inside(self, recorded, root):
        _, start = recorded([call("exec_command", command="echo 1 > made")])
        log = root.parent / "repo.jsonl"
        log.write_text(log.read_text().replace('"made"', '"../made"'))
        with pytest.raises(PatchError, match="outside_root"):
            replay(records.read(log)[0], start)
        assert not (start.parent / "made").exists()

    def test_a_masked_patch_cannot_be_replayed_but_the_turns_before_it(self, recorded, root):
        secret = patch_call(f"*** Add File: env\n+KEY={SECRET}\n")
        run, start = recorded([ONE_TO_TWO, secret])
        before = tree(start)
        with pytest.raises(UserError, match=r"turn 2: the patch of call_2 held a secret.*--to-turn 1"):
            replay(run, start)
        assert tree(start) == before
        assert replay(run, start, to_turn=1).difference is None

    def test_a_secret_elsewhere_does_not_stop_a_replay(self, recorded, root):
        show = call("exec_command", command=f"echo {SECRET}")
        run, start = recorded([show, ONE_TO_TWO], policy=None)
        assert replay(run, start).difference is None
        with pytest.raises(UserError, match="turn 1: the command of call_1 held a secret"):
            replay(run, start, run_commands=True, to_turn=0 + 1)

    def test_what_is_not_on_record_is_told_and_only_matters_if_it_lasts(self, recorded, root):
        make = call("exec_command", command="printf '\\377' > raw; printf '\\376' > gone")
        run, start = recorded([make, call("exec_command", command="rm gone")])
        replayed = replay(run, start)
        assert len(replayed.notes) == 2
        assert str(replayed.difference).startswith("turn 2: raw: no file here, 100644 ")
        assert "written by a command; what it wrote is not on record (too long" in str(replayed.difference)
        assert str(replayed.difference).endswith("; see --run-commands")
        shutil.rmtree(start)
        shutil.copytree(root, start)
        (start / "raw").unlink()
        assert replay(run, start, run_commands=True).difference is None

    def test_more_changes_than_are_on_record(self, recorded, root, monkeypatch):
        monkeypatch.setattr("constrained_agent.agent.footprints.MAX_CHANGES", 1)
        run, start = recorded([call("exec_command", command="touch a b c")])
        with pytest.raises(UserError, match="2 more files were changed than are on record; --run-commands"):
            replay(run, start)
        assert replay(run, start, run_commands=True).difference is None

    def test_other_files_may_be_others_but_that_is_said(self, recorded, root):
        """It said "the same tree", whatever stood beside the files that the run touched."""
        run, start = recorded([ONE_TO_TWO])
        assert replay(run, shutil.copytree(start, start.parent / "same")).whole_tree == "same"
        (start / "d" / "g.txt").write_text("another")
        (start / "new").write_text("x")
        replayed = replay(run, start)
        assert (replayed.difference, replayed.whole_tree, replayed.patches) == (None, "differs", 1)
        assert replayed.notes == (
            "files that the run neither read nor changed are not as they were at its start: the whole folder has "
            "another hash (here 3 files, then 2)",
        )

    def test_a_run_that_touched_nothing_in_another_folder(self, recorded, root, tmp_path):
        run, start = recorded([call("exec_command", command="true")], test_command="test ! -e ran")
        assert replay(run, start).difference is None
        (tmp_path / "empty").mkdir()
        replayed = replay(run, tmp_path / "empty", run_commands=True)
        assert (replayed.commands, replayed.turn, replayed.whole_tree) == (0, 0, "differs")
        assert "nothing could be compared: the run read and changed no file" in str(replayed.difference)
        assert "(here 0 files, then 2)" in str(replayed.difference)

    def test_without_a_hash_of_all_files(self, recorded, root, monkeypatch):
        monkeypatch.setattr("constrained_agent.tools.snapshot.MAX_FILES", 1)
        run, start = recorded(["ok"])
        replayed = replay(run, start)
        assert replayed.whole_tree == "unknown"
        assert "of the other files there is no hash" in str(replayed.difference)

    def test_a_transcript_in_the_repository_is_none_of_its_files(self, recorded, root):
        run, start = recorded([ONE_TO_TWO])
        shutil.copy(root.parent / "repo.jsonl", start / "run.jsonl")
        assert own_paths(start, start / "d" / ".." / "run.jsonl") == {"run.jsonl"}
        assert own_paths(start / "d", start / "run.jsonl") == set()
        assert replay(run, start, ignored={"run.jsonl"}).whole_tree == "same"

    @pytest.mark.parametrize(
        ("old", "new", "says"),
        [
            (
                '"ok": true',
                '"ok": false',
                "by the patch of call_1; what it wrote is not on record, and the patch",
            ),
            (
                '"event": "turn"',
                '"event": "lost"',
                "by call_1; what it wrote is not on record, nor is its call",
            ),
        ],
    )
    def test_a_patch_that_cannot_be_made_again_is_no_command(self, recorded, root, old, new, says):
        """Both were said to be written by a command, with advice to run it again."""
        _, start = recorded([ONE_TO_TWO])
        log = root.parent / "repo.jsonl"
        log.write_text(log.read_text().replace(old, new))
        replayed = replay(records.read(log)[0], start)
        assert replayed.difference.path == "f.txt"
        assert says in replayed.difference.reason
        assert "command" not in replayed.difference.reason

    def test_schema_0_cannot_be_replayed(self, tmp_path, root):
        file = tmp_path / "old.jsonl"
        file.write_text(json.dumps({"event": "start", "time": 1, "task": "x"}) + "\n")
        with pytest.raises(UserError, match="schema 0, without hashes of files"):
            replay(records.read(file)[0], root)


class TestCut:
    def test_tests_run_on_the_tree_of_a_turn(self, recorded, tmp_path):
        run, start = recorded([ONE_TO_TWO, TWO_TO_THREE], test_command="grep -q three f.txt")
        before = tree(start)
        for after, passed in ((0, False), (1, False), (2, True), (3, True)):
            out = tmp_path / f"out{after}"
            done = cut(run, start, out, after, test_command=run.test_command)
            assert (done.tests.ok, done.rewound, done.replayed.difference) == (passed, False, None)
        assert (tmp_path / "out1" / "f.txt").read_text() == "two\nx\n"
        assert tree(start) == before

    def test_also_from_where_the_run_left_the_repository(self, recorded, root, tmp_path):
        run, start = recorded([ONE_TO_TWO, call("exec_command", command="chmod +x d/g.txt"), ALL_KINDS])
        before = tree(root)
        done = cut(run, root, tmp_path / "out", 0)
        assert (done.rewound, done.tests, done.replayed.whole_tree) == (True, None, "same")
        assert tree(tmp_path / "out") == tree(start)
        assert tree(root) == before
        assert cut(run, root, tmp_path / "out3", 3).replayed.difference is None
        assert tree(tmp_path / "out3") == before

    def test_also_after_a_command_changed_what_was_read(self, recorded, root, tmp_path):
        run, start = recorded(
            [call("read_file", path="f.txt"), call("exec_command", command="echo 1 > f.txt")]
        )
        assert cut(run, root, tmp_path / "out", 1).rewound
        assert tree(tmp_path / "out") == tree(start)

    def test_not_from_there_if_the_record_lacks_what_was_before(self, recorded, root, tmp_path):
        run, _ = recorded([call("exec_command", command="echo 1 > f.txt")])
        with pytest.raises(
            UserError, match=r"as run 1 left it, and the record does not hold f\.txt from before"
        ):
            cut(run, root, tmp_path / "out", 0)

    def test_links_into_the_repository_lead_into_the_copy(self, recorded, root, tmp_path):
        (root / "way").symlink_to(root / "f.txt")
        (root / "out").symlink_to("/nowhere")
        run, _ = recorded([ONE_TO_TWO])
        cut(run, root, tmp_path / "copy", 1, test_command="echo tests >> way")
        assert (root / "f.txt").read_text() == "two\nx\n"
        assert (tmp_path / "copy" / "f.txt").read_text() == "two\nx\ntests\n"
        assert cut(run, root, tmp_path / "start-of-it", 0).replayed.whole_tree == "same"

    def test_the_copy_needs_a_place_of_its_own(self, recorded, root, tmp_path):
        run, start = recorded([ONE_TO_TWO])
        with pytest.raises(UserError, match="is there already"):
            cut(run, start, root, 1)
        with pytest.raises(UserError, match="lies in"):
            cut(run, start, start / "d" / "copy", 1)
        (tmp_path / "empty").mkdir()
        assert cut(run, start, tmp_path / "empty", 1).replayed.difference is None

    def test_nothing_is_left_of_a_temporary_copy(self, recorded):
        run, start = recorded([ONE_TO_TWO])
        with temporary_copy(start) as copy:
            cut(run, start, copy, 1)
            assert copy.name == "start"
            assert any(place.exists() for place in state_places(copy))
        assert not copy.parent.exists()
        assert not any(place.exists() for place in state_places(copy))

    def test_what_cannot_be_cut_leaves_no_copy(self, recorded, tmp_path):
        run, start = recorded([ONE_TO_TWO])
        (start / "f.txt").write_text("another\n")
        for after, says in ((1, "not as it was at the start"), (9, "turn 9: run 1 has turns 1 to 2")):
            with pytest.raises(UserError, match=says):
                cut(run, start, tmp_path / "out", after)
        assert not (tmp_path / "out").exists()

    def test_a_repository_with_too_many_files_to_watch(self, recorded, root, tmp_path, monkeypatch):
        monkeypatch.setattr("constrained_agent.tools.snapshot.MAX_FILES", 1)
        run, start = recorded([ONE_TO_TWO, call("exec_command", command="touch unseen")])
        replayed = replay(run, start)
        assert (replayed.difference, (start / "unseen").exists()) == (None, False)
        assert "too many files to watch" in replayed.notes[0]
