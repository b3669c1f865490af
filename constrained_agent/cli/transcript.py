"""`transcript`: look at a run, count its tokens, and make it once more without a model."""

from __future__ import annotations

import json
from contextlib import nullcontext
from pathlib import Path
from typing import TYPE_CHECKING, Any

import click

from constrained_agent.errors import UserError

if TYPE_CHECKING:
    from constrained_agent.agent.events import Run
    from constrained_agent.agent.replay import Replayed

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
@click.option(
    "--turn",
    type=click.IntRange(0),
    metavar="N",
    help="Only this turn; 0 is the start: task, files, settings.",
)
@click.option("--full", is_flag=True, help="Results whole, however long.")
@_RUN
@_JSON
def show(file: str, turn: int | None, full: bool, number: int | None, as_json: bool) -> None:
    from constrained_agent.cli import transcript_facts, transcript_view, view

    runs, n_runs = _runs(file, number)
    if turn is not None:
        _check_turn(runs, turn)
    if as_json:
        click.echo(json.dumps({"file": file, "runs": [transcript_facts.of_run(run, turn) for run in runs]}))
        return
    out = view.console(stderr=False)
    for run in runs:
        transcript_view.show(out, run, turn=turn, full=full, n_runs=n_runs)


@command.command(help="What the tokens of a run went into, turn by turn.")
@_FILE
@_RUN
@_JSON
def ledger(file: str, number: int | None, as_json: bool) -> None:
    from constrained_agent.cli import transcript_facts, transcript_view

    runs, _ = _runs(file, number)
    if as_json:
        click.echo(json.dumps({"file": file, "runs": [transcript_facts.of_ledger(run) for run in runs]}))
        return
    for run in runs:
        if len(runs) > 1:
            click.echo(f"run {run.number}")
        click.echo("\n".join(transcript_view.ledger(run)))


@command.command(
    help="Apply the patches of a run to DIR, without a model, and compare the files that it read or changed with "
    "the record. What its commands wrote is written as recorded. Other files of DIR may differ from the start of the "
    "run, for a repository moves on: a note and the last line say so. Exit code 1 if a file comes out another one, "
    "and if nothing could be compared: the run touched no file, and DIR is not the folder that it began with."
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
    from constrained_agent.agent.compared import own_paths
    from constrained_agent.agent.replay import replay as play
    from constrained_agent.cli import transcript_facts

    run, own = _one(file, number), own_paths(repo, Path(file))
    replayed = play(run, repo, to_turn=to_turn, run_commands=run_commands, report=_report, ignored=own)
    _say_notes(replayed)
    if as_json:
        click.echo(json.dumps(transcript_facts.of_replay(replayed)))
    else:
        _print(transcript_facts.outcome(replayed))
    return 1 if replayed.difference is not None else 0


@command.command(
    help="Copy DIR, make the run once more in the copy up to turn N, and run the tests there. DIR may also be as "
    "the run left it; it stays as it is. Exit code 1 if the tests fail, or for what `replay` has it."
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
    from constrained_agent.agent.compared import own_paths
    from constrained_agent.agent.cut import cut as cut_off
    from constrained_agent.agent.cut import temporary_copy
    from constrained_agent.cli import transcript_facts

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
            ignored=own_paths(repo, Path(file)),
        )
    _say_notes(done.replayed)
    if given["as_json"]:
        click.echo(json.dumps(transcript_facts.of_cut(done, out)))
    else:
        _print(transcript_facts.outcome(done.replayed) if done.tests is None else done.tests.text)
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
    from constrained_agent.cli import transcript_facts

    result = undo_last(file, _runs(file, None)[0], repo, dry_run=dry_run)
    if as_json:
        click.echo(json.dumps(transcript_facts.of_undo(result)))
    else:
        _print(str(result.data.get("diff") or result.text).rstrip("\n"))
    return 0 if result.ok else 1


def _runs(file: str, number: int | None, *, last: bool = False) -> tuple[list[Run], int]:
    """The runs of a file, or one of them, and how many it holds; the others are not looked into.

    Args:
        number: which one; None for all of them, or with `last` for the last.

    Raises:
        UserError: it cannot be read, or there is no such run.
    """
    from constrained_agent.agent.records import stretches

    found = stretches(file)
    if number is not None and number > len(found):
        raise UserError(f"--run {number}: {file} holds {len(found)}")
    if last and number is None:
        number = len(found)
    runs = [stretch.run() for stretch in found if number in (None, stretch.number)]
    for run in runs:
        if run.cut_off:
            click.echo(f"note: the last line of run {run.number} is cut off and was left out", err=True)
    return runs, len(found)


def _one(file: str, number: int | None) -> Run:
    """One run: the last one, unless another is asked for."""
    (run,), n_runs = _runs(file, number, last=True)
    if n_runs > 1:
        click.echo(f"run {run.number} of {n_runs} (--run takes another one)", err=True)
    return run


def _check_turn(runs: list[Run], turn: int) -> None:
    last = max(run.last_turn for run in runs)
    if turn > last:
        raise UserError(f"--turn {turn}: there are turns 1 to {last}")


def _test_command(run: Run, given: str | None, *, kept: bool) -> str | None:
    """The command to run; None only where the copy itself is what is wanted.

    Raises:
        UserError: there is none.
    """
    from constrained_agent.agent.named_secrets import MARK

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
