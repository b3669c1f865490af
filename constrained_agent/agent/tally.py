"""What one run has counted so far, and what that comes to at its end."""

from __future__ import annotations

from collections import Counter
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field

from constrained_agent.agent.budget import Budget, ExitReason
from constrained_agent.agent.values import RunResult
from constrained_agent.agent.verifier import Verifier
from constrained_agent.messages import Usage
from constrained_agent.tools.changes import Changes

_LATER_PARTS = ("notes", "added")
"""Parts of a prompt that were not there when the run began."""


@dataclass(slots=True)
class Tally:
    """One run.

    Attributes:
        task: what the person wants, with what was added meanwhile.
        answer: the model's last words so far.
        last_error: the tool or model error that came last.
        commands: whether a command changed files.
        reminded: failures that the model was reminded of.
    """

    budget: Budget
    verifier: Verifier
    task: str = ""
    usage: Usage = field(default_factory=Usage)
    failures: Counter[str] = field(default_factory=Counter)
    answer: str = ""
    last_error: str = ""
    commands: bool = False
    reminded: set[str] = field(default_factory=set)

    def add(self, texts: Sequence[str]) -> None:
        """The person wants more than at first: what the model was reminded of before is forgotten."""
        self.task = "\n".join([self.task, *texts])
        self.answer = ""
        self.reminded.clear()

    def result(self, reason: ExitReason, changes: Changes, parts: Mapping[str, int]) -> RunResult:
        """How the run ended.

        Args:
            changes: what its patches changed.
            parts: tokens by part, of all that was said.
        """
        return RunResult(
            exit_reason=reason,
            answer=self.answer,
            tests_passed=None if self.verifier.tests is None else self.verifier.tests.ok,
            turns=self.budget.n_turns,
            changed_files=changes.paths,
            diff=changes.diff,
            usage=self.usage,
            failures=dict(self.failures),
            prompt_parts={name: n for name, n in parts.items() if name not in _LATER_PARTS},
            last_error=self.last_error,
        )
