"""What masking patches costs, and what it saves: the edits of a corpus, written under a grammar without a model.

Each edit is the patch `render(derive(old, new, headers=False))`. What the grammar forces is taken, all else is the
text's next token (`evals.teacher`). A step is a token that a model would have had to choose and that was not guessed;
steps per token = steps / (steps + guessed and forced tokens).
"""

from __future__ import annotations

import statistics
import time
from collections import Counter
from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass
from functools import partial
from typing import Any, TypeVar

from constrained_agent.agent.drafts import PatchLookup
from constrained_agent.agent.prompt import patch_part, task_text
from constrained_agent.decode.draft import Drafter, PassCosts
from constrained_agent.decode.needs import Drafts
from constrained_agent.evals.corpus import Edit
from constrained_agent.evals.teacher import Walk, walk
from constrained_agent.grammar import patches
from constrained_agent.grammar.deepstack import started
from constrained_agent.grammar.located.offer import Editable, OfferedFile
from constrained_agent.grammar.located.rules import patch_grammar
from constrained_agent.grammar.matcher import EngineTokenizer, Matcher
from constrained_agent.grammar.sources import Grammar
from constrained_agent.patch import parse, plan, render
from constrained_agent.patch.textfile import decode

T = TypeVar("T")

FEW_CHANGED = 3
"""Lines: edits of this size have figures of their own."""

USUAL_LINES = 1_000
"""Masks of files up to here have figures of their own."""

SIZES = (100, 300, 1_000, 3_000)
"""Classes of files by their lines, upper ends."""

REPEATS = 3
"""Of each edit, compiled anew; of every time the median counts."""


@dataclass(frozen=True, slots=True)
class Result:
    """One edit at one level.

    Attributes:
        mask_us: time of each bitmask, in the order of the steps; none is of a matcher that has seen the patch before.
        text_ms: time to build the grammar's text, the automaton of the file included.
        compile_ms: time of the engine to compile it.
    """

    edit: Edit
    walk: Walk
    mask_us: tuple[float, ...]
    text_ms: float
    compile_ms: float

    @property
    def steps_per_token(self) -> float:
        return self.walk.n_steps / max(1, self.walk.n_tokens)


def grammar_level(_: Edit) -> Grammar:
    """The patch language."""
    return Grammar("patch", "lark", f"start: {patches.RULE}\n{patches.freeform_rules()}")


def located_level(edit: Edit) -> Grammar:
    """It and the lines of the edit's file."""
    lines = decode(edit.old, edit.path).texts
    return patch_grammar(Editable((OfferedFile(edit.path, tuple(lines)),)))


DRAFTED = "located, drafts"
LEVELS: dict[str, Callable[[Edit], Grammar]] = {
    "grammar": grammar_level,
    "located": located_level,
    DRAFTED: located_level,
}


def measure(level: str, edit: Edit, tokenizer: EngineTokenizer) -> Result:
    """One edit under one level's grammar."""
    walks, text_ms, compile_ms = [], [], []
    for _ in range(REPEATS):
        grammar, n_ms = _timed(lambda: LEVELS[level](edit))
        text_ms.append(n_ms)
        matcher, n_ms = _timed(started(partial(Matcher, tokenizer, grammar)).result)
        compile_ms.append(n_ms)
        drafts = _drafts(edit, tokenizer) if level == DRAFTED else None
        walks.append(walk(matcher, patch_of(edit), drafts))
    mask_us = tuple(map(statistics.median, zip(*(found.mask_us for found in walks), strict=True)))
    return Result(edit, walks[0], mask_us, statistics.median(text_ms), statistics.median(compile_ms))


def _drafts(edit: Edit, tokenizer: EngineTokenizer) -> Drafts:
    """Guesses after a prompt that shows how a patch is written, and the file; `MAX_DRAFT` of them cost nothing."""
    text = decode(edit.old, edit.path)
    shown = task_text("", [(edit.path, "\n".join(text.texts))])
    prompt = f"{patch_part('full', headers=False, call=False).text}\n{shown}"
    lookup = PatchLookup(tokenizer)
    lookup.begin(tokenizer.encode_bytes(prompt.encode()), [OfferedFile(edit.path, tuple(text.texts))])
    return Drafter([lookup], PassCosts([1.0, 1.0, 1.0, 1.0]))


def patch_of(edit: Edit) -> bytes:
    """The text that a model writes: without the newline after the end mark."""
    return render(edit.patch).removesuffix("\n").encode("utf-8", "surrogateescape")


def is_planned(edit: Edit) -> bool:
    """Whether the patch, read back, makes exactly the new file."""
    patch = parse(patch_of(edit).decode("utf-8", "surrogateescape"), lenient=False).patch
    files = plan(patch, {edit.path: edit.old}.get).files
    return [(file.path, file.new) for file in files] == [(edit.path, edit.new)]


def figures(results: Sequence[Result]) -> dict[str, Any]:
    """The figures of one level."""
    few = [result for result in results if result.edit.n_changed <= FEW_CHANGED]
    n_tokens = sum(result.walk.n_tokens for result in results)
    n_steps = sum(result.walk.n_steps for result in results)
    usual = [result for result in results if result.edit.n_lines <= USUAL_LINES]
    accepted = [result for result in results if result.walk.refusal is None and is_planned(result.edit)]
    return {
        "n": len(results),
        "accepted": len(accepted),
        "tokens": n_tokens,
        "ids_per_step": round(sum(result.walk.n_passed for result in results) / max(1, n_steps), 2),
        "forced_share": round(sum(result.walk.n_forced for result in results) / max(1, n_tokens), 3),
        "steps_per_token": _steps_per_token(results),
        f"steps_per_token_{FEW_CHANGED}_lines": _steps_per_token(few),
        "steps_per_token_by_language": _by_language(results),
        "spelled_share": round(sum(result.walk.n_spelled for result in results) / max(1, n_tokens), 3),
        "mask_us": _mask_us(results),
        f"mask_us_{USUAL_LINES}_lines": _mask_us(usual),
        "compile_ms": _by_size(results, lambda result: result.compile_ms),
        "text_ms": _by_size(results, lambda result: result.text_ms),
    }


def _steps_per_token(results: Sequence[Result]) -> dict[str, Any]:
    """Over all tokens, and per edit."""
    if not results:
        return {"n": 0}
    n_tokens = sum(result.walk.n_tokens for result in results)
    shares = [result.steps_per_token for result in results]
    return {
        "n": len(results),
        "overall": round(sum(result.walk.n_steps for result in results) / max(1, n_tokens), 3),
        "median": round(statistics.median(shares), 3),
        "quartiles": [round(share, 3) for share in _quartiles(shares)],
    }


def _by_language(results: Sequence[Result]) -> dict[str, Any]:
    languages = Counter(result.edit.language for result in results)
    return {
        language: _steps_per_token([result for result in results if result.edit.language == language])
        for language, _ in languages.most_common()
    }


def _mask_us(results: Iterable[Result]) -> dict[str, Any]:
    taken = sorted(time_us for result in results for time_us in result.mask_us)
    if not taken:
        return {"n": 0}
    p50, p99 = (taken[min(len(taken) - 1, len(taken) * part // 100)] for part in (50, 99))
    return {"n": len(taken), "p50": round(p50, 1), "p99": round(p99, 1), "max": round(taken[-1], 1)}


def _by_size(results: Sequence[Result], value: Callable[[Result], float]) -> dict[str, Any]:
    """Median, quartiles and maximum for each class of files; its key is the most lines that they have."""
    found: dict[str, Any] = {}
    for low, high in zip((0, *SIZES), SIZES, strict=False):
        values = [value(result) for result in results if low < result.edit.n_lines <= high]
        if values:
            found[str(high)] = {
                "n": len(values),
                "median": round(statistics.median(values), 1),
                "quartiles": [round(part, 1) for part in _quartiles(values)],
                "max": round(max(values), 1),
            }
    return found


def _quartiles(values: Sequence[float]) -> tuple[float, float]:
    if len(values) < 2:
        return values[0], values[0]
    low, _, high = statistics.quantiles(values, method="inclusive")
    return low, high


def table(levels: dict[str, dict[str, Any]]) -> str:
    """The figures in Markdown, a column for each level."""

    def values(figure: str, *keys: str, size: int | None = None) -> list[str]:
        found = (
            level[figure] if size is None else level[figure].get(str(size), {}) for level in levels.values()
        )
        return [" / ".join(str(value.get(key, "–")) for key in keys) for value in found]

    rows = {
        "edits accepted": [f"{level['accepted']} of {level['n']}" for level in levels.values()],
        "forced tokens": [f"{level['forced_share']:.1%}" for level in levels.values()],
        "steps per token: over all / median": values("steps_per_token", "overall", "median"),
        f"... at most {FEW_CHANGED} lines changed": values(
            f"steps_per_token_{FEW_CHANGED}_lines", "overall", "median"
        ),
        "ids per step": [str(level["ids_per_step"]) for level in levels.values()],
        "mask: p50 / p99 / max, µs": values("mask_us", "p50", "p99", "max"),
        f"... files up to {USUAL_LINES:,} lines": values(f"mask_us_{USUAL_LINES}_lines", "p50", "p99", "max"),
    }
    for figure, name in (("text_ms", "grammar's text"), ("compile_ms", "compile")):
        for size in SIZES:
            rows[f"{name}, up to {size:,} lines: median / max, ms"] = values(
                figure, "median", "max", size=size
            )
    head = [f"| | {' | '.join(levels)} |", f"|---|{'---|' * len(levels)}"]
    return "\n".join([*head, *(f"| {name} | {' | '.join(cells)} |" for name, cells in rows.items())])


def corpus_facts(edits: Sequence[Edit], tokenizer: EngineTokenizer) -> dict[str, Any]:
    """What the edits are: how many of which kind."""
    return {
        "n": len(edits),
        "packages": len({edit.package for edit in edits}),
        "languages": dict(Counter(edit.language for edit in edits).most_common()),
        "sizes": {
            str(high): sum(low < edit.n_lines <= high for edit in edits)
            for low, high in zip((0, *SIZES), SIZES, strict=False)
        },
        "median_changed_lines": statistics.median(edit.n_changed for edit in edits),
        "added_share": round(_added_share(edits, tokenizer), 3),
        "repeats": REPEATS,
    }


def _added_share(edits: Sequence[Edit], tokenizer: EngineTokenizer) -> float:
    """The share of the patches' tokens in added lines: steps that no grammar can spare."""
    texts = [patch_of(edit) for edit in edits]
    added = [line + b"\n" for text in texts for line in text.split(b"\n") if line.startswith(b"+")]
    n_added, n_tokens = (sum(len(tokenizer.encode_bytes(part)) for part in parts) for parts in (added, texts))
    return n_added / n_tokens


def _timed(job: Callable[[], T]) -> tuple[T, float]:
    """What a job returns, and its time in milliseconds."""
    begun = time.perf_counter()
    value = job()
    return value, (time.perf_counter() - begun) * 1e3
