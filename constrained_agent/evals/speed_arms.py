"""One run of the bench of speed: one answer to one prompt by one of the contenders.

Every one has the same weights in memory, the same prompt ids and temperature 0. Seconds count from the moment when the
prompt but for its last id had run until the last token was there, on all of them.
"""

from __future__ import annotations

import time
from collections.abc import Callable, Mapping, Sequence
from dataclasses import asdict, dataclass, field
from itertools import accumulate
from typing import Any, Literal

from constrained_agent.agent.drafts import PatchLookup
from constrained_agent.agent.runtime import Level, Runtime
from constrained_agent.decode.draft import Drafter, PassCosts
from constrained_agent.decode.generate import generate
from constrained_agent.decode.needs import Constraint, Drafts, Unconstrained
from constrained_agent.decode.sampling import Sampling
from constrained_agent.evals.contenders import Arm
from constrained_agent.grammar.located.offer import OfferedFile
from constrained_agent.model.plain import MaskProcessor, Plain, Processor
from constrained_agent.model.teacher import Script, TaughtProcessor, TaughtSession
from constrained_agent.model.weights import LoadedModel

Part = Literal["prompts", "edits"]
"""prompts: the model writes what it likes best. edits: it writes a known patch."""

_PATCH_END = b"*** End Patch"


@dataclass(frozen=True, slots=True)
class Models:
    """One loaded model in both loops.

    Attributes:
        about: what model it is, for the report.
        costs: what passes take, as drafts have learned it so far.
    """

    runtime: Runtime
    plain: Plain
    about: Mapping[str, Any]
    costs: PassCosts = field(default_factory=PassCosts)


def prepared(loaded: LoadedModel) -> Models:
    """A loaded model made ready for both loops; about three seconds for 150,000 tokens.

    Raises:
        ModelError: tokenizer or dialect do not fit.
    """
    runtime = Runtime(loaded)
    about = {
        "name": loaded.card.name,
        "source": {key: str(value) for key, value in asdict(loaded.card.source).items()},
        "weights_mb": round(loaded.n_bytes / 1e6),
        "float_type": loaded.float_type,
    }
    return Models(runtime, Plain(loaded), about)


@dataclass(frozen=True, slots=True)
class Case:
    """One prompt.

    Attributes:
        ids: the prompt.
        files: whose lines a patch may speak of.
        constraints: compile the constraint of a level, anew each time: an engine that has seen a text before is faster.
        script: the text that must come, if one must.
        max_tokens: at most so many tokens, where no script ends the text.
    """

    name: str
    ids: tuple[int, ...]
    files: tuple[OfferedFile, ...]
    constraints: Mapping[Level, Callable[[], Constraint]]
    max_tokens: int
    script: Script | None = None

    @property
    def part(self) -> Part:
        return "edits" if self.script else "prompts"


@dataclass(frozen=True, slots=True)
class Answer:
    """What one arm wrote, and what it took.

    Attributes:
        times_s: when each token was there, in seconds since the prompt but for its last id had run.
        n_steps: passes after that of the prompt's last id.
        n_drafted, n_accepted: guesses that ran; those of them that came true.
        n_reused: prompt ids that were in the cache.
        prefill_s: the other ones, but for the last.
        mask_us: microseconds that each bitmask took.
        hidden_us, exposed_us: microseconds of work beside the model's, while a pass ran and while none did.
    """

    tokens: tuple[int, ...]
    times_s: tuple[float, ...]
    stop_reason: str
    n_steps: int
    n_prompt: int
    n_reused: int
    prefill_s: float
    mask_us: tuple[float, ...]
    hidden_us: float
    exposed_us: float
    n_forced: int = 0
    n_drafted: int = 0
    n_accepted: int = 0

    @property
    def seconds(self) -> float:
        """Until the last token."""
        return self.times_s[-1] if self.times_s else 0.0


@dataclass(frozen=True, slots=True)
class Run:
    """One answer in its place.

    Attributes:
        compile_s: until the constraint was there; outside of a bench the prompt runs meanwhile.
        patch_s: until the last token of the first patch; None if there is none.
        as_known: whether the text is the known patch; None where none is known.
    """

    part: Part
    case: str
    repeat: int
    arm: str
    text: str
    compile_s: float
    patch_s: float | None
    as_known: bool | None
    answer: Answer


class Endless(Unconstrained):
    """Level `off` as far as plain mlx-lm has it: neither an end token ends the text nor a loop, only its limit."""

    copying = True  # what is copied may repeat

    def __init__(self, vocab_size: int) -> None:
        super().__init__(vocab_size, ())


def run(models: Models, case: Case, arm: Arm, repeat: int) -> Run:
    """Write one answer.

    Raises:
        KeyboardInterrupt: Ctrl-C; the answer is lost.
        BudgetError: no whole patch fits into the case's limit.
        DecodeError: the constraint broke.
    """
    started = time.perf_counter()
    level = "grammar" if arm.masked else arm.level
    constraint = case.constraints[level]() if level == "grammar" or level == "located" else None
    compile_s = time.perf_counter() - started if constraint else 0.0
    if arm.level is None:
        answer = _by_mlx_lm(models, case, constraint)
    else:
        answer = _by_agent(models, case, constraint, drafted=arm.drafts)
    return Run(
        part=case.part,
        case=case.name,
        repeat=repeat,
        arm=arm.name,
        text=models.runtime.tokenizer.decode(answer.tokens),
        compile_s=compile_s,
        patch_s=_patch_s(models.runtime, answer),
        as_known=models.runtime.tokenizer.bytes_of(answer.tokens) == case.script.text
        if case.script
        else None,
        answer=answer,
    )


def _by_mlx_lm(models: Models, case: Case, constraint: Constraint | None) -> Answer:
    masking = None if constraint is None else MaskProcessor(constraint)
    processors: list[Processor] = [] if masking is None else [masking]
    if case.script:
        processors.append(TaughtProcessor(case.script))
    done = models.plain.write(
        case.ids,
        max_tokens=len(case.script.ids) if case.script else case.max_tokens,
        processors=processors,
        end_ids=models.runtime.tokenizer.end_ids if masking else (),
    )
    mask_us = () if masking is None else tuple(masking.mask_us)
    return Answer(
        tokens=done.tokens,
        times_s=done.times_s,
        stop_reason="length" if done.end_token is None else "end_token",
        n_steps=done.n_steps,
        n_prompt=len(case.ids),
        n_reused=done.n_reused,
        prefill_s=done.prefill_s,
        mask_us=mask_us,
        hidden_us=0.0,  # the processor waits for the pass before it looks at the grammar
        exposed_us=sum(mask_us),
    )


def _by_agent(models: Models, case: Case, constraint: Constraint | None, *, drafted: bool) -> Answer:
    runtime, seen_at = models.runtime, []

    def on_tokens(tokens: Sequence[int], _: bool) -> None:
        seen_at.extend([time.perf_counter()] * len(tokens))

    started = time.perf_counter()
    drafts = _drafts(models, case) if drafted else None
    drafts_s = time.perf_counter() - started
    done = generate(
        TaughtSession(runtime.session, case.script) if case.script else runtime.session,
        Endless(runtime.tokenizer.vocab_size) if constraint is None else constraint,
        case.ids,
        sampling=Sampling(temperature=0.0),
        max_tokens=case.max_tokens,
        blank_ids=runtime.tokenizer.blank_ids,
        drafts=drafts,
        on_tokens=on_tokens,
    )
    if done.stop_reason == "interrupted":
        raise KeyboardInterrupt
    prefill_s = drafts_s + done.prefill_s
    return Answer(
        tokens=done.tokens,
        times_s=tuple(at - started - prefill_s for at in seen_at),
        stop_reason=done.stop_reason,
        n_steps=done.model_steps,
        n_prompt=done.prompt_tokens,
        n_reused=done.reused_tokens,
        prefill_s=prefill_s,
        mask_us=done.mask_us,
        hidden_us=sum(done.hidden_us),
        exposed_us=sum(done.exposed_us),
        n_forced=sum(done.forced),
        n_drafted=done.drafted_tokens,
        n_accepted=done.accepted_tokens,
    )


def _drafts(models: Models, case: Case) -> Drafts:
    """Guesses from the prompt and the files alone.

    Not the runtime's own: those remember earlier answers, and in the second round would know the whole text.
    """
    lookup = PatchLookup(models.runtime.engine)
    lookup.begin(case.ids, case.files)
    return Drafter([lookup], models.costs)


def _patch_s(runtime: Runtime, answer: Answer) -> float | None:
    """When the first whole patch was there."""
    text = runtime.tokenizer.bytes_of(answer.tokens)
    if (found := text.find(_PATCH_END)) < 0:
        return None
    ends = accumulate(len(runtime.tokenizer.token_bytes[token]) for token in answer.tokens)
    return next(at for end, at in zip(ends, answer.times_s, strict=True) if end >= found + len(_PATCH_END))
