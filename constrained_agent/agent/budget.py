"""When a run has gone on long enough: turns, tokens, time, and the same call over and over."""

from __future__ import annotations

import json
import time
from collections.abc import Sequence
from dataclasses import dataclass, field
from typing import Any, Literal

from constrained_agent.grammar.answers import Fault
from constrained_agent.messages import ToolCall

ExitReason = Literal[
    "done",
    "no_answer",
    "max_turns",
    "time_limit",
    "token_budget",
    "repeated_calls",
    "truncated",
    "thinking_limit",
    "thinking_unclosed",
    "tests_failed",
    "interrupted",
    "model_error",
]

REPEATS_TO_WARN, REPEATS_TO_STOP = 2, 3
"""Rounds of the same calls (A, A or A, B, A, B): the second is answered with one warning, the third is not run."""

_LONGEST_ROUND = 4
"""Turns of a round that is looked for."""

RUN_TOKENS = 200_000
"""Generated in a run whose turns have no limit."""

LEAST_TOKENS = 64
"""An answer may take so many however little is left: a short one, or a small call, fits. By so much, twice (the last
answer and the last words), a run may go past its limit of tokens."""

MAX_CUTS = 3
"""Answers cut by a limit before the run is given up: the model has been told twice to split its work."""


@dataclass(frozen=True, slots=True)
class Limits:
    """What a run may spend.

    Attributes:
        max_turns: answers of the model; 0 = no limit but that of tokens.
        max_run_tokens: tokens generated over all answers, the last words included (see `LEAST_TOKENS`); None = as many
            as the turns allow, or `RUN_TOKENS`.
        time_limit_s: seconds for the whole run; None = no limit.
    """

    max_turns: int = 8
    max_run_tokens: int | None = None
    time_limit_s: float | None = None


@dataclass(slots=True)
class Budget:
    """Counts one run against its limits; starts its clock when made."""

    limits: Limits
    n_turns: int = 0
    n_tokens: int = 0
    n_cuts: int = 0
    _started: float = field(default_factory=time.monotonic)
    _calls: list[str] = field(default_factory=list)
    _warned: bool = False

    @property
    def deadline(self) -> float | None:
        """`time.monotonic()` value at which the time is up."""
        limit = self.limits.time_limit_s
        return None if limit is None else self._started + limit

    def spent(self) -> ExitReason | None:
        """Why no further turn may start, or None."""
        if self.deadline is not None and time.monotonic() >= self.deadline:
            return "time_limit"
        if self._n_left is not None and self._n_left <= 0:
            return "token_budget"
        if self.limits.max_turns and self.n_turns >= self.limits.max_turns:
            return "max_turns"
        return None

    @property
    def _n_left(self) -> int | None:
        """Tokens that may still be generated; None: there is no limit."""
        limit = self.limits.max_run_tokens
        if limit is None:
            limit = None if self.limits.max_turns else RUN_TOKENS
        return None if limit is None else limit - self.n_tokens

    def room(self, max_tokens: int) -> int:
        """Tokens that an answer may take: `max_tokens`, or what the run has left, but no less than `LEAST_TOKENS`."""
        return max_tokens if self._n_left is None else min(max_tokens, max(LEAST_TOKENS, self._n_left))

    def forget_calls(self) -> None:
        """An answer without calls came between: the next call is no repeat."""
        self._calls.clear()
        self._warned = False

    def repeats(self, items: Sequence[ToolCall | Fault]) -> int:
        """Record the calls of a turn, unreadable ones too; returns how many rounds of the same calls end with it, 1
        if it is none.

        Calls that succeeded count too: a model that reads one file for ever is as stuck as one that errs.
        """
        self._calls.append(json.dumps([_what(item) for item in items], sort_keys=True))
        n = max(_rounds(self._calls, length) for length in range(1, _LONGEST_ROUND + 1))
        self._warned = self._warned and n >= REPEATS_TO_WARN
        return n

    def warns(self, n_rounds: int) -> bool:
        """Whether the model is to be warned of so many rounds: once, until it does something else."""
        is_first = n_rounds >= REPEATS_TO_WARN and not self._warned
        self._warned = self._warned or is_first
        return is_first


def _what(item: ToolCall | Fault) -> list[Any]:
    if isinstance(item, ToolCall):
        return [item.name, item.arguments]
    return [item.kind, item.message, item.at]  # the message quotes the text, or its length tells texts apart


def _rounds(items: Sequence[str], length: int) -> int:
    """How many times the last `length` items stand at the end, one after the other."""
    last = items[-length:]
    n = 1
    while len(last) == length and items[-(n + 1) * length : -n * length] == last:
        n += 1
    return n
