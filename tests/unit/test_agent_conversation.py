"""A conversation that has to be made shorter: what goes first, what stays, and that the counts add up."""

import pytest

from constrained_agent.agent.conversation import KEPT_TURNS, Conversation
from constrained_agent.agent.prompt import Part
from tests.agents import ScriptedAgent, call

LONG = "\n".join(f"{n}: a line of a file that takes some room" for n in range(1, 60))


class Answered:
    """What a conversation takes of a turn."""

    def __init__(self, conversation, tokenizer, text):
        self.history = [*conversation.ids, *tokenizer.encode_plain(text)]
        self.answer = type("Answer", (), {"text": text})


def filled(runtime, n_turns, task="Mend the thing."):
    conversation = Conversation(runtime)
    conversation.begin([Part("instructions", "Be brief."), Part("tools", "read_file(path)", trusted=False)])
    conversation.say(task, "task")
    for n in range(n_turns):
        conversation.answered(Answered(conversation, runtime.tokenizer, f"Look at {n}."), 1)
        conversation.give(f"file {n}\n{LONG}", f"read_file(path='f{n}.txt')", f"f{n}.txt")
        conversation.settle("none")
    return conversation


def text(runtime, conversation):
    return runtime.tokenizer.decode(conversation.ids)


def test_tokens_by_message_sum_to_all(tiny_runtime):
    conversation = filled(tiny_runtime, 3)
    names, counts = zip(*conversation.tokens(), strict=True)
    assert names[:4] == ("instructions", "tools", "system_frame", "task")
    assert sum(counts) == len(conversation.ids)
    conversation.shrink(1)
    assert sum(count for _, count in conversation.tokens()) == len(conversation.ids)


def test_old_results_go_first_and_the_last_turns_stay(tiny_runtime):
    conversation = filled(tiny_runtime, 5)
    n_before = len(conversation.ids)
    assert conversation.shrink(n_before) == 0
    assert conversation.shrink(n_before - 1) == 1
    assert conversation.shown_files() == {f"f{n}.txt" for n in range(1, 5)}
    assert "file 0\n[2," in text(tiny_runtime, conversation)
    assert conversation.shrink(0) > 2
    seen = text(tiny_runtime, conversation)
    assert conversation.shown_files() == {"f3.txt", "f4.txt"}
    assert seen.count(LONG) == KEPT_TURNS
    assert "Mend the thing." in seen


def test_turns_become_one_summary(tiny_runtime):
    conversation = filled(tiny_runtime, 6)
    conversation.shrink(0)
    seen = text(tiny_runtime, conversation)
    assert seen.count("What was done before, in short:") == 1
    for n in range(4):
        assert f"- read_file(path='f{n}.txt'): file {n}" in seen
    assert [message.kind for message in conversation.messages] == [
        *("system", "task", "summary"),
        *("answer", "results") * KEPT_TURNS,
    ]
    assert conversation.shrink(0) == 0, "there is nothing left to shorten"


def test_the_last_task_stays_and_those_before_it_are_told_in_short(tiny_runtime):
    conversation = filled(tiny_runtime, 2)
    for task in range(8):
        conversation.say(f"{LONG}\nAnd now thing {task}.", "task")
        for n in range(3):
            conversation.answered(Answered(conversation, tiny_runtime.tokenizer, f"Words {n}."), 0)
    conversation.shrink(0)
    seen = text(tiny_runtime, conversation)
    for before, after in [
        ("asked: Mend the thing.", "- read_file"),
        ("asked: And now thing 6.", "And now thing 7."),
    ]:
        assert seen.index(before) < seen.index(after)
    assert seen.count(LONG) == 1
    assert len(conversation.ids) < 1_700


def test_where_even_the_last_turns_are_too_long_their_results_give_way(tiny_runtime):
    conversation = filled(tiny_runtime, 2)
    n_before = len(conversation.ids)
    assert conversation.shrink(0, n_before) == 0
    assert conversation.shrink(0, n_before - 1) == 1
    assert conversation.shown_files() == {"f1.txt"}


@pytest.mark.parametrize("level", ["grammar", "located"])
def test_a_run_in_a_small_context_goes_on(tiny_runtime, tmp_path, level):
    """Reading more than the context holds; what is no longer shown has to be read again before it is edited."""
    root = tmp_path / "repo"
    root.mkdir()
    answers = []
    for n in range(8):
        (root / f"f{n}.txt").write_text(LONG.replace("file", f"file {n}") + "\n")
        answers.append(call("read_file", path=f"f{n}.txt"))
    agent = ScriptedAgent(tiny_runtime, root, [*answers, "The end."], level=level, max_turns=20)
    agent.model.context_limit = 6_000
    result = agent.run("Look at everything, please.")
    assert (result.exit_reason, result.turns) == ("done", 9)
    assert [event for event in agent.events if event["event"] == "shrink"]
    assert all(len(prompt) < 6_000 for prompt in agent.model.prompts)
    assert "Look at everything, please." in agent.prompt_text(8)
    read = {reading.path for reading in agent.tools.readings()}
    assert "f7.txt" in read
    assert "f0.txt" not in read


def test_results_that_nobody_has_seen_are_cut_to_what_fits(tiny_runtime):
    """Else a model would ask for them again and again, and be stopped for it."""
    conversation = filled(tiny_runtime, 1)
    conversation.answered(Answered(conversation, tiny_runtime.tokenizer, "Look at all."), 4)
    for n in range(4):
        conversation.give(f"new {n}\n{LONG}", f"read_file(path='n{n}.txt')", f"n{n}.txt")
    conversation.settle("none")
    n_before, limit = conversation.n_tokens, 2_000
    assert n_before > limit
    conversation.shrink(limit // 2, limit)
    seen = text(tiny_runtime, conversation)
    assert conversation.n_tokens <= limit
    assert seen.count("[... cut: ") == 4
    assert all(f"new {n}\n1: a line" in seen for n in range(4)), "of each the head is there"
    assert seen.count("59: a line") == 4, "and the tail"
    assert sum(count for _, count in conversation.tokens()) == conversation.n_tokens


def test_a_summary_takes_a_share_of_a_small_context(tiny_runtime):
    conversation = filled(tiny_runtime, 40)
    limit = 1_600
    conversation.shrink(limit // 2, limit)
    [summary] = [message for message in conversation.messages if message.kind == "summary"]
    assert len(summary.ids) <= limit // 4 + 30
    assert "f37.txt" in summary.words, "the newest stays"
    assert conversation.n_tokens <= limit
