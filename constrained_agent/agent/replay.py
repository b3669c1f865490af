"""A run once more, without its model: its patches through the real tools, and a check that the same tree comes out.

What the run's commands and other people did to files is written as it was recorded; commands are run again only on
demand, for they need not do the same a second time.
"""

from __future__ import annotations

import os
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, field

from constrained_agent.agent.events import Change, Changed, End, Entry, Event, Result, Run
from constrained_agent.errors import UserError
from constrained_agent.messages import ToolCall, ToolResult
from constrained_agent.tools import undo
from constrained_agent.tools.permissions import Policy
from constrained_agent.tools.registry import Tools
from constrained_agent.tools.snapshot import differences, entry, look, put, same
from constrained_agent.tools.workspace import Workspace

Report = Callable[[str], None]
"""Is told of each step, in a line."""

_SHOWN_HASH = 10
_UNWATCHED = (
    "the repository had too many files to watch: what commands and other people changed is not on record"
)


@dataclass(frozen=True, slots=True)
class Difference:
    """Where a replay left its record.

    Attributes:
        turn: the answer that it followed; 0 is before the first.
        path: the file, if one is concerned.
        reason: what was expected, and what came.
    """

    turn: int
    path: str | None
    reason: str

    def __str__(self) -> str:
        place = f"turn {self.turn}" if self.path is None else f"turn {self.turn}: {self.path}"
        return f"{place}: {self.reason}"


@dataclass(frozen=True, slots=True)
class Replayed:
    """What a replay did.

    Attributes:
        turn: the answer after which it stopped.
        patches, commands, writes: patches applied, commands run, files written from the record.
        difference: the first one from the record; None if the tree is the same.
        notes: what else a person should know.
        tree: the files that are not as they were at the start, with their entries.
    """

    turn: int
    patches: int
    commands: int
    writes: int
    difference: Difference | None
    notes: tuple[str, ...]
    tree: tuple[Entry, ...]


def replay(
    run: Run,
    root: str | os.PathLike[str],
    *,
    to_turn: int | None = None,
    run_commands: bool = False,
    report: Report | None = None,
) -> Replayed:
    """Do to a folder what a run did, and compare.

    Args:
        root: a folder in the state at the start of the run; it is changed.
        to_turn: the answer after which to stop, with the results of its calls; None for all that is on record, patches
            that were taken back after the end of the run included.
        run_commands: run the commands instead of writing what they once wrote.

    Raises:
        UserError: nothing was done: the folder is not in that state, or the record does not suffice.
    """
    events = check_record(run, to_turn, run_commands=run_commands)
    workspace = Workspace(root)
    if (wrong := start_difference(run, workspace)) is not None:
        raise UserError(not_at_start(run, workspace, wrong))
    notes = [] if (run.start.tree or {}).get("complete", True) else [_UNWATCHED]
    player = _Player(
        run, Tools(workspace, Policy(yes=True)), workspace, run_commands, report or _silent, notes=notes
    )
    expected = net_changes(events)
    before = look(workspace.root)
    difference = player.play(events) or _first_difference(player, expected)
    after = look(workspace.root, before, also=expected)
    changed = tuple(Entry(found.path, found.after) for found in differences(before, after))
    if difference is None and (extra := [found.path for found in changed if found.path not in expected]):
        difference = Difference(player.turn, extra[0], "changed here, not in the record")
    turn = run.last_turn if to_turn is None else to_turn
    return Replayed(turn, player.patches, player.commands, player.writes, difference, tuple(notes), changed)


def check_record(run: Run, to_turn: int | None, *, run_commands: bool = False) -> list[Event]:
    """The events of a replay (see there for the arguments), if the record suffices for it.

    Raises:
        UserError: it does not.
    """
    events = _events(run, to_turn)
    if run.start.tree is None:
        raise UserError(
            f"run {run.number} is of schema {run.start.schema}, without hashes of files: it can be shown, not replayed"
        )
    for event in events:
        call = run.call(event) if isinstance(event, Result) and event.ok else None
        needed = call is not None and (
            call.name == "apply_patch" or (run_commands and call.name == "exec_command")
        )
        if call is not None and needed and call.masked:
            turn = event.turn if isinstance(event, Result) else 0
            raise UserError(
                f"turn {turn}: the {'patch' if call.name == 'apply_patch' else 'command'} of {call.id} held a secret, "
                f"which was masked when it was written down: it cannot be replayed; up to turn {turn - 1} the run can "
                f"be (--to-turn {turn - 1}, or cut --after {turn - 1})"
            )
        if isinstance(event, (Result, Changed)) and event.changes_left_out and not run_commands:
            raise UserError(
                f"turn {event.turn}: {event.changes_left_out} more files were changed than are on record; "
                "--run-commands runs the commands again"
            )
    return events


def first_entries(run: Run) -> dict[str, str | None]:
    """The files that a run read or changed, with their entries at its start, in the order of the run."""
    found = {read.path: read.entry for read in run.start.reads}
    for event in run.events:
        for change in _changes(event):
            found.setdefault(change.path, change.before)
        for read in event.reads if isinstance(event, Result) else ():
            found.setdefault(read.path, read.entry)
    return found


def net_changes(events: Iterable[Event]) -> dict[str, str | None]:
    """The files that events changed, with their entries after them."""
    found: dict[str, str | None] = {}
    for event in events:
        found |= {change.path: change.after for change in _changes(event)}
        if isinstance(event, End) and event.tree is not None:
            found |= {left.path: left.entry for left in event.tree}
    return found


def start_difference(run: Run, workspace: Workspace) -> Difference | None:
    """The first file that is not as it was at the start of the run."""
    return _compare(first_entries(run), workspace, 0)


def not_at_start(run: Run, workspace: Workspace, wrong: Difference) -> str:
    hint = (
        "it is as the run left it: `transcript cut` works on a copy, and takes that back to the start first"
        if is_as_left(run, workspace)
        else "bring back the files that the run began with (a checkout of that commit, a copy)"
    )
    return f"{workspace.root} is not as it was at the start of run {run.number}: {wrong.path}: {wrong.reason}; {hint}"


def is_as_left(run: Run, workspace: Workspace) -> bool:
    """Whether a run changed files, and they, and those that it read, are as they were after it."""
    changed = net_changes(run.events)
    return bool(changed) and _compare({**first_entries(run), **changed}, workspace, 0) is None


def shown_entry(entry: str | None) -> str:
    """An entry for a message."""
    return "no file" if entry is None else entry[: len("100644 ") + _SHOWN_HASH]


@dataclass(slots=True)
class _Player:
    """Plays events one after the other; `turn` is that of the last one, the counts those so far."""

    run: Run
    tools: Tools
    workspace: Workspace
    run_commands: bool
    report: Report
    turn: int = 0
    patches: int = 0
    commands: int = 0
    writes: int = 0
    notes: list[str] = field(default_factory=list)
    unknown: dict[str, str] = field(default_factory=dict)

    def play(self, events: Sequence[Event]) -> Difference | None:
        """All of them, or up to the first difference."""
        for event in events:
            if isinstance(event, Changed):
                self.turn = event.turn
                self._write(event.changes, "other hands")
            elif isinstance(event, Result):
                self.turn = event.turn
                if (difference := self._result(event)) is not None:
                    return difference
        return None

    def _result(self, event: Result) -> Difference | None:
        call = self.run.call(event)
        if call is not None and call.name == "apply_patch" and event.ok:
            return self._patch(ToolCall(call.id, call.name, call.arguments), event)
        if self.run_commands and event.command is not None:
            self._command(event, self.tools.run_tests(event.command), event.command)
        elif self.run_commands and call is not None and call.name == "exec_command":
            result = self.tools.run(ToolCall(call.id, call.name, call.arguments))
            self._command(event, result, str(call.arguments.get("command")))
        else:
            self._write(event.changes, "undo" if event.call_id == undo.CALL_ID else "a command")
        return None

    def _patch(self, call: ToolCall, event: Result) -> Difference | None:
        result = self.tools.run(call)
        if not result.ok:
            return Difference(event.turn, None, f"the patch of {call.id} does not apply here: {result.text}")
        self.patches += 1
        files = ", ".join(str(file["path"]) for file in result.data["files"])
        self.report(f"turn {event.turn}: patch applied: {files}")
        return _compare({change.path: change.after for change in event.changes}, self.workspace, event.turn)

    def _command(self, event: Result, result: ToolResult, command: str) -> None:
        self.commands += 1
        was, now = event.data.get("exit_code"), result.data.get("exit_code")
        self.report(f"turn {event.turn}: exit code {now}: {command}")
        if was != now:
            self.notes.append(f"turn {event.turn}: exit code {now}, was {was}: {command}")

    def _write(self, changes: Sequence[Change], who: str) -> None:
        """Make changes whose outcome is on record; removals first, since a folder may take a file's place."""
        for change in sorted(changes, key=lambda change: change.after is not None):
            if change.after is not None and (change.text is None or change.masked):
                why = "holds a masked secret" if change.masked else "is not on record (too long, or no text)"
                self.unknown[change.path] = f"written by {who}; what it wrote {why}"
                self.notes.append(f"turn {self.turn}: {change.path}: {self.unknown[change.path]}")
                continue
            try:
                put(self.workspace, change.path, change.text, change.after)
            except OSError as error:
                raise UserError(f"{change.path}: cannot be written: {error.strerror}") from error
            self.writes += 1
            self.report(f"turn {self.turn}: as {who} left it: {change.path}")


def _events(run: Run, to_turn: int | None) -> list[Event]:
    """Those up to and with a turn, without what came after the end; all of them without a turn."""
    if to_turn is None:
        return list(run.events)
    last = run.last_turn
    if not 0 <= to_turn <= last:
        raise UserError(f"turn {to_turn}: run {run.number} has turns 1 to {last} (0 is its start)")
    found: list[Event] = []
    for event in run.events:
        if isinstance(event, End):
            break
        if isinstance(event, (Result, Changed)) and event.turn <= to_turn:
            found.append(event)
    return found


def _first_difference(player: _Player, expected: Mapping[str, str | None]) -> Difference | None:
    """The first file that is not as the record leaves it."""
    found = _compare(expected, player.workspace, player.turn)
    if found is None or found.path is None or found.path not in player.unknown:
        return found
    return Difference(
        found.turn, found.path, f"{found.reason}: {player.unknown[found.path]}; see --run-commands"
    )


def _compare(expected: Mapping[str, str | None], workspace: Workspace, turn: int) -> Difference | None:
    for path, recorded in expected.items():
        found = entry(workspace, path)
        if not same(recorded, found):
            return Difference(turn, path, f"{shown_entry(found)} here, {shown_entry(recorded)} on record")
    return None


def _changes(event: Event) -> tuple[Change, ...]:
    return event.changes if isinstance(event, (Result, Changed)) else ()


def _silent(line: str) -> None:
    """Nobody wants to know."""
