"""The figures of the bench of speed as Markdown."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence
from typing import Any

_COLUMNS = (
    "",
    "tokens",
    "steps",
    "steps / token",
    "seconds",
    "tokens / s",
    "patch after, s",
    "mask µs, p50 / p99",
    "hidden",
    "guesses right",
)
_NOTES = """\
`seconds`: median of one answer, from the prompt's end to its last token; in brackets the quartiles. `steps`: forward
passes after the prompt, of all answers together. `patch after`: median time until a whole patch was there, and in how
many answers one was. `hidden`: share of the work beside the model's that was done while a pass ran."""


def document(facts: Mapping[str, Any]) -> str:
    """All tables, under the circumstances that they belong to."""
    return "\n".join([*_head(facts), *_tables(facts)]).rstrip("\n")


def _head(facts: Mapping[str, Any]) -> Iterator[str]:
    model = facts["model"]
    yield f"# {model['name']} beside mlx-lm"
    yield ""
    commit = f"{facts['commit'] or 'no checkout'}{', with changes' if facts['dirty'] else ''}"
    versions = ", ".join(f"{name} {version}" for name, version in facts["versions"].items())
    yield f"`{facts['command']}`, {facts['date']}, commit {commit}  "
    yield f"{facts['machine']}; mlx on {facts['device']}; load {facts['load_before']} before, {facts['load']} after  "
    yield f"{versions}, Python {facts['python']}; weights {model['weights_mb']} MB, activations {model['float_type']}"
    if facts["stopped_by"]:
        yield ""
        yield f"Stopped by {facts['stopped_by']}: this is what was measured until then."


def _tables(facts: Mapping[str, Any]) -> Iterator[str]:
    found = facts["measured"]
    if found["ratios"]:
        yield from _section("Ratios, pair by pair in the same round")
        head = ["", "median", "quartiles", "pairs"]
        rows = (
            [
                name,
                f"{ratio['median']:.2f}",
                "–".join(f"{q:.2f}" for q in ratio["quartiles"]),
                str(ratio["n"]),
            ]
            for name, ratio in found["ratios"].items()
        )
        yield from _table(head, rows)
    if found["prompts"]:
        size = _size(found["prompts"], facts["repeats"])
        limit = f"up to {facts['max_tokens']} tokens, temperature 0"
        yield from _section(f"Small edits, written freely: {size}, {limit}")
        yield from _table(_COLUMNS, _rows(found["prompts"]))
    if found["edits"]:
        size = _size(found["edits"], facts["repeats"])
        yield from _section(f"Known patches of real edits, written as they are: {size}")
        yield from _table(_COLUMNS, _rows(found["edits"]))
    if found["prompts"] or found["edits"]:
        yield ""
        yield _NOTES
    yield from _rest(found)


def _rest(found: Mapping[str, Any]) -> Iterator[str]:
    if found["pass_s"]:
        yield from _section("Passes")
        sizes = [_count(int(size), "id") for size in found["pass_s"]]
        cells = [_spread(spread, 1e3) for spread in found["pass_s"].values()]
        yield from _table(["", *sizes], [["one pass, ms", *cells]])
        yield ""
    for name, spread in found["prompt_per_s"].items():
        yield f"Prompts by {name}: {_spread(spread)} tokens/s, n = {spread['n']}.  "
    for part, what in (("prompts", "small edits"), ("edits", "known patches")):
        if located := found[part].get("located"):
            yield f"Located constraints of {what} compiled in {_spread(located['compile_ms'])} ms.  "
    for pair, same in found["same_text"].items():
        yield f"The same text by {pair}: {same['same']} of {same['n']}.  "
    if found["reused"]:
        yield from _section(
            "Conversations of 6 turns: ids of the prompt and answer before that were in the cache"
        )
        rows = (
            [arm, f"{reused['share']:.1%}", f"{reused['reused']:,} of {reused['known']:,}"]
            for arm, reused in found["reused"].items()
        )
        yield from _table(["", "reused", "ids"], rows)


def _rows(arms: Mapping[str, Any]) -> Iterator[list[str]]:
    for name, arm in arms.items():
        masks, patch = arm["mask_us"], arm["patch_s"]
        yield [
            name,
            f"{arm['tokens']:,}",
            f"{arm['steps']:,}",
            f"{arm['steps_per_token']:.2f}",
            _spread(arm["seconds"]),
            _spread(arm["tokens_per_s"]),
            f"{_digits(patch['median'])} ({patch['n']} of {arm['n']})" if patch["n"] else "–",
            f"{masks['p50']:.0f} / {masks['p99']:,.0f}" if masks["n"] else "–",
            "–" if arm["hidden_share"] is None else f"{arm['hidden_share']:.0%}",
            f"{arm['accepted']} of {arm['drafted']}" if arm["drafted"] else "–",
        ]


def _spread(spread: Mapping[str, Any], factor: float = 1.0) -> str:
    if not spread["n"]:
        return "–"
    middle, low, high = (_digits(value * factor) for value in (spread["median"], *spread["quartiles"]))
    return f"{middle} ({low}–{high})" if spread["n"] > 1 else middle


def _digits(value: float) -> str:
    """Three of them."""
    return f"{value:,.0f}" if value >= 100 else f"{value:#.3g}"


def _size(arms: Mapping[str, Any], repeats: int) -> str:
    cases = max(arm["cases"] for arm in arms.values())
    return f"{_count(cases, 'prompt')}, {_count(repeats, 'round')}"


def _count(n: int, what: str) -> str:
    return f"{n} {what}{'' if n == 1 else 's'}"


def _section(title: str) -> Iterator[str]:
    yield from ("", f"## {title}", "")


def _table(head: Sequence[str], rows: Iterable[Sequence[str]]) -> Iterator[str]:
    """Columns as wide as their cells, so that it reads well as plain text."""
    cells = [head, *rows]
    widths = [max(len(row[i]) for row in cells) for i in range(len(head))]
    for number, row in enumerate(cells):
        first, *others = (
            cell.ljust(w) if not i else cell.rjust(w)
            for i, (cell, w) in enumerate(zip(row, widths, strict=True))
        )
        yield f"| {' | '.join([first, *others])} |"
        if number == 0:
            yield f"|{'-' * (widths[0] + 2)}|{'|'.join('-' * (w + 1) + ':' for w in widths[1:])}|"
