"""Lets the model write an item's answer."""

from __future__ import annotations

from collections.abc import Sequence
from concurrent.futures import Future
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING

from constrained_agent.agent.runtime import Level, Runtime
from constrained_agent.decode.generate import Generation, generate
from constrained_agent.evals.compare.items import Item
from constrained_agent.evals.compare.prompts import Prompt
from constrained_agent.evals.compare.records import Written
from constrained_agent.grammar import carriers
from constrained_agent.model.tokenizer import StreamDecoder

if TYPE_CHECKING:
    from constrained_agent.decode.needs import Constraint, Drafts
    from constrained_agent.decode.sampling import Sampling


@dataclass(frozen=True, slots=True)
class Settings:
    """How all answers of a comparison are written.

    Attributes:
        sampling: its seed is replaced by each item's.
        max_tokens: of one answer.
        drafts: guess ahead. Which guesses are made depends on what passes take, so the number of steps is then
            another one each time.
    """

    sampling: Sampling
    max_tokens: int
    drafts: bool = False


def write(runtime: Runtime, item: Item, prompt: Prompt, settings: Settings) -> Written:
    """One answer.

    Raises:
        DecodeError: the constraint broke; nothing of the answer is passed on.
        UserError: the prompt is too long, or a file cannot be located.
        KeyboardInterrupt: the person stopped it.
    """
    made = generate(
        runtime.session,
        _constraint(runtime, item, prompt),
        prompt.ids,
        sampling=replace(settings.sampling, seed=item.seed),
        max_tokens=min(settings.max_tokens, runtime.session.room(len(prompt.ids))),
        blank_ids=runtime.tokenizer.blank_ids,
        drafts=_drafts(runtime, prompt) if settings.drafts else None,
    )
    if made.stop_reason == "interrupted":
        raise KeyboardInterrupt
    return _written(runtime, prompt, made, item.arm.level)


def _constraint(runtime: Runtime, item: Item, prompt: Prompt) -> Future[Constraint]:
    return runtime.turn_constraint(
        item.arm.level,
        prompt.tools,
        "required",
        thinking=False,
        editable=prompt.editable,
        carrier=carriers.by_name(item.arm.carrier),
        parallel=item.kind == "call",  # which questions want several calls is for the model to find out
    )


def _drafts(runtime: Runtime, prompt: Prompt) -> Drafts:
    return runtime.drafts(prompt.ids, prompt.editable.files if prompt.editable else ())


def _written(runtime: Runtime, prompt: Prompt, made: Generation, level: Level) -> Written:
    tokenizer = runtime.tokenizer
    reader = runtime.reader(prompt.tools)
    return Written(
        pieces=tuple(reader.pieces(made.tokens, tokenizer.decode, tokenizer.special)),
        stop_reason=made.stop_reason,
        whole=made.whole,
        forced=tuple(_stretches(runtime, made)),
        prompt_tokens=made.prompt_tokens,
        tokens=len(made.tokens),
        forced_tokens=sum(made.forced),
        model_steps=made.model_steps,
        prefill_s=round(made.prefill_s, 3),
        decode_s=round(made.decode_s, 3),
        wait_s=round(made.wait_s, 3),
        mask_us={} if level == "off" else _percentiles(made.mask_us),
    )


def _stretches(runtime: Runtime, made: Generation) -> list[tuple[int, int]]:
    """The forced parts of the text, in characters; a character belongs to the token that makes it whole."""
    decoder = StreamDecoder(runtime.tokenizer)
    found: list[tuple[int, int]] = []
    at = 0
    for token, forced in zip(made.tokens, made.forced, strict=True):
        end = at + len(decoder.feed([token]))
        if forced and end > at:
            if found and found[-1][1] == at:
                found[-1] = (found[-1][0], end)
            else:
                found.append((at, end))
        at = end
    return found


def _percentiles(values: Sequence[float]) -> dict[str, float]:
    if not values:
        return {}
    ordered = sorted(values)
    last = len(ordered) - 1
    return {
        "p50": round(ordered[round(last * 0.5)], 1),
        "p99": round(ordered[round(last * 0.99)], 1),
        "max": round(ordered[-1], 1),
    }
