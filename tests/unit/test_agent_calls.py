"""Every call has its result, in the conversation and on record, whatever became of its answer; and what counts as a
change that an answer may speak of."""

import copy
from dataclasses import replace

import pytest

from constrained_agent.agent import records
from constrained_agent.agent.replay import replay
from constrained_agent.agent.transcript import Transcript
from constrained_agent.agent.turn import Decoding, take_turn
from constrained_agent.agent.watch import NoWatcher
from constrained_agent.decode.sampling import Sampling
from constrained_agent.tools.catalog import TABLE
from tests.agents import ScriptedAgent, call, patch_call
from tests.fakes import ScriptedModel

ONE_TO_TWO = patch_call("*** Update File: f.txt\n@@\n-one\n+two\n")
CLAIM = "I have fixed the bug in f.txt."
TOLD = "every file is as it was"


def results(agent):
    return [(event["call_id"], event["error_kind"]) for event in agent.events if event["event"] == "result"]


@pytest.fixture(params=[True, False], ids=["transcript", "no transcript"])
def watched(request):
    """Whether a transcript looks at the tree."""
    return request.param


class TestClaims:
    def run(self, tiny_runtime, root, answers, watched=True, **settings):
        agent = ScriptedAgent(tiny_runtime, root, answers, **settings)
        if not watched:
            agent.agent._transcript = Transcript(None)
        return agent, agent.run()

    @pytest.mark.parametrize("command", ["ls", "cat f.txt; false", "mkdir empty", "printf 'one\\n' > f.txt"])
    def test_a_command_that_changed_nothing_is_no_change(self, tiny_runtime, root, watched, command):
        """Any command used to switch the check off."""
        answers = [call("exec_command", command=command), CLAIM, CLAIM]
        agent, result = self.run(tiny_runtime, root, answers, watched)
        assert (result.exit_reason, result.failures) == ("no_answer", {"claimed": 2})
        assert TOLD in agent.prompt_text(2)

    @pytest.mark.parametrize(
        "command",
        ["echo two > f.txt", "rm f.txt", "mkdir d; touch d/n", "chmod +x f.txt", "echo x > n; sleep 60"],
    )
    def test_a_command_that_changed_a_file_is_one(self, tiny_runtime, root, watched, command):
        answers = [
            call("exec_command", command="ls"),
            call("exec_command", command=command, timeout_s=1),
            CLAIM,
        ]
        _, result = self.run(tiny_runtime, root, answers, watched)
        assert (result.exit_reason, result.turns) == ("done", 3)

    def test_what_somebody_else_changed_meanwhile_is_none(self, tiny_runtime, root, watched):
        class Person(NoWatcher):
            def turn_ended(self, turn):
                (root / "mine.txt").write_text(f"{len(turn.prompt)}\n")

        answers = [call("exec_command", command="ls"), call("exec_command", command="true"), CLAIM, CLAIM]
        _, result = self.run(tiny_runtime, root, answers, watched, watcher=Person())
        assert (result.exit_reason, result.failures) == ("no_answer", {"claimed": 2})

    @pytest.mark.parametrize("change", [ONE_TO_TWO, call("exec_command", command="echo two > f.txt")])
    def test_an_earlier_run_of_the_conversation_counts(self, tiny_runtime, root, change):
        """Who asked what had been done was told that every file was as it was."""
        agent, _ = self.run(tiny_runtime, root, [change, "Done.", CLAIM])
        assert agent.run("What did you do?").exit_reason == "done"
        assert TOLD not in agent.prompt_text(-1)

    def test_a_patch_that_was_taken_back_does_not(self, tiny_runtime, root):
        agent, _ = self.run(tiny_runtime, root, [ONE_TO_TWO, "Done.", CLAIM, "Nothing was changed."])
        assert agent.tools.undo().ok
        assert agent.run("What did you do?").failures == {"claimed": 1}

    def test_an_interrupted_command_may_have_changed_anything(self, tiny_runtime, root):
        class Impatient(NoWatcher):
            def call_started(self, call):
                tools.run = stopped

        def stopped(call):
            (root / "f.txt").write_text("two\n")
            raise KeyboardInterrupt

        agent = ScriptedAgent(
            tiny_runtime, root, [call("exec_command", command="sleep 60"), CLAIM], watcher=Impatient()
        )
        tools = agent.tools
        assert agent.run().exit_reason == "interrupted"
        assert agent.run("What did you do?").exit_reason == "done"


class OnToken(NoWatcher):
    """Ctrl-C when so many tokens were written."""

    def __init__(self, n):
        self.n = n

    def tokens(self, ids, forced):
        self.n -= len(ids)
        if self.n < 0:
            raise KeyboardInterrupt


def marks(agent, number, *names):
    prompt, tokenizer = agent.model.prompts[number], agent.runtime.tokenizer
    before = agent.model.prompts[number - 1]
    return [prompt[len(before) :].count(tokenizer.special(name)) for name in names]


class TestCutCalls:
    @pytest.mark.parametrize("level", ["off", "grammar"])
    def test_an_interrupt_inside_a_call(self, tiny_runtime, root, level):
        """The call used to stay open in the history, without a result."""
        agent = ScriptedAgent(
            tiny_runtime, root, [ONE_TO_TWO, "Still here."], level=level, watcher=OnToken(12)
        )
        assert agent.run().exit_reason == "interrupted"
        assert results(agent) == [("call_1", "interrupted")]
        agent.agent._watcher = NoWatcher()
        assert agent.run("Go on.").exit_reason == "done"
        names = ["<tool_call>", "</tool_call>", "<tool_response>", "</tool_response>"]
        assert marks(agent, 1, *names) == [1, 1, 1, 1]
        assert "\n</tool_call><|im_end|>\n" in agent.prompt_text(1)
        assert "interrupted by the person" in agent.prompt_text(1)

    def test_an_interrupt_before_a_call_owes_nothing(self, tiny_runtime, root):
        agent = ScriptedAgent(tiny_runtime, root, ["Let me see. " * 9, "Here."], watcher=OnToken(4))
        assert agent.run().exit_reason == "interrupted"
        assert results(agent) == []
        agent.agent._watcher = NoWatcher()
        agent.run("Go on.")
        assert marks(agent, 1, "</tool_call>", "<tool_response>") == [0, 0]

    @pytest.mark.parametrize("level", ["off", "grammar"])
    def test_a_call_cut_by_the_limit(self, tiny_runtime, root, level):
        long = patch_call("*** Add File: n.txt\n" + "+line\n" * 200)
        both = f"{call('list_dir', path='.')}\n{long}"
        agent = ScriptedAgent(
            tiny_runtime, root, [both, "The end."], level=level, max_tokens=60, parallel=True
        )
        result = agent.run()
        assert (result.exit_reason, result.failures) == ("done", {"cut": 1})
        assert results(agent) == [("call_1", "not_run"), ("call_2", "not_run")]
        assert marks(agent, 1, "<tool_call>", "</tool_call>", "<tool_response>") == [2, 2, 2]
        assert agent.prompt_text(1).index("not run: the answer was cut off") < agent.prompt_text(1).index(
            "split"
        )

    @pytest.mark.parametrize("are_tokens", [True, False])
    @pytest.mark.parametrize(
        ("text", "ends"),
        [
            (ONE_TO_TWO, "\n</tool_call><|im_end|>\n"),
            ("word " * 60, "word<|im_end|>\n"),
            ("<think>\nhm " + ONE_TO_TWO, "@@<|im_end|>\n"),
        ],
    )
    def test_markers_of_both_kinds_are_closed(self, tiny_runtime, are_tokens, text, ends):
        runtime = copy.copy(tiny_runtime)
        runtime.markers = replace(runtime.markers, are_tokens=are_tokens)
        width = tiny_runtime.session.logit_width
        runtime.session = ScriptedModel(runtime.tokenizer, width, [text])
        specs = [spec for spec, _ in TABLE]
        n = 24 if "think" in text else 20
        turn = take_turn(
            runtime,
            runtime.dialect.user("Do it."),
            specs,
            "auto",
            Decoding("off", Sampling(), n),
            runtime.reader(specs),
        )
        assert not turn.whole
        seen = runtime.tokenizer.decode(turn.history)
        assert seen.endswith("<|im_end|>\n")
        assert seen.count("<tool_call>") == seen.count("</tool_call>") or "think" in text
        assert ("</tool_call>" in seen) == ("</tool_call>" in ends)

    def test_the_time_is_up_between_answer_and_call(self, tiny_runtime, root):
        class Slow(NoWatcher):
            """Lets the deadline pass in the middle of a call."""

            n = 0

            def tokens(self, ids, forced):
                self.n += len(ids)
                if self.n > 12:
                    budget = agent.agent._calls._run.budget
                    while budget.spent() != "time_limit":
                        pass

        agent = ScriptedAgent(
            tiny_runtime, root, [ONE_TO_TWO], level="off", time_limit_s=2, watcher=Slow(), max_turns=0
        )
        assert agent.run().exit_reason == "time_limit"
        assert results(agent) == [("call_1", "not_run")]
        assert (root / "f.txt").read_text() == "one\n"


class TestLastWords:
    @pytest.mark.parametrize("said", ["Half of it is done.", ""])
    def test_a_call_in_them_is_not_run_and_has_its_result(self, tiny_runtime, root, said):
        """Unconstrained, it used to stay in the history without one."""
        answers = [call("list_dir", path="."), f"{said}\n{ONE_TO_TWO}", "Done."]
        agent = ScriptedAgent(tiny_runtime, root, answers, level="off", max_turns=1)
        result = agent.run()
        assert (result.exit_reason, result.answer) == ("max_turns", said)
        assert (root / "f.txt").read_text() == "one\n"
        assert results(agent) == [("call_1", ""), ("call_2", "not_run")]
        agent.run("Go on.")
        assert marks(agent, 2, "</tool_call>", "</tool_response>") == [1, 1]
        assert "had come to its limit" in agent.prompt_text(2)


class TestOnRecord:
    def test_the_same_calls_again_are_not_run_and_say_so(self, tiny_runtime, root):
        agent = ScriptedAgent(tiny_runtime, root, [call("list_dir", path=".")] * 3)
        assert agent.run().exit_reason == "repeated_calls"
        assert results(agent) == [("call_1", ""), ("call_2", ""), ("call_3", "not_run")]

    def test_an_interrupt_between_two_calls(self, tiny_runtime, root):
        class AfterOne(NoWatcher):
            def call_ended(self, result):
                raise KeyboardInterrupt

        both = f"{call('list_dir', path='.')}\n{ONE_TO_TWO}"
        agent = ScriptedAgent(tiny_runtime, root, [both], parallel=True, watcher=AfterOne())
        assert agent.run().exit_reason == "interrupted"
        assert results(agent) == [("call_1", ""), ("call_2", "interrupted")]

    def test_a_result_whose_record_was_interrupted_is_written_after_all(self, tiny_runtime, root):
        agent = ScriptedAgent(tiny_runtime, root, [ONE_TO_TWO])
        transcript = agent.agent._transcript
        write = transcript.result

        def interrupted(result):
            transcript.result = write
            raise KeyboardInterrupt

        transcript.result = interrupted
        assert agent.run().exit_reason == "interrupted"
        assert results(agent) == [("call_1", "")]
        (root / "f.txt").write_text("one\n")
        assert replay(records.read(agent._log)[0], root).difference is None
        assert (root / "f.txt").read_text() == "two\n"

    def test_a_replay_runs_no_command_that_was_not_run(self, tiny_runtime, root):
        class Impatient(NoWatcher):
            def turn_ended(self, turn):
                raise KeyboardInterrupt

        touch = call("exec_command", command="touch made")
        agent = ScriptedAgent(tiny_runtime, root, [touch], watcher=Impatient())
        assert agent.run().exit_reason == "interrupted"
        (run,) = records.read(agent._log)
        for run_commands in (True, False):
            replayed = replay(run, root, run_commands=run_commands)
            assert (replayed.commands, replayed.difference) == (0, None)
        assert not (root / "made").exists()


class TestBeside:
    @pytest.mark.parametrize("level", ["off", "grammar"])
    def test_a_patch_printed_beside_a_call_is_told_of_and_blocks_nothing(self, tiny_runtime, root, level):
        """It used to be dropped without a word."""
        printed = "*** Begin Patch\n*** Delete File: f.txt\n*** End Patch\n"
        agent = ScriptedAgent(
            tiny_runtime, root, [printed + call("read_file", path="f.txt"), "ok"], level=level
        )
        result = agent.run()
        assert (result.exit_reason, result.failures) == ("done", {"no_wrapper": 1})
        assert results(agent) == [("call_1", "")]
        assert "│one" in agent.prompt_text(1)
        assert "a patch that is only printed changes nothing" in agent.prompt_text(1)
        turn = next(event for event in agent.events if event["event"] == "turn")
        assert [(fault["kind"], fault["call_id"]) for fault in turn["faults"]] == [("no_wrapper", "")]
        assert (root / "f.txt").exists()

    def test_one_that_is_sent_as_well_is_none(self, tiny_runtime, root):
        quoted = ONE_TO_TWO.split("\n", 2)[2].removesuffix("\n</tool_call>")
        agent = ScriptedAgent(tiny_runtime, root, [f"I send this:\n\n{quoted}\n\n{ONE_TO_TWO}", "ok"])
        assert agent.run().failures == {}
        assert (root / "f.txt").read_text() == "two\n"


@pytest.mark.parametrize(("context", "reminded"), [(4_096, True), (100_000, False)])
def test_in_a_small_context_shorter_results_are_long(tiny_runtime, root, context, reminded):
    """Results there are cut before they come to the length that is long elsewhere."""
    (root / "long.txt").write_text("a line of a file\n" * 100)
    agent = ScriptedAgent(tiny_runtime, root, [call("read_file", path="long.txt"), "ok"])
    agent.model.context_limit = context
    agent.run("Look.")
    assert ("(The task, once more: Look.)" in agent.prompt_text(1)) == reminded
