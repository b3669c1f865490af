"""Raw model text read back by the reader of unconstrained output, against cases with right answers.

Each is read twice: with markers that are text, and with markers that are tokens, as Qwen3's tokenizer makes them.
What a case says of the time after the reading is tried in the real loop.
"""

import json
from pathlib import Path

import pytest

from constrained_agent.errors import PatchError
from constrained_agent.grammar.answers import AnswerReader
from constrained_agent.grammar.toolcalls import Markers
from constrained_agent.messages import ToolSpec
from constrained_agent.patch import parse
from tests.agents import ScriptedAgent

CASES = json.loads((Path(__file__).parent / "cases" / "tool_call_text.json").read_text())
BY_ID = {case["id"]: case for case in CASES}
KEYWORDS = {  # where a case gives the message in other words than ours
    "T02-invalid-backslash": ["invalid escape at position", "resend"],
    "T03-raw-newline": ["control character"],
    "T18-unclosed": ["cut off by the token limit", "smaller pieces"],
}
CHECKED_HERE = {"calls", "content", "error_to_model", "dropped_silently", "executed", "class", "policy"}
CHECKED_BELOW = {"stop", "next", "claim_check", "then"}


def spec(signature):
    name, argument = signature.rstrip(")").split("(")
    schema = {
        "type": "object",
        "properties": {argument: {"type": "string"}},
        "required": [argument],
        "additionalProperties": False,
    }
    return ToolSpec(name, "", schema, "read", freeform=name == "apply_patch")


def read(case, markers, tiny_runtime):
    reader = AnswerReader(
        [spec(tool) for tool in case["input"]["tools"]], Markers(markers == "tokens", thinks=True)
    )
    raw, cut = case["input"]["raw"], case["input"].get("finish_reason") == "length"
    if markers == "text":
        return reader.read_text(raw, cut=cut)
    tokenizer = tiny_runtime.tokenizer
    return reader.read_ids(tokenizer.encode(raw), tokenizer.decode, tokenizer.special, cut=cut)


def test_every_field_is_checked():
    assert {field for case in CASES for field in case["right"]} <= CHECKED_HERE | CHECKED_BELOW
    later = {case["id"] for case in CASES if CHECKED_BELOW & set(case["right"])}
    assert later == {
        "T06-think-unclosed-then-call",
        "T07-only-think",
        "T08-says-it-did",
        "T22-literal-backslash-n",
    }


@pytest.mark.parametrize("markers", ["text", "tokens"])
@pytest.mark.parametrize("case", CASES, ids=lambda case: case["id"])
def test_reads_as_the_case_says(case, markers, tiny_runtime):
    right = case["right"]
    answer = read(case, markers, tiny_runtime)
    calls = [{"name": call.name, "arguments": dict(call.arguments)} for call in answer.calls]
    if "policy" in right:  # an object in quotes is taken as the object
        assert "accept as the object" in right["policy"]
        assert calls == [{"name": "read_file", "arguments": {"path": "a"}}]
        return
    assert calls == right["calls"]
    if calls:
        assert answer.faults == ()
    if "content" in right:
        assert answer.text == right["content"]
    if "class" in right:
        assert [fault.kind for fault in answer.faults] == [right["class"]]
    if "error_to_model" in right or right.get("dropped_silently") is False:
        assert len(answer.faults) == 1, "never dropped in silence"
    if "error_to_model" in right:
        said, wanted = answer.faults[0].message.lower(), right["error_to_model"].lower()
        assert all(word in said for word in KEYWORDS.get(case["id"], [wanted])), said
    if right.get("executed") is False:
        assert [fault.kind for fault in answer.faults] == ["cut"]
    assert answer.thinking_closed == (right.get("stop") != "thinking_unclosed")


def play(tiny_runtime, root, name, *after):
    """The case's text as the first answers of a run, as often as it takes, or what follows it."""
    raw = BY_ID[name]["input"]["raw"]
    agent = ScriptedAgent(tiny_runtime, root, [raw, *(after or [raw] * 3)], level="off", thinking=True)
    return agent, agent.run()


def test_thinking_alone_is_nudged_once_and_then_ends_with_its_status(tiny_runtime, root):
    right = BY_ID["T07-only-think"]["right"]
    assert right["next"] == "nudge once, then stop with a clear status"
    agent, result = play(tiny_runtime, root, "T07-only-think")
    assert (result.exit_reason, result.turns) == (right["stop"], 2)
    assert "Your answer was empty" in agent.prompt_text(1)
    assert play(tiny_runtime, root, "T07-only-think", "Nothing to do.")[1].exit_reason == "done"


def test_thinking_that_never_ended_runs_nothing(tiny_runtime, root):
    agent, result = play(tiny_runtime, root, "T06-think-unclosed-then-call")
    right = BY_ID["T06-think-unclosed-then-call"]["right"]
    assert right["next"] == "re-ask once with a note"
    assert (result.exit_reason, result.turns) == (right["stop"], 2)
    assert "Your thinking never ended" in agent.prompt_text(1)
    assert [event for event in agent.events if event["event"] == "result"] == []


def test_who_says_that_something_was_changed_is_told_that_nothing_was(tiny_runtime, root):
    assert "nothing was changed" in BY_ID["T08-says-it-did"]["right"]["claim_check"]
    agent, result = play(tiny_runtime, root, "T08-says-it-did")
    assert (result.exit_reason, result.turns, result.changed_files) == ("no_answer", 2, ())
    assert "every file is as it was" in agent.prompt_text(1)


def test_literal_backslashes_are_named_and_nothing_is_written(tiny_runtime, root):
    case = BY_ID["T22-literal-backslash-n"]
    assert case["right"]["then"] == "patch parse error that names literal backslash-n"
    with pytest.raises(PatchError, match="literal backslash-n"):
        parse(case["right"]["calls"][0]["arguments"]["patch"])
    (root / "a").write_text("kept\n")
    agent, result = play(tiny_runtime, root, "T22-literal-backslash-n", "The end.")
    assert result.failures == {"bad_envelope": 1}
    assert "literal backslash-n" in agent.prompt_text(1)
    assert (root / "a").read_text() == "kept\n"
