"""A transcript as people read it: a run as it looked while it went on, and the table of its tokens."""

from __future__ import annotations

import json
import re
from collections import Counter
from collections.abc import Iterator, Sequence
from typing import TYPE_CHECKING, Any

from rich.text import Text

from constrained_agent.agent.events import Changed, End, Event, Note, Result, Run, Turn
from constrained_agent.agent.ledger import Row, rows, total

if TYPE_CHECKING:
    from rich.console import Console

RESULT_LINES = 20
"""Shown of a result, unless all of it is asked for."""

_CONTROLS = re.compile(
    "[\x00-\x08\x0b-\x1f\x7f-\x9f]"
)  # what a model or a file wrote must not steer the terminal
_CUT_BY = {
    "repetition": "because it repeated itself",
    "length": "at the limit of tokens",
    "closed_by_budget": "near the limit of tokens",
    "thinking_limit": "at the limit of thinking",
    "time_limit": "at the time limit",
    "interrupted": "by Ctrl-C",
}
"""Why an answer was cut off, by its stop reason."""

_DIFF_STYLES = {"+": "green", "-": "red", "@": "cyan"}
_COLUMNS = (
    *("turn", "prompt", "reused", "written", "forced", "steps", "guessed", "came true"),
    *("prefill s", "decode s", "tokens/s"),
)


def printable(text: str) -> str:
    """A text in which nothing steers the terminal."""
    return _CONTROLS.sub(lambda found: f"\\x{ord(found[0]):02x}", text)


def of_turn(run: Run, number: int | None) -> list[Event]:
    """The events of a run, or those from one answer up to the next."""
    current = 0
    found: list[Event] = []
    for event in run.events:
        current = event.number if isinstance(event, Turn) else current
        if number is None or current == number:
            found.append(event)
    return found


def show(out: Console, run: Run, *, turn: int | None = None, full: bool = False, n_runs: int = 1) -> None:
    """Print a run, or one turn of it.

    Args:
        turn: the number of an answer, with all that came before the next one; 0 is the start.
        full: results whole, however long.
        n_runs: how many there are in the file; of several, each says which it is.
    """
    if not turn or n_runs > 1:
        out.rule(f"run {run.number}" if n_runs == 1 else f"run {run.number} of {n_runs}", align="left")
    if not turn:
        out.print(Text(printable(run.start.task)))
        out.print(Text(_about(run), style="dim"))
    if turn == 0:
        for line in _settings(run):
            out.print(Text(printable(line), style="dim"))
    if turn is not None and turn > run.last_turn:
        out.print(Text(f"there is no turn {turn}: the run has {run.last_turn}", style="yellow"))
    for event in of_turn(run, turn):
        _show_event(out, run, event, full)
    if turn is None and run.end is None:
        out.print(Text(_unfinished(run), style="yellow"))


def ledger(run: Run) -> Iterator[str]:
    """The lines of a run's table, its sum, and the parts of its first prompt."""
    parts = rows(run)
    cells = [list(_COLUMNS), *map(_cells, parts)]
    if len(parts) != 1:
        cells.append(_cells(total(parts)))
    widths = [max(len(row[column]) for row in cells) for column in range(len(_COLUMNS))]
    for row in cells:
        yield "  ".join(cell.rjust(width) for cell, width in zip(row, widths, strict=True))
    listed = ", ".join(f"{name} {n}" for name, n in run.start.prompt_parts.items())
    yield f"prompt parts: {listed or 'not recorded'}"


def _show_event(out: Console, run: Run, event: Event, full: bool) -> None:
    match event:
        case Turn():
            out.rule(f"turn {event.number}", align="left")
            out.print(_text(event), end="" if event.text.endswith("\n") else "\n")
            out.print(Text(_counts(event), style="dim"))
        case Result():
            _show_result(out, run, event, full)
        case Note():
            said = "the person, meanwhile" if event.by == "person" else "to the model"
            out.print(Text(f"({said}) {printable(event.text)}", style="yellow"))
        case Changed():
            paths = ", ".join(change.path for change in event.changes)
            by = "other hands, or by a call that was stopped"
            out.print(Text(f"changed by {by}: {printable(paths)}", style="yellow"))
        case End():
            out.rule(align="left")
            out.print(Text(printable(_ended(run, event))))
        case _:
            facts = (f"{key} {value}" for key, value in event.fields.items() if key not in ("event", "time"))
            out.print(Text(printable(f"{event.kind}: {', '.join(facts)}"), style="dim"))


def _show_result(out: Console, run: Run, event: Result, full: bool) -> None:
    out.print(Text(printable(f"→ {_heading(run, event)}"), style="bold"))
    diff = event.data.get("diff")
    lines = str(diff or event.text).rstrip("\n").split("\n")
    rest = 0 if full else len(lines) - RESULT_LINES
    for line in lines[:RESULT_LINES] if rest > 0 else lines:
        style = _DIFF_STYLES.get(line[:1], "") if diff else "" if event.ok else "red"
        out.print(Text(printable(line), style=style))
    if rest > 0:
        out.print(Text(f"… {rest} more lines (--full)", style="dim"))


def _heading(run: Run, event: Result) -> str:
    """Whose result it is."""
    from constrained_agent.tools.undo import CALL_ID

    if (call := run.call(event)) is not None:
        shown = ", ".join(f"{key}={value!r}" for key, value in call.arguments.items() if key != "patch")
        return f"{call.name}({shown})"
    if event.call_id == CALL_ID:
        when = ", after the end of the run" if run.end is not None and run.end.line < event.line else ""
        return f"undo: the patch of {event.data.get('undone', 'a call')} was taken back{when}"
    if event.command is not None:
        is_hook = event.command == run.stop_hook and event.command != run.test_command
        return f"the person's {'stop hook' if is_hook else 'test command'}"
    faults = (kind for turn in run.turns for call_id, kind in turn.faults if call_id == event.call_id)
    if (kind := next(faults, None)) is not None:
        return f"a call that could not be read ({kind})"
    return f"{event.call_id}: its call is not on record (a turn is missing)"


def _ended(run: Run, end: End) -> str:
    """How a run ended, and of answers that were cut off, by what: the reason alone says only that they were."""
    tests = {None: "not run", True: "passed", False: "failed"}[end.tests_passed]
    cut = Counter(turn.stop_reason for turn in run.turns if turn.stop_reason in _CUT_BY)
    by = ", ".join(f"{n} {_CUT_BY[reason]}" for reason, n in cut.items())
    why = f" (answers that were cut off and not run: {by})" if by and end.exit_reason == "truncated" else ""
    return f"{end.exit_reason}{why}: tests {tests}; changed files: {', '.join(end.changed_files) or 'none'}"


def _text(turn: Turn) -> Text:
    """An answer, what was forced dimmed where that is known."""
    if turn.forced_chars is None or sum(turn.forced_chars) != len(turn.text):
        return Text(printable(turn.text))
    shown, at = Text(), 0
    for index, length in enumerate(turn.forced_chars):
        shown.append(printable(turn.text[at : at + length]), style="dim" if index % 2 else "")
        at += length
    return shown


def _counts(turn: Turn) -> str:
    drafts = f", {turn.accepted_tokens} of {turn.drafted_tokens} guesses true" if turn.drafted_tokens else ""
    cut = f" ({_CUT_BY[turn.stop_reason]})" if turn.stop_reason in _CUT_BY else ""
    return (
        f"{turn.stop_reason}{cut}: {turn.generated_tokens} tokens ({turn.forced_tokens} forced) in {turn.model_steps} "
        f"steps{drafts}, {turn.decode_s:.1f} s; prompt {turn.prompt_tokens} ({turn.reused_tokens} reused), "
        f"{turn.prefill_s:.1f} s"
    )


def _about(run: Run) -> str:
    """With what a run was made, as far as it is on record."""
    start = run.start
    decoding = start.settings.get("decoding")
    facts: dict[str, Any] = {
        "version": start.version,
        "model": start.fields.get("model"),
        "constraint": decoding.get("level") if isinstance(decoding, dict) else None,
        "test command": run.test_command,
        "stop hook": run.stop_hook,
        "files": ", ".join(start.files),
    }
    return printable("; ".join(f"{name} {value}" for name, value in facts.items() if value))


def _settings(run: Run) -> Iterator[str]:
    """The settings of a run as they stand on record, one a line."""
    for name, value in run.start.settings.items():
        yield f"{name}: {json.dumps(value, ensure_ascii=False)}"


def _unfinished(run: Run) -> str:
    cut_off = ", and its last line is cut off" if run.cut_off else ""
    return f"the record ends here: the run was killed, or is still going on{cut_off}"


def _cells(row: Row) -> list[str]:
    return [
        "total" if row.turn is None else str(row.turn),
        *map(_number, _numbers(row)),
        f"{row.prefill_s:.2f}",
        f"{row.decode_s:.2f}",
        "-" if row.tokens_per_s is None else f"{row.tokens_per_s:.1f}",
    ]


def _numbers(row: Row) -> Sequence[int | None]:
    return (
        row.prompt_tokens,
        row.reused_tokens,
        row.generated_tokens,
        row.forced_tokens,
        row.model_steps,
        row.drafted_tokens,
        row.accepted_tokens,
    )


def _number(n: int | None) -> str:
    return "-" if n is None else f"{n:,}"
