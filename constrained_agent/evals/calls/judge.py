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
        kind: what is wrong, in one word: `repeated_call` (without those that are there twice it is the number that was
            expected), `too_many_calls`, `too_few_calls`, `wrong_tool`, `missing_argument`, `extra_argument`,
            `wrong_value`. Empty: the calls are those that were expected. Says nothing of schemas: the leaderboard takes
            some values that its own schemas refuse (`gluten free` where the enumeration has `Gluten Free`).
        reason: the same in a sentence; empty if nothing is wrong.
    """

    kind: str = ""
    reason: str = ""

    @property
    def right(self) -> bool:
        """Nothing is wrong."""
        return not self.kind


_RIGHT = Verdict()


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
    n_expected = len(item.expected)
    if len(calls) != n_expected:
        kind = "too_few_calls" if len(calls) < n_expected else "too_many_calls"
        if kind == "too_many_calls" and len(without_repeats(calls)) == n_expected:
            kind = "repeated_call"
        return Verdict(kind, f"{_counted(len(calls))}, expected {_counted(n_expected)}")
    schemas = {tool.name: tool.parameters for tool in item.tools}
    left = list(calls)
    for expected in item.expected:
        found = [_fault(call, expected, schemas[expected.name], item.exact) for call in left]
        if _RIGHT not in found:
            # The faults of a call of the same tool say more than that another has another name.
            named = [fault for fault in found if fault.kind != "wrong_tool"]
            return (named or found)[0]
        del left[found.index(_RIGHT)]
    return _RIGHT


def without_repeats(calls: Sequence[ToolCall]) -> list[ToolCall]:
    """The calls, of equal ones the first."""
    kept: list[ToolCall] = []
    for call in calls:
        if not any(call.name == one.name and values.same(call.arguments, [one.arguments]) for one in kept):
            kept.append(call)
    return kept


def _fault(call: ToolCall, expected: ExpectedCall, schema: values.Schema, exact: bool) -> Verdict:
    """What keeps a call from being the expected one."""
    if call.name != expected.name:
        return Verdict("wrong_tool", f"calls {call.name}, expected {expected.name}")
    for name in schema.get("required", ()):
        if name not in call.arguments:
            return Verdict("missing_argument", f"{call.name}: {name} is missing")
    for name, value in call.arguments.items():
        if name not in expected.arguments:
            return Verdict("extra_argument", f"{call.name}: {name} is not expected")
        right = expected.arguments[name]
        if not (
            values.same(value, right) if exact else values.fits(value, schema["properties"][name], right)
        ):
            wanted = " or ".join(map(_shown, right))
            return Verdict("wrong_value", f"{call.name}: {name} is {_shown(value)}, expected {wanted}")
    for name, right in expected.arguments.items():
        if name not in call.arguments and values.LEFT_OUT not in right:
            return Verdict("missing_argument", f"{call.name}: {name} is left out")
    return _RIGHT


def _shown(value: object) -> str:
    return shortened(repr(value), _MAX_SHOWN_CHARS)


def _counted(n_calls: int) -> str:
    return "1 call" if n_calls == 1 else f"{n_calls} calls"
