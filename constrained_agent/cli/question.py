"""How a person is asked whether a call may run."""

from __future__ import annotations

from collections.abc import Mapping
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from constrained_agent.messages import ToolSpec
    from constrained_agent.tools.commands import Verdict


def question(spec: ToolSpec, arguments: Mapping[str, Any], verdict: Verdict | None) -> str:
    """What the call is, and what it may do, in one line each."""
    # As Python writes strings: a command must not be able to redraw the question.
    shown = ", ".join(f"{key}={value!r}" for key, value in arguments.items())
    why = f"{verdict.risk}: {verdict.part!r} {verdict.reason!s}\n" if verdict else ""
    return f"{why}run {spec.name}: {shown}"
