"""What the answers of one arm cost: tokens, passes of the model, seconds."""

from __future__ import annotations

from collections.abc import Sequence
from statistics import median_high
from typing import Any

from constrained_agent.evals.compare.records import Record


def costs(records: Sequence[Record]) -> dict[str, Any]:
    """Sums, and shares of them for each answer and for each that is right.

    Returns:
        Among others `per_item` and `per_solved_item`: tokens, steps, and seconds after the prompt, those of waiting
        for a grammar to compile among them; the latter are all the arm's cost, failures too, divided by what it
        solved. `per_item` has the prompt's own seconds apart: the first answer to a prompt pays for all.
    """
    written = [record.written for record in records]
    tokens = sum(one.tokens for one in written)
    steps = sum(one.model_steps for one in written)
    wait_s = sum(one.wait_s for one in written)
    decode_s = sum(one.decode_s for one in written)
    # A prefill ends when prompt and grammar are ready, so it holds the wait.
    prefill_s = max(0.0, sum(one.prefill_s for one in written) - wait_s)
    sums = {"tokens": tokens, "steps": steps, "s": decode_s + wait_s}
    solved = sum(record.judgement.right for record in records)
    return {
        "tokens": tokens,
        "forced_tokens": sum(one.forced_tokens for one in written),
        "model_steps": steps,
        "steps_per_token": round(steps / tokens, 3) if tokens else None,
        "decode_s": round(decode_s, 1),
        "wait_s": round(wait_s, 1),
        "prefill_s": round(prefill_s, 1),
        "per_item": {
            **{key: _share(total, len(records)) for key, total in sums.items()},
            "prefill_s": _share(prefill_s, len(records)),
        },
        "per_solved_item": {key: _share(total, solved) for key, total in sums.items()},
        "mask_us": _masks(records),
    }


def _share(total: float, n: int) -> float | None:
    return round(total / n, 2) if n else None


def _masks(records: Sequence[Record]) -> dict[str, float]:
    """Medians over answers of p50 and p99, and the largest of all."""
    found = [record.written.mask_us for record in records if record.written.mask_us]
    if not found:
        return {}
    middle = {key: median_high([one[key] for one in found]) for key in ("p50", "p99")}
    return {**middle, "max": max(one["max"] for one in found)}
