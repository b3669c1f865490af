"""A transcript as people read it: a run as it looked while it went on, and the table of its tokens."""

from __future__ import annotations

import re
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


def show(out: Console, run: Run, *, turn: int | None = None, full: bool = False) -> None:
    """Print a run, or one turn of it.

    Args:
        full: results whole, however long.
    """
    if turn is None:
        out.rule(f"run {run.number}", align="left")
        out.print(Text(printable(run.start.task)))
        out.print(Text(_about(run), style="dim"))
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
            out.print(Text(f"(to the model) {printable(event.text)}", style="yellow"))
        case Changed():
            paths = ", ".join(change.path for change in event.changes)
            out.print(Text(f"changed by other hands: {printable(paths)}", style="yellow"))
        case End():
            tests = {None: "not run", True: "passed", False: "failed"}[event.tests_passed]
            changed = ", ".join(map(str, event.fields.get("changed_files", ()))) or "none"
            out.rule(align="left")
            out.print(Text(printable(f"{event.exit_reason}: tests {tests}; changed files: {changed}")))
        case _:
            facts = (f"{key} {value}" for key, value in event.fields.items() if key not in ("event", "time"))
            out.print(Text(printable(f"{event.kind}: {', '.join(facts)}"), style="dim"))


def _show_result(out: Console, run: Run, event: Result, full: bool) -> None:
    if (call := run.call(event)) is not None:
        shown = ", ".join(f"{key}={value!r}" for key, value in call.arguments.items() if key != "patch")
        out.print(Text(printable(f"→ {call.name}({shown})"), style="bold"))
    diff = event.data.get("diff")
    lines = str(diff or event.text).rstrip("\n").split("\n")
    rest = 0 if full else len(lines) - RESULT_LINES
    for line in lines[:RESULT_LINES] if rest > 0 else lines:
        style = _DIFF_STYLES.get(line[:1], "") if diff else "" if event.ok else "red"
        out.print(Text(printable(line), style=style))
    if rest > 0:
        out.print(Text(f"… {rest} more lines (--full)", style="dim"))


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
    return (
        f"{turn.stop_reason}: {turn.generated_tokens} tokens ({turn.forced_tokens} forced) in {turn.model_steps} "
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
        "files": ", ".join(map(str, start.fields.get("files", ()))),
    }
    return printable("; ".join(f"{name} {value}" for name, value in facts.items() if value))


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
