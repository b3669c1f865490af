"""One generation, step by step: what is drawn, what follows from it, and when to stop.

Each step starts the forward pass, computes the bitmask on the CPU meanwhile, then masks, draws, consumes,
and feeds the tokens that the grammar forces along with the drawn one. Where the mask is wide (free text), the
next pass is queued on the token that is still being drawn, so the device never waits for Python.
"""

from __future__ import annotations

import time
from collections.abc import Callable, Collection, Sequence
from dataclasses import dataclass, field
from typing import Literal, cast

import mlx.core as mx
import numpy as np
from numpy.typing import NDArray

from constrained_agent.decode import mask
from constrained_agent.decode.ahead import Ahead
from constrained_agent.decode.clock import Clock
from constrained_agent.decode.needs import Constraint, Drafts, Model, NoDrafts
from constrained_agent.decode.repetition import repeats
from constrained_agent.decode.sampling import Sampling, sample, sample_masked
from constrained_agent.errors import DeadEndError

# Draws at one place before the text is closed: where so many of the model's wishes cost too much, the end is near.
_MAX_DRAWS = 8

# Tokens after a refused one within which an end counts as brought about by the limit.
_NEAR_LIMIT = 32

# Up to so many allowed tokens, their logits are gathered instead of masking the whole width.
_GATHER_LIMIT = 256

StopReason = Literal[
    "complete",
    "end_token",
    "length",
    "closed_by_budget",
    "thinking_limit",
    "time_limit",
    "repetition",
    "interrupted",
]
"""complete: the grammar admits nothing more. end_token: the model ended a text that the grammar accepts.
length: `max_tokens` were written, and no construct was cut. closed_by_budget: the text was brought to its end
because the limit was near. thinking_limit: the same, and nothing but thinking had been written. time_limit,
repetition: the same because of the deadline, or because the model wrote one span over and over. interrupted: Ctrl-C."""


WHOLE: tuple[StopReason, ...] = ("complete", "end_token")
"""Reasons of a text that ended by itself."""


@dataclass(frozen=True, slots=True)
class Thinking:
    """Where a thinking block ends, and how long it may be.

    Attributes:
        open_id, close_id: its marker tokens.
        max_tokens: after so many the block is closed and the answer goes on.
    """

    open_id: int
    close_id: int
    max_tokens: int


OnTokens = Callable[[Sequence[int], bool], None]
"""Called with tokens as they are settled, and whether they were forced."""


@dataclass(frozen=True, slots=True)
class _Drawn:
    """A drawn token, the logits (1, V) of a pass that is queued on it already, and where it leads to."""

    token: int
    following: mx.array | None
    ahead: Constraint
    forced: list[int]


@dataclass(slots=True)
class Steps:
    """The state of one generation."""

    model: Model
    constraint: Constraint
    sampling: Sampling
    max_tokens: int
    deadline: float | None
    thinking: Thinking | None
    on_tokens: OnTokens
    blank_ids: Collection[int] = ()
    drafts: Drafts = field(default_factory=NoDrafts)
    clock: Clock = field(default_factory=Clock)
    tokens: list[int] = field(default_factory=list)
    flags: list[bool] = field(default_factory=list)
    end_token: int | None = None
    thinking_cut: bool = False
    narrowed_at: int | None = None  # where a token was last refused because what it leads to is too long
    n_copied: int = 0  # tokens up to the last copied one
    mask_us: list[float] = field(default_factory=list)
    passes: Ahead = field(init=False)
    _wide: bool = False  # whether the mask of the last draw allowed most tokens
    _untold: list[tuple[list[int], bool]] = field(default_factory=list)  # settled, not reported yet

    def __post_init__(self) -> None:
        self.passes = Ahead(self.model, self.drafts, self.clock)

    def run(self, last_prompt_id: int, *, late: bool) -> StopReason:
        """Draw tokens until the constraint, the model or a limit ends it; `late`: the deadline has passed."""
        try:
            reason = self.close("time_limit") if late else self._loop(last_prompt_id)
            self.passes.drop()
            return reason
        finally:
            self._tell()

    @property
    def _n_left(self) -> int:
        return self.max_tokens - len(self.tokens)

    @property
    def n_steps(self) -> int:
        """Passes after that of the prompt's last id."""
        return max(0, self.passes.n_passes - 1)

    def _loop(self, last_prompt_id: int) -> StopReason:
        ahead, forced = self._after([])
        self._settle(ahead, [], forced)
        if self.constraint.stopped:
            return "complete"
        logits = self.passes.forward([last_prompt_id, *forced], self.constraint, self._n_left)  # (V,)
        key = mx.random.key(self.sampling.seed)
        while len(self.tokens) < self.max_tokens:
            key, draw_key = mx.random.split(key)
            if self.deadline is not None and time.monotonic() >= self.deadline:
                return self.close("time_limit")
            drawn = self._draw(logits, draw_key)
            if drawn is None:
                return self.close("closed_by_budget")
            if drawn.token in self.constraint.end_ids:
                self.end_token = drawn.token
                return self._ended("end_token")
            self._settle(drawn.ahead, [drawn.token], drawn.forced)
            if self.constraint.stopped:
                return self._ended("complete")
            repeating = self._repeats()
            forced = [*drawn.forced, *self._end_thinking(at_once=repeating)]
            if repeating and forced == drawn.forced:
                return self.close("repetition")
            if len(self.tokens) < self.max_tokens:
                logits = self._advance(drawn, forced)
        return "length"

    def _repeats(self) -> bool:
        """Whether the model goes round in circles; what it copies does not count."""
        if self.constraint.copying:
            self.n_copied = len(self.tokens)
        return repeats(self.tokens, self.blank_ids, self.n_copied)

    def _draw(self, logits: mx.array, key: mx.array) -> _Drawn | None:
        """Draw a token after which a whole text still fits into the budget; None where none was drawn.

        Args:
            logits: (V,), still being computed.
            key: random key of this draw.

        Raises:
            DeadEndError: the constraint allows no token at all.
        """
        self._tell()  # while the pass runs, as all of this
        words = self._bitmask()
        n_allowed = mask.count(words)
        if n_allowed == 0:
            raise DeadEndError(self._so_far())
        for attempt in range(min(n_allowed, _MAX_DRAWS)):
            draw_key = mx.random.split(key)[1] if attempt else key
            token, following = self._pick(logits, words, n_allowed - attempt, draw_key)
            if token in self.constraint.end_ids:
                return _Drawn(token, following, self.constraint, [])
            ahead, forced = self._after([token])
            if self._fits(ahead, 1 + len(forced)):
                return _Drawn(token, following, ahead, forced)
            # Not offered any more; and the pass that was queued on it never happened.
            words[token // 32] &= ~np.uint32(1 << (token % 32))
            key = mx.random.split(key)[0]
            if following is not None:
                self.model.cut(1)
        return None

    def _pick(
        self, logits: mx.array, words: NDArray[np.uint32], n_allowed: int, key: mx.array
    ) -> tuple[int, mx.array | None]:
        """Draw one allowed token; in a free region, with the next pass already queued on it.

        Returns:
            The token, and the logits (1, V) of the pass that was queued on it, if one was.
        """
        if n_allowed <= _GATHER_LIMIT:
            allowed = mx.array(mask.ids(words))  # (n,)
            drawn = allowed[sample(logits[allowed], self.sampling, key)]
        else:
            drawn = sample_masked(logits, mx.array(words), self.sampling, key)
        self._wide = n_allowed > self.constraint.vocab_size // 2
        queues = self._wide and self.passes.level and not self.drafts.waits()
        following = self.passes.queue(drawn) if queues else None
        self.clock.waits()
        token = int(cast(int, drawn.item()))  # the one place where Python waits for the device
        self.passes.known(runs_on=queues)
        if following is not None:
            self.model.confirm(token)
        return token, following

    def _bitmask(self) -> NDArray[np.uint32]:
        started = time.perf_counter()
        try:
            bitmask = self.constraint.bitmask()
        except DeadEndError as error:
            raise DeadEndError(f"{self._so_far()}: {error}") from error
        self.mask_us.append((time.perf_counter() - started) * 1e6)
        return mask.padded(bitmask, self.constraint.vocab_size, self.model.logit_width)

    def _so_far(self) -> str:
        tail = self.constraint.describe(self.tokens[-20:])
        return f"no token is allowed after {len(self.tokens)} tokens, which end in {tail}"

    def _after(self, tokens: list[int]) -> tuple[Constraint, list[int]]:
        """The state after tokens and what they force, and the forced tokens."""
        ahead = self.constraint.copy()
        ahead.consume(tokens)
        forced = [token for token in ahead.forced() if token not in ahead.end_ids]
        ahead.consume(forced)
        return ahead, forced

    def _fits(self, ahead: Constraint, n_tokens: int) -> bool:
        """Whether a whole text still fits after `n_tokens` more tokens, which lead to `ahead`."""
        if ahead.fits(self.max_tokens - len(self.tokens) - n_tokens):
            return True
        if ahead.closing() is not None:
            self.narrowed_at = len(self.tokens)
        return False

    def _ended(self, reason: StopReason) -> StopReason:
        """The reason for an end, unless the limit had left the model little but to end."""
        near = self.narrowed_at is not None and len(self.tokens) - self.narrowed_at <= _NEAR_LIMIT
        return "closed_by_budget" if near else reason

    def _advance(self, drawn: _Drawn, forced: list[int]) -> mx.array:
        """The logits (V,) after the drawn token and the forced ones."""
        if drawn.following is not None and not forced:
            return drawn.following[-1]
        # Of what was guessed, the forced tokens are as the grammar has them; a closed thinking block is not.
        if forced != drawn.forced:
            self.passes.drop()
        elif (known := self.passes.after(drawn.token)) is not None:
            return known
        pending = forced if drawn.following is not None else [drawn.token, *forced]
        return self.passes.forward(pending, self.constraint, self._n_left, waited=self._wide)

    def _settle(self, ahead: Constraint, tokens: list[int], forced: list[int]) -> None:
        """Write tokens and what they force; `ahead` is the state after them."""
        self.constraint = ahead
        for part, flag in ((tokens, False), (forced, True)):
            if part:
                self.drafts.extend(part)
                self.tokens += part
                self.flags += [flag] * len(part)
                self._untold.append((part, flag))

    def _tell(self) -> None:
        """Report what was settled since the last time."""
        while self._untold:
            self.on_tokens(*self._untold.pop(0))

    @property
    def _is_thinking(self) -> bool:
        limits = self.thinking
        begun = limits is not None and self.tokens[:1] == [limits.open_id]
        return begun and limits is not None and limits.close_id not in self.tokens

    def _end_thinking(self, *, at_once: bool) -> list[int]:
        """Close the thinking block if it is open and at its limit; returns the tokens that did it."""
        limits = self.thinking
        if limits is None or not self._is_thinking:
            return []
        if not at_once and len(self.tokens) <= limits.max_tokens:
            return []
        ahead, forced = self._after([limits.close_id])
        closing = [limits.close_id, *forced]
        if not self._fits(ahead, len(closing)):
            return []
        self.thinking_cut = True
        self._settle(ahead, [], closing)
        return closing

    def close(self, reason: StopReason) -> StopReason:
        """End the text by the way that the constraint knows; it was kept affordable all along.

        Returns:
            The reason; if all that was written is thinking, that it had no limit of its own in time.
        """
        if self._is_thinking:
            self.thinking_cut = True
            reason = "thinking_limit" if reason == "closed_by_budget" else reason
        way = self.constraint.closing() or []
        ahead = self.constraint.copy()
        ahead.consume(way)
        self._settle(ahead, [], way)
        return reason
