"""What the tokens of a run went into: a row for each answer, and their sum. Pure."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass

from constrained_agent.agent.events import Run, Turn


@dataclass(frozen=True, slots=True)
class Row:
    """One answer, or several together.

    Attributes:
        turn: its number; None for a sum.
        prompt_tokens, reused_tokens: ids in the prompt; those of them that were in the cache already.
        generated_tokens, forced_tokens: ids written; those of them that the grammar left no choice about.
        model_steps: passes of the model after the prompt.
        drafted_tokens, accepted_tokens: guesses that were checked, and those that came true; None: not recorded.
        prefill_s, decode_s: seconds until the last prompt token, and after it.
    """

    turn: int | None
    prompt_tokens: int
    reused_tokens: int
    generated_tokens: int
    forced_tokens: int
    model_steps: int
    drafted_tokens: int | None
    accepted_tokens: int | None
    prefill_s: float
    decode_s: float

    @property
    def tokens_per_s(self) -> float | None:
        """Ids written in a second of decoding; None where the clock saw no time."""
        return self.generated_tokens / self.decode_s if self.decode_s else None


def rows(run: Run) -> list[Row]:
    """One for each answer, in order."""
    return [_row(turn) for turn in run.turns]


def total(parts: Iterable[Row]) -> Row:
    """Their sum; guesses are None if any part has none on record."""
    parts = list(parts)
    return Row(
        turn=None,
        prompt_tokens=sum(row.prompt_tokens for row in parts),
        reused_tokens=sum(row.reused_tokens for row in parts),
        generated_tokens=sum(row.generated_tokens for row in parts),
        forced_tokens=sum(row.forced_tokens for row in parts),
        model_steps=sum(row.model_steps for row in parts),
        drafted_tokens=_sum(row.drafted_tokens for row in parts),
        accepted_tokens=_sum(row.accepted_tokens for row in parts),
        prefill_s=sum(row.prefill_s for row in parts),
        decode_s=sum(row.decode_s for row in parts),
    )


def _row(turn: Turn) -> Row:
    return Row(
        turn=turn.number,
        prompt_tokens=turn.prompt_tokens,
        reused_tokens=turn.reused_tokens,
        generated_tokens=turn.generated_tokens,
        forced_tokens=turn.forced_tokens,
        model_steps=turn.model_steps,
        drafted_tokens=turn.drafted_tokens,
        accepted_tokens=turn.accepted_tokens,
        prefill_s=turn.prefill_s,
        decode_s=turn.decode_s,
    )


def _sum(counts: Iterable[int | None]) -> int | None:
    found = list(counts)
    return None if None in found else sum(count for count in found if count is not None)
