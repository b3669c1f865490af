"""What a run is given and what it gives back."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass

from constrained_agent.agent.budget import ExitReason, Limits
from constrained_agent.agent.prompt import Part, Size, system_parts
from constrained_agent.agent.turn import Decoding
from constrained_agent.grammar.carriers import by_name
from constrained_agent.messages import ToolSpec, Usage


@dataclass(frozen=True, slots=True)
class Settings:
    """How a run goes.

    Attributes:
        decoding: how answers are decoded.
        limits: what it may spend.
        prompt_size: full or compact.
        first_tool: tool that the first answer must call; None leaves it free.
        test_command: decides whether the task is done; run after each turn that changed files and at the end.
        stop_hook: a command that is asked as well when the model says that it is done: exit code 0 lets it stop.
        max_verifications: finished answers that the two may refuse before the run is given up.
    """

    decoding: Decoding
    limits: Limits
    prompt_size: Size = "full"
    first_tool: str | None = None
    test_command: str | None = None
    stop_hook: str | None = None
    max_verifications: int = 5

    def system(
        self, tools: Sequence[ToolSpec], tool_block: Callable[[Sequence[ToolSpec]], str]
    ) -> tuple[Part, ...]:
        """The parts of the system message of such a run.

        Args:
            tools: those on offer.
            tool_block: how the model's dialect lists tools.
        """
        return system_parts(
            tools,
            self.prompt_size,
            tool_block,
            headers=self.decoding.level != "located",
            carrier=by_name(self.decoding.carrier),
            parallel=self.decoding.parallel,
        )


@dataclass(frozen=True, slots=True)
class RunResult:
    """How a run ended.

    Attributes:
        exit_reason: why it ended.
        answer: the model's last words.
        tests_passed: outcome of the test command on the final state; None without one, or if it was not run.
        turns: answers of the model.
        changed_files: paths that the run's patches changed.
        diff: what they changed, from the state before the run.
        usage: token counts over all turns.
        failures: how often each class of failure came.
        prompt_parts: tokens of each part of the prompt; their sum is the first prompt.
        last_error: the tool or model error that came last; empty if none.
    """

    exit_reason: ExitReason
    answer: str
    tests_passed: bool | None
    turns: int
    changed_files: tuple[str, ...]
    diff: str
    usage: Usage
    failures: Mapping[str, int]
    prompt_parts: Mapping[str, int]
    last_error: str

    @property
    def succeeded(self) -> bool:
        """The tests decide where there are any and something was done; else a finished answer counts. Where the run
        ended since it was not taken as done (by tests or by the stop hook), it did not succeed."""
        if self.exit_reason == "tests_failed":
            return False
        if self.tests_passed is None or not self.changed_files:
            return self.exit_reason == "done"
        return self.tests_passed
