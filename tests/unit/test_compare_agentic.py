"""Whole runs of the agent in a comparison: each end that one can come to, brought about by a scripted model."""

import hashlib
import json
from dataclasses import dataclass, field, replace

import pytest

from constrained_agent.errors import DecodeError, UserError
from constrained_agent.evals.compare import judging, merging, rejudging
from constrained_agent.evals.compare.items import MAX_TURNS
from constrained_agent.evals.compare.outcomes import OUTCOMES
from constrained_agent.evals.compare.records import Folder, same
from tests.compared import (
    FIX,
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
from tests.kept import FACTS

WORDS = ["Day and month are swapped in line 32."] * MAX_TURNS
"""A model that only talks, until it is given up."""

LOST = raw(patch("@@\n-import os\n+import sys\n"))
ADDED = raw(patch("@@\n import datetime\n+import calendar\n import re\n"))
TAKEN_BACK = raw(patch("@@\n import datetime\n-import calendar\n import re\n"))
BABBLE = "I am done with this now. " * 40
SED = (
    "sed -i 's/month, day, year = map/day, month, year = map/; s/index(name.lower())/index(name.lower()) + 1/' "
    "dateparse.py"
)
READ = call("read_file", path="dateparse.py")
ABSENT = call("read_file", path="nowhere.py")


@dataclass(frozen=True)
class Case:
    """What a model writes, and what is to become of it."""

    answers: list
    outcome: str
    error_kind: str = ""
    parses: bool = True
    failures: dict = field(default_factory=dict)
    exit_reason: str = "tests_failed"
    max_tokens: int = 300


def refused(answer, outcome, error_kind="", *, parses=True):
    """One answer that goes wrong, and talk after that."""
    return Case([answer, *WORDS], outcome, error_kind, parses, {outcome: 1})


CASES = {
    "passed": Case([raw(FIX), "Done."], "passed", exit_reason="done"),
    "passed at the second attempt": Case(
        [LOST, raw(FIX), "Done."], "passed", failures={"context_not_found": 1}, exit_reason="done"
    ),
    "passed after an unreadable call": Case(
        [wrapped(r'{"name": "\d"}'), raw(FIX), "Done."],
        "passed",
        failures={"json_invalid": 1},
        exit_reason="done",
    ),
    "passed by a command": Case([call("exec_command", command=SED), "Done."], "passed", exit_reason="done"),
    "passed, and lost after that": Case(
        [raw(FIX), LOST, "Done."], "passed", failures={"context_not_found": 1}, exit_reason="done"
    ),
    "valid but wrong": Case([ADDED, *WORDS], "tests_failed"),
    "wrong at the second attempt": Case(
        [LOST, ADDED, *WORDS], "tests_failed", failures={"context_not_found": 1}
    ),
    "wrong, and lost after that": Case(
        [ADDED, LOST, *WORDS], "tests_failed", failures={"context_not_found": 1}
    ),
    "file_not_found": refused(raw(patch("@@\n-a\n+b\n", "dates.py")), "file_not_found", "file_not_found"),
    "context_not_found": refused(LOST, "context_not_found", "context_not_found"),
    "anchor_not_found": refused(
        raw(patch("@@ def parse(text):\n-x\n+y\n")), "context_not_found", "anchor_not_found"
    ),
    "ambiguous": refused(
        raw(patch("@@\n-        return datetime.date(year, month, day)\n+        return None\n")),
        "ambiguous",
        "ambiguous",
    ),
    "no_change": refused(raw(patch("@@\n-import re\n+import re\n")), "no_change", "no_change"),
    "exists": refused(
        raw("*** Begin Patch\n*** Add File: dateparse.py\n+import re\n*** End Patch"),
        "other_patch_error",
        "exists",
    ),
    "a name too long": refused(
        raw(f"*** Begin Patch\n*** Add File: {'a' * 300}\n+import re\n*** End Patch"),
        "other_patch_error",
        "bad_path",
    ),
    "patch_unparsable": refused(raw(patch("import re\n")), "patch_unparsable", "bad_line", parses=False),
    "outside": refused(
        raw(patch("@@\n-a\n+b\n", "../dates.py")), "patch_unparsable", "outside_root", parses=False
    ),
    "schema_violated": refused(call("apply_patch", patch=FIX, path="dateparse.py"), "schema_violated"),
    "another tool's schema_violated": refused(call("read_file", file="dateparse.py"), "schema_violated"),
    "json_invalid": refused(
        wrapped(r'{"name": "read_file", "arguments": {"path": "\d"}}'), "json_invalid", parses=False
    ),
    "unknown_tool": refused(call("edit_file", path="dateparse.py"), "unknown_tool", parses=False),
    "wrong_shape": refused(wrapped({"tool": "apply_patch", "patch": FIX}), "wrong_shape", parses=False),
    "wrapper_unclosed": refused(raw(FIX).removesuffix("</tool_call>"), "wrapper_unclosed", parses=False),
    "wrong_dialect": refused(
        wrapped(f"<function=apply_patch>\n<parameter=patch>\n{FIX}\n</parameter>\n</function>"),
        "wrong_dialect",
        parses=False,
    ),
    "no_wrapper": refused(FIX, "no_wrapper", parses=False),
    "the first cause counts": Case(
        [LOST, raw(patch("import re\n")), *WORDS],
        "context_not_found",
        "context_not_found",
        False,
        {"context_not_found": 1, "patch_unparsable": 1},
    ),
    "reverted": Case([ADDED, TAKEN_BACK, *WORDS], "no_change"),
    "reverted by a command": Case(
        [ADDED, call("exec_command", command="sed -i /calendar/d dateparse.py"), *WORDS], "no_change"
    ),
    "reverted after it was lost": Case(
        [LOST, ADDED, TAKEN_BACK, *WORDS],
        "context_not_found",
        "context_not_found",
        failures={"context_not_found": 1},
    ),
    "cut": Case([raw(FIX)] * 3, "cut", "", False, {"cut": 3}, "truncated", max_tokens=40),
    "cut behind a whole patch, which is not run": Case(
        [f"{raw(FIX)}\n{BABBLE}"] * 3, "cut", "", True, {"cut": 3}, "truncated", max_tokens=130
    ),
    "the same wrong patch": Case(
        [LOST] * 3,
        "context_not_found",
        "context_not_found",
        failures={"context_not_found": 2},
        exit_reason="repeated_calls",
    ),
    "printed once more when it is done": Case(
        [raw(FIX), f"I sent this:\n{FIX}"], "passed", exit_reason="done"
    ),
    "loop": Case([BABBLE] * 3, "loop", "", False, {"loop": 3}, "truncated"),
    "the same calls": Case([READ] * 3, "loop", "repeated_calls", exit_reason="repeated_calls"),
    "talk": Case(WORDS, "no_call", "tests_failed", False),
    "announced": Case(
        ["I will now fix the date.", "Let me edit the file.", "Let me edit it."],
        "no_call",
        "no_answer",
        False,
        exit_reason="no_answer",
    ),
    "looked and talked": Case([READ, *WORDS], "no_call", "tests_failed"),
    "what other tools find is no failure": Case(
        [ABSENT, call("exec_command", command="exit 3"), call("search_text", pattern="(", path="."), *WORDS],
        "no_call",
        "tests_failed",
    ),
    "a command of no effect on what patches changed": Case(
        [call("exec_command", command="echo >> dateparse.py"), *WORDS], "no_call", "tests_failed"
    ),
    "looked until the end": Case(
        [call("read_file", path="dateparse.py", offset=n) for n in range(1, MAX_TURNS + 1)] + WORDS[:1],
        "no_call",
        "max_turns",
        exit_reason="max_turns",
    ),
    "no_answer": Case(["", "\n"], "no_answer", "", False, {"no_answer": 2}, "no_answer"),
    "thinking_unclosed": Case(
        ["<think>\nDay and month."] * 2,
        "thinking_unclosed",
        "",
        False,
        {"thinking_unclosed": 2},
        "thinking_unclosed",
    ),
}


def ran(tiny_runtime, folder, answers, arm="off", *, markers=TOKENS, max_tokens=300):
    """The record of one run."""
    runtime = scripted(tiny_runtime, answers, markers)
    [record] = compared(runtime, folder, [arm], max_tokens=max_tokens, agentic=True)
    assert record == Folder(folder).load()[record.id], "it is on the disk as it was judged"
    return record


def judged_again(folder):
    found = Folder(folder)
    markers = {"are_tokens": True, "thinks": True}
    return rejudging.rejudge(found.load().values(), markers, lambda ids: {}, found.transcript)


@pytest.mark.parametrize("name", CASES)
def test_a_run_is_counted_as_what_it_came_to(tiny_runtime, tmp_path, name):
    case = CASES[name]
    record = ran(tiny_runtime, tmp_path, case.answers, max_tokens=case.max_tokens)
    judgement, written = record.judgement, record.written
    assert (judgement.outcome, judgement.error_kind) == (case.outcome, case.error_kind), judgement.message
    assert (written.stop_reason, dict(written.failures)) == (case.exit_reason, case.failures)
    assert (judgement.parses, judgement.lands) == (case.parses, case.outcome in ("passed", "tests_failed"))
    again = judged_again(tmp_path)
    assert (again.changes, again.disagreements) == ([], [])
    assert same(again.records[0], record)


def test_all_that_a_run_can_come_to_has_its_case():
    assert {case.outcome for case in CASES.values()} == set(OUTCOMES)


def test_markers_that_are_text(tiny_runtime, tmp_path):
    record = ran(tiny_runtime, tmp_path, [LOST, raw(FIX), "Done."], markers=TEXT)
    assert (record.judgement.outcome, record.written.failures) == ("passed", {"context_not_found": 1})


@pytest.mark.parametrize("arm", ["grammar", "located", "grammar-json", "located-json"])
def test_constrained_runs_keep_what_their_constraint_promises(tiny_runtime, tmp_path, arm):
    """Whatever the model wants to write; what it says in words is free, and may look like a call."""
    fix = as_json(f"{FIX}\n") if arm.endswith("json") else raw(FIX)
    assert ran(tiny_runtime, tmp_path / "fix", [fix, "Done."], arm).judgement.outcome == "passed"
    printed = ran(tiny_runtime, tmp_path / "printed", [FIX, *WORDS], arm)
    assert (printed.judgement.outcome, printed.judgement.parses) == ("no_wrapper", False)
    wanted = [LOST, wrapped({"tool": "apply_patch"}), call("read_file", file="x"), *WORDS]
    bent = ran(tiny_runtime, tmp_path / "bent", wanted, arm)
    judging.check(bent)
    assert not set(bent.written.failures) & {"wrong_shape", "schema_violated", "json_invalid"}


@pytest.mark.parametrize(
    ("arm", "answer", "outcome"),
    [
        ("grammar", wrapped({"tool": "apply_patch"}), "wrong_shape"),
        ("grammar", raw(patch("import re\n")), "patch_unparsable"),
        ("grammar", call("read_file", file="x"), "schema_violated"),
        ("located", LOST, "context_not_found"),
        ("located", raw(patch("@@\n-a\n+b\n", "dates.py")), "file_not_found"),
    ],
)
def test_a_broken_promise_stops_the_comparison_though_the_run_came_right(
    tiny_runtime, tmp_path, arm, answer, outcome
):
    runtime = Unmasked(scripted(tiny_runtime, [answer, raw(FIX), "Done."]))
    with pytest.raises(judging.Disagreement, match=f"run/dateparse/{arm}/0: .* {outcome}"):
        compared(runtime, tmp_path, [arm], agentic=True)
    [record] = Folder(tmp_path).load().values()
    assert record.judgement.outcome == "passed"
    assert Folder(tmp_path).transcript(record.id).exists()
    with pytest.raises(judging.Disagreement):
        compared(scripted(tiny_runtime, []), tmp_path, [arm], agentic=True)
    again = judged_again(tmp_path)
    assert (again.changes, len(again.disagreements)) == ([], 1)


@pytest.mark.parametrize(("arm", "answer"), [("off", LOST), ("grammar", LOST)])
def test_what_no_constraint_promised_stops_nothing(tiny_runtime, tmp_path, arm, answer):
    record = ran(tiny_runtime, tmp_path, [answer, raw(FIX), "Done."], arm)
    assert record.written.failures == {"context_not_found": 1}


def test_a_constraint_that_breaks_stops_the_comparison(tiny_runtime, tmp_path):
    runtime = scripted(tiny_runtime, [raw(FIX)])

    class Broken(Unmasked):
        def turn_constraint(self, *args, **kwargs):
            raise DecodeError("a dead end")

    with pytest.raises(DecodeError, match=r"run/dateparse/grammar/0: a dead end \(transcript: "):
        compared(Broken(runtime), tmp_path, ["grammar"], agentic=True)
    assert Folder(tmp_path).load() == {}


def test_a_prompt_that_does_not_fit_is_told_before_anything_runs(tiny_runtime, tmp_path):
    runtime = scripted(tiny_runtime, [])
    runtime.session.context_limit = 500
    with pytest.raises(UserError, match=r"dateparse: the prompt has .* \(leave it out with --tasks\)"):
        compared(runtime, tmp_path, ["off"], agentic=True)


def test_the_prompt_that_is_measured_is_the_one_that_is_run(tiny_runtime, tmp_path):
    for arm in ("off", "off-json"):
        runtime = scripted(tiny_runtime, [raw(FIX), "Done."])
        seen = []
        room = runtime.session.room

        def noted(n_prompt, seen=seen, room=room):
            seen.append(n_prompt)
            return room(n_prompt)

        runtime.session.room = noted
        compared(runtime, tmp_path / arm, [arm], agentic=True)
        assert seen[0] == len(runtime.session.prompts[0])


# Transcripts


@pytest.fixture
def lost_and_found(tiny_runtime, tmp_path):
    """A folder with one run: a patch that found no place, and one that did."""
    record = ran(tiny_runtime, tmp_path, [LOST, ADDED, READ, *WORDS])
    return Folder(tmp_path), record


def lines_of(folder, record):
    return [json.loads(line) for line in folder.transcript(record.id).read_text().splitlines()]


def rewrite(folder, record, lines):
    text = "".join(json.dumps(line, ensure_ascii=False) + "\n" for line in lines)
    folder.transcript(record.id).write_text(text)


def edit_text(lines):
    next(line for line in lines if line["event"] == "turn")["text"] += " "


def edit_kind(lines):
    next(line for line in lines if line["event"] == "result" and not line["ok"])["error_kind"] = "ambiguous"


def edit_call(lines):
    turn = next(line for line in lines if line["event"] == "turn" and "calendar" in line["text"])
    turn["calls"][0]["arguments"]["patch"] = turn["calls"][0]["arguments"]["patch"].replace("calendar", "sys")


def edit_end(lines):
    lines[-1]["exit_reason"] = "done"


def drop_result(lines):
    lines.remove(next(line for line in lines if line["event"] == "result"))


EDITS = (edit_text, edit_kind, edit_call, edit_end, drop_result)


@pytest.mark.parametrize("edit", EDITS)
def test_an_edited_transcript_is_refused(lost_and_found, edit):
    folder, record = lost_and_found
    lines = lines_of(folder, record)
    edit(lines)
    rewrite(folder, record, lines)
    with pytest.raises(UserError, match="is not the transcript that the record is about"):
        judged_again(folder.path)


def test_a_patch_that_does_something_else_is_refused_whatever_the_record_says(lost_and_found):
    folder, record = lost_and_found
    lines = lines_of(folder, record)
    edit_call(lines)
    rewrite(folder, record, lines)
    data = folder.transcript(record.id).read_bytes()
    sha256 = hashlib.sha256(data).hexdigest()
    folder.rewrite([replace(record, written=replace(record.written, transcript_sha256=sha256))])
    with pytest.raises(UserError, match="the run does not come out the same"):
        judged_again(folder.path)


def test_a_missing_transcript_is_told(lost_and_found):
    folder, record = lost_and_found
    folder.transcript(record.id).unlink()
    with pytest.raises(UserError, match="No such file"):
        judged_again(folder.path)


def test_an_edited_judgement_is_found(lost_and_found):
    folder, record = lost_and_found
    folder.rewrite([replace(record, judgement=replace(record.judgement, outcome="passed"))])
    [change] = judged_again(folder.path).changes
    assert (change.record.judgement.outcome, change.now.outcome) == ("passed", "tests_failed")


def test_the_transcript_that_comes_along_is_that_of_the_record(tiny_runtime, tmp_path):
    """Two parts with the same run, at another time: one record stands for both, with its own transcript."""
    parts = [Folder(tmp_path / name) for name in ("1", "2")]
    for part in parts:
        ran(tiny_runtime, part.path, [raw(FIX), "Done."])
        part.begin(FACTS)
    merging.merge(parts, into := Folder(tmp_path / "all"))
    assert judged_again(into.path).changes == []
    assert TASK.name in into.transcript("run/dateparse/off/0").name
