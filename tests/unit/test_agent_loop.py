"""The loop with a scripted model: real grammar, tools, files and subprocesses."""

import pytest

from constrained_agent.agent.watch import NoWatcher
from constrained_agent.errors import DecodeError, UserError
from constrained_agent.tools.permissions import Policy
from tests.agents import ScriptedAgent, call, patch_call

ONE_TO_TWO = patch_call("*** Update File: f.txt\n@@\n-one\n+two\n")


def fill_after_the_first(model):
    """After its first answer the model's context is full."""
    room = model.room

    def full(n_prompt):
        if len(model.prompts):
            model.context_limit = 10
        return room(n_prompt)

    model.room = full


def test_reads_edits_and_answers(tiny_runtime, root):
    agent = ScriptedAgent(
        tiny_runtime, root, [call("read_file", path="f.txt"), ONE_TO_TWO, "Done: one became two."]
    )
    result = agent.run()
    assert (root / "f.txt").read_text() == "two\n"
    assert (result.exit_reason, result.answer, result.turns) == ("done", "Done: one became two.", 3)
    assert result.changed_files == ("f.txt",)
    assert "-one\n+two\n" in result.diff
    assert result.failures == {}
    assert result.succeeded


def test_results_go_back_with_their_calls_and_history_only_grows(tiny_runtime, root):
    agent = ScriptedAgent(tiny_runtime, root, [call("read_file", path="f.txt"), ONE_TO_TWO, "ok"])
    agent.run()
    first, second, third = agent.model.prompts
    assert second[: len(first)] == first
    assert third[: len(second)] == second
    assert "│one" in agent.prompt_text(1)[len(agent.prompt_text(0)) :]
    assert '{"name": "apply_patch"}' in agent.prompt_text(2)


def test_usage_adds_up(tiny_runtime, root):
    agent = ScriptedAgent(tiny_runtime, root, [call("read_file", path="f.txt"), "ok"])
    usage = agent.run().usage
    turns = [event for event in agent.events if event["event"] == "turn"]
    assert usage.generated_tokens == sum(len(turn["ids"]) for turn in turns)
    assert usage.prompt_tokens == sum(len(prompt) for prompt in agent.model.prompts)
    assert 0 < usage.forced_tokens < usage.generated_tokens


def test_the_parts_of_the_prompt_sum_to_the_prompt(tiny_runtime, root):
    agent = ScriptedAgent(tiny_runtime, root, ["ok"])
    parts = agent.run(files=["f.txt"]).prompt_parts
    assert {"instructions", "tools", "patch", "task_and_files"} <= set(parts)
    assert parts["answer_head"] == len(tiny_runtime.dialect.open_answer(thinking=False))
    assert sum(parts.values()) == len(agent.model.prompts[0])


@pytest.mark.parametrize("thinking", [False, True])
def test_what_each_prompt_was_made_of_is_on_record(tiny_runtime, root, thinking):
    """The last words have another head than the answers before: they never think."""
    thought = "<think>\nHm.\n</think>\n\n" if thinking else ""
    answers = [thought + call("read_file", path="f.txt"), "I looked around."]
    agent = ScriptedAgent(tiny_runtime, root, answers, thinking=thinking, max_turns=1)
    agent.run()
    first, last = (event for event in agent.events if event["event"] == "turn")
    names = [name for name, _ in last["prompt_messages"]]
    assert names[-5:] == ["task", "answer", "results", "notes", "answer_head"]
    for turn in (first, last):
        assert sum(n for _, n in turn["prompt_messages"]) == turn["prompt_tokens"]


def test_a_tool_error_goes_back_and_the_run_goes_on(tiny_runtime, root):
    wrong = patch_call("*** Update File: f.txt\n@@\n-three\n+two\n")
    result = ScriptedAgent(tiny_runtime, root, [wrong, ONE_TO_TWO, "ok"]).run()
    assert result.exit_reason == "done"
    assert result.failures == {"context_not_found": 1}
    assert (root / "f.txt").read_text() == "two\n"


def test_stops_at_max_turns(tiny_runtime, root):
    answers = [call("list_dir", path="."), call("read_file", path="f.txt"), "I looked around.", "too much"]
    agent = ScriptedAgent(tiny_runtime, root, answers, max_turns=2)
    result = agent.run()
    assert (result.exit_reason, result.turns, result.succeeded) == ("max_turns", 2, False)
    assert result.answer == "I looked around.", "the last words of a run that has come to its limit"
    assert "has come to its limit" in agent.prompt_text(2)


def test_last_words_hold_no_call(tiny_runtime, root):
    answers = [call("list_dir", path="."), ONE_TO_TWO]
    result = ScriptedAgent(tiny_runtime, root, answers, max_turns=1).run()
    assert result.exit_reason == "max_turns"
    assert (root / "f.txt").read_text() == "one\n"


def test_no_limit_of_turns_but_one_of_tokens(tiny_runtime, root):
    looks = [
        call("list_dir", path="."),
        call("read_file", path="f.txt"),
        call("read_file", path="f.txt", limit=3),
    ]
    looks += [call("read_file", path="f.txt", limit=n) for n in range(4, 16)]
    result = ScriptedAgent(tiny_runtime, root, [*looks, "The end."], max_turns=0).run()
    assert (result.exit_reason, result.turns) == ("done", 16)
    agent = ScriptedAgent(tiny_runtime, root, [*looks, "The end."], max_turns=0, max_run_tokens=60)
    result = agent.run()
    assert result.exit_reason == "token_budget"
    assert result.turns < 5


@pytest.mark.parametrize(
    ("words", "failure", "told"),
    [
        ("I will now edit the file.", "no_call", "sent no call"),
        ("I have updated f.txt.", "claimed", "no patch of yours was applied"),
    ],
)
def test_words_that_are_no_finished_answer_get_one_reminder(tiny_runtime, root, words, failure, told):
    agent = ScriptedAgent(tiny_runtime, root, [words, ONE_TO_TWO, "I have updated f.txt."])
    result = agent.run()
    assert (result.exit_reason, result.turns, result.failures[failure]) == ("done", 3, 1)
    assert told in agent.prompt_text(1)
    stuck = ScriptedAgent(tiny_runtime, root, [words.replace("f.txt", "x")] * 2).run()
    if failure == "no_call":
        assert (stuck.exit_reason, stuck.turns, stuck.answer) == ("no_answer", 2, words)


def test_two_reminders_at_most(tiny_runtime, root):
    answers = ["I will now edit the file.", "I have updated it.", "Let me look.", "never asked for"]
    result = ScriptedAgent(tiny_runtime, root, answers).run()
    assert (result.exit_reason, result.turns) == ("no_answer", 3)


def test_a_command_may_have_changed_anything(tiny_runtime, root):
    answers = [call("exec_command", command="echo two > f.txt"), "I have updated f.txt."]
    result = ScriptedAgent(tiny_runtime, root, answers).run()
    assert (result.exit_reason, result.turns) == ("done", 2)


def test_last_words_for_which_there_is_no_room_do_not_spoil_the_run(tiny_runtime, root):
    agent = ScriptedAgent(tiny_runtime, root, [ONE_TO_TWO, "never asked for"], max_turns=1)
    fill_after_the_first(agent.model)
    result = agent.run()
    assert (result.exit_reason, result.changed_files) == ("max_turns", ("f.txt",))
    assert "context" in result.last_error


def test_a_task_that_does_not_fit_is_not_in_the_way_of_the_next_one(tiny_runtime, root):
    (root / "long.txt").write_text("1234567890,1234567890\n" * 500)
    agent = ScriptedAgent(tiny_runtime, root, ["Too long.", "The end.", "The end."])
    agent.model.context_limit = 5_000
    with pytest.raises(UserError):
        agent.run("Look.", ["long.txt"])
    assert agent.run("Look at something shorter.").exit_reason == "done"
    assert "long.txt" not in agent.prompt_text(-1)


def test_nor_is_one_for_which_the_conversation_was_made_shorter(tiny_runtime, root):
    (root / "some.txt").write_text("1234567890,1234567890\n" * 60)
    looks = [call("read_file", path="some.txt"), call("read_file", path="f.txt")]
    agent = ScriptedAgent(tiny_runtime, root, [*looks, *looks, "The end.", "The end."], max_turns=0)
    agent.model.context_limit = 6_000
    assert agent.run("Look at some.txt.").exit_reason == "done"
    with pytest.raises(UserError):
        agent.run("word " * 9_000)
    assert agent.run("Look at something shorter.").exit_reason == "done"
    assert "Look at some.txt." in agent.prompt_text(-1)
    assert "word word" not in agent.prompt_text(-1)


def test_where_the_conversation_outgrows_the_context_the_tests_have_the_last_word(tiny_runtime, root):
    agent = ScriptedAgent(tiny_runtime, root, [ONE_TO_TWO, "never asked for"], test_command="true")
    fill_after_the_first(agent.model)
    result = agent.run()
    assert (result.exit_reason, result.tests_passed, result.succeeded) == ("token_budget", True, True)


def test_to_look_again_since_the_person_says_so_is_no_repetition(tiny_runtime, root):
    class Said:
        def take(self):
            return ["Look again."]

    look = call("read_file", path="f.txt")
    agent = ScriptedAgent(tiny_runtime, root, [*[look] * 5, "I looked."], max_turns=5)
    agent.agent._inbox = Said()
    assert agent.run().exit_reason == "max_turns"


def test_what_the_stop_hook_refuses_did_not_succeed(tiny_runtime, root):
    settings = {"test_command": "true", "stop_hook": "false", "max_verifications": 2}
    result = ScriptedAgent(tiny_runtime, root, [ONE_TO_TWO, "Done.", "Done."], **settings).run()
    assert (result.exit_reason, result.tests_passed, result.succeeded) == ("tests_failed", True, False)


def test_reading_makes_no_test_run_again(tiny_runtime, root):
    look = call("read_file", path="f.txt")
    command = "echo x >> ../runs; grep -q two f.txt"
    result = ScriptedAgent(tiny_runtime, root, [ONE_TO_TWO, look, "Done."], test_command=command).run()
    assert (result.exit_reason, result.tests_passed) == ("done", True)
    assert (root.parent / "runs").read_text() == "x\n"


def test_rounds_of_four_are_seen(tiny_runtime, root):
    looks = [
        call("list_dir", path="."),
        *(call("read_file", path=name) for name in ("f.txt", "g.txt", "h.txt")),
    ]
    result = ScriptedAgent(tiny_runtime, root, looks * 5, max_turns=0).run()
    assert (result.exit_reason, result.turns) == ("repeated_calls", 12)


def test_a_result_of_many_tokens_is_cut_to_its_share_of_the_context(tiny_runtime, root):
    (root / "digits.csv").write_text("1234567890,0987654321\n" * 300)
    agent = ScriptedAgent(tiny_runtime, root, [call("read_file", path="digits.csv"), "The end."])
    agent.model.context_limit = 8_000
    assert agent.run().exit_reason == "done"
    assert "[... cut: " in agent.prompt_text(1)
    assert len(agent.model.prompts[1]) - len(agent.model.prompts[0]) < 2_300


def test_rounds_of_calls_are_warned_about_and_stopped(tiny_runtime, root):
    a, b = call("list_dir", path="."), call("read_file", path="f.txt")
    agent = ScriptedAgent(tiny_runtime, root, [a, b, a, b, a, b, "never asked for"])
    result = agent.run()
    assert (result.exit_reason, result.turns) == ("repeated_calls", 6)
    assert "do something else" not in agent.prompt_text(3)
    assert "do something else" in agent.prompt_text(4)
    assert agent.prompt_text(5).count("do something else") == 1, "A, B, A, B, A is no further round"
    [note] = [event for event in agent.events if event["event"] == "note"]
    assert "do something else" in note["text"], "what the model was told is on record"


def test_the_stop_hook_decides_as_well(tiny_runtime, root):
    hook = "grep -q two f.txt || { echo f.txt must say two; exit 1; }"
    agent = ScriptedAgent(tiny_runtime, root, ["Done.", ONE_TO_TWO, "Now."], stop_hook=hook)
    result = agent.run()
    assert (result.exit_reason, result.tests_passed, result.turns) == ("done", None, 3)
    assert "f.txt must say two" in agent.prompt_text(1)
    assert "check failed: " in agent.prompt_text(1)
    assert "tests failed" not in agent.prompt_text(1)
    never = ScriptedAgent(tiny_runtime, root, ["Done."] * 2, stop_hook="false", max_verifications=2).run()
    assert (never.exit_reason, never.turns) == ("tests_failed", 2)


def test_first_tool_is_enforced_once(tiny_runtime, root):
    agent = ScriptedAgent(tiny_runtime, root, [ONE_TO_TWO, "ok"], first_tool="apply_patch")
    assert agent.run().exit_reason == "done"
    assert [event["tool_choice"] for event in agent.events if event["event"] == "turn"] == [
        "apply_patch",
        "auto",
    ]


def test_an_empty_answer_gets_one_reminder(tiny_runtime, root):
    agent = ScriptedAgent(tiny_runtime, root, ["", "Nothing to do."], level="off")
    assert agent.run().exit_reason == "done"
    assert "empty" in agent.prompt_text(1)
    assert ScriptedAgent(tiny_runtime, root, ["", ""], level="off").run().exit_reason == "no_answer"


def test_a_cut_answer_is_not_run(tiny_runtime, root):
    long = patch_call("*** Add File: n.txt\n" + "+line\n" * 200)
    agent = ScriptedAgent(tiny_runtime, root, [long, long, long], max_tokens=40)
    result = agent.run()
    assert (result.exit_reason, result.failures) == ("truncated", {"cut": 3})
    assert not (root / "n.txt").exists()
    assert "split it" in agent.prompt_text(1)


def test_unreadable_calls_of_unconstrained_output_are_answered(tiny_runtime, root):
    bad = '<tool_call>\n{"name": "exec_command", "arguments": {"command": "grep \'\\d\' a"}}\n</tool_call>'
    agent = ScriptedAgent(tiny_runtime, root, [bad, call("Read", path="a"), "ok"], level="off")
    result = agent.run()
    assert result.failures == {"json_invalid": 1, "unknown_tool": 1}
    assert "invalid escape at position" in agent.prompt_text(1)
    assert "tools are: apply_patch" in agent.prompt_text(2)


def test_arguments_that_miss_the_schema_are_answered(tiny_runtime, root):
    agent = ScriptedAgent(tiny_runtime, root, [call("read_file", file="f.txt"), "ok"], level="off")
    result = agent.run()
    assert result.failures == {"schema_violated": 1}
    assert "path" in agent.prompt_text(1)


TEST_COMMAND = "grep -q two f.txt"


def test_the_test_command_decides(tiny_runtime, root):
    agent = ScriptedAgent(
        tiny_runtime, root, ["I have updated it.", ONE_TO_TWO, "Now."], test_command=TEST_COMMAND
    )
    result = agent.run()
    assert (result.exit_reason, result.tests_passed, result.turns) == ("done", True, 3)
    assert "not done yet" in agent.prompt_text(1)
    assert "tests passed" in agent.prompt_text(2)


def test_tests_that_go_on_failing_end_the_run(tiny_runtime, root):
    result = ScriptedAgent(tiny_runtime, root, ["Done."] * 5, test_command=TEST_COMMAND).run()
    assert (result.exit_reason, result.tests_passed, result.succeeded) == ("tests_failed", False, False)


def test_tests_run_at_the_end_whatever_ended_it(tiny_runtime, root):
    """Also where the last turn ran none, and where a call after a test run may have changed the outcome."""
    looks = ScriptedAgent(
        tiny_runtime, root, [call("list_dir", path="."), "."], max_turns=1, test_command=TEST_COMMAND
    ).run()
    assert (looks.exit_reason, looks.tests_passed, looks.succeeded) == ("max_turns", False, False)
    breaks = [ONE_TO_TWO, call("exec_command", command="echo one > f.txt"), "."]
    broken = ScriptedAgent(tiny_runtime, root, breaks, max_turns=2, test_command=TEST_COMMAND).run()
    assert (broken.exit_reason, broken.tests_passed) == ("max_turns", False)
    mended = ScriptedAgent(
        tiny_runtime, root, [ONE_TO_TWO, "."], max_turns=1, test_command=TEST_COMMAND
    ).run()
    assert (mended.exit_reason, mended.tests_passed, mended.succeeded) == ("max_turns", True, True)


def test_read_only_offers_no_tool_that_writes(tiny_runtime, root):
    agent = ScriptedAgent(
        tiny_runtime, root, [ONE_TO_TWO] * 2, policy=Policy(read_only=True), max_turns=1, max_tokens=30
    )
    result = agent.run()
    assert (root / "f.txt").read_text() == "one\n"
    assert "apply_patch" not in agent.prompt_text(0)
    assert result.changed_files == ()


def test_commands_run_in_the_repository(tiny_runtime, root):
    agent = ScriptedAgent(tiny_runtime, root, [call("exec_command", command="cat f.txt; exit 3"), "ok"])
    agent.run()
    assert "exit code 3" in agent.prompt_text(1)
    assert "one" in agent.prompt_text(1)


class InterruptOn(NoWatcher):
    """Ctrl-C at one event of a run."""

    def __init__(self, event):
        self._event = event

    def __getattribute__(self, name):
        if name == object.__getattribute__(self, "_event"):
            raise KeyboardInterrupt
        return object.__getattribute__(self, name)


def test_an_interrupt_in_a_tool_leaves_a_conversation_that_goes_on(tiny_runtime, root):
    agent = ScriptedAgent(
        tiny_runtime, root, [ONE_TO_TWO, "Still here."], watcher=InterruptOn("call_started")
    )
    result = agent.run()
    assert (result.exit_reason, result.turns) == ("interrupted", 1)
    assert (root / "f.txt").read_text() == "one\n"
    agent.agent._watcher = NoWatcher()
    assert agent.run("Are you there?").exit_reason == "done"
    assert (
        agent.prompt_text(1).count("<tool_response>") == agent.prompt_text(1).count("</tool_response>") == 1
    )
    assert "interrupted" in agent.prompt_text(1)


def test_an_interrupt_while_writing(tiny_runtime, root):
    class OnThirdToken(NoWatcher):
        seen = 0

        def tokens(self, ids, forced):
            self.seen += len(ids)
            if self.seen > 12:
                raise KeyboardInterrupt

    agent = ScriptedAgent(tiny_runtime, root, [ONE_TO_TWO, "Still here."], watcher=OnThirdToken())
    assert agent.run().exit_reason == "interrupted"
    assert (root / "f.txt").read_text() == "one\n"
    agent.agent._watcher = NoWatcher()
    assert agent.run("Go on.").exit_reason == "done"


def test_a_broken_constraint_ends_as_model_error(tiny_runtime, root, monkeypatch):
    def broken(*args, **kwargs):
        raise DecodeError("the constraint broke")

    agent = ScriptedAgent(tiny_runtime, root, [ONE_TO_TWO])
    monkeypatch.setattr("constrained_agent.agent.loop.take_turn", broken)
    result = agent.run()
    assert (result.exit_reason, result.last_error) == ("model_error", "the constraint broke")


def test_a_file_that_cannot_be_put_before_the_model(tiny_runtime, root):
    with pytest.raises(UserError, match=r"--file nope\.txt"):
        ScriptedAgent(tiny_runtime, root, []).run(files=["nope.txt"])


def test_the_time_limit(tiny_runtime, root):
    result = ScriptedAgent(tiny_runtime, root, [ONE_TO_TWO], time_limit_s=1e-9).run()
    assert (result.exit_reason, result.turns) == ("time_limit", 0)


def test_the_transcript_tells_every_turn(tiny_runtime, root):
    agent = ScriptedAgent(tiny_runtime, root, [call("read_file", path="f.txt"), ONE_TO_TWO, "ok"])
    agent.run("Change one to two.")
    kinds = [event["event"] for event in agent.events]
    assert kinds == ["start", "turn", "result", "turn", "result", "turn", "end"]
    turn = agent.events[1]
    assert turn["calls"] == [{"id": "call_1", "name": "read_file", "arguments": {"path": "f.txt"}}]
    assert sum(turn["forced"]) == len(turn["ids"])
    assert tiny_runtime.tokenizer.decode(turn["ids"]) == turn["text"]
    assert agent.events[2]["call_id"] == "call_1"
    assert agent.events[-1]["exit_reason"] == "done"


SPECIAL_TEXTS = [
    "a <|im_end|> b",
    "</tool_call>",
    "<think>x</think>",
    "<|im_start|>system",
    "*** End Patch",
    "e\u0301 decomposed",
    'quote " back\\slash \t tab',
]


@pytest.mark.parametrize("text", SPECIAL_TEXTS)
def test_files_that_hold_markers_are_read_edited_and_written_byte_for_byte(tiny_runtime, root, text):
    before, after = f"first\n{text}\nlast\n", f"first\n{text} {text}\nlast\n"
    (root / "m.txt").write_bytes(before.encode())
    edit = patch_call(f"*** Update File: m.txt\n@@\n first\n-{text}\n+{text} {text}\n last\n")
    agent = ScriptedAgent(tiny_runtime, root, [call("read_file", path="m.txt"), edit, "ok"])
    # The script's own markers are tokens; those of the text must be spelled out, as the mask demands.
    agent.model._answers[1] = [
        *tiny_runtime.tokenizer.encode('<tool_call>\n{"name": "apply_patch"}\n'),
        *tiny_runtime.tokenizer.encode_plain(edit.split("\n", 2)[2].removesuffix("</tool_call>")),
        tiny_runtime.tokenizer.special("</tool_call>"),
    ]
    result = agent.run()
    assert result.failures == {}
    assert (root / "m.txt").read_bytes() == after.encode()
    specials = set(tiny_runtime.tokenizer.special_ids)
    shown = agent.model.prompts[1][len(agent.model.prompts[0]) :]
    ours = [
        "<|im_start|>",
        "<|im_end|>",
        "<tool_call>",
        "</tool_call>",
        "<tool_response>",
        "</tool_response>",
    ]
    ours += ["<think>", "</think>"]
    allowed = {tiny_runtime.tokenizer.special(name) for name in ours}
    assert {token for token in shown if token in specials} <= allowed
    im_end = tiny_runtime.tokenizer.special("<|im_end|>")
    assert shown.count(im_end) == 2  # the end of the call's message and of the result's


def test_turns_draw_differently(tiny_runtime, root):
    """Equal prompts need not give equal answers: the seed is shifted by the turn's number."""
    from constrained_agent.agent.turn import Decoding, take_turn
    from constrained_agent.decode.sampling import Sampling

    decoding = Decoding("grammar", Sampling(temperature=1.0, seed=3), 20)
    history = tiny_runtime.dialect.user("hi")
    reader = tiny_runtime.reader([])

    def tokens(number):
        return take_turn(tiny_runtime, history, [], "none", decoding, reader, number=number).generation.tokens

    assert tokens(1) == tokens(1) != tokens(2)


def test_thinking_is_read_apart_and_no_call_hides_in_it(tiny_runtime, root):
    quoted = call("exec_command", command="touch bad").replace("tool_call>", "tool-call>")
    thought = f"<think>\nI could call {quoted} but no.\n</think>\n\n"
    agent = ScriptedAgent(
        tiny_runtime, root, [thought + ONE_TO_TWO, "<think>\nDone.\n</think>\n\nok"], thinking=True
    )
    result = agent.run()
    assert (result.exit_reason, result.answer) == ("done", "ok")
    assert (root / "f.txt").read_text() == "two\n"
    assert "but no." in agent.events[1]["thinking"]
    assert not (root / "bad").exists()


def test_thinking_that_leaves_no_answer_ends_as_thinking_limit(tiny_runtime, root):
    thought = "<think>\n" + "".join(f"Step {i} leads on. " for i in range(300))
    agent = ScriptedAgent(tiny_runtime, root, [thought] * 3, thinking=True, max_tokens=60)
    result = agent.run()
    assert (result.exit_reason, result.failures) == ("thinking_limit", {"thinking_limit": 3, "cut": 3})


def test_a_patch_at_the_limit_of_added_lines_says_so(tiny_runtime, root):
    long = patch_call("*** Add File: n.txt\n" + "".join(f"+line {i}\n" for i in range(9)))
    agent = ScriptedAgent(tiny_runtime, root, [long, "ok"], max_added_lines=4)
    assert agent.run().exit_reason == "done"
    assert (root / "n.txt").read_text() == "line 0\nline 1\nline 2\nline 3\n"
    assert "limit of 4 added lines" in agent.prompt_text(1)


def test_a_conversation_that_outgrows_the_context_ends_with_its_result(tiny_runtime, root):
    agent = ScriptedAgent(tiny_runtime, root, [ONE_TO_TWO, "ok"])
    room = agent.model.room

    def smaller(n_prompt):
        from constrained_agent.errors import PromptTooLongError

        if agent.model.prompts:
            raise PromptTooLongError(n_prompt, 100, "the context of tiny")
        return room(n_prompt)

    agent.model.room = smaller
    result = agent.run()
    assert (result.exit_reason, result.changed_files) == ("token_budget", ("f.txt",))
    assert "context of tiny" in result.last_error
    assert agent.events[-1]["event"] == "end"


def test_a_first_prompt_that_is_too_long_is_the_callers_error(tiny_runtime, root):
    agent = ScriptedAgent(tiny_runtime, root, ["ok"])
    agent.model.context_limit = 50
    with pytest.raises(UserError, match="the prompt has"):
        agent.run()


def test_an_interrupt_after_a_tool_ran_keeps_its_result(tiny_runtime, root):
    agent = ScriptedAgent(tiny_runtime, root, [ONE_TO_TWO, "ok"], watcher=InterruptOn("call_ended"))
    result = agent.run()
    assert (result.exit_reason, result.changed_files) == ("interrupted", ("f.txt",))
    assert [event["event"] for event in agent.events] == ["start", "turn", "result", "end"]
    agent.agent._watcher = NoWatcher()
    agent.run("Go on.")
    assert "the patch is applied" in agent.prompt_text(1)


def test_an_interrupt_between_answer_and_call_leaves_no_call_open(tiny_runtime, root):
    agent = ScriptedAgent(tiny_runtime, root, [ONE_TO_TWO, "ok"], watcher=InterruptOn("turn_ended"))
    assert agent.run().exit_reason == "interrupted"
    assert (root / "f.txt").read_text() == "one\n"
    assert [event["event"] for event in agent.events] == ["start", "turn", "result", "end"]
    assert agent.events[2]["error_kind"] == "interrupted"
    agent.agent._watcher = NoWatcher()
    agent.run("Go on.")
    assert "interrupted by the person" in agent.prompt_text(1)


def test_results_come_in_the_order_of_the_calls(tiny_runtime, root):
    bad = '<tool_call>\n{"name": "list_dir", "arguments": {"path": "\\d"}}\n</tool_call>'
    both = f"{bad}\n{call('read_file', path='f.txt')}"
    agent = ScriptedAgent(tiny_runtime, root, [both, "ok"], level="off")
    agent.run()
    shown = agent.prompt_text(1)[len(agent.prompt_text(0)) :]
    assert shown.index("invalid escape") < shown.index("│one")
    results = [event for event in agent.events if event["event"] == "result"]
    assert [result["call_id"] for result in results] == ["call_1", "call_2"]


PRINTED = "*** Begin Patch\n*** Delete File: f.txt\n*** End Patch"
PRINTED_CALL = '{"name": "list_dir", "arguments": {"path": "."}}'


@pytest.mark.parametrize("printed", [PRINTED, PRINTED_CALL])
def test_a_printed_patch_or_call_gets_one_reminder_and_no_result(tiny_runtime, root, printed):
    """A second one used to be taken for an answer: the run was done, with nothing done."""
    agent = ScriptedAgent(tiny_runtime, root, [printed, printed], level="off")
    result = agent.run()
    assert (result.exit_reason, result.failures) == ("no_answer", {"no_wrapper": 2})
    assert result.answer == printed
    assert "<tool_response>" not in agent.prompt_text(1)
    assert (root / "f.txt").exists()


@pytest.mark.parametrize(
    ("test_command", "reason"), [("grep -q two f.txt", "done"), (None, "no_answer"), ("false", "no_answer")]
)
def test_one_that_is_printed_again_stands_where_tests_say_that_the_work_is_done(
    tiny_runtime, root, test_command, reason
):
    answers = [ONE_TO_TWO, f"One could go on:\n{PRINTED}", f"As I said:\n{PRINTED}"]
    result = ScriptedAgent(tiny_runtime, root, answers, test_command=test_command).run()
    assert (result.exit_reason, result.turns, result.failures["no_wrapper"]) == (
        reason,
        3,
        1 + (reason != "done"),
    )


def test_a_patch_that_was_applied_may_be_quoted(tiny_runtime, root):
    quoted = ONE_TO_TWO.split("\n", 2)[2].removesuffix("\n</tool_call>")
    agent = ScriptedAgent(tiny_runtime, root, [ONE_TO_TWO, f"This is it:\n```\n{quoted}\n```\nThat is all."])
    result = agent.run()
    assert (result.exit_reason, result.turns, result.failures) == ("done", 2, {})


def test_half_a_surrogate_pair_does_not_break_the_record(tiny_runtime, root):
    half = '<tool_call>\n{"name": "list_dir", "arguments": {"path": "\\ud800"}}\n</tool_call>'
    agent = ScriptedAgent(tiny_runtime, root, [half, "ok"], level="off")
    result = agent.run()
    assert result.exit_reason == "done"
    assert sum(result.failures.values()) == 1
    assert agent.events[1]["calls"][0]["arguments"] == {"path": "\ud800"}


def test_a_call_repeated_after_words_is_no_repeat(tiny_runtime, root):
    look = call("list_dir", path=".")
    agent = ScriptedAgent(tiny_runtime, root, [look, look, "", look, "ok"], level="off")
    assert agent.run().exit_reason == "done"


def test_the_time_limit_ends_commands_and_tests_too(tiny_runtime, root):
    agent = ScriptedAgent(
        tiny_runtime,
        root,
        [call("exec_command", command="sleep 1000")],
        time_limit_s=2,
        test_command="sleep 1000",
    )
    result = agent.run()
    assert (result.exit_reason, result.tests_passed) == ("time_limit", False)


def test_a_second_run_counts_anew(tiny_runtime, root):
    agent = ScriptedAgent(tiny_runtime, root, [ONE_TO_TWO, "Done.", "Nothing more."])
    first, second = agent.run(), agent.run("Anything else?")
    assert first.changed_files == ("f.txt",)
    assert (second.changed_files, second.diff, second.turns) == ((), "", 1)
    assert sum(second.prompt_parts.values()) == len(agent.model.prompts[2])


def test_the_system_message_is_run_once_for_all_runs(tiny_runtime, tiny_loaded, root, tmp_path, monkeypatch):
    """A conversation of the real tiny model takes it from the disk; that counts as reused."""
    from constrained_agent.model.session import Session

    monkeypatch.setenv("CONSTRAINED_AGENT_PREFIXES", str(tmp_path / "prefixes"))
    turns, parts = [], []
    for task in ("Do it.", "Do something else."):
        agent = ScriptedAgent(tiny_runtime, root, [], level="off", max_turns=1, max_tokens=4)
        agent.runtime.session = Session(tiny_loaded)
        result = agent.run(task)
        turns.append(next(event for event in reversed(agent.events) if event.get("number") == 1))
        parts.append(
            {name: n for name, n in result.prompt_parts.items() if name not in ("task", "answer_head")}
        )
    assert parts[0] == parts[1]
    assert [turn["reused_tokens"] for turn in turns] == [0, sum(parts[0].values())]
    assert turns[1]["reused_tokens"] < turns[1]["prompt_tokens"]


def test_a_patch_that_only_adds_lines_and_is_sent_again_does_not_double_them(tiny_runtime, root):
    add = patch_call("*** Update File: f.txt\n@@\n one\n+two\n")
    agent = ScriptedAgent(tiny_runtime, root, [add, add, "Done."])
    result = agent.run()
    assert (root / "f.txt").read_text() == "one\ntwo\n"
    assert (result.exit_reason, result.failures) == ("done", {"already_applied": 1})
    assert "this very patch was applied before" in agent.prompt_text(2)


def test_the_same_patch_may_be_sent_again_once_it_was_taken_back(tiny_runtime, root):
    add = patch_call("*** Update File: f.txt\n@@\n one\n+two\n")
    agent = ScriptedAgent(tiny_runtime, root, [add, "Done.", add, "Done."])
    agent.run()
    assert agent.tools.undo().ok
    assert (root / "f.txt").read_text() == "one\n"
    assert agent.run().exit_reason == "done"
    assert (root / "f.txt").read_text() == "one\ntwo\n"


@pytest.mark.parametrize(
    "wrong",
    [
        '<tool_call>\n{"name": "read_file", "arguments": {"path": "a\\d"}}\n</tool_call>',
        call("no_such_tool", x=1),
    ],
    ids=["json", "unknown tool"],
)
def test_the_same_unreadable_call_over_and_over_ends_the_run(tiny_runtime, root, wrong):
    agent = ScriptedAgent(tiny_runtime, root, [wrong] * 5, level="off", max_turns=0)
    result = agent.run()
    assert (result.exit_reason, result.turns) == ("repeated_calls", 3)


def test_thinking_without_an_end_is_told_once(tiny_runtime, root):
    endless = "<think>\nLet me see"
    agent = ScriptedAgent(tiny_runtime, root, [endless, "Nothing to do."], level="off")
    assert agent.run().exit_reason == "done"
    assert "Your thinking never ended" in agent.prompt_text(1)
    again = ScriptedAgent(tiny_runtime, root, [endless, endless], level="off").run()
    assert (again.exit_reason, again.turns) == ("thinking_unclosed", 2)
