"""`transcript`: look at a run, count its tokens, and make it once more without a model."""

from __future__ import annotations

import json
from contextlib import nullcontext
from dataclasses import asdict
from pathlib import Path
from typing import TYPE_CHECKING, Any

import click

from constrained_agent.errors import UserError

if TYPE_CHECKING:
    from constrained_agent.agent.cut import Cut
    from constrained_agent.agent.events import Run
    from constrained_agent.agent.ledger import Row
    from constrained_agent.agent.replay import Replayed
    from constrained_agent.messages import ToolResult

_FILE = click.argument("file", metavar="FILE")
_JSON = click.option("--json", "as_json", is_flag=True, help="Print one JSON object as the last line.")
_RUN = click.option(
    "--run",
    "number",
    type=click.IntRange(1),
    metavar="N",
    help="Which run, where the file holds several. Default: all of them (show, ledger), the last one (others).",
)
_REPO = click.option(
    "--repo",
    required=True,
    type=click.Path(exists=True, file_okay=False, path_type=Path),
    metavar="DIR",
    help="The repository, as it was at the start of the run.",
)
_RUN_COMMANDS = click.option(
    "--run-commands",
    is_flag=True,
    help="Run the run's commands again, unasked, instead of writing what they once wrote.",
)


@click.group(help="Show what a run did, count its tokens, make it once more without a model.")
def command() -> None:
    pass


@command.command(help="A run as it went: answers (forced tokens dimmed), calls, results, notes.")
@_FILE
@click.option("--turn", type=click.IntRange(0), metavar="N", help="Only this turn.")
@click.option("--full", is_flag=True, help="Results whole, however long.")
@_RUN
@_JSON
def show(file: str, turn: int | None, full: bool, number: int | None, as_json: bool) -> None:
    from constrained_agent.cli import transcript_view, view

    runs = _runs(file, number)
    if turn is not None:
        _check_turn(runs, turn)
    if as_json:
        events = {run.number: transcript_view.of_turn(run, turn) for run in runs}
        starts = {run.number: [] if turn is not None else [run.start.fields] for run in runs}
        listed = [
            {
                "run": run.number,
                "cut_off": run.cut_off,
                "events": [*starts[run.number], *(event.fields for event in events[run.number])],
            }
            for run in runs
        ]
        click.echo(json.dumps({"file": file, "runs": listed}))
        return
    out = view.console(stderr=False)
    for run in runs:
        transcript_view.show(out, run, turn=turn, full=full)


@command.command(help="What the tokens of a run went into, turn by turn.")
@_FILE
@_RUN
@_JSON
def ledger(file: str, number: int | None, as_json: bool) -> None:
    from constrained_agent.agent.ledger import rows, total
    from constrained_agent.cli import transcript_view

    runs = _runs(file, number)
    if as_json:
        listed = [
            {
                "run": run.number,
                "turns": [_row_facts(row) for row in rows(run)],
                "total": _row_facts(total(rows(run))),
                "prompt_parts": run.start.prompt_parts,
            }
            for run in runs
        ]
        click.echo(json.dumps({"file": file, "runs": listed}))
        return
    for run in runs:
        if len(runs) > 1:
            click.echo(f"run {run.number}")
        click.echo("\n".join(transcript_view.ledger(run)))


@command.command(
    help="Apply the patches of a run to DIR, without a model, and compare the files with the record. What its "
    "commands wrote is written as recorded. Exit code 1 if the tree comes out another one."
)
@_FILE
@_REPO
@click.option("--to-turn", type=click.IntRange(0), metavar="N", help="Stop after this turn.")
@_RUN_COMMANDS
@_RUN
@_JSON
def replay(
    file: str, repo: Path, to_turn: int | None, run_commands: bool, number: int | None, as_json: bool
) -> int:
    from constrained_agent.agent.replay import replay as play

    run = _one(file, number)
    replayed = play(run, repo, to_turn=to_turn, run_commands=run_commands, report=_report)
    _say_notes(replayed)
    if as_json:
        click.echo(json.dumps(_replay_facts(replayed)))
    else:
        _print(_outcome(replayed))
    return 1 if replayed.difference is not None else 0


@command.command(
    help="Copy DIR, make the run once more in the copy up to turn N, and run the tests there. DIR may also be as "
    "the run left it; it stays as it is. Exit code 1 if the tests fail."
)
@_FILE
@click.option(
    "--after", required=True, type=click.IntRange(0), metavar="N", help="The last turn that counts."
)
@_REPO
@click.option("--test-command", metavar="CMD", help="Default: that of the run.")
@click.option(
    "--out", type=click.Path(path_type=Path), metavar="FOLDER", help="Keep the copy there; it must be new."
)
@_RUN_COMMANDS
@_RUN
@_JSON
def cut(file: str, after: int, repo: Path, out: Path | None, number: int | None, **given: Any) -> int:
    from constrained_agent.agent.cut import cut as cut_off
    from constrained_agent.agent.cut import temporary_copy

    run = _one(file, number)
    tests = _test_command(run, given["test_command"], kept=out is not None)
    with temporary_copy(repo) if out is None else nullcontext(out) as copy:
        done = cut_off(
            run,
            repo,
            copy,
            after,
            test_command=tests,
            run_commands=given["run_commands"],
            report=_report,
        )
    _say_notes(done.replayed)
    if given["as_json"]:
        click.echo(json.dumps(_cut_facts(done, out)))
    else:
        _print(_outcome(done.replayed) if done.tests is None else done.tests.text)
        if out is not None:
            click.echo(f"the copy is kept: {out}", err=True)
    return 0 if done.replayed.difference is None and (done.tests is None or done.tests.ok) else 1


@command.command(
    help="Take back the last patch on record that still stands, if its files are as it left them. The transcript "
    "notes it, so that the next undo takes the patch before it."
)
@_FILE
@click.option(
    "--repo",
    required=True,
    type=click.Path(exists=True, file_okay=False, path_type=Path),
    metavar="DIR",
    help="The repository that the patch changed.",
)
@click.option("--dry-run", is_flag=True, help="Check everything and show the result; write nothing.")
@_JSON
def undo(file: str, repo: Path, dry_run: bool, as_json: bool) -> int:
    from constrained_agent.agent.undoing import undo_last

    result = undo_last(file, _runs(file, None), repo, dry_run=dry_run)
    if as_json:
        click.echo(json.dumps({"ok": result.ok, "error_kind": result.error_kind, **_undo_facts(result)}))
    else:
        _print(str(result.data.get("diff") or result.text).rstrip("\n"))
    return 0 if result.ok else 1


def _undo_facts(result: ToolResult) -> dict[str, Any]:
    return {"text": result.text, **result.data}


def _runs(file: str, number: int | None) -> list[Run]:
    """The runs of a file, or one of them.

    Raises:
        UserError: it cannot be read, or there is no such run.
    """
    from constrained_agent.agent.records import read

    runs = read(file)
    if number is not None and number > len(runs):
        raise UserError(f"--run {number}: {file} holds {len(runs)}")
    for run in runs:
        if run.cut_off:
            click.echo(f"note: the last line of run {run.number} is cut off and was left out", err=True)
    return [run for run in runs if number in (None, run.number)]


def _one(file: str, number: int | None) -> Run:
    """One run: the last one, unless another is asked for."""
    runs = _runs(file, number)
    if len(runs) > 1:
        click.echo(f"run {len(runs)} of {len(runs)} (--run takes another one)", err=True)
    return runs[-1]


def _check_turn(runs: list[Run], turn: int) -> None:
    last = max(run.last_turn for run in runs)
    if turn > last:
        raise UserError(f"--turn {turn}: there are turns 1 to {last}")


def _test_command(run: Run, given: str | None, *, kept: bool) -> str | None:
    """The command to run; None only where the copy itself is what is wanted.

    Raises:
        UserError: there is none.
    """
    from constrained_agent.agent.secrets import MARK

    if given is not None:
        if not given.strip():
            raise UserError("--test-command is empty")
        return given
    recorded = run.test_command
    if recorded is not None and run.start.masked and MARK in recorded:
        raise UserError("the run's test command held a secret, which was masked: give it as --test-command")
    if recorded is None and not kept:
        raise UserError(
            "the run had no test command: give one as --test-command, or keep the copy with --out"
        )
    return recorded


def _report(line: str) -> None:
    from constrained_agent.cli.transcript_view import printable

    click.echo(printable(line), err=True)


def _print(text: str) -> None:
    from constrained_agent.cli.transcript_view import printable

    click.echo(printable(text))


def _say_notes(replayed: Replayed) -> None:
    for note in replayed.notes:
        _report(f"note: {note}")


def _outcome(replayed: Replayed) -> str:
    if replayed.difference is not None:
        return f"differs from the record: {replayed.difference}"
    changed = ", ".join(entry.path for entry in replayed.tree) or "none"
    return f"the same tree as after turn {replayed.turn} of the run; changed files: {changed}"


def _replay_facts(replayed: Replayed) -> dict[str, Any]:
    return {"ok": replayed.difference is None, **asdict(replayed)}


def _cut_facts(done: Cut, out: Path | None) -> dict[str, Any]:
    tests = None if done.tests is None else {"passed": done.tests.ok, **done.tests.data}
    passed = done.tests is None or done.tests.ok
    facts = _replay_facts(done.replayed)
    kept = None if out is None else str(out)
    return {**facts, "ok": facts["ok"] and passed, "rewound": done.rewound, "tests": tests, "out": kept}


def _row_facts(row: Row) -> dict[str, Any]:
    return {**asdict(row), "tokens_per_s": row.tokens_per_s}
