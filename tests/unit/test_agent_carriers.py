"""One answer whose patch travels as JSON, and one of several calls: from the mask to what is read."""

import copy
import json

import pytest

from constrained_agent.agent.prompt import call_form, system_parts
from constrained_agent.agent.turn import Decoding, take_turn
from constrained_agent.decode.sampling import Sampling
from constrained_agent.grammar.carriers import FREEFORM, JSON
from constrained_agent.grammar.located.newpaths import NewPaths
from constrained_agent.grammar.located.offer import Editable, OfferedFile
from constrained_agent.messages import ToolSpec
from tests.agents import call
from tests.fakes import ScriptedModel

ONE_STRING = {"properties": {"patch": {"type": "string"}}, "required": ["patch"]}
PATCH = ToolSpec("apply_patch", "Changes files.", {"type": "object", **ONE_STRING}, "write", freeform=True)
READ = ToolSpec("read_file", "Reads.", {"type": "object", "properties": {"path": {"type": "string"}}}, "read")
TOOLS = (READ, PATCH)
LINES = ('print("a\\tb")', "\tx = '\\\\'", "größe = 1\x0c\u2028", "same", "same")
EDITABLE = Editable((OfferedFile("m.py", LINES),), NewPaths(frozenset(["m.py"])))
TEXT = "\n".join(
    [
        "*** Begin Patch",
        "*** Update File: m.py",
        "@@",
        f"-{LINES[0]}",
        f" {LINES[1]}",
        f"+{LINES[0]}\\",
        "*** End Patch",
    ]
)
READ_CALL, JSON_CALL = call("read_file", path="m.py"), call("apply_patch", patch=TEXT)


def turn(tiny_runtime, answer, level="located", choice="auto", max_tokens=400, **decoding):
    runtime = copy.copy(tiny_runtime)
    runtime.session = ScriptedModel(runtime.tokenizer, tiny_runtime.session.logit_width, [answer])
    return take_turn(
        runtime,
        runtime.dialect.user("Do it."),
        TOOLS,
        choice,
        Decoding(level, Sampling(temperature=0.0), max_tokens, **decoding),
        runtime.reader(TOOLS),
        editable=EDITABLE,
    )


@pytest.mark.parametrize("level", ["off", "grammar", "located"])
@pytest.mark.parametrize("drafts", [True, False], ids=["drafts", "no drafts"])
def test_a_patch_in_json_comes_out_as_it_went_in(tiny_runtime, level, drafts):
    done = turn(tiny_runtime, JSON_CALL, level, carrier="json", drafts=drafts)
    assert done.whole
    assert not done.answer.faults
    assert [(one.name, one.arguments) for one in done.answer.calls] == [("apply_patch", {"patch": TEXT})]


def test_lines_of_the_file_are_forced_in_json_too(tiny_runtime):
    forced = {
        level: turn(tiny_runtime, JSON_CALL, level, carrier="json").usage.forced_tokens
        for level in ("grammar", "located")
    }
    assert forced["located"] > forced["grammar"] + 10


@pytest.mark.parametrize("limit", [60, 75, 90])
def test_a_limit_cuts_no_patch_in_json(tiny_runtime, limit):
    long = JSON_CALL.replace(r"\n*** End", r"\n+ more \"text\" \\ here" * 30 + r"\n*** End")
    done = turn(tiny_runtime, long, carrier="json", max_tokens=limit)
    assert done.generation.stop_reason == "closed_by_budget"
    assert len(done.generation.tokens) <= limit
    (one,) = done.answer.calls
    assert one.arguments["patch"].startswith(TEXT.removesuffix("*** End Patch"))
    assert one.arguments["patch"].endswith("\n*** End Patch")


def test_several_calls_in_one_answer(tiny_runtime):
    answer = f"Look:\n{READ_CALL}\n{JSON_CALL}\n{READ_CALL}"
    done = turn(tiny_runtime, answer, carrier="json", parallel=True)
    assert [one.name for one in done.answer.calls] == ["read_file", "apply_patch", "read_file"]
    assert len({one.id for one in done.answer.calls}) == 3
    assert done.answer.text == "Look:"
    assert [one.name for one in turn(tiny_runtime, answer, carrier="json").answer.calls] == ["read_file"]


def parts(size, **options):
    def block(tools):
        return "\n".join(tool.name for tool in tools if not tool.freeform)

    return {part.name: part.text for part in system_parts(TOOLS, size, block, headers=False, **options)}


@pytest.mark.parametrize("size", ["full", "compact"])
def test_the_prompt_shows_the_carrier_that_is_used(size):
    raw, in_json = parts(size), parts(size, carrier=JSON)
    assert raw == parts(size, carrier=FREEFORM)
    example = in_json["patch"].split("<tool_call>\n")[1].removesuffix("\n</tool_call>")
    assert "\n" not in example
    shown = json.loads(example)
    assert shown["name"] == "apply_patch"
    assert f'{{"name": "apply_patch"}}\n{shown["arguments"]["patch"]}' in raw["patch"]
    assert "apply_patch" in in_json["tools"]
    assert "apply_patch" not in raw["tools"]
    assert ("raw text" in raw["patch"]) == (size == "full")
    assert "raw text" not in in_json["patch"]


def test_the_prompt_allows_several_calls_where_they_are():
    assert "alone at the end" in parts("full")["call_form"] == call_form().text
    assert "one another" in parts("full", parallel=True)["call_form"] == call_form(parallel=True).text
    assert "one tool call" in parts("compact")["instructions"]
    assert "one tool call" not in parts("compact", parallel=True)["instructions"]
