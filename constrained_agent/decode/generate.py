"""The constrained token loop: prompt ids in, validated token ids out.

Each step starts the forward pass, computes the bitmask on the CPU meanwhile, then masks, draws, consumes,
and feeds the tokens that the grammar forces along with the drawn one. Where the mask is wide (free text), the
next pass is queued on the token that is still being drawn, so the device never waits for Python. Nothing here
falls back to unconstrained output: what the constraint refuses raises.
"""

from __future__ import annotations

import time
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from typing import Literal, cast

import mlx.core as mx
import numpy as np
from numpy.typing import NDArray

from constrained_agent.decode import mask
from constrained_agent.decode.needs import Constraint, Model, Unconstrained
from constrained_agent.decode.sampling import Sampling, sample
from constrained_agent.errors import DeadEndError, DecodeError

StopReason = Literal["complete", "end_token", "length", "time_limit", "interrupted"]
"""complete: the grammar admits nothing more. end_token: the model ended a text that the grammar accepts.
length: `max_tokens` were written. time_limit: the deadline passed. interrupted: Ctrl-C."""


@dataclass(frozen=True, slots=True)
class Generation:
    """What was written, and how it went.

    Attributes:
        tokens: ids in order, without the end token; a fresh constraint has accepted them.
        forced: for each token, whether the grammar left no choice.
        end_token: the id that ended it, if one did.
        stop_reason: why it ended.
        complete: whether the text is a whole text of the constraint.
        prompt_tokens, reused_tokens: ids in the prompt; those of them that were in the cache already.
        model_steps: forward passes after the prompt.
        prefill_s, decode_s: seconds until the last prompt token; seconds after it.
        mask_us: microseconds that each bitmask took.
    """

    tokens: tuple[int, ...]
    forced: tuple[bool, ...]
    end_token: int | None
    stop_reason: StopReason
    complete: bool
    prompt_tokens: int
    reused_tokens: int
    model_steps: int
    prefill_s: float
    decode_s: float
    mask_us: tuple[float, ...]


OnTokens = Callable[[Sequence[int], bool], None]
"""Called with tokens as they are settled, and whether they were forced."""


def generate(
    model: Model,
    constraint: Constraint,
    prompt: Sequence[int],
    *,
    sampling: Sampling,
    max_tokens: int,
    deadline: float | None = None,
    on_tokens: OnTokens | None = None,
    on_prefill: Callable[[int, int], None] | None = None,
) -> Generation:
    """Write one text under a constraint.

    Args:
        model: owns the KV cache; keeps it for the next call.
        constraint: in its first state; it is moved.
        prompt: ids, at least one.
        sampling: how tokens are drawn.
        max_tokens: at most so many tokens, forced ones included, end token excluded.
        deadline: `time.monotonic()` value after which no further step starts.
        on_tokens, on_prefill: progress; `on_prefill` gets (ids done, ids in all).

    Raises:
        DecodeError: the constraint broke (dead end, refused token, failed re-validation).
        PromptTooLongError: from the model, before any work.
    """
    if not prompt:
        raise ValueError("the prompt must hold at least one token")
    run = _Run(model, constraint, sampling, max_tokens, deadline, on_tokens or _ignore)
    started = time.perf_counter()
    prefilled = started
    reused = 0
    reason: StopReason
    with model.running():
        try:
            reused = model.prefill(prompt, on_prefill)
            prefilled = time.perf_counter()
            reason = run.loop(prompt[-1])
        except KeyboardInterrupt:
            reason = "interrupted"
    ended = time.perf_counter()
    return Generation(
        tokens=tuple(run.tokens),
        forced=tuple(run.flags),
        end_token=run.end_token,
        stop_reason=reason,
        complete=_validate(constraint, run),
        prompt_tokens=len(prompt),
        reused_tokens=reused,
        model_steps=run.model_steps,
        prefill_s=prefilled - started,
        decode_s=ended - prefilled,
        mask_us=tuple(run.mask_us),
    )


@dataclass(slots=True)
class _Run:
    """The state of one generation."""

    model: Model
    constraint: Constraint
    sampling: Sampling
    max_tokens: int
    deadline: float | None
    on_tokens: OnTokens
    tokens: list[int] = field(default_factory=list)
    flags: list[bool] = field(default_factory=list)
    end_token: int | None = None
    model_steps: int = 0
    mask_us: list[float] = field(default_factory=list)

    def loop(self, last_prompt_id: int) -> StopReason:
        """Draw tokens until the constraint, the model or a limit ends it."""
        # One key per draw, so that a draw depends on the seed and its position alone.
        keys = mx.random.split(mx.random.key(self.sampling.seed), max(1, self.max_tokens))  # (max_tokens, 2)
        forced = self._take_forced()
        if self.constraint.stopped:
            return "complete"
        logits = self.model.forward([last_prompt_id, *forced])[-1]  # (V,)
        for key in keys:
            if len(self.tokens) >= self.max_tokens:
                break
            if self.deadline is not None and time.monotonic() >= self.deadline:
                return "time_limit"
            token, following = self._draw(logits, key)
            if token in self.constraint.end_ids:
                self.end_token = token
                return "end_token"
            self._settle([token], forced=False)
            forced = self._take_forced()
            if self.constraint.stopped:
                return "complete"
            if len(self.tokens) >= self.max_tokens:
                break
            logits = self._advance(token, forced, following)
        return "length"

    def _draw(self, logits: mx.array, key: mx.array) -> tuple[int, mx.array | None]:
        """Draw one token; in a free region, with the next pass already queued on it.

        Args:
            logits: (V,), still being computed.
            key: random key of this draw.

        Returns:
            The token, and the logits (1, V) of the pass that was queued on it, if one was.
        """
        words = self._bitmask()  # on the CPU, while the pass runs
        n_allowed = mask.count(words)
        if n_allowed == 0:
            tail = self.constraint.describe(self.tokens[-20:])
            raise DeadEndError(f"no token is allowed after {len(self.tokens)} tokens, which end in {tail}")
        if n_allowed <= _GATHER_LIMIT:
            allowed = mx.array(mask.ids(words))  # (n,)
            drawn = allowed[sample(logits[allowed], self.sampling, key)]
        else:
            drawn = sample(mask.apply(logits, words), self.sampling, key)
        following = None
        if n_allowed > self.constraint.vocab_size // 2:
            following = self.model.forward_lazy(drawn)
            self.model_steps += 1
        token = int(cast(int, drawn.item()))  # the one place where Python waits for the device
        if following is not None:
            self.model.confirm(token)
        return token, following

    def _bitmask(self) -> NDArray[np.uint32]:
        started = time.perf_counter()
        bitmask = self.constraint.bitmask()
        self.mask_us.append((time.perf_counter() - started) * 1e6)
        return mask.padded(bitmask, self.constraint.vocab_size, self.model.logit_width)

    def _advance(self, token: int, forced: list[int], following: mx.array | None) -> mx.array:
        """The logits (V,) after the drawn token and the forced ones."""
        if following is not None and not forced:
            return following[-1]
        self.model_steps += 1
        return self.model.forward(forced if following is not None else [token, *forced])[-1]

    def _take_forced(self) -> list[int]:
        """Consume what must follow, as far as the budget goes."""
        forced = self.constraint.forced()[: self.max_tokens - len(self.tokens)]
        forced = [token for token in forced if token not in self.constraint.end_ids]
        if forced:
            self._settle(forced, forced=True)
        return forced

    def _settle(self, tokens: list[int], *, forced: bool) -> None:
        self.constraint.consume(tokens)
        self.tokens += tokens
        self.flags += [forced] * len(tokens)
        self.on_tokens(tokens, forced)


def _ignore(tokens: Sequence[int], forced: bool) -> None:
    """For callers that want no progress."""


# Up to so many allowed tokens, their logits are gathered instead of masking the whole width.
_GATHER_LIMIT = 256


def _validate(constraint: Constraint, run: _Run) -> bool:
    """Consume the finished text with a fresh constraint; returns whether the text is complete.

    Raises:
        DecodeError: the fresh constraint disagrees with the one that masked.
    """
    fresh = constraint.fresh()
    fresh.consume(run.tokens)
    complete = fresh.accepting or (run.end_token is not None and isinstance(fresh, Unconstrained))
    if run.end_token is not None and not complete:
        raise DecodeError(f"the text was ended by token {run.end_token} where the grammar does not accept it")
    return complete
