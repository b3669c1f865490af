"""The bench of speed in figures and in Markdown."""

from __future__ import annotations

import statistics
from collections.abc import Callable, Iterator, Sequence
from typing import Any

from constrained_agent.evals.contenders import ARMS
from constrained_agent.evals.speed import Measured
from constrained_agent.evals.speed_arms import Part, Run

_MIN_PROMPT = 64
"""Ids of a prompt that have to be run before its speed says something."""

Value = Callable[[Run], float]


def _seconds(run: Run) -> float:
    return run.answer.seconds


def _tokens_per_s(run: Run) -> float:
    return len(run.answer.tokens) / run.answer.seconds


RATIOS: tuple[tuple[str, Part, str, str, Value], ...] = (
    ("off / mlx-lm, tokens/s, small edits", "prompts", "off", "mlx-lm", _tokens_per_s),
    (
        "grammar / mlx-lm+processor, tokens/s, small edits",
        "prompts",
        "grammar",
        "mlx-lm+processor",
        _tokens_per_s,
    ),
    ("grammar+drafts / grammar, seconds, small edits", "prompts", "grammar+drafts", "grammar", _seconds),
    ("located+drafts / located, seconds, small edits", "prompts", "located+drafts", "located", _seconds),
    ("located / mlx-lm, seconds, known patches", "edits", "located", "mlx-lm", _seconds),
    ("located+drafts / located, seconds, known patches", "edits", "located+drafts", "located", _seconds),
    ("located+drafts / mlx-lm, seconds, known patches", "edits", "located+drafts", "mlx-lm", _seconds),
)
"""What is compared, run by run of the same prompt in the same round."""

SAME = (("off", "mlx-lm"), ("grammar+drafts", "grammar"), ("located+drafts", "located"))
"""Arms that write the same text at temperature 0, but for the last digits of a pass."""


def figures(measured: Measured) -> dict[str, Any]:
    """Values for JSON: per part and arm, ratios, passes, conversations."""
    parts: tuple[Part, ...] = ("prompts", "edits")
    return {
        **{part: _arms([run for run in measured.runs if run.part == part]) for part in parts},
        "ratios": {
            name: _spread(found)
            for name, part, over, under, value in RATIOS
            if (found := list(_paired(measured.runs, part, over, under, value)))
        },
        "same_text": _same_text(measured.runs),
        "prompt_per_s": _prompt_per_s(measured.runs),
        "pass_s": {str(size): _spread(seconds) for size, seconds in measured.passes.items()},
        "reused": {
            arm: {"share": round(found.share, 4), "known": found.n_known, "reused": found.n_reused}
            for arm, found in measured.reused.items()
        },
    }


def run_facts(run: Run) -> dict[str, Any]:
    """One run for JSON, without its ids and single masks."""
    answer = run.answer
    return {
        "part": run.part,
        "case": run.case,
        "repeat": run.repeat,
        "arm": run.arm,
        "text": run.text,
        "as_known": run.as_known,
        "stop_reason": answer.stop_reason,
        "tokens": len(answer.tokens),
        "forced": answer.n_forced,
        "steps": answer.n_steps,
        "drafted": answer.n_drafted,
        "accepted": answer.n_accepted,
        "prompt": answer.n_prompt,
        "reused": answer.n_reused,
        "compile_s": round(run.compile_s, 4),
        "prefill_s": round(answer.prefill_s, 4),
        "seconds": round(answer.seconds, 4),
        "patch_s": None if run.patch_s is None else round(run.patch_s, 4),
        "hidden_us": round(answer.hidden_us),
        "exposed_us": round(answer.exposed_us),
    }


def _arms(runs: Sequence[Run]) -> dict[str, Any]:
    by_arm = {arm.name: [run for run in runs if run.arm == arm.name] for arm in ARMS}
    return {name: _arm(found) for name, found in by_arm.items() if found}


def _arm(runs: Sequence[Run]) -> dict[str, Any]:
    answers = [run.answer for run in runs]
    n_tokens, n_steps = sum(len(a.tokens) for a in answers), sum(a.n_steps for a in answers)
    hidden, exposed = sum(a.hidden_us for a in answers), sum(a.exposed_us for a in answers)
    masks = sorted(taken for a in answers for taken in a.mask_us)
    whole = [run.patch_s for run in runs if run.patch_s is not None]
    return {
        "n": len(runs),
        "cases": len({run.case for run in runs}),
        "tokens": n_tokens,
        "forced": sum(a.n_forced for a in answers),
        "steps": n_steps,
        "steps_per_token": round(n_steps / max(1, n_tokens), 3),
        "drafted": sum(a.n_drafted for a in answers),
        "accepted": sum(a.n_accepted for a in answers),
        "seconds": _spread([a.seconds for a in answers]),
        "tokens_per_s": _spread([_tokens_per_s(run) for run in runs if run.answer.tokens]),
        "patch_s": _spread(whole),
        "mask_us": {"n": len(masks), **_percentiles(masks)},
        "hidden_share": round(hidden / (hidden + exposed), 3) if masks and hidden + exposed else None,
        "work_us_per_step": round((hidden + exposed) / max(1, n_steps), 1),
        "compile_ms": _spread([run.compile_s * 1e3 for run in runs if run.compile_s]),
    }


def _paired(runs: Sequence[Run], part: Part, over: str, under: str, value: Value) -> Iterator[float]:
    of_under = {(run.case, run.repeat): run for run in runs if (run.part, run.arm) == (part, under)}
    for run in runs:
        other = of_under.get((run.case, run.repeat))
        if (run.part, run.arm) == (part, over) and other and run.answer.tokens and other.answer.tokens:
            yield value(run) / value(other)


def _same_text(runs: Sequence[Run]) -> dict[str, Any]:
    """How many runs wrote what they should: the same as another arm, or the known patch."""
    found: dict[str, Any] = {}
    for one, other in SAME:
        texts = {
            (run.case, run.repeat): run.text for run in runs if (run.part, run.arm) == ("prompts", other)
        }
        pairs = [run for run in runs if (run.part, run.arm) == ("prompts", one)]
        same = [run.text == texts[at] for run in pairs if (at := (run.case, run.repeat)) in texts]
        if same:
            found[f"{one} and {other}"] = {"n": len(same), "same": sum(same)}
    known = [run.as_known for run in runs if run.as_known is not None]
    if known:
        found["all arms on known patches"] = {"n": len(known), "same": sum(known)}
    return found


def _prompt_per_s(runs: Sequence[Run]) -> dict[str, Any]:
    """Tokens of prompts that had to be run, per second, by mlx-lm and by the agent's session."""
    of_mlx_lm = {arm.name for arm in ARMS if arm.level is None}
    found: dict[str, list[float]] = {"mlx-lm": [], "agent": []}
    for run in runs:
        n_run = run.answer.n_prompt - 1 - run.answer.n_reused
        if n_run >= _MIN_PROMPT:
            found["mlx-lm" if run.arm in of_mlx_lm else "agent"].append(n_run / run.answer.prefill_s)
    return {name: _spread(speeds) for name, speeds in found.items() if speeds}


def _spread(values: Sequence[float]) -> dict[str, Any]:
    """Median and quartiles."""
    if not values:
        return {"n": 0}
    low, middle, high = statistics.quantiles(values, method="inclusive") if len(values) > 1 else [*values] * 3
    return {
        "n": len(values),
        "median": _rounded(middle),
        "quartiles": [_rounded(low), _rounded(high)],
    }


def _percentiles(ordered: Sequence[float]) -> dict[str, float]:
    if not ordered:
        return {}
    return {
        f"p{part}": round(ordered[min(len(ordered) - 1, len(ordered) * part // 100)], 1) for part in (50, 99)
    }


def _rounded(value: float) -> float:
    """Four digits: no time here is known better."""
    return float(f"{value:.4g}")
