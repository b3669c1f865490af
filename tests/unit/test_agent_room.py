"""What a model's context has room for: what commands print is cut where all of it is kept."""

import json

import pytest

from tests.agents import ScriptedAgent, call
from tests.fakes import ScriptedModel


@pytest.fixture(autouse=True)
def state(tmp_path, monkeypatch):
    monkeypatch.setenv("XDG_STATE_HOME", str(tmp_path / "state"))


@pytest.mark.parametrize(("context", "most"), [(4_096, 2_800), (8_192, 5_400)])
def test_a_long_output_is_cut_by_the_tool_that_keeps_it(tiny_runtime, root, context, most, monkeypatch):
    """Else the conversation would cut it once more, and nobody could see what was in between."""
    answers = [
        call("exec_command", command="for i in $(seq 1 3000); do echo this is line number $i; done"),
        call("read_file", path="output:1/stdout", offset=1500, limit=3),
        "Done.",
    ]
    monkeypatch.setattr(ScriptedModel, "context_limit", context)
    agent = ScriptedAgent(tiny_runtime, root, answers)
    agent.run()
    first, second = (event for event in agent.events if event["event"] == "result")
    assert first["data"]["stdout_whole"] == "output:1/stdout"
    assert len(first["text"]) < most
    assert json.dumps({"path": "output:1/stdout"})[:-1] in first["text"]
    assert "1500│this is line number 1500" in second["text"]


def test_the_tests_of_the_person_are_kept_too(tiny_runtime, root):
    agent = ScriptedAgent(
        tiny_runtime, root, ["Done.", "Done."], test_command="seq 100000; exit 1", max_turns=2
    )
    agent.run()
    assert "read_file shows all of it as output:1/stdout" in agent.prompt_text(1)
