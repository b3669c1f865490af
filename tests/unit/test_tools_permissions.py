"""Who may do what, by effect."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import pytest

from constrained_agent.errors import ToolError
from constrained_agent.messages import Effect, ToolSpec
from constrained_agent.tools.permissions import Policy


def _spec(effect: Effect) -> ToolSpec:
    return ToolSpec("tool", "", {}, effect)


def _yes(spec: ToolSpec, arguments: Mapping[str, Any]) -> bool:
    return True


def _no(spec: ToolSpec, arguments: Mapping[str, Any]) -> bool:
    return False


@pytest.mark.parametrize(
    ("policy", "offered", "allowed"),
    [
        (Policy(), "read write", "read write"),  # nobody to ask
        (Policy(ask=_yes), "read write exec", "read write exec"),
        (Policy(ask=_no), "read write exec", "read write"),
        (Policy(yes=True), "read write exec", "read write exec"),
        (Policy(yes=True, ask=_no), "read write exec", "read write exec"),
        (Policy(no_exec=True, yes=True), "read write", "read write"),
        (Policy(read_only=True, yes=True), "read", "read"),
        (Policy(read_only=True, no_exec=True, ask=_yes), "read", "read"),
    ],
)
def test_policies(policy: Policy, offered: str, allowed: str) -> None:
    effects: tuple[Effect, ...] = ("read", "write", "exec")
    assert " ".join(effect for effect in effects if policy.offers(effect)) == offered
    for effect in effects:
        if effect in allowed.split():
            policy.check(_spec(effect), {})
        else:
            with pytest.raises(ToolError):
                policy.check(_spec(effect), {})


def test_the_question_holds_the_call() -> None:
    asked = []

    def ask(spec: ToolSpec, arguments: Mapping[str, Any]) -> bool:
        asked.append((spec.name, arguments))
        return True

    policy = Policy(ask=ask)
    policy.check(_spec("read"), {})
    policy.check(_spec("write"), {})
    policy.check(_spec("exec"), {"command": "make"})
    assert asked == [("tool", {"command": "make"})]


def test_messages_tell_the_model_what_to_do() -> None:
    with pytest.raises(ToolError, match="no terminal to ask on"):
        Policy().check(_spec("exec"), {})
    with pytest.raises(ToolError, match="the person refused"):
        Policy(ask=_no).check(_spec("exec"), {})
    with pytest.raises(ToolError, match="read-only"):
        Policy(read_only=True).check(_spec("write"), {})
