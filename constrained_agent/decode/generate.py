"""The constrained token loop: prompt ids in, validated token ids out.

Nothing here falls back to unconstrained output: what the constraint refuses raises, and every finished text is
consumed once more by a fresh constraint before it is passed on.
"""

from __future__ import annotations

import contextlib
import time
from collections.abc import Callable, Collection, Sequence
from concurrent.futures import Future
from dataclasses import dataclass

from constrained_agent.decode.needs import Constraint, Drafts, Model, NoDrafts, Unconstrained
from constrained_agent.decode.sampling import Sampling
from constrained_agent.decode.steps import WHOLE, OnTokens, Steps, StopReason, Thinking
from constrained_agent.errors import BudgetError, DecodeError

_POLL_S = 0.2
"""How often a wait looks up: a signal is heeded between two looks only."""


@dataclass(frozen=True, slots=True)
class Generation:
    """What was written, and how it went.

    Attributes:
        tokens: ids in order, without the end token; a fresh constraint has accepted them.
        forced: for each token, whether the grammar left no choice.
        end_token: the id that ended it, if one did.
        stop_reason: why it ended.
        complete: whether the text is a whole text of the constraint.
        thinking_cut: the thinking block was closed by its limit or for repetition.
        prompt_tokens, reused_tokens: ids in the prompt; those of them that were in the cache already, or on disk.
        model_steps: forward passes after the prompt.
        drafted_tokens, accepted_tokens: guesses that were checked, and those that came true.
        prefill_s, decode_s: seconds until the last prompt token and the constraint were ready; seconds after that.
        wait_s: of the former, those in which the prompt waited for the constraint to compile.
        mask_us: microseconds that each bitmask took.
        hidden_us, exposed_us: for each drawn token, microseconds of work beside the model's: while a pass ran, and
            while the device waited for it.
    """

    tokens: tuple[int, ...]
    forced: tuple[bool, ...]
    end_token: int | None
    stop_reason: StopReason
    complete: bool
    thinking_cut: bool
    prompt_tokens: int
    reused_tokens: int
    model_steps: int
    drafted_tokens: int
    accepted_tokens: int
    prefill_s: float
    decode_s: float
    wait_s: float
    mask_us: tuple[float, ...]
    hidden_us: tuple[float, ...]
    exposed_us: tuple[float, ...]

    @property
    def whole(self) -> bool:
        """It ended by itself, neither by a limit nor for repeating itself."""
        return self.stop_reason in WHOLE


def generate(
    model: Model,
    constraint: Constraint | Future[Constraint],
    prompt: Sequence[int],
    *,
    sampling: Sampling,
    max_tokens: int,
    deadline: float | None = None,
    thinking: Thinking | None = None,
    blank_ids: Collection[int] = (),
    drafts: Drafts | None = None,
    on_tokens: OnTokens | None = None,
    on_prefill: Callable[[int, int], None] | None = None,
) -> Generation:
    """Write one text under a constraint.

    Args:
        model: owns the KV cache; keeps it for the next call.
        constraint: in its first state; it stays there. One that is still being compiled is waited for when the
            prompt has run.
        prompt: ids, at least one.
        sampling: how tokens are drawn.
        max_tokens: at most so many tokens, forced ones included, end token excluded. A choice after which no
            whole text would fit any more is not offered; so what the constraint has begun, it ends.
        deadline: `time.monotonic()` value after which no further step starts; the text is then closed.
        thinking: limits a thinking block, if the text starts with one.
        blank_ids: tokens of white space alone; a flood of them ends the text.
        drafts: guesses at what comes next; the text is the same with and without, as far as passes over several
            ids compute what passes over one do. Knows the prompt already.
        on_tokens, on_prefill: progress; `on_prefill` gets (ids done, ids in all).

    Raises:
        BudgetError: not even the shortest text fits into `max_tokens`.
        DecodeError: the constraint broke (dead end, refused token, failed re-validation).
        PromptTooLongError: from the model, before any work.
        GrammarError: the constraint did not compile.
    """
    if not prompt:
        raise ValueError("the prompt must hold at least one token")
    if not isinstance(constraint, Future):
        _check_budget(constraint, max_tokens)
    started = time.perf_counter()
    prefilled, reused, wait_s = started, 0, 0.0
    run: Steps | None = None
    reason: StopReason = "interrupted"
    with model.running():
        try:
            reused = model.prefill(prompt, on_prefill, deadline)
            waiting = time.perf_counter()
            constraint = _settled(constraint, max_tokens)
            prefilled = time.perf_counter()
            wait_s = prefilled - waiting
            run = Steps(
                model,
                constraint.copy(),
                sampling,
                max_tokens,
                deadline,
                thinking,
                on_tokens or _ignore,
                blank_ids,
                drafts or NoDrafts(),
            )
            late = deadline is not None and time.monotonic() >= deadline
            reason = run.run(prompt[-1], late=late)
        except KeyboardInterrupt:
            reason = "interrupted"
    ended = time.perf_counter()
    return Generation(
        tokens=tuple(run.tokens) if run else (),
        forced=tuple(run.flags) if run else (),
        end_token=run.end_token if run else None,
        stop_reason=reason,
        complete=_validate(constraint, run) if run and not isinstance(constraint, Future) else False,
        thinking_cut=run.thinking_cut if run else False,
        prompt_tokens=len(prompt),
        reused_tokens=reused,
        model_steps=run.n_steps if run else 0,
        drafted_tokens=run.passes.n_drafted if run else 0,
        accepted_tokens=run.passes.n_accepted if run else 0,
        prefill_s=prefilled - started,
        decode_s=ended - prefilled,
        wait_s=wait_s,
        mask_us=tuple(run.mask_us) if run else (),
        hidden_us=tuple(run.clock.hidden_us) if run else (),
        exposed_us=tuple(run.clock.exposed_us) if run else (),
    )


def _settled(constraint: Constraint | Future[Constraint], max_tokens: int) -> Constraint:
    """The constraint, when it is compiled; Ctrl-C ends the wait.

    Raises:
        BudgetError: its shortest text is too long.
        GrammarError: it does not compile.
    """
    if not isinstance(constraint, Future):
        return constraint
    while not constraint.done():
        with contextlib.suppress(TimeoutError):
            constraint.result(timeout=_POLL_S)
    compiled = constraint.result()
    _check_budget(compiled, max_tokens)
    return compiled


def _check_budget(constraint: Constraint, max_tokens: int) -> None:
    """Refuse a constraint whose shortest text is too long.

    Raises:
        BudgetError: it is.
    """
    if (way := constraint.closing()) is not None and len(way) > max_tokens:
        raise BudgetError(
            f"the shortest whole text takes {len(way)} tokens, more than the limit of {max_tokens}"
        )


def _ignore(tokens: Sequence[int], forced: bool) -> None:
    """For callers that want no progress."""


def _validate(constraint: Constraint, run: Steps) -> bool:
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
