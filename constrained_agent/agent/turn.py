"""One answer, from prompt ids to calls. Reads top to bottom as the data flow."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace

from constrained_agent.agent.runtime import Level, Runtime
from constrained_agent.decode.generate import Generation, generate
from constrained_agent.decode.sampling import Sampling
from constrained_agent.decode.steps import OnTokens, Thinking
from constrained_agent.grammar.answers import Answer, AnswerReader
from constrained_agent.grammar.carriers import CarrierName, by_name
from constrained_agent.grammar.located.offer import Editable
from constrained_agent.grammar.patches import MAX_ADDED_LINES
from constrained_agent.messages import ToolSpec, Usage


@dataclass(frozen=True, slots=True)
class Decoding:
    """How answers are decoded.

    Attributes:
        level: constraint level.
        sampling: settings; its seed is shifted by the turn's number.
        max_tokens: limit of one answer, forced tokens included.
        thinking: whether the model may think first.
        think_budget: tokens of thinking before it is closed; None = half of `max_tokens`.
        max_added_lines: `+` lines that may follow each other in a patch; level off does not keep it.
        drafts: guess ahead from the text so far and the files; the text stays the same.
        carrier: how a patch travels; level off does not keep it.
        parallel: several calls may follow each other in one answer, of located patches one; nor does it keep this.
    """

    level: Level
    sampling: Sampling
    max_tokens: int
    thinking: bool = False
    think_budget: int | None = None
    max_added_lines: int = MAX_ADDED_LINES
    drafts: bool = True
    carrier: CarrierName = "freeform"
    parallel: bool = False


@dataclass(frozen=True, slots=True)
class Progress:
    """Callbacks of a person watching; all optional."""

    on_prefill: Callable[[int, int], None] | None = None
    on_tokens: OnTokens | None = None


@dataclass(frozen=True, slots=True)
class Turn:
    """One answer and how it came about.

    Attributes:
        prompt: ids that the model was given.
        history: ids with which the next message goes on: prompt, answer (a call that was cut off is closed), end of
            the message.
        whole: the answer is a whole one; what is not whole is never executed.
    """

    prompt: tuple[int, ...]
    history: tuple[int, ...]
    generation: Generation
    answer: Answer
    whole: bool

    @property
    def usage(self) -> Usage:
        """Token counts of this answer."""
        done = self.generation
        return Usage(
            prompt_tokens=done.prompt_tokens,
            reused_tokens=done.reused_tokens,
            generated_tokens=len(done.tokens),
            forced_tokens=sum(done.forced),
            model_steps=done.model_steps,
        )


def take_turn(
    runtime: Runtime,
    history: Sequence[int],
    tools: Sequence[ToolSpec],
    choice: str,
    decoding: Decoding,
    reader: AnswerReader,
    *,
    editable: Editable | None = None,
    number: int = 0,
    deadline: float | None = None,
    progress: Progress | None = None,
) -> Turn:
    """Let the model answer once.

    Args:
        runtime: the loaded model.
        history: ids of the conversation so far, ending after a message.
        tools: the tools on offer.
        choice: `auto`, `none`, `required` or a tool's name.
        decoding: how to decode.
        reader: reads the answer back.
        editable: what patches may do, at level `located`.
        number: number of the turn; shifts the seed, so that equal prompts need not give equal answers.
        deadline: `time.monotonic()` value that ends the answer.

    Raises:
        PromptTooLongError: prompt and answer do not fit.
        DecodeError: the constraint broke.
    """
    progress = progress or Progress()
    thinking = decoding.thinking and runtime.dialect.thinks
    prompt = [*history, *runtime.dialect.open_answer(thinking=thinking)]
    max_tokens = min(decoding.max_tokens, runtime.session.room(len(prompt)))
    carrier = by_name(decoding.carrier)
    constraint = runtime.turn_constraint(
        decoding.level,
        tools,
        choice,
        thinking=thinking,
        max_added_lines=decoding.max_added_lines,
        editable=editable,
        carrier=carrier,
        parallel=decoding.parallel,
    )  # compiled while the prompt runs
    files = editable.files if editable else ()
    written = generate(
        runtime.session,
        constraint,
        prompt,
        sampling=replace(decoding.sampling, seed=decoding.sampling.seed + number),
        max_tokens=max_tokens,
        deadline=deadline,
        thinking=thinking_limits(runtime, max_tokens, decoding.think_budget) if thinking else None,
        blank_ids=runtime.tokenizer.blank_ids,
        drafts=runtime.drafts(prompt, files, carrier) if decoding.drafts else None,
        on_tokens=progress.on_tokens,
        on_prefill=progress.on_prefill,
    )
    cut = not written.whole
    answer = reader.read_ids(written.tokens, runtime.tokenizer.decode, runtime.tokenizer.special, cut=cut)
    closing = runtime.dialect.close_answer(written.end_token)
    if cut and answer.open:  # so that in the history the call ends before the message does
        closing = [*runtime.tokenizer.encode(f"\n{runtime.markers.call_close}"), *closing]
    return Turn(
        prompt=tuple(prompt),
        history=(*prompt, *written.tokens, *closing),
        generation=written,
        answer=answer,
        whole=not cut,
    )


def thinking_limits(runtime: Runtime, max_tokens: int, budget: int | None) -> Thinking | None:
    """The thinking block's markers and its limit, half of the answer's if `budget` is None."""
    open_id = runtime.tokenizer.special(runtime.markers.think_open)
    close_id = runtime.tokenizer.special(runtime.markers.think_close)
    if open_id is None or close_id is None:
        return None
    return Thinking(open_id, close_id, max_tokens // 2 if budget is None else budget)
