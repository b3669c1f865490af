"""A run once more, without its model: its patches through the real tools, and a check that the same files come out.

What the run's commands and other people did to files is written as it was recorded; commands are run again only on
demand, for they need not do the same a second time. Of files that the run neither read nor changed only a hash is on
record: where it is another one the run can be made all the same (a repository moves on), and the result says so.
"""

from __future__ import annotations

import os
from collections.abc import Callable, Collection, Mapping, Sequence
from dataclasses import dataclass, field

from constrained_agent.agent.compared import (
    Difference,
    WholeTree,
    compare,
    first_entries,
    net_changes,
    not_at_start,
    start_difference,
    whole_tree,
)
from constrained_agent.agent.events import Call, Change, Changed, End, Entry, Event, Result, Run
from constrained_agent.errors import UserError
from constrained_agent.messages import ToolCall, ToolResult
from constrained_agent.tools import undo
from constrained_agent.tools.permissions import Policy
from constrained_agent.tools.registry import Tools
from constrained_agent.tools.snapshot import Snapshot, differences, look, put
from constrained_agent.tools.workspace import Workspace

Report = Callable[[str], None]
"""Is told of each step, in a line."""

_UNWATCHED = (
    "the repository had too many files to watch: what commands and other people changed is not on record"
)
_TOO_LONG = " (too long, or no text)"
_OTHERS_DIFFER = (
    "files that the run neither read nor changed are not as they were at its start: the whole folder has another hash "
    "({here}, then {then})"
)


@dataclass(frozen=True, slots=True)
class Replayed:
    """What a replay did.

    Attributes:
        turn: the answer after which it stopped.
        patches, commands, writes: patches applied, commands run, files written from the record.
        difference: the first one from the record; None if all that the run read or changed is as it left it.
        notes: what else a person should know.
        tree: the files that are not as they were at the start, with their entries.
        whole_tree: whether all other files, too, were as at the start of the run.
    """

    turn: int
    patches: int
    commands: int
    writes: int
    difference: Difference | None
    notes: tuple[str, ...]
    tree: tuple[Entry, ...]
    whole_tree: WholeTree


def replay(
    run: Run,
    root: str | os.PathLike[str],
    *,
    to_turn: int | None = None,
    run_commands: bool = False,
    report: Report | None = None,
    ignored: Collection[str] = (),
    whole: WholeTree | None = None,
) -> Replayed:
    """Do to a folder what a run did, and compare.

    Args:
        root: a folder in the state at the start of the run; it is changed.
        to_turn: the answer after which to stop, with the results of its calls; None for all that is on record, patches
            that were taken back after the end of the run included.
        run_commands: run the commands instead of writing what they once wrote.
        ignored: paths that are none of the repository's files: of the transcript, if it lies there.
        whole: how the folder compares with the start of the run as a whole, if that is known already.

    Returns:
        What it did. If the run read and changed no file, and the folder is another one as a whole, nothing is done, and
        the difference says that nothing could be compared.

    Raises:
        UserError: nothing was done: the folder is not in that state, or the record does not suffice.
    """
    events = check_record(run, to_turn, run_commands=run_commands)
    workspace = Workspace(root)
    if (wrong := start_difference(run, workspace)) is not None:
        raise UserError(not_at_start(run, workspace, wrong))
    before = look(workspace.root, ignored=ignored)
    whole = whole or whole_tree(run, before)
    if whole != "same" and not first_entries(run):
        return Replayed(
            0, 0, 0, 0, Difference(0, None, _nothing_to_compare(run, before, whole)), (), (), whole
        )
    player = _Player(run, Tools(workspace, Policy(yes=True)), workspace, run_commands, report or _silent)
    player.notes += _notes(run, before, whole)
    expected = net_changes(events)
    difference = player.play(events) or _first_difference(player, expected)
    after = look(workspace.root, before, ignored=ignored, also=expected)
    changed = tuple(Entry(found.path, found.after) for found in differences(before, after))
    if difference is None and (extra := [found.path for found in changed if found.path not in expected]):
        difference = Difference(player.turn, extra[0], "changed here, not in the record")
    turn = run.last_turn if to_turn is None else to_turn
    counts = (player.patches, player.commands, player.writes)
    return Replayed(turn, *counts, difference, tuple(player.notes), changed, whole)


def _notes(run: Run, here: Snapshot, whole: WholeTree) -> list[str]:
    """What to say of the files that the run did not touch."""
    notes = [] if (run.start.tree or {}).get("complete", True) else [_UNWATCHED]
    return [*notes, _others_differ(run, here)] if whole == "differs" else notes


def _others_differ(run: Run, here: Snapshot) -> str:
    then = (run.start.tree or {}).get("files", "?")
    return _OTHERS_DIFFER.format(here=f"here {len(here.files)} files", then=then)


def _nothing_to_compare(run: Run, here: Snapshot, whole: WholeTree) -> str:
    others = (
        _others_differ(run, here)
        if whole == "differs"
        else "of the other files there is no hash, on record or here (too many files to watch?)"
    )
    return f"nothing could be compared: the run read and changed no file, and {others}"


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
                self._write(event.changes, "other hands or a stopped call", _TOO_LONG)
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
        elif self.run_commands and call is not None and call.name == "exec_command" and _ran(event):
            result = self.tools.run(ToolCall(call.id, call.name, call.arguments))
            self._command(event, result, str(call.arguments.get("command")))
        else:
            self._write(event.changes, *_author(event, call))
        return None

    def _patch(self, call: ToolCall, event: Result) -> Difference | None:
        result = self.tools.run(call)
        if not result.ok:
            return Difference(event.turn, None, f"the patch of {call.id} does not apply here: {result.text}")
        self.patches += 1
        files = ", ".join(str(file["path"]) for file in result.data["files"])
        self.report(f"turn {event.turn}: patch applied: {files}")
        return compare({change.path: change.after for change in event.changes}, self.workspace, event.turn)

    def _command(self, event: Result, result: ToolResult, command: str) -> None:
        self.commands += 1
        was, now = event.data.get("exit_code"), result.data.get("exit_code")
        self.report(f"turn {event.turn}: exit code {now}: {command}")
        if was != now:
            self.notes.append(f"turn {event.turn}: exit code {now}, was {was}: {command}")

    def _write(self, changes: Sequence[Change], who: str, hint: str = "") -> None:
        """Make changes whose outcome is on record; removals first, since a folder may take a file's place.

        Args:
            hint: why what `who` wrote may be missing, and what helps.
        """
        for change in sorted(changes, key=lambda change: change.after is not None):
            if change.after is not None and (change.text is None or change.masked):
                why = "holds a masked secret" if change.masked else "is not on record"
                self.unknown[change.path] = f"written by {who}; what it wrote {why}{hint}"
                self.notes.append(f"turn {self.turn}: {change.path}: {self.unknown[change.path]}")
                continue
            try:
                put(self.workspace, change.path, change.text, change.after)
            except OSError as error:
                raise UserError(f"{change.path}: cannot be written: {error.strerror}") from error
            self.writes += 1
            self.report(f"turn {self.turn}: as {who} left it: {change.path}")


def _ran(event: Result) -> bool:
    """Whether a command came to its end: not one that was refused, interrupted, or of an answer that was cut off."""
    return "exit_code" in event.data


def _author(event: Result, call: Call | None) -> tuple[str, str]:
    """Who changed what is on record with a result that is no patch to be applied, and why its texts may be missing."""
    if event.call_id == undo.CALL_ID:
        return "undo", _TOO_LONG
    if event.command is not None or (call is not None and call.name == "exec_command"):
        return "a command", f"{_TOO_LONG}; see --run-commands"
    if call is None:
        return event.call_id, ", nor is its call (a turn is missing): it cannot be made again"
    if call.name == "apply_patch":
        return f"the patch of {call.id}", ", and the patch counts there as failed: it is not made again"
    return call.name, _TOO_LONG


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
    found = compare(expected, player.workspace, player.turn)
    if found is None or found.path is None or found.path not in player.unknown:
        return found
    return Difference(found.turn, found.path, f"{found.reason}: {player.unknown[found.path]}")


def _silent(line: str) -> None:
    """Nobody wants to know."""
