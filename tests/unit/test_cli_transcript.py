"""`transcript` on the command line, over runs of a scripted model."""

import io
import json
import re
import shutil
import subprocess
import sys
from pathlib import Path

import pytest
from click.testing import CliRunner
from rich.console import Console

from constrained_agent.agent import records
from constrained_agent.cli import app, transcript_view
from tests.agents import ScriptedAgent, call, patch_call

READ = call("read_file", path="f.txt")
ONE_TO_TWO = patch_call("*** Update File: f.txt\n@@\n-one\n+two\n")


class Recorded:
    """A run on disk: `log` its transcript, `start` the repository before it, `root` after it."""

    def __init__(self, tiny_runtime, folder, answers, *, inbox=None, **settings):
        self.root, self.start = folder / "repo", folder / "start"
        self.root.mkdir()
        (self.root / "f.txt").write_text("one\n" + "".join(f"line {n}\n" for n in range(40)))
        shutil.copytree(self.root, self.start)
        self.agent = ScriptedAgent(tiny_runtime, self.root, answers, **settings)
        if inbox is not None:
            self.agent.agent._inbox = inbox
        self.agent.run("Make one two.\x1b[2J")
        self.log = str(self.agent._log)


@pytest.fixture(scope="module")
def recorded(tiny_runtime, tmp_path_factory):
    folder = tmp_path_factory.mktemp("run")
    return Recorded(tiny_runtime, folder, [READ, ONE_TO_TWO, "Done."], test_command="grep -q two f.txt")


@pytest.fixture
def start(recorded, tmp_path):
    return shutil.copytree(recorded.start, tmp_path / "repo")


def invoke(*arguments):
    return CliRunner().invoke(app.app, ["transcript", *map(str, arguments)], standalone_mode=False)


def run(capsys, *arguments):
    """(exit code, stdout, stderr) as the program gives them, errors told."""
    code = app.run(["transcript", *map(str, arguments)])
    return code, *capsys.readouterr()


class TestShow:
    def test_a_run_as_it_went(self, recorded):
        shown = invoke("show", recorded.log).output
        places = [
            shown.index(text)
            for text in (
                "Make one two.",
                "constraint grammar; test command grep -q two f.txt",
                "turn 1 ──",
                '{"name": "read_file", "arguments": {"path": "f.txt"}}',
                "complete: 20 tokens (13 forced)",
                "→ read_file(path='f.txt')",
                "1│one",
                "more lines (--full)",
                "turn 2 ──",
                "→ apply_patch()",
                "@@ -1,4 +1,4 @@\n-one\n+two\n",
                "→ the person's test command\ntests passed: grep -q two f.txt",
                "turn 3 ──",
                "Done.",
                "done: tests passed; changed files: f.txt",
            )
        ]
        assert places == sorted(places)

    def test_who_asked_and_who_said_what(self, tiny_runtime, tmp_path):
        class Said:
            texts = iter([[], ["Mind the tabs."]])

            def take(self):
                return next(self.texts, [])

        commands = {"test_command": "grep -q two f.txt", "stop_hook": "test -e f.txt"}
        recorded = Recorded(tiny_runtime, tmp_path, [ONE_TO_TWO, "Done.", "Done."], inbox=Said(), **commands)
        shown = invoke("show", recorded.log).output
        assert "test command grep -q two f.txt; stop hook test -e f.txt" in shown
        assert "→ the person's test command\ntests passed: grep -q two f.txt" in shown
        assert "→ the person's stop hook\ncheck passed: test -e f.txt" in shown
        assert "(the person, meanwhile) Mind the tabs." in shown

    def test_long_results_whole(self, recorded):
        assert "line 39" not in invoke("show", recorded.log).output
        assert "41│line 39" in invoke("show", recorded.log, "--full").output

    def test_one_turn(self, recorded):
        shown = invoke("show", recorded.log, "--turn", 2).output
        assert "apply_patch" in shown
        assert "read_file" not in shown
        assert "Make one two." not in shown

    def test_turn_0_is_the_start(self, recorded):
        shown = invoke("show", recorded.log, "--turn", 0).output
        for text in (
            "run 1 ──",
            "Make one two.",
            "constraint grammar",
            'limits: {"max_turns": 8',
            "decoding: {",
        ):
            assert text in shown
        assert "turn 1" not in shown
        (facts,) = json.loads(invoke("show", recorded.log, "--turn", 0, "--json").output)["runs"]
        assert [event["event"] for event in facts["events"]] == ["start"]

    def test_an_answer_that_went_round_in_circles(self, tiny_runtime, tmp_path):
        """ "truncated" alone reads as if the answers had been too long."""
        recorded = Recorded(tiny_runtime, tmp_path, ["round and round " * 60] * 3)
        shown = invoke("show", recorded.log).output
        assert "repetition (because it repeated itself): " in shown
        why = "truncated (answers that were cut off and not run: 3 because it repeated itself): tests not run"
        assert why in shown

    def test_a_call_that_could_not_be_read_and_one_whose_turn_is_missing(self, tiny_runtime, tmp_path):
        broken = '<tool_call>\n{"name": "nothing", "arguments": {}}\n</tool_call>'
        recorded = Recorded(tiny_runtime, tmp_path, [broken, READ, "Done."], level="off")
        shown = invoke("show", recorded.log).output
        assert "→ a call that could not be read (unknown_tool)" in shown
        lines = recorded.agent._log.read_text().splitlines(keepends=True)
        file = tmp_path / "gap.jsonl"
        file.write_text("".join(line for line in lines if '"number": 2' not in line))
        assert "→ call_2: its call is not on record (a turn is missing)" in invoke("show", file).output

    def test_what_a_task_or_a_file_holds_does_not_steer_the_terminal(self, recorded):
        assert "Make one two.\\x1b[2J" in invoke("show", recorded.log).output

    def test_forced_tokens_are_dimmed_on_a_terminal(self, recorded):
        out = Console(
            file=io.StringIO(), force_terminal=True, color_system="standard", highlight=False, soft_wrap=True
        )
        transcript_view.show(out, records.read(recorded.log)[0], turn=1)
        shown = out.file.getvalue()
        assert re.search(r'\x1b\[2m[^\x1b]*", "arguments": \{"path[^\x1b]*\x1b\[0m', shown)
        assert "\x1b[1m→ read_file" in shown

    def test_json_has_the_events_as_they_stand_in_the_file(self, recorded):
        facts = json.loads(invoke("show", recorded.log, "--json").output)
        (shown,) = facts["runs"]
        assert (shown["run"], shown["cut_off"]) == (1, False)
        assert shown["events"] == recorded.agent.events
        (shown,) = json.loads(invoke("show", recorded.log, "--json", "--turn", "3").output)["runs"]
        assert [event["event"] for event in shown["events"]] == ["turn", "end"]

    def test_a_killed_run(self, recorded, tmp_path, capsys):
        lines = recorded.agent._log.read_text().splitlines(keepends=True)
        file = tmp_path / "killed.jsonl"
        file.write_text("".join(lines[:3]) + lines[3][:50])
        code, out, err = run(capsys, "show", file)
        assert code == 0
        assert (
            "the record ends here: the run was killed, or is still going on, and its last line is cut off"
            in out
        )
        assert "note: the last line of run 1 is cut off" in err

    def test_several_runs(self, recorded, tmp_path, capsys):
        file = tmp_path / "two.jsonl"
        file.write_text(recorded.agent._log.read_text() * 2)
        assert invoke("show", file).output.count("Make one two.") == 2
        assert invoke("show", file, "--run", "2").output.count("Make one two.") == 1
        assert run(capsys, "show", file, "--run", "3")[0] == 2
        assert invoke("ledger", file).output.count("total") == 2

    def test_one_turn_of_several_runs_says_of_which(self, recorded, tiny_runtime, tmp_path):
        (tmp_path / "b").mkdir()
        short = Recorded(tiny_runtime, tmp_path / "b", ["Done."])
        file = tmp_path / "two.jsonl"
        file.write_text(recorded.agent._log.read_text() + short.agent._log.read_text())
        lines = invoke("show", file, "--turn", 3).output.splitlines()
        assert lines[0].startswith("run 1 of 2 ──")
        assert lines[1].startswith("turn 3 ──")
        assert lines[-2].startswith("run 2 of 2 ──")
        assert lines[-1] == "there is no turn 3: the run has 1"
        assert invoke("show", file, "--run", 1).output.startswith("run 1 of 2 ──")

    def test_a_run_of_a_newer_program_hides_no_other(self, recorded, start, tmp_path, capsys):
        old = recorded.agent._log.read_text()
        file = tmp_path / "newer.jsonl"
        file.write_text(old + old.replace('"schema": 1', '"schema": 2'))
        assert "Make one two." in run(capsys, "show", file, "--run", "1")[1]
        assert run(capsys, "ledger", file, "--run", "1")[0] == 0
        assert run(capsys, "replay", file, "--run", "1", "--repo", start)[0] == 0
        for arguments in (["show", file], ["show", file, "--run", "2"], ["replay", file, "--repo", start]):
            code, _, err = run(capsys, *arguments)
            assert code == 2
            assert "is of a newer program" in err


class TestLedger:
    def test_a_row_for_each_turn_and_a_sum(self, recorded):
        lines = invoke("ledger", recorded.log).output.splitlines()
        titles = "turn prompt reused written forced steps guessed came true prefill s decode s tokens/s"
        assert " ".join(lines[0].split()) == titles
        assert [line.split()[0] for line in lines[1:5]] == ["1", "2", "3", "total"]
        assert len({len(line) for line in lines[:5]}) == 1
        assert lines[5].startswith("prompt parts: instructions ")

    def test_json_agrees_with_the_run(self, recorded):
        (facts,) = json.loads(invoke("ledger", recorded.log, "--json").output)["runs"]
        end = recorded.agent.events[-1]
        assert {key: facts["total"][key] for key in end["usage"]} == end["usage"]
        assert [row["turn"] for row in facts["turns"]] == [1, 2, 3]
        assert facts["turns"][0]["tokens_per_s"] > 0
        assert facts["prompt_parts"] == recorded.agent.events[0]["prompt_parts"]

    def test_what_was_not_recorded_is_a_dash(self, tmp_path):
        turn = {
            "event": "turn",
            "time": 2,
            "number": 1,
            "tool_choice": "auto",
            "prompt_tokens": 9,
            "ids": [1, 2],
        }
        turn |= {"reused_tokens": 0, "text": "ab", "stop_reason": "complete", "model_steps": 2}
        turn |= {"prefill_s": 0.5, "decode_s": 0.0}
        file = tmp_path / "old.jsonl"
        start = {"event": "start", "time": 1, "task": "x"}
        file.write_text(f"{json.dumps(start)}\n{json.dumps(turn)}\n")
        lines = invoke("ledger", file).output.splitlines()
        assert lines[1].split() == ["1", "9", "0", "2", "0", "2", "-", "-", "0.50", "0.00", "-"]
        assert lines[2] == "prompt parts: not recorded"


class TestReplay:
    def test_the_same_tree(self, recorded, start):
        result = invoke("replay", recorded.log, "--repo", start)
        assert result.return_value == 0
        assert "the same tree as after turn 3 of the run; changed files: f.txt" in result.output
        assert (start / "f.txt").read_bytes() == (recorded.root / "f.txt").read_bytes()

    def test_json(self, recorded, start, capsys):
        code, out, err = run(capsys, "replay", recorded.log, "--repo", start, "--to-turn", "2", "--json")
        facts = json.loads(out)
        assert (code, facts["ok"], facts["turn"], facts["patches"]) == (0, True, 2, 1)
        assert [entry["path"] for entry in facts["tree"]] == ["f.txt"]
        assert err == "turn 2: patch applied: f.txt\n"

    def test_other_files_differ(self, recorded, start, capsys):
        (start / "g.txt").write_text("new since\n")
        code, out, err = run(capsys, "replay", recorded.log, "--repo", start)
        assert code == 0
        assert out == (
            "the files that the run read or changed are as after turn 3; others differ from its start; "
            "changed files: f.txt\n"
        )
        assert "note: files that the run neither read nor changed are not as they were at its start" in err

    def test_a_transcript_in_the_repository(self, recorded, start):
        shutil.copy(recorded.log, start / "run.jsonl")
        assert "the same tree" in invoke("replay", start / "run.jsonl", "--repo", start).output

    def test_nothing_to_compare_is_exit_code_1(self, tiny_runtime, tmp_path, capsys):
        """A run without reads and changes was "the same" in every folder, an empty one too."""
        recorded = Recorded(tiny_runtime, tmp_path, ["Done."])
        (tmp_path / "empty").mkdir()
        arguments = ["replay", recorded.log, "--repo"]
        assert run(capsys, *arguments, recorded.start)[:2] == (
            0,
            "the same tree as after turn 1 of the run; changed files: none\n",
        )
        code, out, _ = run(capsys, *arguments, tmp_path / "empty")
        assert code == 1
        assert out.startswith("nothing could be compared: the run read and changed no file, and files that")
        code, out, _ = run(capsys, *arguments, tmp_path / "empty", "--json")
        assert (code, json.loads(out)["ok"], json.loads(out)["whole_tree"]) == (1, False, "differs")
        arguments = ["cut", recorded.log, "--after", "1", "--test-command", "true", "--repo"]
        assert run(capsys, *arguments, recorded.start)[0] == 0
        code, out, _ = run(capsys, *arguments, tmp_path / "empty")
        assert (code, "nothing could be compared" in out) == (1, True)

    def test_a_difference_is_exit_code_1(self, recorded, start, tmp_path, capsys):
        file = tmp_path / "other.jsonl"
        file.write_text(recorded.agent._log.read_text().replace("+two", "+TWO"))
        code, out, _ = run(capsys, "replay", file, "--repo", start)
        assert code == 1
        assert out.startswith("differs from the record: turn 2: f.txt: 100644 ")

    def test_another_state_is_exit_code_2(self, recorded, capsys):
        code, _, err = run(capsys, "replay", recorded.log, "--repo", recorded.root)
        assert code == 2
        assert "is not as it was at the start of run 1: f.txt: " in err

    def test_the_last_of_several_runs(self, recorded, start, tmp_path, capsys):
        file = tmp_path / "two.jsonl"
        file.write_text(recorded.agent._log.read_text() * 2)
        code, _, err = run(capsys, "replay", file, "--repo", start)
        assert code == 0
        assert "run 2 of 2 (--run takes another one)" in err


class TestCut:
    def test_the_recorded_tests_after_a_turn(self, recorded, start):
        before = (start / "f.txt").read_bytes()
        failed = invoke("cut", recorded.log, "--repo", start, "--after", 1)
        passed = invoke("cut", recorded.log, "--repo", recorded.root, "--after", 2)
        assert (failed.return_value, passed.return_value) == (1, 0)
        assert "tests failed: grep -q two f.txt\nexit code 1" in failed.output
        assert "tests passed" in passed.output
        assert (start / "f.txt").read_bytes() == before

    def test_other_tests_and_a_copy_that_is_kept(self, recorded, start, tmp_path):
        arguments = ["cut", recorded.log, "--repo", start, "--after", 2, "--out", tmp_path / "kept"]
        result = invoke(*arguments, "--test-command", "head -1 f.txt", "--json")
        facts = json.loads(result.stdout)
        assert (facts["ok"], facts["tests"]["stdout"], facts["rewound"]) == (True, "two\n", False)
        assert (tmp_path / "kept" / "f.txt").read_text().startswith("two\n")
        assert facts["out"] == str(tmp_path / "kept")

    def test_without_tests(self, tiny_runtime, tmp_path, capsys):
        recorded = Recorded(tiny_runtime, tmp_path, ["ok"])
        arguments = ["cut", recorded.log, "--repo", recorded.start, "--after", 1]
        code, _, err = run(capsys, *arguments)
        assert code == 2
        assert "had no test command: give one as --test-command, or keep the copy with --out" in err
        code, out, err = run(capsys, *arguments, "--out", tmp_path / "kept")
        assert (code, "the same tree as after turn 1" in out, "the copy is kept" in err) == (0, True, True)

    def test_a_masked_test_command_has_to_be_given(self, tiny_runtime, tmp_path, capsys):
        recorded = Recorded(tiny_runtime, tmp_path, ["ok"], test_command=f"true ghp_{'a1B2' * 9}")
        code, _, err = run(capsys, "cut", recorded.log, "--repo", recorded.start, "--after", 1)
        assert code == 2
        assert "test command held a secret, which was masked: give it as --test-command" in err


class TestUndo:
    def test_the_last_patch_first_then_the_one_before(self, tiny_runtime, tmp_path, capsys):
        two_to_three = patch_call("*** Update File: f.txt\n@@\n-two\n+three\n")
        recorded = Recorded(tiny_runtime, tmp_path, [ONE_TO_TWO, two_to_three, "Done."])
        first = recorded.root / "f.txt"
        arguments = ["undo", recorded.log, "--repo", recorded.root]
        code, out, _ = run(capsys, *arguments, "--dry-run")
        assert (code, first.read_text()[:5]) == (0, "three")
        assert "-three\n+two\n" in out
        code, out, _ = run(capsys, *arguments, "--json")
        assert (code, json.loads(out)["undone"], first.read_text()[:4]) == (0, "call_2", "two\n")
        assert run(capsys, *arguments)[0] == 0
        assert first.read_bytes() == (recorded.start / "f.txt").read_bytes()
        shown = invoke("show", recorded.log).output
        heading = "→ undo: the patch of call_1 was taken back, after the end of the run\ndiff --git a/f.txt"
        assert shown.index("done: tests not run") < shown.index(heading)
        code, _, err = run(capsys, *arguments)
        assert code == 2
        assert "no patch of it still stands" in err
        # What was taken back is part of the record: made again, it ends where it began.
        code, out, _ = run(capsys, "replay", recorded.log, "--repo", recorded.start)
        assert code == 0
        assert "changed files: none" in out
        assert (
            run(capsys, "cut", recorded.log, "--repo", recorded.root, "--after", 3, "--test-command", "true")[
                0
            ]
            == 0
        )

    def test_not_over_what_was_changed_since(self, tiny_runtime, tmp_path, capsys):
        recorded = Recorded(tiny_runtime, tmp_path, [ONE_TO_TWO, "Done."])
        (recorded.root / "f.txt").write_text("mine\n")
        code, out, _ = run(capsys, "undo", recorded.log, "--repo", recorded.root, "--json")
        assert (code, json.loads(out)["error_kind"]) == (1, "changed_on_disk")
        assert (recorded.root / "f.txt").read_text() == "mine\n"
        assert recorded.agent.events[-1]["event"] == "end"


@pytest.mark.parametrize(
    ("arguments", "says"),
    [
        (("show", "/none.jsonl"), "No such file"),
        (("show", "TURN"), r"line 2 (turn): forced_chars[1] must be of type int, not str"),
        (("show", "LOG", "--turn", "9"), "--turn 9: there are turns 1 to 3"),
        (("replay", "LOG"), "--repo"),
        (("cut", "LOG", "--repo", "."), "--after"),
        (("cut", "LOG", "--repo", ".", "--after", "9"), "turn 9: run 1 has turns 1 to 3"),
        (("cut", "LOG", "--repo", ".", "--after", "1", "--test-command", " "), "--test-command is empty"),
        (("replay", "LOG", "--repo", "/none"), "/none"),
    ],
)
def test_wrong_calls(recorded, start, monkeypatch, capsys, arguments, says):
    monkeypatch.chdir(start)
    (start / "odd").write_text(
        re.sub(r'"forced_chars": \[\d+', '"forced_chars": [1, "x"', Path(recorded.log).read_text())
    )
    files = {"LOG": recorded.log, "TURN": "odd"}
    code, _, err = run(capsys, *(files.get(given, given) for given in arguments))
    assert code == 2
    assert says in err
    assert "Traceback" not in err


def test_as_people_call_it(recorded, start):
    program = [sys.executable, "-m", "constrained_agent", "transcript"]
    for arguments in (
        ["show", recorded.log],
        ["ledger", recorded.log],
        ["cut", recorded.log, "--repo", start, "--after", "2"],
        ["replay", recorded.log, "--repo", start],
    ):
        done = subprocess.run([*program, *arguments], capture_output=True, text=True, check=False)
        assert (done.returncode, "Traceback" in done.stderr) == (0, False)
    assert (start / "f.txt").read_text().startswith("two\n")
