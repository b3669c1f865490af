"""Scripted model turns through the real loop, against cases with right answers."""

import json
from pathlib import Path

import pytest

from tests.agents import ScriptedAgent, call, patch_call

CASES = {
    case["id"]: case for case in json.loads((Path(__file__).parent / "cases" / "agent_loop.json").read_text())
}
ANSWERS = {
    "CALL list_dir {path:.}": call("list_dir", path="."),
    "CALL apply_patch (adds f.txt)": patch_call("*** Add File: f.txt\n+x\n"),
    "CALL apply_patch (same)": patch_call("*** Add File: f.txt\n+x\n"),
    "(cut at the token limit inside a patch)": patch_call(
        "*** Add File: n.txt\n" + "".join(f"+line {i}\n" for i in range(300))
    ),
    "CALL apply_patch one->1": patch_call("*** Update File: f.txt\n@@\n-one\n+1\n"),
    "CALL apply_patch one->1 (same)": patch_call("*** Update File: f.txt\n@@\n-one\n+1\n"),
    "CALL read_file f.txt": call("read_file", path="f.txt"),
    "CALL apply_patch based on the old text": patch_call("*** Update File: f.txt\n@@\n-one\n+1\n"),
}
REWRITE = "(another program rewrites f.txt)"


@pytest.fixture(params=["off", "grammar"])
def level(request):
    """All of the cases are of calls that parse, so both levels must do the same."""
    return request.param


def play(tiny_runtime, tmp_path, case, level):
    """Run a case's turns; returns the agent and its result."""
    root = tmp_path / "repo"
    root.mkdir()
    for name, text in case["input"]["files"].items():
        (root / name).write_text(text)
    turns = case["input"]["model_turns"]
    answers = [ANSWERS.get(turn, turn) for turn in turns if turn != REWRITE]
    agent = ScriptedAgent(
        tiny_runtime, root, [*answers, "The end."], max_turns=20, max_tokens=200, level=level
    )
    if REWRITE in turns:
        before = turns.index(REWRITE)
        prefill = agent.model.prefill

        def rewritten(ids, on_progress=None, deadline=None):
            if len(agent.model.prompts) == before:
                (root / "f.txt").write_text("one\nand more\n")
            return prefill(ids, on_progress)

        agent.model.prefill = rewritten
    return agent, agent.run()


def results(agent):
    return [event for event in agent.events if event["event"] == "result"]


CHECKED = {
    "stops_after_at_most",
    "status",
    "tells_model_before_stop",
    "executed",
    "second_prompt_says",
    "second",
    "ends",
    "result",
    "reason",
    "message_should_name",
}


def test_every_case_is_played_and_every_field_checked():
    assert set(CASES) == {
        "L01-same-call-forever",
        "L02-same-ok-write",
        "L10-length-then-same",
        "L03-replay-applied-patch",
        "L12-final-text",
        "L09-stale-file",
    }
    assert {field for case in CASES.values() for field in case["right"]} <= CHECKED


@pytest.mark.parametrize("name", ["L01-same-call-forever", "L02-same-ok-write"])
def test_identical_calls_are_warned_about_and_stopped(tiny_runtime, tmp_path, level, name):
    agent, result = play(tiny_runtime, tmp_path, CASES[name], level)
    right = CASES[name]["right"]
    assert result.turns <= right["stops_after_at_most"]
    assert result.exit_reason == right.get("status", "repeated_calls")
    assert "do something else" in agent.prompt_text(-1), "told before the stop"


def test_cut_answers(tiny_runtime, tmp_path, level):
    case = CASES["L10-length-then-same"]
    agent, result = play(tiny_runtime, tmp_path, case, level)
    assert result.turns <= case["right"]["stops_after_at_most"]
    assert result.exit_reason == "truncated"
    assert {result["error_kind"] for result in results(agent)} == {"not_run"}, "nothing of it is executed"
    assert list((tmp_path / "repo").iterdir()) == []
    assert case["right"]["second_prompt_says"] in agent.prompt_text(1)


def test_a_patch_that_is_there_already(tiny_runtime, tmp_path, level):
    case = CASES["L03-replay-applied-patch"]
    agent, _ = play(tiny_runtime, tmp_path, case, level)
    first, second = results(agent)
    assert first["ok"]
    assert not second["ok"]
    assert second["error_kind"] == case["right"]["second"]["reason"]
    assert all(word in second["text"] for word in case["right"]["second"]["message_should_name"])


def test_a_plain_answer_ends_the_run(tiny_runtime, tmp_path, level):
    _, result = play(tiny_runtime, tmp_path, CASES["L12-final-text"], level)
    assert (result.exit_reason, result.turns) == ("done", 1)
    assert result.answer == "All done: 2 files changed."


def test_a_file_that_changed_since_it_was_read(tiny_runtime, tmp_path, level):
    case = CASES["L09-stale-file"]
    agent, _ = play(tiny_runtime, tmp_path, case, level)
    result = results(agent)[1]
    assert not result["ok"]
    assert result["error_kind"] == case["right"]["reason"]
    assert all(word in result["text"] for word in case["right"]["message_should_name"])
    assert (tmp_path / "repo" / "f.txt").read_text() == "one\nand more\n"
