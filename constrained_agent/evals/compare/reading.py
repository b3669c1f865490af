"""What an answer sends: calls, or the first thing that keeps it from being one. Pure, and without a model."""

from __future__ import annotations

import json
import re
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

from constrained_agent.errors import PatchError
from constrained_agent.evals.compare.arms import Arm
from constrained_agent.evals.compare.records import Written
from constrained_agent.grammar import carriers
from constrained_agent.grammar.answers import AnswerReader, Fault
from constrained_agent.grammar.toolcalls import Markers
from constrained_agent.messages import ToolCall, ToolSpec
from constrained_agent.patch import Patch, parse
from constrained_agent.tools.arguments import violations
from constrained_agent.tools.registry import APPLY_PATCH

_BLOCK = re.compile(r"^```([^`\n]*)\n(.*?)(^```[ \t\r]*$|\Z)", re.DOTALL | re.MULTILINE)
"""A code block: its language, what is in it, and its end, which is empty where it never ends."""

_SHELLS = ("", "sh", "bash", "shell", "zsh", "console")

_NOTHING_YET = ("no_call", "no_answer", "thinking_unclosed", "cut")
"""Failures that an answer which was ended too early owes to that end."""

_SECTION = re.compile(r"\*\*\* (?:Add|Update|Delete) File: (.*)")

_LONGEST_ESCAPE = 6  # characters of JSON: \u1234


@dataclass(frozen=True, slots=True)
class Failure:
    """Why an answer sends nothing that can be run.

    Attributes:
        outcome: one of `outcomes.OUTCOMES`.
        error_kind: of a patch error.
        at: character of the text, if a place is known.
    """

    outcome: str
    message: str = ""
    error_kind: str = ""
    at: int | None = None


@dataclass(frozen=True, slots=True)
class Sent:
    """What an answer sends.

    Attributes:
        calls: those that can be read and fit their schema, up to the first failure.
        failure: the first one.
        parses: there is a call, and nothing that cannot be read; also where arguments do not fit their schema.
    """

    calls: tuple[ToolCall, ...]
    failure: Failure | None = None
    parses: bool = False


def sent(arm: Arm, tools: Sequence[ToolSpec], markers: Markers, written: Written) -> Sent:
    """Read an answer as what its arm asked for; whether it is a whole one is not asked here.

    Args:
        tools: those that were on offer.
        markers: how the model marks calls.
    """
    if arm.form == "prompt-json":
        return _json_object(written.text, cut=not written.whole)
    if arm.form == "regex":
        return _shell_block(written.text)
    return _calls(tools, markers, written)


def read_calls(tools: Sequence[ToolSpec], markers: Markers, written: Written) -> list[ToolCall]:
    """All calls of an answer that can be read, whether or not they fit their schema."""
    items = AnswerReader(tools, markers).read_pieces(written.pieces, cut=not written.whole).items
    return [item for item in items if isinstance(item, ToolCall)]


def first_failure(failure: Failure | None, written: Written) -> Failure | None:
    """What went wrong first: that something cannot be read, or that the answer was ended before it was whole."""
    end = ended(written)
    if end is None or (failure is not None and failure.outcome not in _NOTHING_YET):
        return failure
    return end


def ended(written: Written) -> Failure | None:
    """That an answer did not end by itself; nothing of it is run then."""
    at = len(written.text)
    if written.whole:
        return None
    if written.stop_reason == "repetition":
        return Failure("loop", "the answer was ended for repeating itself", at=at)
    return Failure("cut", f"the answer was ended by a limit ({written.stop_reason})", at=at)


def patches_of(calls: Sequence[ToolCall], text: str) -> tuple[list[Patch], Failure | None]:
    """The patches of calls by the strict grammar, up to the first that is none.

    Args:
        text: of the answer, for the place of an error.
    """
    found: list[Patch] = []
    for call in calls:
        patch = str(call.arguments["patch"])
        try:
            found.append(parse(patch, lenient=False).patch)
        except PatchError as error:
            at = place_of_line(text, patch, error.lines[0] if error.lines else None)
            return found, Failure("patch_unparsable", str(error), error.kind, at)
    return found, None


def place_of_line(text: str, patch: str, line: int | None) -> int | None:
    """The character at which a line of a patch (from 1) stands in a text, raw or as a string of JSON; else None."""
    before = "".join(f"{one}\n" for one in patch.split("\n")[: (line or 1) - 1])
    for carrier in (carriers.FREEFORM, carriers.JSON):
        start = text.find(carrier.spell(patch)) if patch else -1
        if start >= 0:
            return start + len(carrier.spell(before))
    return None


def line_of_hunk(patch: str, path: str | None, hunk: int | None) -> int | None:
    """The line of a patch (from 1) at which a hunk begins, or its file's section if no hunk is named.

    Args:
        path: of the section.
        hunk: its number in the section, from 1.
    """
    there, n_hunks, before = False, 0, ""
    for number, line in enumerate(patch.split("\n"), 1):
        if section := _SECTION.match(line):
            there, n_hunks = section[1].strip() == path, 0
            if there and hunk is None:
                return number
        elif there and line[:1] in ("@", " ", "+", "-", ""):
            # Its first line: `@@`, unless another one stands above, or in the first hunk any other.
            n_hunks += (line[:1] == "@" and before[:1] != "@") or (line[:1] != "@" and before[:1] == "*")
            if n_hunks == hunk:
                return number
        before = line
    return None


def _calls(tools: Sequence[ToolSpec], markers: Markers, written: Written) -> Sent:
    answer = AnswerReader(tools, markers).read_pieces(written.pieces, cut=not written.whole)
    if not answer.thinking_closed:
        return Sent((), Failure("thinking_unclosed", "the thinking block never ended", at=len(written.text)))
    if not answer.items:
        nothing = Failure("no_call", "there is no call in the answer")
        return Sent((), nothing if answer.text else Failure("no_answer", "the answer is empty"))
    parses = not answer.faults
    calls: list[ToolCall] = []
    for item, start in zip(answer.items, answer.starts, strict=True):
        if isinstance(item, Fault):
            at = start if item.at is None else item.at
            return Sent(tuple(calls), Failure(item.kind, item.message, at=at))
        spec = next(tool for tool in tools if tool.name == item.name)
        if wrong := violations(spec, item.arguments):
            return Sent(tuple(calls), Failure("schema_violated", "; ".join(wrong), at=start), parses)
        calls.append(item)
    return Sent(tuple(calls), None, parses)


def _shell_block(text: str) -> Sent:
    """The first block of shell commands; blocks of other languages are passed over."""
    found = next((one for one in _BLOCK.finditer(text) if one[1].strip().lower() in _SHELLS), None)
    if found is None:
        nothing = Failure("no_call", "there is no shell block in the answer")
        return Sent((), nothing if text.strip() else Failure("no_answer", "the answer is empty"))
    if not found[3]:
        return Sent((), Failure("wrapper_unclosed", "the shell block never ends", at=len(text)))
    return Sent((ToolCall("call_1", "shell", {"command": found[2]}),), None, True)


def _json_object(text: str, *, cut: bool) -> Sent:
    """The one JSON object that was agreed on: `{"tool": "apply_patch", "patch": "..."}`.

    Args:
        cut: the answer was ended before it was whole.
    """
    start = _object_start(text)
    if start < 0:
        nothing = Failure("no_call", "there is no JSON object in the answer")
        return Sent((), nothing if text.strip() else Failure("no_answer", "the answer is empty"))
    try:
        value, _ = json.JSONDecoder().raw_decode(text, start)
    except json.JSONDecodeError as error:
        if cut and (error.msg.startswith("Unterminated") or len(text) - error.pos < _LONGEST_ESCAPE):
            return Sent((), Failure("cut", "the object never ends", at=len(text)))
        return Sent((), Failure("json_invalid", f"{error.msg} at position {error.pos}", at=error.pos))
    except (ValueError, RecursionError) as error:
        return Sent((), Failure("json_invalid", str(error), at=start))
    return _agreed(value, start)


def _object_start(text: str) -> int:
    """Where the answer's object begins: at once, or in a code block, or after some words; -1 if nowhere."""
    if not text.lstrip().startswith("{"):
        for block in _BLOCK.finditer(text):
            if "{" in block[2]:
                return block.start(2) + block[2].index("{")
    return text.find("{")


def _agreed(value: Any, at: int) -> Sent:
    shape = 'the object has the keys "tool" and "patch", two strings'
    if not isinstance(value, dict) or set(value) != {"tool", "patch"}:
        return Sent((), Failure("wrong_shape", shape, at=at))
    if not all(isinstance(one, str) for one in value.values()):
        return Sent((), Failure("wrong_shape", shape, at=at))
    if value["tool"] != APPLY_PATCH.name:
        return Sent((), Failure("unknown_tool", f"there is no tool {value['tool']!r}", at=at))
    return Sent((ToolCall("call_1", APPLY_PATCH.name, {"patch": value["patch"]}),), None, True)
