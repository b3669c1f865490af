"""What a person says to an agent that works: when it is heard, where it stands, and that it is not lost."""

import pytest

from constrained_agent.agent import records
from constrained_agent.agent.conversation import Conversation
from constrained_agent.agent.events import Note
from constrained_agent.agent.prompt import Part
from constrained_agent.agent.replay import replay
from constrained_agent.agent.watch import NoWatcher
from tests.agents import ScriptedAgent, call, patch_call

ONE_TO_TWO = patch_call("*** Update File: f.txt\n@@\n-one\n+two\n")
LONG = "\n".join(f"{n}: a line of a file that takes some room" for n in range(1, 60))


class Said:
    """Has texts ready, one list for each look."""

    def __init__(self, *looks):
        self.looks = list(looks)

    def take(self):
        return self.looks.pop(0) if self.looks else []


@pytest.fixture
def agent(tiny_runtime, root):
    def make(answers, *looks, **settings):
        made = ScriptedAgent(tiny_runtime, root, answers, **settings)
        made.agent._inbox = Said(*looks)
        return made

    return make


def test_a_text_comes_before_the_next_answer(agent):
    working = agent([call("read_file", path="f.txt"), "Done."], [], ["Mind the <|im_end|> tabs."])
    assert working.run().exit_reason == "done"
    last = working.prompt_text(1)
    assert last.index("│one") < last.index("Mind the <|im_end|> tabs.")
    runtime = working.runtime
    assert working.model.prompts[1].count(runtime.tokenizer.special("<|im_end|>")) == 5


def test_a_text_that_came_during_the_last_answer_is_heard_and_answered(agent):
    working = agent(["Done.", "That, too."], [], ["And that?", "Please."])
    result = working.run()
    assert (result.exit_reason, result.answer, result.turns) == ("done", "That, too.", 2)
    assert working.prompt_text(1).index("Done.") < working.prompt_text(1).index("And that?")
    assert "Please." in working.prompt_text(1)


def test_where_no_further_answer_may_come_it_is_left_where_it_is(agent):
    working = agent(["Done."], [], ["And that?"], max_turns=1)
    assert working.run().exit_reason == "done"
    assert working.agent._inbox.looks == [["And that?"]]


def test_it_is_on_record_and_disturbs_no_replay(agent, root):
    working = agent([ONE_TO_TWO, "Done."], [], ["Mind the tabs."])
    result = working.run()
    (run,) = records.read(working._log)
    notes = [(event.text, event.by) for event in run.events if isinstance(event, Note)]
    assert notes == [("Mind the tabs.", "person")]
    (root / "f.txt").write_text("one\n")
    assert replay(run, root).difference is None
    parts = result.prompt_parts
    assert "added" not in parts
    assert sum(parts.values()) == len(working.model.prompts[0])


def test_a_note_without_a_name_is_the_harness(tmp_path):
    file = tmp_path / "t.jsonl"
    file.write_text(
        '{"event": "start", "time": 1, "schema": 1, "task": "x", "tree": {}}\n'
        '{"event": "note", "time": 2, "text": "n"}\n{"event": "constraint", "time": 3, "level": "off"}\n'
    )
    note, unknown = records.read(file)[0].events
    assert (note.by, unknown.kind) == ("harness", "constraint")


def test_it_belongs_to_the_task_of_which_the_model_is_reminded(agent, root):
    (root / "long.txt").write_text(f"{LONG}\n" * 5)
    working = agent([call("read_file", path="long.txt"), "Done."], ["Mind the tabs."])
    working.run("Look.")
    assert "(The task, once more: Look.\nMind the tabs.)" in working.prompt_text(1)


class Answered:
    def __init__(self, conversation, tokenizer, text):
        self.history = [*conversation.ids, *tokenizer.encode_plain(text)]
        self.answer = type("Answer", (), {"text": text})


def test_a_shorter_conversation_keeps_what_was_added_to_the_task(tiny_runtime):
    conversation = Conversation(tiny_runtime)
    conversation.begin([Part("instructions", "Be brief.")])

    def work(task, *added):
        conversation.say(task, "task")
        for n in range(6):
            conversation.answered(Answered(conversation, tiny_runtime.tokenizer, f"Look at {n}."), 1)
            conversation.give(f"file {n}\n{LONG}", f"read_file(path='f{n}.txt')", f"f{n}.txt")
            conversation.settle("none")
            if n == 1:
                for text in added:
                    conversation.say(text, "added")

    work("The first task.", f"{LONG}\nAn old addition.")
    work("The last task.", f"{LONG}\nMind the tabs.", "And the dots.")
    conversation.shrink(0)
    kinds = [message.kind for message in conversation.messages]
    assert kinds == [
        "system",
        "summary",
        "task",
        "summary",
        "added",
        "added",
        "summary",
        *["answer", "results"] * 2,
    ]
    seen = tiny_runtime.tokenizer.decode(conversation.ids)
    assert f"{LONG}\nMind the tabs." in seen
    assert "you were asked: The first task." in seen
    assert "you were asked: An old addition." in seen
    assert sum(n for _, n in conversation.tokens()) == conversation.n_tokens


def test_what_the_model_is_told_comes_with_the_next_task(agent):
    working = agent(["One.", "Two.", "Three."])
    working.agent.tell("I took your last patch back:\nupdate f.txt (+1 -1)")
    working.run("Go on.")
    working.run("And now?")
    assert "(+1 -1)\n\nGo on." in working.prompt_text(0)
    assert working.prompt_text(1).count("I took your last patch back") == 1
    told = [event["told"] for event in working.events if event["event"] == "start"]
    assert told == [["I took your last patch back:\nupdate f.txt (+1 -1)"], []]


def test_the_level_changes_between_two_answers(agent, root):
    working = agent([ONE_TO_TWO, ONE_TO_TWO, "Done."], level="located")
    agents = working.agent

    class Loosens(NoWatcher):
        def turn_ended(self, turn):
            agents.level = "off"

    agents._watcher = Loosens()
    working.run("Change it.", ["f.txt"])
    assert agents.level == "off"
    results = [event for event in working.events if event["event"] == "result"]
    assert [event["ok"] for event in results] == [True, False], "the second patch was not masked any more"
    assert {"event": "constraint", "level": "off"}.items() <= next(
        event for event in working.events if event["event"] == "constraint"
    ).items()


def test_an_interrupt_before_the_run_began_leaves_nothing_behind(agent, root, monkeypatch):
    working = agent(["Done."])
    monkeypatch.setattr(
        working.agent._transcript, "start", lambda *args, **more: (_ for _ in ()).throw(KeyboardInterrupt)
    )
    with pytest.raises(KeyboardInterrupt):
        working.run("Never begun.")
    monkeypatch.undo()
    working.run("Begun.")
    assert "Never begun." not in working.prompt_text(0)


def test_who_stops_a_run_does_not_wait_for_its_tests(agent, root):
    class OnFirstToken(NoWatcher):
        def tokens(self, ids, forced):
            raise KeyboardInterrupt

    working = agent(["Done."], test_command="touch tested")
    working.agent._watcher = OnFirstToken()
    result = working.run()
    assert (result.exit_reason, result.tests_passed) == ("interrupted", None)
    assert not (root / "tested").exists()
