"""What a run leaves in its transcript, and how that is read back; runs of a scripted model."""

import hashlib
import json
import re

import pytest

from constrained_agent import __version__
from constrained_agent.agent import footprints, records
from constrained_agent.agent.events import Changed, Event, Result, Start, Turn
from constrained_agent.agent.transcript import Transcript
from constrained_agent.agent.watch import NoWatcher
from constrained_agent.errors import UserError
from tests.agents import ScriptedAgent, call, patch_call

ONE_TO_TWO = patch_call("*** Update File: f.txt\n@@\n-one\n+two\n")
START = {"event": "start", "time": 1, "schema": 1, "version": "9", "task": "x", "tree": {}}
NOTE = {"event": "note", "time": 2, "text": "n"}
END = {"event": "end", "time": 3, "exit_reason": "done", "tests_passed": None, "tree": []}
SECRET = "ghp_" + "a1B2" * 9


def of(text, mode="100644"):
    return f"{mode} {hashlib.sha256(text.encode()).hexdigest()}"


@pytest.fixture
def written(tiny_runtime, root):
    """Runs answers; returns the events as they stand in the file."""

    def go(answers, files=(), **settings):
        agent = ScriptedAgent(tiny_runtime, root, answers, **settings)
        agent.run("Change it.", files)
        return agent.events

    return go


def the(events, kind):
    return [event for event in events if event["event"] == kind]


class TestWriting:
    def test_a_run_starts_with_its_schema_and_version(self, written):
        start = written(["ok"], files=["f.txt"], test_command="true")[0]
        assert (start["event"], start["schema"], start["version"]) == ("start", 1, __version__)
        assert start["reads"] == [{"path": "f.txt", "entry": of("one\n")}]
        assert (start["tree"]["files"], start["tree"]["complete"]) == (1, True)
        assert start["settings"]["test_command"] == "true"
        assert "task_and_files" in start["prompt_parts"]

    def test_every_field_is_spoken_of(self, written, root):
        class Meddler(NoWatcher):
            def turn_ended(self, turn):
                (root / "g.txt").write_text(f"{SECRET} {len(turn.prompt)}")

        answers = [
            call("read_file", path="f.txt"),
            ONE_TO_TWO,
            ONE_TO_TWO,
            call("exec_command", command="rm f.txt"),
        ]
        events = written(
            [*answers, "bye"], files=["f.txt"], test_command="false", max_turns=4, watcher=Meddler()
        )
        assert {event["event"] for event in events} == {"start", "turn", "result", "changed", "note", "end"}
        named = set(re.findall(r"`(\w+)`", records.__doc__))
        for event in events:
            assert {"event", "time"} <= set(event)
            assert set(event) | {event["event"]} <= named
            for change in event.get("changes", ()):
                assert set(change) <= named

    def test_counts_and_forced_stretches(self, written):
        turn = the(written([ONE_TO_TWO, "ok"]), "turn")[0]
        assert turn["generated_tokens"] == len(turn["ids"]) == sum(turn["forced"])
        assert turn["forced_tokens"] == sum(turn["forced"][1::2])
        assert sum(turn["forced_chars"]) == len(turn["text"])
        assert {"drafted_tokens", "accepted_tokens", "prefill_s", "decode_s", "model_steps"} <= set(turn)

    def test_what_was_read_and_changed_by_whom(self, written):
        make = call("exec_command", command="printf made > new.txt; chmod +x f.txt")
        events = written(
            [call("read_file", path="f.txt"), ONE_TO_TWO, make, "ok"], test_command="echo 1 >> log"
        )
        read, patched, tested, made, _ = the(events, "result")
        assert read["reads"] == [{"path": "f.txt", "entry": of("one\n")}]
        before, after = of("one\n"), of("two\n")
        assert patched["changes"] == [
            {"path": "f.txt", "before": before, "after": after, "before_text": "one\n"}
        ]
        assert (tested["call_id"], tested["command"], tested["turn"]) == ("tests", "echo 1 >> log", 2)
        assert tested["changes"] == [{"path": "log", "before": None, "after": of("1\n"), "text": "1\n"}]
        assert made["changes"] == [
            {"path": "f.txt", "before": after, "after": of("two\n", "100755"), "text": "two\n"},
            {"path": "new.txt", "before": None, "after": of("made"), "text": "made"},
        ]
        assert events[-1]["tree"] == [
            {"path": "f.txt", "entry": of("two\n", "100755")},
            {"path": "log", "entry": of("1\n1\n")},
            {"path": "new.txt", "entry": of("made")},
        ]

    def test_other_hands_are_told_apart(self, written, root):
        class Person(NoWatcher):
            def turn_ended(self, turn):
                (root / "mine.txt").write_text("saved\n")

        changed = the(written([ONE_TO_TWO, "ok"], watcher=Person()), "changed")
        assert [(event["turn"], event["changes"][0]["path"]) for event in changed] == [(1, "mine.txt")]

    def test_an_interrupted_command_leaves_its_traces(self, written, root):
        class Impatient(NoWatcher):
            def call_ended(self, result):
                (root / "half").write_text("x")
                raise KeyboardInterrupt

        events = written([call("list_dir", path="."), "never"], watcher=Impatient())
        assert [event["event"] for event in events[-3:]] == ["result", "changed", "end"]
        assert events[-1]["tree"] == [{"path": "half", "entry": of("x")}]

    def test_what_is_no_text_or_too_long_is_there_by_its_hash(self, written, monkeypatch):
        monkeypatch.setattr(footprints, "MAX_TEXT_BYTES", 5)
        monkeypatch.setattr(footprints, "MAX_CHANGES", 2)
        command = "printf 123456 > a; printf '\\377' > b; printf 1 > c; printf 2 > d"
        result = the(written([call("exec_command", command=command), "ok"]), "result")[0]
        assert [sorted(change) for change in result["changes"]] == [["after", "before", "path"]] * 2
        assert result["changes_left_out"] == 2

    def test_a_transcript_inside_the_repository_is_not_its_own_change(self, tiny_runtime, root):
        agent = ScriptedAgent(tiny_runtime, root, [call("exec_command", command="true"), "ok"])
        agent.agent._transcript = Transcript(str(root / "run.jsonl"))
        agent.run()
        (run,) = records.read(root / "run.jsonl")
        assert run.start.tree["files"] == 1
        assert not [event for event in run.events if isinstance(event, Changed)]
        assert run.end.tree == ()

    def test_a_patch_in_a_folder_that_no_look_goes_into(self, written, root):
        (root / "node_modules").mkdir()
        (root / "node_modules" / "m.js").write_text("1\n")
        patch = patch_call("*** Update File: node_modules/m.js\n@@\n-1\n+2\n")
        events = written([patch, "ok"])
        assert the(events, "result")[0]["changes"][0]["before"] == of("1\n")
        assert events[-1]["tree"] == [{"path": "node_modules/m.js", "entry": of("2\n")}]
        assert not the(events, "changed")

    def test_a_patch_that_leads_outside_shows_nothing_of_what_is_there(self, written, root):
        (root.parent / "outside").write_text("private\n")
        (root / "way").symlink_to("../outside")
        events = written([patch_call("*** Update File: way\n@@\n-private\n+x\n"), "ok"])
        assert the(events, "result")[0]["error_kind"] == "outside_root"
        assert "before_text" not in json.dumps(events)

    def test_without_a_file_nothing_is_looked_at(self, tiny_runtime, root):
        agent = ScriptedAgent(tiny_runtime, root, [ONE_TO_TWO, "ok"])
        agent.agent._transcript = Transcript(None)
        agent.run()
        assert agent.agent._transcript._footprints is None


class TestSecrets:
    def test_a_secret_in_a_file_reaches_the_model_and_not_the_transcript(self, tiny_runtime, root):
        (root / "env").write_text(f"KEY={SECRET}\nx=1\n")
        patch = patch_call(f"*** Update File: env\n@@\n KEY={SECRET}\n-x=1\n+x=2\n")
        agent = ScriptedAgent(tiny_runtime, root, [call("read_file", path="env"), patch, "ok"])
        agent.run()
        assert SECRET in agent.prompt_text(1)
        assert (root / "env").read_text() == f"KEY={SECRET}\nx=2\n"
        assert SECRET not in agent._log.read_text()
        shown, written = the(agent.events, "turn")[:2]
        assert shown["ids"]
        assert "masked" not in shown
        assert (written["ids"], written["forced_chars"], written["masked"]) == (None, None, True)
        assert written["calls"][0]["masked"] is True
        assert "KEY=***a1B2" in written["text"]
        change = the(agent.events, "result")[1]["changes"][0]
        assert (change["before_text"], change["masked"]) == ("KEY=***a1B2\nx=1\n", True)

    def test_a_password_that_a_test_command_prints(self, tiny_runtime, root):
        """It stayed in the clear: behind its name, too, a value had to look drawn."""
        (root / "settings").write_text("DB_PASSWORD=hunter2hunter2\n")
        agent = ScriptedAgent(tiny_runtime, root, [ONE_TO_TWO, "ok"], test_command="cat settings")
        agent.run()
        assert "hunter2" not in agent._log.read_text()
        assert the(agent.events, "result")[1]["data"]["stdout"] == "DB_PASSWORD=***\n"
        assert the(agent.events, "turn")[0]["ids"]

    def test_a_secret_of_the_environment(self, written, monkeypatch):
        """Commands do not get it, but it may stand in a file."""
        monkeypatch.setenv("DEPLOY_TOKEN", "rather plain words 1")
        command = "echo 'rather plain words 1'; printf 'rather plain words 1' > kept"
        result = the(written([call("exec_command", command=command), "ok"]), "result")[0]
        assert "***ds 1" in result["text"]
        assert result["data"]["stdout"] == "***ds 1\n"
        assert result["changes"][0]["text"] == "***ds 1"
        assert "rather plain" not in json.dumps(result)


class TestReading:
    def write(self, tmp_path, *events):
        file = tmp_path / "t.jsonl"
        file.write_text("".join(e if isinstance(e, str) else json.dumps(e) + "\n" for e in events))
        return file

    def test_a_real_run(self, tiny_runtime, root):
        agent = ScriptedAgent(
            tiny_runtime, root, [call("read_file", path="f.txt"), ONE_TO_TWO, "ok"], test_command="true"
        )
        agent.run()
        agent.model._answers = [tiny_runtime.tokenizer.encode("Nothing left.")]
        agent.run("Anything else?")
        first, second = records.read(agent._log)
        assert [type(event).__name__ for event in first.events] == [
            *("Turn", "Result", "Turn", "Result", "Result", "Turn", "End")
        ]
        patch = first.events[3]
        assert first.call(patch).name == "apply_patch"
        assert first.call(first.events[4]) is None
        assert (first.test_command, first.end.exit_reason, first.cut_off) == ("true", "done", False)
        assert (second.number, second.start.task, len(second.turns)) == (2, "Anything else?", 1)

    def test_unknown_events_and_fields_are_kept(self, tmp_path):
        file = self.write(
            tmp_path,
            {**START, "mood": "good"},
            {"event": "telepathy", "time": 2, "said": "hm"},
            {**NOTE, "loud": True},
            END,
        )
        (run,) = records.read(file)
        assert run.start.fields["mood"] == "good"
        assert type(run.events[0]) is Event
        assert run.events[0].fields["said"] == "hm"
        assert run.events[1].fields["loud"] is True

    def test_a_newer_schema_is_refused(self, tmp_path):
        with pytest.raises(
            UserError, match=r"line 1 \(start\): schema 2 is of a newer program \(9\).*up to 1"
        ):
            records.read(self.write(tmp_path, {**START, "schema": 2}))

    def test_a_newer_schema_stops_only_who_wants_that_run(self, tmp_path):
        file = self.write(tmp_path, START, NOTE, {**START, "schema": 2}, {"event": "note"}, "broken\n", NOTE)
        first, second = records.stretches(file)
        assert (first.run().number, len(first.run().events)) == (1, 1)
        with pytest.raises(UserError, match=r"line 3 .*take another run of the file"):
            second.run()

    @pytest.mark.parametrize(
        ("field", "value", "says"),
        [
            ("forced_chars", [1, "x"], r"forced_chars\[1\] must be of type int, not str"),
            ("forced_chars", [-1], r"forced_chars\[0\] must be 0 or more, not -1"),
            ("forced_chars", {}, "`forced_chars` must be of type list, not dict"),
            ("forced", [1, None], r"forced\[1\] must be of type int, not NoneType"),
            ("ids", [True], r"ids\[0\] must be of type int, not bool"),
            ("calls", ["x"], r"calls\[0\] must be an object, not str"),
            ("faults", [3], r"faults\[0\] must be an object, not int"),
        ],
    )
    def test_items_of_lists_are_looked_at(self, tmp_path, field, value, says):
        """`forced_chars: [1, "x"]` ended in a traceback."""
        turn = {
            "event": "turn",
            "time": 2,
            "number": 1,
            "tool_choice": "auto",
            "text": "ab",
            "stop_reason": "x",
        }
        turn |= {"prompt_tokens": 1, "reused_tokens": 0, "model_steps": 1, "prefill_s": 0, "decode_s": 0}
        file = self.write(tmp_path, START, turn)
        assert records.read(file)[0].last_turn == 1
        file = self.write(tmp_path, START, {**turn, field: value})
        with pytest.raises(UserError, match=r"line 2 \(turn\): " + says):
            records.read(file)

    def test_the_broken_last_line_of_a_killed_run_is_left_out(self, tmp_path):
        (run,) = records.read(self.write(tmp_path, START, NOTE, '{"event": "turn", "ti'))
        assert (run.cut_off, len(run.events), run.end) == (True, 1, None)

    def test_a_run_after_a_killed_one_begins_a_new_line(self, tmp_path):
        file = self.write(tmp_path, START, '{"event": "note", "te')
        transcript = Transcript(str(file))
        transcript.write("start", schema=1, task="y", tree={})
        first, second = records.read(file)
        assert (first.cut_off, second.cut_off, second.start.task) == (True, False, "y")

    @pytest.mark.parametrize(
        ("lines", "says"),
        [
            ([], "there is no run in it"),
            (["no json\n"], "line 1: not a JSON object|there is no run"),
            ([NOTE], "line 1: a transcript begins with a start event"),
            ([START, "half a li\n", NOTE], "line 2: not a JSON object"),
            ([START, "[1]\n", NOTE], "line 2: not a JSON object"),
            ([{**START, "task": 7}], r"line 1 \(start\): `task` must be of type str, not int"),
            ([START, {"event": "note", "time": 1}], r"line 2 \(note\): `text` is missing"),
            ([START, {"time": 1}], "line 2: `event` is missing"),
            (
                [START, {"event": "result", "time": 1, "call_id": "c", "ok": 1, "text": ""}],
                "`ok` must be of type bool",
            ),
            ([START, {"event": "changed", "time": 1, "changes": [1]}], r"changes\[0\] must be an object"),
            ([START, {"event": "changed", "time": 1, "changes": [{}]}], r"changes\[0\]: `path` is missing"),
            ([{**START, "files": [1]}], r"files\[0\] must be of type str, not int"),
            (
                [START, {**END, "changed_files": [None]}],
                r"line 2 \(end\): changed_files\[0\] must be of type str",
            ),
            ([START, {**END, "tests_passed": []}], "`tests_passed` must be of type bool, not list"),
        ],
    )
    def test_what_is_no_transcript(self, tmp_path, lines, says):
        with pytest.raises(UserError, match=says):
            records.read(self.write(tmp_path, *lines))

    def test_no_file(self, tmp_path):
        with pytest.raises(UserError, match="No such file"):
            records.read(tmp_path / "none.jsonl")

    def test_schema_0(self, tmp_path):
        """As it was written before schemas had numbers."""
        start = {
            "event": "start",
            "time": 1.5,
            "task": "x",
            "files": [],
            "prompt_parts": {"task": 3},
            "settings": {},
        }
        turn = {
            "event": "turn",
            "time": 2.5,
            "number": 1,
            "tool_choice": "auto",
            "prompt_tokens": 9,
            "reused_tokens": 0,
        }
        turn |= {
            "ids": [1, 2, 3],
            "forced": [1, 2],
            "text": "abc",
            "stop_reason": "complete",
            "model_steps": 2,
        }
        turn |= {
            "calls": [{"id": "call_1", "name": "list_dir", "arguments": {}}],
            "prefill_s": 0.1,
            "decode_s": 0.2,
        }
        result = {
            "event": "result",
            "time": 3,
            "call_id": "call_1",
            "ok": True,
            "error_kind": "",
            "text": "t",
            "data": {},
        }
        end = {"event": "end", "time": 4, "exit_reason": "done", "tests_passed": None}
        (run,) = records.read(self.write(tmp_path, start, turn, result, end))
        assert isinstance(run.start, Start)
        assert (run.start.schema, run.start.tree, run.end.tree) == (0, None, None)
        read_turn, read_result, _ = run.events
        assert isinstance(read_turn, Turn)
        assert (read_turn.generated_tokens, read_turn.forced_tokens, read_turn.drafted_tokens) == (3, 2, None)
        assert isinstance(read_result, Result)
        assert read_result.turn == 1
