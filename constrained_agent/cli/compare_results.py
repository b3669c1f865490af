"""What is done with the records of a comparison: a report, and judging them once more."""

from __future__ import annotations

import json
from pathlib import Path
from typing import TYPE_CHECKING, Any

import click

if TYPE_CHECKING:
    from constrained_agent.evals.compare.outcomes import Judgement
    from constrained_agent.evals.compare.records import Folder, Record
    from constrained_agent.evals.compare.rejudging import Rejudged


def rejudge(path: str, out: str | None, *, as_json: bool) -> int:
    """Judge once more; exit code 1 if anything comes out differently, or not as a constraint promises.

    Args:
        path: of the comparison.
        out: where the records go with their new judgements; None: nowhere.
    """
    from constrained_agent.cli import compare_view
    from constrained_agent.evals.compare import rejudging, selection
    from constrained_agent.evals.compare.records import Folder

    folder = Folder(Path(path))
    into = None if out is None else Folder(Path(out))
    if into is not None and into.exists:
        raise click.UsageError(f"{out} holds a comparison already: name a new folder")
    facts, records = folder.facts(), list(folder.load().values())
    with compare_view.bar(len(records), 0) as advance:
        found = rejudging.rejudge(
            records,
            facts["markers"],
            lambda ids: selection.calls_by_id(ids, say),
            folder.transcript,
            lambda: advance(None),
        )
    told = _told(found)
    if into is not None:
        into.begin(facts)
        into.take_transcripts(folder, found.records)
        into.rewrite(found.records)
        show_report(into, as_json=False)
    if as_json:
        click.echo(json.dumps(told))
    return 1 if found.changes or found.disagreements else 0


def _told(found: Rejudged) -> dict[str, Any]:
    """Say what came out differently; returns it for `--json`."""
    for change in found.changes:
        say(f"{change.record.id}: was {_in_short(change.record.judgement)}, is {_in_short(change.now)}")
    for disagreement in found.disagreements:
        say(str(disagreement))
    say(f"{len(found.records)} records judged once more: {len(found.changes)} came out differently")
    changed = [change.record.id for change in found.changes]
    return {"records": len(found.records), "changed": changed, "disagreements": len(found.disagreements)}


def _in_short(judgement: Judgement) -> str:
    lenient = f"(read leniently: {judgement.saved})" if judgement.saved else ""
    return " ".join(filter(None, (judgement.outcome, judgement.error_kind, lenient)))


def show_report(folder: Folder, *, as_json: bool) -> int:
    """Write the report; print its Markdown."""
    from constrained_agent.evals.compare import report

    records: list[Record] = list(folder.load().values())
    facts, text = report.write(folder.path, folder.facts(), records)
    click.echo(text)
    say(f"kept in {folder.path}: report.html, report.md, report.json")
    if as_json:
        click.echo(json.dumps(facts, ensure_ascii=False))
    return 0


def warn_of_programs(folder: Folder) -> None:
    """Say if several commits made a comparison."""
    from constrained_agent.evals.compare import programs

    if warning := programs.several(folder.facts()):
        say(f"{folder.path}: {warning}")


def say(message: str) -> None:
    """For people: on stderr."""
    click.echo(message, err=True)
