"""Each class of outcome, brought about on purpose: a scripted model, the real grammar, decode loop, tools and tests."""

import errno
import json
import os
import re
import resource
import tempfile
from contextlib import contextmanager
from dataclasses import dataclass

import pytest

from constrained_agent.errors import DecodeError, UserError
from constrained_agent.evals import tasks
from constrained_agent.evals.calls import own
from constrained_agent.evals.calls.items import CallItem, expected_calls
from constrained_agent.evals.compare import arms, canary, judging, landing
from constrained_agent.evals.compare.outcomes import OUTCOMES, Judgement
from constrained_agent.evals.compare.records import Folder
from constrained_agent.messages import ToolSpec
from tests.compared import (
    CALL,
    FIX,
    RIGHT_CALL,
    TASK,
    TEXT,
    TOKENS,
    Unmasked,
    as_json,
    call,
    compared,
    patch,
    raw,
    scripted,
    wrapped,
)

ADDITION = "@@\n import datetime\n+import calendar\n import re\n"


@dataclass(frozen=True)
class Case:
    text: str
    kind: str = ""
    parses: bool = False
    at: str | None = None  # where the text goes on from the place that is shown as wrong
    max_tokens: int = 300


PATCHES = {
    "no_call": Case("Day and month are swapped in line 32."),
    "no_answer": Case(""),
    "no_wrapper": Case(f"Here is the fix:\n{FIX}", at="*** Begin Patch"),
    "wrapper_unclosed": Case(f'<tool_call>\n{{"name": "apply_patch"}}\n{FIX}\n', at=""),
    "wrong_dialect": Case(
        wrapped(f"<function=apply_patch>\n<parameter=patch>\n{FIX}\n</parameter>\n</function>"),
        at="<function=apply_patch>",
    ),
    "wrong_shape": Case(wrapped({"tool": "apply_patch", "patch": FIX}), at='{"tool"'),
    "json_invalid": Case(wrapped(r'{"name": "apply_patch", "arguments": {"patch": "\d"}}'), at=r"\d"),
    "unknown_tool": Case(call("edit_file", path="dateparse.py"), at='{"name": "edit_file"'),
    "schema_violated": Case(
        call("apply_patch", patch=FIX, path="dateparse.py"), parses=True, at='{"name": "apply_patch"'
    ),
    "patch_unparsable": Case(raw(FIX.removesuffix("*** End Patch")), "bad_envelope"),
    "file_not_found": Case(
        raw(patch("@@\n-a\n+b\n", "dates.py")), "file_not_found", True, "*** Update File: dates.py"
    ),
    "context_not_found": Case(
        raw(patch("@@\n import re\n+import sys\n@@\n-        month = 5\n+        month = 6\n")),
        "context_not_found",
        True,
        "@@\n-        month = 5",
    ),
    "ambiguous": Case(
        raw(patch("@@\n-        return datetime.date(year, month, day)\n+        return None\n")),
        "ambiguous",
        True,
        "@@\n-        return",
    ),
    "no_change": Case(raw(patch("@@\n-import re\n+import re\n")), "no_change", True, "@@\n-import re"),
    "other_patch_error": Case(
        raw("*** Begin Patch\n*** Add File: dateparse.py\n+import re\n*** End Patch"),
        "exists",
        True,
        "*** Add File: dateparse.py",
    ),
    "cut": Case(raw(FIX), max_tokens=40, at=""),
    "loop": Case("I will now fix the date. " * 40, at=""),
    "thinking_unclosed": Case(f"<think>\nDay and month are swapped.\n{raw(FIX)}", at=""),
    "tests_failed": Case(raw(patch(ADDITION)), parses=True),
    "passed": Case(raw(FIX), parses=True),
}
"""Of arm `off`, by outcome."""

CALLS = {
    "no_call": Case("I cannot move files."),
    "no_answer": Case("\n"),
    "no_wrapper": Case(
        '\n\nSo:\n{"name": "move_file", "arguments": {"source": "a", "target": "b"}}',
        at='{"name": "move_file"',
    ),
    "wrapper_unclosed": Case(RIGHT_CALL.removesuffix("</tool_call>"), at=""),
    "wrong_dialect": Case(wrapped('move_file(source="a", target="b")'), at="move_file("),
    "wrong_shape": Case(
        wrapped([{"name": "move_file", "arguments": {"source": "a", "target": "b"}}]), at='[{"name"'
    ),
    "json_invalid": Case(RIGHT_CALL.replace("\\\\", "\\"), at="\\Users"),
    "unknown_tool": Case(call("rename", source="a", target="b"), at='{"name": "rename"'),
    "schema_violated": Case(call("move_file", source="a"), parses=True, at='{"name": "move_file"'),
    "cut": Case(RIGHT_CALL, max_tokens=20, at=""),
    "loop": Case("Moving the file. " * 60, at=""),
    "thinking_unclosed": Case(f"<think>\n{RIGHT_CALL}", at=""),
    "tests_failed": Case(call("move_file", source="C:\\Users", target="D:\\"), "wrong_value", parses=True),
    "passed": Case(RIGHT_CALL, parses=True),
}


def judged(tiny_runtime, folder, text, arm="off", *, markers=TOKENS, call_item=None, max_tokens=300):
    """What becomes of one answer."""
    runtime = scripted(tiny_runtime, [text], markers)
    task, calls = (None, [call_item]) if call_item else (TASK, [])
    [record] = compared(runtime, folder, [arm], task=task, calls=calls, max_tokens=max_tokens)
    assert record == Folder(folder).load()[record.id], "it is on the disk as it was judged"
    return record


def check(record, outcome, case):
    judgement = record.judgement
    assert (judgement.outcome, judgement.error_kind) == (outcome, case.kind), judgement.message
    assert (judgement.parses, judgement.lands) == (case.parses, outcome in ("passed", "tests_failed"))
    if case.at == "":
        assert judgement.at == len(record.written.text)
    elif case.at is not None:
        assert record.written.text[judgement.at :].startswith(case.at)


@pytest.mark.parametrize("arm", ["off", "grammar"])
def test_what_a_limit_ended_is_read_leniently_in_every_arm(tiny_runtime, tmp_path, arm):
    """Closed by the grammar or not: the patch that was whole before the limit came is there for a reader."""
    text = (
        f"{raw(FIX)}\n{BABBLE}"
        if arm == "off"
        else raw(FIX.replace("*** End Patch", ADDITION * 9 + "*** End Patch"))
    )
    record = judged(tiny_runtime, tmp_path, text, arm, max_tokens=140)
    assert (record.written.whole, record.judgement.lands) == (False, False)
    assert record.judgement.saved is not None


def test_messages_of_tests_do_not_name_the_copy_in_which_they_ran(tiny_runtime, tmp_path):
    judgement = judged(tiny_runtime, tmp_path, PATCHES["tests_failed"].text).judgement
    assert 'File "./test_dateparse.py"' in judgement.message
    assert re.match(r"(?:exit code|…\n)", judgement.message), "whole lines"
    assert tempfile.gettempdir() not in judgement.message


def test_nor_where_python_is_installed(tmp_path):
    task = tasks.load("colour_spaces")
    task.copy_to(tmp_path / "repo")
    (tmp_path / "repo" / "colours.py").write_text("  x\n")
    message = landing.tested(task, tmp_path / "repo").message
    assert re.search(r'File "python3\.\d+/unittest/loader\.py"', message)
    assert 'File "/' not in message


def test_every_outcome_has_its_test():
    assert set(PATCHES) == set(OUTCOMES)
    assert set(CALLS) < set(OUTCOMES)


@pytest.mark.parametrize("markers", [TOKENS, TEXT], ids=["tokens", "text"])
@pytest.mark.parametrize("outcome", PATCHES)
def test_a_patch_is_counted_as_what_it_is(tiny_runtime, tmp_path, outcome, markers):
    case = PATCHES[outcome]
    check(
        judged(tiny_runtime, tmp_path, case.text, markers=markers, max_tokens=case.max_tokens), outcome, case
    )


@pytest.mark.parametrize("markers", [TOKENS, TEXT], ids=["tokens", "text"])
@pytest.mark.parametrize("outcome", CALLS)
def test_a_call_is_counted_as_what_it_is(tiny_runtime, tmp_path, outcome, markers):
    case = CALLS[outcome]
    record = judged(
        tiny_runtime, tmp_path, case.text, markers=markers, call_item=CALL, max_tokens=case.max_tokens
    )
    check(record, outcome, case)


@pytest.mark.parametrize(
    ("text", "outcome", "kind", "at"),
    [
        (patch("@@\n import re\n"), "patch_unparsable", "no_change", "@@\n import re"),
        (patch("import re\n"), "patch_unparsable", "bad_line", "import re"),
        (patch(ADDITION, "../dateparse.py"), "patch_unparsable", "outside_root", "*** Update File"),
        ("*** Begin Patch\n*** End Patch", "patch_unparsable", "empty_patch", "*** Begin"),
        (patch(""), "patch_unparsable", "empty_update", None),
        (patch("@@\n"), "patch_unparsable", "empty_hunk", "@@"),
        (f"*** Begin Patch \n{FIX[16:]}", "patch_unparsable", "bad_line", "*** Begin Patch"),
        (patch("@@ def parse(text):\n-x\n+y\n"), "context_not_found", "anchor_not_found", "@@ def"),
        (
            patch("@@\n-import re\n+import sys\n*** End of File\n"),
            "context_not_found",
            "eof_mismatch",
            "@@",
        ),
        (
            patch("@@\n-import os\n+import re\n import datetime\n"),
            "context_not_found",
            "context_not_found",
            "@@",
        ),
        (
            "*** Begin Patch\n*** Delete File: dateparse.py\n*** Add File: dateparse.py\n+x\n*** End Patch",
            "other_patch_error",
            "duplicate_path",
            "*** Delete File",
        ),
        (patch("-import re\n+import sys\n", "."), "patch_unparsable", "bad_path", None),
    ],
)
def test_patch_errors_keep_their_kind(tiny_runtime, tmp_path, text, outcome, kind, at):
    record = judged(tiny_runtime, tmp_path, raw(text))
    assert (record.judgement.outcome, record.judgement.error_kind) == (outcome, kind), (
        record.judgement.message
    )
    if at is not None:
        assert record.written.text[record.judgement.at :].startswith(at)


BROKEN_CALL = wrapped(r'{"name": "apply_patch", "arguments": {"patch": "\d"}}')
UNPARSABLE = raw(patch("import re\n"))
MISSING = raw(patch("@@\n-import os\n+import sys\n"))
BABBLE = "I am done with this now. " * 40


@pytest.mark.parametrize(
    ("text", "max_tokens", "outcome", "parses", "at"),
    [
        (f"{BROKEN_CALL}\n{raw(FIX)}", 300, "json_invalid", False, r"\d"),
        (f"{raw(FIX)}\n{BROKEN_CALL}", 300, "json_invalid", False, r"\d"),
        (f"{UNPARSABLE}\n{BROKEN_CALL}", 300, "patch_unparsable", False, "import re"),
        (f"{MISSING}\n{BROKEN_CALL}", 300, "json_invalid", False, r"\d"),
        (f"{call('apply_patch', patch=7)}\n{BROKEN_CALL}", 300, "schema_violated", False, '{"name"'),
        (f"{call('apply_patch', patch=7)}\n{MISSING}", 300, "schema_violated", True, None),
        (f"{BROKEN_CALL}\n{BABBLE}", 60, "json_invalid", False, r"\d"),
        (f"{BROKEN_CALL}\n{BABBLE}", 300, "json_invalid", False, r"\d"),
        (f"{UNPARSABLE}\n{BABBLE}", 60, "patch_unparsable", False, "import re"),
        (f"{FIX}\n{BABBLE}", 300, "no_wrapper", False, "*** Begin Patch"),
        (f"{raw(FIX)}\n{BABBLE}", 130, "cut", True, ""),
        (f"{raw(FIX)}\n{BABBLE}", 300, "loop", True, ""),
        (f"{raw(FIX)}\n{raw(FIX)}", 160, "cut", False, ""),
        ("<think>\nDay and month are swapped.", 4, "cut", False, ""),
        (f"<think>\n{BABBLE}", 300, "loop", False, ""),
        (f"<think>\n{BROKEN_CALL}\n</think>\n\n{raw(FIX)}", 300, "passed", True, None),
        ("<think>\nDay and month are swapped.\n</think>\n\n", 300, "no_answer", False, None),
        (wrapped("[] and more"), 300, "json_invalid", False, " and more"),
        (raw(FIX).replace("</tool_call>", "</tool_call>\nDone."), 300, "passed", True, None),
    ],
)
@pytest.mark.parametrize("markers", [TOKENS, TEXT], ids=["tokens", "text"])
def test_the_first_cause_counts(tiny_runtime, tmp_path, text, max_tokens, outcome, parses, at, markers):
    if not markers.are_tokens:  # there the markers take more tokens than one
        max_tokens += {130: 10, 160: 10}.get(max_tokens, 0)
    record = judged(tiny_runtime, tmp_path, text, markers=markers, max_tokens=max_tokens)
    judgement = record.judgement
    assert (judgement.outcome, judgement.parses) == (outcome, parses), record.written
    if at == "":
        assert judgement.at == len(record.written.text)
    elif at is not None:
        assert record.written.text[judgement.at :].startswith(at)


def test_all_patches_of_an_answer_are_applied_in_order(tiny_runtime, tmp_path):
    head, second = FIX.split("@@\n-        month = MONTHS")
    halves = (
        f"{raw(f'{head}*** End Patch')}\n{raw(patch(f'@@{chr(10)}-        month = MONTHS{second[:-13]}'))}"
    )
    assert judged(tiny_runtime, tmp_path / "both", halves).judgement.outcome == "passed"
    twice = judged(tiny_runtime, tmp_path / "twice", f"{raw(FIX)}\n{MISSING}")
    assert (twice.judgement.outcome, twice.judgement.parses) == ("context_not_found", True)
    assert twice.judgement.at == twice.written.text.rindex("@@")


def test_a_place_is_found_in_a_patch_of_several_files_and_headers(tiny_runtime, tmp_path):
    text = patch(
        "@@\n-import re\n+import sys\n*** Delete File: test_dateparse.py\n*** Update File: dateparse.py\n"
        "@@ ISO = x\n@@ def parse_date(text):\n-nothing like it\n+x\n"
    )
    record = judged(tiny_runtime, tmp_path, raw(text))
    assert record.judgement.outcome == "context_not_found"


@pytest.mark.parametrize("body", ["@@\n import re\n-x\n+y\n", "-x\n+y\n"])
def test_a_place_is_found_in_a_patch_that_is_a_string(tiny_runtime, tmp_path, body):
    record = judged(tiny_runtime, tmp_path, as_json(patch(body)), "off-json")
    assert record.judgement.outcome == "context_not_found"
    assert record.written.text[record.judgement.at :].startswith(body[:2])


def test_marker_text_in_a_patch_is_text(tiny_runtime, tmp_path):
    """The tokens of markers are written as such; in the file the same letters stand as text."""
    body = "@@\n import datetime\n+# </tool_call> <think> <tool_call>\n import re\n"
    for name, markers in {"tokens": TOKENS, "text": TEXT}.items():
        record = judged(tiny_runtime, tmp_path / name, raw(patch(body)), markers=markers)
        assert (record.judgement.outcome, record.judgement.parses) == ("tests_failed", True)
        assert record.written.text == raw(patch(body))


# Constrained arms


@pytest.mark.parametrize("arm", ["grammar", "located", "grammar-json", "located-json"])
@pytest.mark.parametrize("markers", [TOKENS, TEXT], ids=["tokens", "text"])
def test_constrained_arms_let_the_fix_through(tiny_runtime, tmp_path, arm, markers):
    text = as_json(f"{FIX}\n") if arm.endswith("json") else raw(FIX)
    record = judged(tiny_runtime, tmp_path, text, arm, markers=markers)
    assert (record.judgement.outcome, record.written.stop_reason) == ("passed", "complete")
    assert record.judgement.saved is None
    assert record.judgement.server is None
    assert 0 < record.written.forced_tokens < record.written.tokens
    assert record.written.mask_us["p50"] > 0


@pytest.mark.parametrize("outcome", [name for name in PATCHES if name not in ("loop", "cut")])
def test_under_the_grammar_everything_parses(tiny_runtime, tmp_path, outcome):
    """Whatever the model wants to write: it is bent to a patch, or cut before one is whole."""
    record = judged(tiny_runtime, tmp_path, PATCHES[outcome].text, "grammar", max_tokens=120)
    assert record.judgement.parses
    if PATCHES[outcome].parses and outcome != "schema_violated":
        assert record.judgement.outcome == outcome


@pytest.mark.parametrize("outcome", ["file_not_found", "context_not_found", "ambiguous"])
def test_under_the_located_grammar_patches_land(tiny_runtime, tmp_path, outcome):
    record = judged(tiny_runtime, tmp_path, PATCHES[outcome].text, "located", max_tokens=200)
    assert record.judgement.outcome in ("passed", "tests_failed", "no_change", "cut", "loop")


def test_what_a_limit_brought_to_its_end_parses_and_is_not_run(tiny_runtime, tmp_path):
    record = judged(tiny_runtime, tmp_path, raw(FIX), "grammar", max_tokens=60)
    assert record.written.stop_reason == "closed_by_budget"
    assert (record.judgement.outcome, record.judgement.parses, record.judgement.lands) == ("cut", True, False)


def test_a_call_that_a_limit_brought_to_its_end(tiny_runtime, tmp_path):
    record = judged(tiny_runtime, tmp_path, RIGHT_CALL, "grammar", call_item=CALL, max_tokens=40)
    assert (record.judgement.outcome, record.judgement.parses, record.judgement.lands) == ("cut", True, False)


def test_all_own_questions_are_answered_rightly_under_the_grammar(tiny_runtime, tmp_path):
    calls = own.load()
    answers = ["\n".join(expected(item, one) for one in item.expected) for item in calls]
    runtime = scripted(tiny_runtime, answers)
    records = compared(runtime, tmp_path, ["grammar"], task=None, calls=calls, max_tokens=600)
    assert {record.name: record.judgement.message for record in records if not record.judgement.right} == {}


def expected(item, one):
    """A call with the first right value of each argument, but for those that may be left out."""
    [required] = [tool.parameters["required"] for tool in item.tools if tool.name == one.name]
    arguments = {
        name: values[0] for name, values in one.arguments.items() if name in required or "" not in values
    }
    return wrapped({"name": one.name, "arguments": arguments})


@pytest.mark.parametrize("outcome", ["json_invalid", "patch_unparsable", "no_call", "schema_violated"])
def test_a_constrained_answer_that_does_not_parse_stops_the_run(tiny_runtime, tmp_path, outcome):
    runtime = Unmasked(scripted(tiny_runtime, [PATCHES[outcome].text] * 2))
    with pytest.raises(judging.Disagreement, match=f"patch/dateparse/grammar/0: .* {outcome}"):
        compared(runtime, tmp_path, ["off", "grammar"])
    written = Folder(tmp_path).load().values()
    assert [(one.arm, one.judgement.outcome) for one in written] == [("off", outcome), ("grammar", outcome)]
    with pytest.raises(judging.Disagreement, match=outcome):
        compared(scripted(tiny_runtime, []), tmp_path, ["off", "grammar"])
    assert len(Folder(tmp_path).load()) == 2, "what was found stays, and nothing is run past it"


@pytest.mark.parametrize("outcome", ["file_not_found", "context_not_found", "ambiguous", "other_patch_error"])
def test_a_located_answer_that_does_not_land_stops_the_run(tiny_runtime, tmp_path, outcome):
    runtime = Unmasked(scripted(tiny_runtime, [PATCHES[outcome].text]))
    with pytest.raises(judging.Disagreement, match=f"patch/dateparse/located/0: .* {outcome}"):
        compared(runtime, tmp_path, ["located"])


def test_a_limit_that_no_text_of_the_grammar_keeps_is_told_with_the_item(tiny_runtime, tmp_path):
    runtime = scripted(tiny_runtime, [raw(FIX)] * 2)
    with pytest.raises(
        UserError, match=r"patch/dateparse/grammar/0: .* the limit of 3; --max-tokens is the same"
    ):
        compared(runtime, tmp_path, ["off", "grammar"], max_tokens=3)
    assert [one.arm for one in Folder(tmp_path).load().values()] == ["off"]


def test_the_canary_sings_with_a_mask_and_not_without(tiny_runtime):
    assert canary.sing(tiny_runtime) > 0
    hello = scripted(tiny_runtime, ["Hello!", "Hello!"])
    assert canary.sing(hello) > 0, "whatever the model wants to write"
    with pytest.raises(DecodeError, match=r"the mask is not live.*'Hello!'"):
        canary.sing(Unmasked(scripted(tiny_runtime, ["Hello!", "Hello!"])))


def test_a_canary_that_sings_without_a_mask_proves_nothing(tiny_runtime):
    with pytest.raises(DecodeError, match="proves nothing"):
        canary.sing(scripted(tiny_runtime, ["天地玄黃宇宙 BCDFGH"] * 2))


# Ways of asking from before there were tools


@pytest.mark.parametrize(
    ("text", "outcome", "parses"),
    [
        (json.dumps({"tool": "apply_patch", "patch": FIX}), "passed", True),
        (f"Sure:\n```json\n{json.dumps({'tool': 'apply_patch', 'patch': FIX})}\n```\nDone.", "passed", True),
        (f"{json.dumps({'patch': FIX, 'tool': 'apply_patch'})}\n```js\nf() {{\n```\n", "passed", True),
        (f"It is {json.dumps({'tool': 'apply_patch', 'patch': FIX})}", "passed", True),
        (f'{{"tool": "apply_patch", "patch": "{FIX}"}}', "json_invalid", False),
        (r'{"tool": "apply_patch", "patch": "\d"}', "json_invalid", False),
        ('{"tool": "apply_patch", "patch": "*** Begin', "json_invalid", False),
        ("{" * 50_000, "json_invalid", False),
        (json.dumps({"name": "apply_patch", "patch": FIX}), "wrong_shape", False),
        (json.dumps({"tool": "apply_patch", "patch": FIX, "why": ""}), "wrong_shape", False),
        (json.dumps({"tool": "apply_patch", "patch": FIX.split(chr(10))}), "wrong_shape", False),
        (json.dumps({"tool": "edit", "patch": FIX}), "unknown_tool", False),
        (json.dumps({"tool": "apply_patch", "patch": "x"}), "patch_unparsable", False),
        (json.dumps({"tool": "apply_patch", "patch": patch("-x\n+y\n")}), "context_not_found", True),
        ("I cannot do that.", "no_call", False),
        ("", "no_answer", False),
    ],
)
def test_prompt_json(tiny_runtime, tmp_path, text, outcome, parses):
    if len(text) > 10_000:
        text = "{" + '"a":{' * 30
    record = judged(tiny_runtime, tmp_path, text, "prompt-json")
    assert (record.judgement.outcome, record.judgement.parses) == (outcome, parses), record.judgement


@pytest.mark.parametrize("max_tokens", [12, 16, 20, 24, 28, 32])
def test_prompt_json_that_is_cut(tiny_runtime, tmp_path, max_tokens):
    text = json.dumps({"tool": "apply_patch", "patch": '*** "Begin" \\ \n é\n\tPatch'}) * 2
    text = text.replace("\\n", "\\u000a")
    record = judged(tiny_runtime, tmp_path, text, "prompt-json", max_tokens=max_tokens)
    assert record.judgement.outcome == "cut", record.judgement


def test_prompt_json_that_was_broken_before_it_was_cut(tiny_runtime, tmp_path):
    text = r'{"tool": "apply_patch", "patch": "\d ' + "and so on, one way or another, " * 3
    record = judged(tiny_runtime, tmp_path, text, "prompt-json", max_tokens=30)
    assert (record.judgement.outcome, record.written.whole) == ("json_invalid", False)


SED = (
    "sed -i 's/month, day, year = map/day, month, year = map/; s/index(name.lower())/index(name.lower()) + 1/' "
    "dateparse.py"
)


@pytest.mark.parametrize(
    ("text", "outcome", "kind", "parses"),
    [
        (f"Like this:\n```sh\n{SED}\n```\nDone.", "passed", "", True),
        (f"```\n{SED}\n```", "passed", "", True),
        (f"```python\nprint(1)\n```\nthat is:\n```bash\n{SED}\n```\n", "passed", "", True),
        (f"```bash\n{SED}\n```\n```bash\ntouch {{}}\n```", "passed", "", True),
        ("```python\nprint(1)\n```\ntouch here\n", "no_call", "", False),
        ("sed -i s/a/b/ dateparse.py", "no_call", "", False),
        ("", "no_answer", "", False),
        (f"```sh\n{SED}\n", "wrapper_unclosed", "", False),
        ("```sh\n```", "no_change", "", True),
        ("```sh\nnosuchcommand\n```", "other_patch_error", "command_failed", True),
        ("```sh\ntrue\n```", "no_change", "", True),
        ("```sh\nls\n```", "no_change", "", True),
        ("```sh\necho x >> dateparse.py; false\n```", "other_patch_error", "command_failed", True),
        (f"```sh\n{SED}; false\n```", "passed", "", True),
        (f"```sh\n{SED}\nif true; then\n```", "patch_unparsable", "shell_syntax", False),
        ("```sh\n$ sed -i 's/(/x/ dateparse.py\n```", "patch_unparsable", "shell_syntax", False),
        ("```sh\nsed -i 's/month, day, year/day, month, year/' dateparse.py\n```", "tests_failed", "", True),
        ("```sh\nchmod +x dateparse.py\n```", "tests_failed", "", True),
        ("```sh\nrm test_dateparse.py && mkdir test_dateparse.py\n```", "tests_failed", "", True),
    ],
)
def test_regex(tiny_runtime, tmp_path, text, outcome, kind, parses):
    judgement = judged(tiny_runtime, tmp_path, text, "regex").judgement
    assert (judgement.outcome, judgement.error_kind, judgement.parses) == (outcome, kind, parses), judgement
    assert judgement.saved is None
    assert judgement.lands == (outcome in ("passed", "tests_failed"))


def test_the_place_of_a_syntax_error_of_a_block(tiny_runtime, tmp_path):
    record = judged(tiny_runtime, tmp_path, "So:\n```sh\nls\necho )\nls\n```\n", "regex")
    assert record.written.text[record.judgement.at :].startswith("echo )")
    assert "syntax error" in record.judgement.message
    cut = judged(tiny_runtime, tmp_path / "cut", f"```sh\necho )\n```\n{BABBLE}", "regex", max_tokens=60)
    assert (cut.judgement.outcome, cut.judgement.parses) == ("patch_unparsable", False)
    cut = judged(tiny_runtime, tmp_path / "2", f"```sh\n{SED}\n```\n{BABBLE}", "regex", max_tokens=90)
    assert (cut.judgement.outcome, cut.judgement.parses) == ("cut", True)


@pytest.mark.parametrize("text", ["ls \0", "ls \ud83d"])
def test_a_block_that_no_shell_takes(text):
    """A model's tokens cannot spell these, records of other programs may hold them."""
    assert landing.unreadable_command(f"ls\n{text}") is not None


@pytest.mark.parametrize("arm", ["off", "regex"])
def test_what_the_machine_cannot_do_is_not_counted(tiny_runtime, tmp_path, arm):
    """Here it is out of file descriptors; nothing of that is the answer's doing."""
    text = raw(FIX) if arm == "off" else f"```sh\n{SED}\n```"
    record = judged(tiny_runtime, tmp_path, text, arm)
    [chosen] = arms.parse([arm])
    tries = []

    def judge():
        tries.append(1)
        return judging.judge(TASK, chosen, TOKENS, record.written)

    found = []
    for n_left in range(8):
        tries.clear()
        try:
            with only_so_many_files(n_left):
                judgement, _ = judging.twice(record.id, judge)
            found.append(judgement.outcome)
        except UserError as error:
            found.append(str(error))
    assert {one for one in found if " cannot be judged on this machine: " not in one} <= {"passed"}
    assert "; nothing was counted for it: mend that, then --resume goes on" in found[0]


@contextmanager
def only_so_many_files(n):
    """This process can open no more than so many."""
    soft, hard = resource.getrlimit(resource.RLIMIT_NOFILE)
    with open(os.devnull) as lowest:
        resource.setrlimit(resource.RLIMIT_NOFILE, (lowest.fileno() + n, hard))
    try:
        yield
    finally:
        resource.setrlimit(resource.RLIMIT_NOFILE, (soft, hard))


def test_a_machine_that_recovers_counts_as_if_nothing_was():
    tries = []

    def judge():
        tries.append(1)
        if len(tries) < 2:
            raise OSError(errno.ENOSPC, "no space left")
        return "judged"

    assert judging.twice("x", judge) == "judged"


def test_tests_that_are_changed_come_back(tiny_runtime, tmp_path):
    for name, text in {"gone": "rm test_dateparse.py", "empty": "echo > test_dateparse.py"}.items():
        judgement = judged(tiny_runtime, tmp_path / name, f"```sh\n{text}\n```", "regex").judgement
        assert judgement.outcome == "tests_failed"


@pytest.mark.parametrize(
    "command",
    [
        "touch {outside}/x; rm -rf ../../../srv/data",
        "touch {outside}/x; rm -rf /",
        "git push origin main; touch {outside}/x",
    ],
)
def test_a_dangerous_block_is_not_run(tiny_runtime, tmp_path, command):
    outside = tmp_path / "outside"
    outside.mkdir()
    text = f"```sh\n{command.format(outside=outside)}\n```"
    judgement = judged(tiny_runtime, tmp_path / "out", text, "regex").judgement
    assert (judgement.outcome, judgement.error_kind) == ("other_patch_error", "dangerous_command")
    assert "not run" in judgement.message
    assert outside.is_dir()
    assert not list(outside.iterdir())


def test_a_block_that_never_ends_is_ended(tiny_runtime, tmp_path, monkeypatch):
    monkeypatch.setattr("constrained_agent.evals.compare.landing.TEST_TIMEOUT_S", 1)
    judgement = judged(tiny_runtime, tmp_path, f"```sh\n{SED}; sleep 60\n```", "regex").judgement
    assert judgement.outcome == "passed", "what it had done by then counts"
    for name, text in {"2": "sleep 60", "3": "echo x >> dateparse.py; sleep 60"}.items():
        judgement = judged(tiny_runtime, tmp_path / name, f"```sh\n{text}\n```", "regex").judgement
        assert (judgement.outcome, judgement.error_kind) == ("other_patch_error", "timed_out")


def test_tests_that_never_end(tiny_runtime, tmp_path, monkeypatch):
    monkeypatch.setattr("constrained_agent.evals.compare.landing.TEST_TIMEOUT_S", 1)
    endless = raw(patch("@@\n import datetime\n+while True:\n+    pass\n import re\n"))
    judgement = judged(tiny_runtime, tmp_path, endless).judgement
    assert (judgement.outcome, judgement.error_kind) == ("tests_failed", "timed_out")


def test_nothing_is_written_through_a_link_that_stands_where_tests_were(tiny_runtime, tmp_path):
    task = next(task for name in tasks.names() for task in [tasks.load(name)] if nested(task))
    folder = nested(task)
    outside = tmp_path / "outside"
    outside.mkdir()
    for command in (f"mv {folder} old && ln -s {outside} {folder}", f"mv {folder} old && touch {folder}"):
        runtime = scripted(tiny_runtime, [f"```sh\n{command}\n```"])
        [record] = compared(runtime, tmp_path / command.split()[4], ["regex"], task=task)
        assert record.judgement.outcome in ("tests_failed", "other_patch_error"), record.judgement
        assert not list(outside.iterdir())


def nested(task):
    """The folder in which a test of a task stands, if it stands in one."""
    return next((test.rpartition("/")[0] for test in task.tests if "/" in test), "")


# What could be made of failed text


@pytest.mark.parametrize(
    ("arm", "text", "outcome", "saved"),
    [
        ("off", FIX, "no_wrapper", "passed"),
        ("off", f"```\n{FIX}\n```", "no_wrapper", "passed"),
        ("off", raw(FIX.replace("*** Update File:", "*** Update File:  ")), "patch_unparsable", "passed"),
        ("off", f"{BROKEN_CALL}{MISSING}", "json_invalid", "context_not_found"),
        ("off", "Nothing.", "no_call", None),
        ("grammar", MISSING, "context_not_found", "context_not_found"),
        ("off", raw(FIX), "passed", None),
        (
            "off-json",
            wrapped(f'{{"name": "apply_patch", "arguments": {{"patch": "{FIX}"}}}}'),
            "json_invalid",
            "passed",
        ),
        (
            "off-json",
            wrapped(f'{{"name": "apply_patch", "arguments": {{"patch": {json.dumps(FIX)[:-1]}\\d"}}}}'),
            "json_invalid",
            "passed",
        ),
        ("prompt-json", json.dumps({"name": "apply_patch", "patch": FIX}), "wrong_shape", "passed"),
        ("regex", f"```\n{FIX}\n```", "patch_unparsable", None),
    ],
)
def test_what_a_lenient_reading_saves(tiny_runtime, tmp_path, arm, text, outcome, saved):
    judgement = judged(tiny_runtime, tmp_path, text, arm).judgement
    assert (judgement.outcome, judgement.saved) == (outcome, saved), judgement


SEAT = CallItem(
    "seat",
    "test",
    "Book a first class seat.",
    (
        ToolSpec(
            "book",
            "",
            {
                "type": "object",
                "properties": {"class": {"type": "string", "enum": ["first"]}},
                "required": ["class"],
                "additionalProperties": False,
            },
            "read",
        ),
    ),
    expected_calls([{"book": {"class": ["first", "1st"]}}]),
    parallel=False,
)
"""The leaderboard has such items: an answer that is right there, and that the item's own schema refuses."""


@pytest.mark.parametrize(
    ("text", "outcome", "saved"),
    [
        (call("book", **{"class": "first"}), "passed", None),
        (call("book", **{"class": "1st"}), "schema_violated", "passed"),
        (call("book", **{"class": "second"}), "schema_violated", "tests_failed"),
        (call("book", **{"class": "1st"}) * 2, "schema_violated", "passed"),
        (call("book", **{"class": "first"}) * 2, "tests_failed", "passed"),
        (
            call("book", **{"class": "1st"}) + call("book", **{"class": "first"}),
            "schema_violated",
            "tests_failed",
        ),
        (call("book", **{"class": "1st"}) + "\n<tool_call>\n{", "schema_violated", None),
        (call("book", **{"class": "1st"}).replace("}}", "}"), "json_invalid", None),
    ],
)
def test_a_call_that_is_right_but_for_its_schema_or_repeats(tiny_runtime, tmp_path, text, outcome, saved):
    judgement = judged(tiny_runtime, tmp_path, text, call_item=SEAT).judgement
    assert (judgement.outcome, judgement.saved) == (outcome, saved), judgement


GOOD = call("move_file", source="a", target="b")


@pytest.mark.parametrize(
    ("text", "calls", "dropped", "broken"),
    [
        (RIGHT_CALL, 1, 0, 0),
        (RIGHT_CALL.replace("\\\\", "\\"), 1, 1, 0),
        (f"{GOOD}\n{wrapped('{')}\n{GOOD}", 3, 1, 0),
        (wrapped({"name": "move_file", "parameters": {}}), 1, 0, 1),
        (wrapped([{"name": "move_file", "arguments": {}}]), 1, 0, 0),
        (wrapped("7"), 1, 0, 1),
        (GOOD.removesuffix("</tool_call>"), 1, 0, 0),
        ("<tool_call>", 0, 0, 0),
        ("<tool_call></tool_call>", 1, 1, 0),
        (f"<think>\n{GOOD}\n</think>\n\n{GOOD}", 2, 0, 0),
        (f"<tool_call>\n{GOOD}", 1, 1, 0),
        ("Nothing.", 0, 0, 0),
    ],
)
def test_what_a_server_of_today_reads(tiny_runtime, tmp_path, text, calls, dropped, broken):
    record = judged(tiny_runtime, tmp_path, text, call_item=CALL)
    assert record.judgement.server == {"calls": calls, "dropped": dropped, "broken": broken}


def test_the_server_is_asked_about_patches_that_are_strings_alone(tiny_runtime, tmp_path):
    bad = wrapped(r'{"name": "apply_patch", "arguments": {"patch": "\d"}}')
    assert judged(tiny_runtime, tmp_path / "a", bad, "off-json").judgement.server == {
        "calls": 1,
        "dropped": 1,
        "broken": 0,
    }
    assert judged(tiny_runtime, tmp_path / "b", bad, "off").judgement.server is None


def test_outcomes_are_a_closed_list():
    with pytest.raises(ValueError, match="'odd' is no outcome; there are: passed, "):
        Judgement("odd", False, False)
    with pytest.raises(ValueError, match="what lands is right or wrong, not no_call"):
        Judgement("no_call", True, True)
