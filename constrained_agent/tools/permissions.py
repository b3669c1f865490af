"""What a run may do: decided by a tool's effect, and for commands by what they say, before the tool runs.

| class of the command | asked (the default) | `--yes` | nobody to ask |
|---|---|---|---|
| read-only | runs | runs | runs |
| writes | a question | runs | refused |
| remote-changing, dangerous | a question | a question | refused |

Tools that read run unasked, too, except for a look into a file of credentials: that is as dangerous as `cat .env`.

A rule that denies refuses in every case, a rule that asks asks in every case, a rule that allows takes a question away
(see `rules`).
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import TYPE_CHECKING, Any

from constrained_agent.errors import ToolError
from constrained_agent.messages import Effect, ToolSpec
from constrained_agent.tools.rules import Rules, fits

if TYPE_CHECKING:
    from constrained_agent.tools.commands import Simple, Verdict

Ask = Callable[[ToolSpec, Mapping[str, Any], "Verdict"], bool]
"""Puts a call (its spec and arguments, and what its command may do) before a person; True lets it run."""

Judge = Callable[[str, Path | None, Mapping[str, str] | None], "Verdict"]
"""Classes a command line, given where it runs and what variables it gets."""

MAX_LISTED = 3
"""Parts of one command line that a refusal names."""

MAX_PATH_CHARS = 80
"""Of a path in a question."""


@dataclass(frozen=True, slots=True)
class Policy:
    """What the person at the command line allows.

    Reading is allowed, except for credentials. Patches need no question: they stay inside the repository, land whole
    or not at all, and are shown as a diff. Commands can do anything: see the table above.

    Attributes:
        read_only: neither patches nor commands.
        no_exec: no commands.
        yes: commands that may change files run without a question.
        ask: asks a person; None where there is none to ask (no terminal).
        rules: what was said beforehand.
        environment: the variables that commands get.
        judge: classes a command line; None for `classify_apart`.
    """

    read_only: bool = False
    no_exec: bool = False
    yes: bool = False
    ask: Ask | None = None
    rules: Rules = field(default_factory=Rules)
    environment: Mapping[str, str] | None = field(default=None, repr=False)
    judge: Judge | None = None

    def offers(self, effect: Effect) -> bool:
        """Whether tools of this effect are on offer at all: the model is not told of the others."""
        may_run = self.ask is not None or self.yes or self.rules.allow
        if effect == "exec" and (self.no_exec or not may_run):
            return False
        return effect == "read" or not self.read_only

    def check(self, spec: ToolSpec, arguments: Mapping[str, Any], root: Path | None = None) -> None:
        """Let one call pass, asking if need be. Cost: for a command a quarter of a second, and the person's time.

        Args:
            root: where commands run; None for a place that is not known.

        Raises:
            ToolError: it must not run; the message tells the model what to do instead.
        """
        if not self.offers(spec.effect):
            raise ToolError(f"{spec.name} is not allowed: {self._refusal()}")
        if spec.effect != "exec":
            return
        from constrained_agent.tools.commands.apart import classify_apart

        judge = self.judge or classify_apart
        self._pass(spec, arguments, judge(str(arguments.get("command", "")), root, self.environment))

    def check_credentials(self, spec: ToolSpec, arguments: Mapping[str, Any], path: str) -> None:
        """Let a look into a file of credentials pass: a person is asked, as about a command that reads it.

        Raises:
            ToolError: it must not be; the message tells the model what to do instead.
        """
        from constrained_agent.tools.commands import Simple, Verdict
        from constrained_agent.tools.commands.verdict import danger, shortened

        judged = danger(f"reads credentials ({path[:MAX_PATH_CHARS]})")
        text, part = f"{spec.name} {path}", shortened(path)
        one = Simple(text, judged.risk, judged.reason, part, spellings=(f"cat {path}",))
        self._pass(spec, arguments, Verdict(judged.risk, part, judged.reason, (one,)))

    def _pass(self, spec: ToolSpec, arguments: Mapping[str, Any], verdict: Verdict) -> None:
        """Hold a verdict against the rules, and ask if need be."""
        if denied := self._denied(verdict):
            raise ToolError(denied)
        questions = [one for one in verdict.commands if not self._runs_unasked(one)]
        if not questions:
            return
        if self.ask is None:
            raise ToolError(_unasked(questions))
        if not self.ask(spec, arguments, verdict):
            raise ToolError(f"the person refused this {spec.name} call; do not repeat it, go on another way")

    def _denied(self, verdict: Verdict) -> str | None:
        """Why a rule forbids the line, if one does."""
        for one in verdict.commands:
            if pattern := fits(self.rules.deny, (one.text, *one.spellings)):
                return (
                    f"refused: a rule of the person denies {pattern!r}, and the call holds {one.text!r}; "
                    "do not look for another spelling, go on another way"
                )
        return None

    def _runs_unasked(self, one: Simple) -> bool:
        """Whether one simple command of a line needs no question."""
        from constrained_agent.tools.commands import Risk

        if fits(self.rules.ask, (one.text, *one.spellings)):
            return False
        if one.risk is Risk.READ_ONLY or one.looked_through:
            return True
        if one.risk is Risk.DANGEROUS:
            return False
        allowed = one.certain and fits(self.rules.allow, (one.text,)) is not None
        if one.risk is Risk.REMOTE_CHANGING:
            return allowed
        return (
            self.yes
            or allowed
            or (one.certain and fits(self.rules.repository_allow, (one.text,)) is not None)
        )

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


def _unasked(questions: list[Simple]) -> str:
    """Why a command cannot run where nobody can be asked; the heaviest parts first."""
    heaviest = sorted(questions, key=lambda one: one.risk, reverse=True)[:MAX_LISTED]
    parts = "; ".join(dict.fromkeys(f"{one.part!r} ({one.risk}: it {one.reason})" for one in heaviest))
    return (
        f"refused: {parts}. Only a person may allow that, and there is no terminal to ask on. Do not look for another "
        "spelling: go on without it, and say in your answer what the person should do"
    )
