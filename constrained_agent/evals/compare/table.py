"""The report of a comparison as Markdown."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping
from typing import Any

from constrained_agent.evals.compare import wording
from constrained_agent.evals.compare.facts import asked, machine, machines
from constrained_agent.evals.compare.figures import KINDS
from constrained_agent.evals.compare.rates import RATES
from constrained_agent.evals.compare.sections import Name, Table, sections


def document(facts: Mapping[str, Any], figures: Mapping[str, Any]) -> str:
    """Everything but the texts.

    Args:
        facts: `run.json`.
        figures: `figures.figures`.
    """
    parts = ["# Before and after", *_about(facts)]
    for kind, found in figures["kinds"].items():
        parts += [f"## {KINDS[kind]}", f"**{wording.primary(found)}** {wording.UNCORRECTED}"]
        for one in sections(kind, found, facts):
            if isinstance(one, Table):
                parts += [f"### {one.title}", _table(one), one.note] if one.rows else []
            elif one.entries:
                parts += [f"### {one.title}", _list((_cell(name), text) for name, text in one.entries)]
    return "\n\n".join(part for part in parts if part) + "\n"


def _about(facts: Mapping[str, Any]) -> Iterator[str]:
    for one in machines(facts):
        yield machine(one)
        yield f"`{one['command']}`"
    yield asked(facts)
    yield f"{wording.ESTIMATES} {wording.TESTS}"
    yield "An answer\n\n" + _list((one.label, f"if {one.means}") for one in RATES.values())


def _cell(text: str) -> str:
    return f"`{text}`" if isinstance(text, Name) else text


def _list(pairs: Iterable[tuple[str, str]]) -> str:
    return "\n".join(f"- {name}: {text}" for name, text in pairs)


def _table(table: Table) -> str:
    rule = ["---"] * table.n_words + ["---:"] * (len(table.head) - table.n_words)
    return "\n".join(f"| {' | '.join(map(_cell, row))} |" for row in (table.head, rule, *table.rows))
