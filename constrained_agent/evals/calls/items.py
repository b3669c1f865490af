"""Values: a question, the tools on offer, and the calls that answer it."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from constrained_agent.messages import ToolSpec


@dataclass(frozen=True, slots=True)
class ExpectedCall:
    """One call that a right answer makes.

    Attributes:
        name: the tool.
        arguments: every argument that the call may have, with the values that are right for it. `""` among them
            means that the argument may be left out. How the values of objects are written is up to
            `CallItem.exact`.
    """

    name: str
    arguments: Mapping[str, Sequence[Any]]


@dataclass(frozen=True, slots=True)
class CallItem:
    """One question.

    Attributes:
        id: unique over all sets.
        set: where it comes from: a set of the leaderboard (`bfcl.SETS`), or `own`.
        prompt: the user's message.
        tools: the tools on offer; the objects in their schemas are closed, unless their keys are not known.
        expected: the calls, each to be made once, in any order.
        parallel: more than one call may be expected.
        exact: arguments must equal a value in the list. False: they are compared as the leaderboard does
            (`judge`), and an object in the list holds, in its turn, a list of right values for each key.
    """

    id: str
    set: str
    prompt: str
    tools: tuple[ToolSpec, ...]
    expected: tuple[ExpectedCall, ...]
    parallel: bool
    exact: bool = False


def expected_calls(
    ground_truth: Sequence[Mapping[str, Mapping[str, Sequence[Any]]]],
) -> tuple[ExpectedCall, ...]:
    """From the leaderboard's way of writing them: `[{NAME: {ARGUMENT: [VALUE, ...]}}, ...]`."""
    return tuple(ExpectedCall(name, arguments) for call in ground_truth for name, arguments in call.items())
