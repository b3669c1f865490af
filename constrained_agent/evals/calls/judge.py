"""Whether the calls of an answer are right."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from constrained_agent.evals.calls import values
from constrained_agent.evals.calls.items import CallItem, ExpectedCall
from constrained_agent.messages import ToolCall
from constrained_agent.tools.output import shortened

_MAX_SHOWN_CHARS = 200  # of a value


@dataclass(frozen=True, slots=True)
class Verdict:
    """What is to be said of an answer.

    Attributes:
        right: the calls are those that were expected. Says nothing of schemas: the leaderboard takes some values
            that its own schemas refuse (`gluten free` where the enumeration has `Gluten Free`).
        reason: why not; empty if right.
    """

    right: bool
    reason: str


def judge(item: CallItem, calls: Sequence[ToolCall]) -> Verdict:
    """Judge an answer by the rules of the leaderboard's check of calls.

    As many calls as expected, each expected one matched once, in any order: for each in turn the first call that
    fits it and is not taken. A call fits that has the name, all required arguments, none that is not expected, and
    right values (`values.fits`; `values.same` in an exact item); an argument that is not there must be one that may
    be left out. Under a millisecond.

    Args:
        item: the question.
        calls: all calls of the answer, in order; those that could not be read are not among them.
    """
    reason = _mismatch(item, calls)
    return Verdict(not reason, reason)


def _mismatch(item: CallItem, calls: Sequence[ToolCall]) -> str:
    if len(calls) != len(item.expected):
        return f"{_counted(len(calls))}, expected {_counted(len(item.expected))}"
    schemas = {tool.name: tool.parameters for tool in item.tools}
    left = list(calls)
    for expected in item.expected:
        faults = [_fault(call, expected, schemas[expected.name], item.exact) for call in left]
        if "" not in faults:
            # The faults of a call of the same tool say more than that another has another name.
            named = [fault for call, fault in zip(left, faults, strict=True) if call.name == expected.name]
            return (named or faults)[0]
        del left[faults.index("")]
    return ""


def _fault(call: ToolCall, expected: ExpectedCall, schema: values.Schema, exact: bool) -> str:
    """What keeps a call from being the expected one; empty if nothing does."""
    if call.name != expected.name:
        return f"calls {call.name}, expected {expected.name}"
    for name in schema.get("required", ()):
        if name not in call.arguments:
            return f"{call.name}: {name} is missing"
    for name, value in call.arguments.items():
        if name not in expected.arguments:
            return f"{call.name}: {name} is not expected"
        right = expected.arguments[name]
        if not (
            values.same(value, right) if exact else values.fits(value, schema["properties"][name], right)
        ):
            return f"{call.name}: {name} is {_shown(value)}, expected {' or '.join(map(_shown, right))}"
    for name, right in expected.arguments.items():
        if name not in call.arguments and values.LEFT_OUT not in right:
            return f"{call.name}: {name} is left out"
    return ""


def _shown(value: object) -> str:
    return shortened(repr(value), _MAX_SHOWN_CHARS)


def _counted(n_calls: int) -> str:
    return "1 call" if n_calls == 1 else f"{n_calls} calls"
