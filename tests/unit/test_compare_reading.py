"""A comparison reads the cases of raw model text as they say it is to be read, and names what is wrong in them."""

import json
from pathlib import Path

import pytest

from constrained_agent.errors import UserError
from constrained_agent.evals.calls.items import CallItem, ExpectedCall
from constrained_agent.evals.compare import arms, judging, reading
from constrained_agent.evals.compare.records import Written
from constrained_agent.grammar.spans import as_pieces
from constrained_agent.grammar.toolcalls import Markers
from constrained_agent.messages import ToolSpec
from constrained_agent.tools.registry import APPLY_PATCH

CASES = json.loads(
    (Path(__file__).parent.parent / "conformance/cases/tool_call_text.json").read_text(encoding="utf-8")
)
TEXT = Markers(are_tokens=False, thinks=True)
TOKENS = Markers(are_tokens=True, thinks=True)
[OFF] = arms.parse(["off"])

OUTCOME = {
    "T02-invalid-backslash": "json_invalid",
    "T03-raw-newline": "json_invalid",
    "T04-windows-path": "json_invalid",
    "T05-in-think": "no_call",
    "T14-unknown-tool": "unknown_tool",
    "T18-unclosed": "cut",
    "T19-unclosed-bash": "cut",
    "T08-says-it-did": "no_call",
    "T25-args-null": "wrong_shape",
}
"""Of the cases that say what is wrong in words alone."""


def written(pieces, *, whole=True, stop_reason="end_token"):
    return Written(tuple(pieces), stop_reason, whole, (), 1, 1, 0, 1, 0.0, 0.0, {})


def spec(signature):
    name, argument = signature.rstrip(")").split("(")
    if name == "apply_patch":
        return APPLY_PATCH
    schema = {
        "type": "object",
        "properties": {argument: {"type": "string"}},
        "required": [argument],
        "additionalProperties": False,
    }
    return ToolSpec(name, "", schema, "read")


def of_case(case, markers):
    """The case's tools, and its text as a model with such markers writes it."""
    raw, tools = case["input"]["raw"], [spec(tool) for tool in case["input"]["tools"]]
    cut = case["input"].get("finish_reason") == "length"
    pieces = as_pieces(raw, TEXT) if markers.are_tokens else [raw]
    return tools, written(pieces, whole=not cut, stop_reason="length" if cut else "end_token")


def right_calls(case):
    if "policy" in case["right"]:  # an object in quotes is taken as the object
        return [{"name": "read_file", "arguments": {"path": "a"}}]
    return case["right"]["calls"]


def right_outcome(case):
    """The class that the case names; "passed" where its calls are all there is."""
    if right_calls(case):
        return "passed"
    if (stop := case["right"].get("stop")) in ("thinking_unclosed", "no_answer"):
        return stop
    return case["right"].get("class") or OUTCOME[case["id"]]


@pytest.mark.parametrize("markers", [TEXT, TOKENS], ids=["text", "tokens"])
@pytest.mark.parametrize("case", CASES, ids=lambda case: case["id"])
def test_is_judged_as_the_case_says(case, markers):
    tools, answer = of_case(case, markers)
    expected = tuple(
        ExpectedCall(call["name"], {name: [value] for name, value in call["arguments"].items()})
        for call in right_calls(case)
    )
    item = CallItem(case["id"], "cases", "", tuple(tools), expected, len(expected) > 1, exact=True)
    judgement, _ = judging.judge(item, OFF, markers, answer)
    assert judgement.outcome == right_outcome(case), judgement.message
    assert judgement.parses == (judgement.outcome == "passed")


@pytest.mark.parametrize("markers", [TEXT, TOKENS], ids=["text", "tokens"])
@pytest.mark.parametrize("case", CASES, ids=lambda case: case["id"])
def test_what_is_sent_is_what_the_case_says(case, markers):
    tools, answer = of_case(case, markers)
    read = reading.sent(OFF, tools, markers, answer)
    calls = [{"name": call.name, "arguments": dict(call.arguments)} for call in read.calls]
    assert calls == right_calls(case)
    if calls:
        assert read.failure is None
        assert read.parses
    else:
        assert read.failure is not None, "never dropped in silence"
        assert not read.parses


PATCH = """\
*** Begin Patch
*** Update File: a
@@ x
@@ y
-1
+2
@@
 3
+@@
*** Nothing
*** Update File: b
-1
+2
@@
-3
"""


@pytest.mark.parametrize(
    ("path", "hunk", "line"),
    [
        ("a", 1, 3),
        ("a", 2, 7),
        ("a", 3, None),
        ("a", None, 2),
        ("b", 1, 12),
        ("b", 2, 14),
        ("b", None, 11),
        ("c", None, None),
        ("c", 1, None),
        (None, None, None),
        (None, 1, None),
    ],
)
def test_lines_of_hunks(path, hunk, line):
    assert reading.line_of_hunk(PATCH, path, hunk) == line


@pytest.mark.parametrize(
    ("text", "patch", "line", "at"),
    [
        ("see a\nb\nc", "a\nb\nc", 1, 4),
        ("see a\nb\nc", "a\nb\nc", 3, 8),
        ("see a\nb\nc", "a\nb\nc", None, 4),
        ("see a\nb\nc", "a\nB\nc", 2, None),
        (r'"a\n\"b\"\nc"', 'a\n"b"\nc', 2, 4),
        (r'"a\n\"b\"\nc"', 'a\n"b"\nc', 3, 11),
        ("abc", "", 1, None),
    ],
)
def test_places_of_lines(text, patch, line, at):
    assert reading.place_of_line(text, patch, line) == at


def test_arms_by_name():
    assert arms.parse(["all"]) == arms.ARMS
    assert [arm.name for arm in arms.parse(["regex", "off"])] == ["off", "regex"]
    for names in (["odd"], [], ["all", "off"]):
        with pytest.raises(UserError, match="the arms are: off, grammar, located"):
            arms.parse(names)
