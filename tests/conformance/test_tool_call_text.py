"""Raw model text read back by the reader of unconstrained output, against cases with right answers."""

import json
from pathlib import Path

import pytest

from constrained_agent.grammar.answers import AnswerReader
from constrained_agent.grammar.toolcalls import Markers
from constrained_agent.messages import ToolSpec

CASES = json.loads((Path(__file__).parent / "cases" / "tool_call_text.json").read_text())


def spec(signature):
    name, argument = signature.rstrip(")").split("(")
    schema = {
        "type": "object",
        "properties": {argument: {"type": "string"}},
        "required": [argument],
        "additionalProperties": False,
    }
    return ToolSpec(name, "", schema, "read", freeform=name == "apply_patch")


@pytest.mark.parametrize("case", CASES, ids=lambda case: case["id"])
def test_reads_as_the_case_says(case):
    right = case["right"]
    reader = AnswerReader(
        [spec(tool) for tool in case["input"]["tools"]], Markers(are_tokens=False, thinks=True)
    )
    answer = reader.read_text(case["input"]["raw"], cut=case["input"].get("finish_reason") == "length")
    calls = [{"name": call.name, "arguments": dict(call.arguments)} for call in answer.calls]
    if "policy" in right:  # an object in quotes is taken as the object
        assert calls == [{"name": "read_file", "arguments": {"path": "a"}}]
        return
    assert calls == right["calls"]
    if "content" in right:
        assert answer.text == right["content"]
    if "class" in right:
        assert [fault.kind for fault in answer.faults] == [right["class"]]
    if right.get("stop") == "thinking_unclosed":
        assert not answer.thinking_closed
    if "error_to_model" in right:
        assert len(answer.faults) == 1, "never dropped in silence"
        said, wanted = answer.faults[0].message.lower(), right["error_to_model"].lower()
        keywords = {
            "T02-invalid-backslash": ["invalid escape at position", "resend"],
            "T03-raw-newline": ["control character"],
            "T18-unclosed": ["cut off by the token limit", "smaller pieces"],
        }.get(case["id"], [wanted])
        assert all(word in said for word in keywords), said
    if right.get("executed") is False:
        assert [fault.kind for fault in answer.faults] == ["cut"]
