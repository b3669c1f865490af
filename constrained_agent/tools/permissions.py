"""What a run may do: decided by a tool's effect, before the tool runs."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import Any

from constrained_agent.errors import ToolError
from constrained_agent.messages import Effect, ToolSpec

Ask = Callable[[ToolSpec, Mapping[str, Any]], bool]
"""Puts a call (its spec and arguments) before a person; True lets it run."""


@dataclass(frozen=True, slots=True)
class Policy:
    """What the person at the command line allows.

    Reading is always allowed. Patches need no question: they stay inside the repository, land whole or not at
    all, and are shown as a diff. Commands can do anything, so each one is asked about unless `yes`.

    Attributes:
        read_only: neither patches nor commands.
        no_exec: no commands.
        yes: commands run without a question.
        ask: asks a person; None where there is none to ask (no terminal).
    """

    read_only: bool = False
    no_exec: bool = False
    yes: bool = False
    ask: Ask | None = None

    def offers(self, effect: Effect) -> bool:
        """Whether tools of this effect are on offer at all: the model is not told of the others."""
        if effect == "exec" and (self.no_exec or (self.ask is None and not self.yes)):
            return False
        return effect == "read" or not self.read_only

    def check(self, spec: ToolSpec, arguments: Mapping[str, Any]) -> None:
        """Let one call pass, asking if need be.

        Raises:
            ToolError: it must not run; the message tells the model what to do instead.
        """
        if not self.offers(spec.effect):
            raise ToolError(f"{spec.name} is not allowed: {self._refusal()}")
        if spec.effect != "exec" or self.yes:
            return
        if self.ask is not None and not self.ask(spec, arguments):
            raise ToolError(f"the person refused this {spec.name} call; do not repeat it, go on another way")

    def _refusal(self) -> str:
        """Why something is not on offer, and what the model can do instead."""
        if self.read_only:
            return "this run is read-only; go on without it"
        if self.no_exec:
            return "this run is without commands; go on without it"
        return (
            "commands need a yes, and there is no terminal to ask on "
            "(the person can start the run with --yes); go on without commands"
        )
