"""What a transcript is made of, as values; `agent.records` reads them, and its docstring says what each field means."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any


@dataclass(frozen=True, slots=True)
class Call:
    """A call that the model made; `masked`: its arguments are not what they were."""

    id: str
    name: str
    arguments: Mapping[str, Any]
    masked: bool


@dataclass(frozen=True, slots=True)
class Entry:
    """What stood at a path; None for no file."""

    path: str
    entry: str | None


@dataclass(frozen=True, slots=True)
class Change:
    """A file that was another one after an event. `masked`: the texts, or the path, are not what they were."""

    path: str
    before: str | None
    after: str | None
    text: str | None
    before_text: str | None
    masked: bool


@dataclass(frozen=True, slots=True)
class Event:
    """One line. `fields` is all of it as it stands in the file; `line` counts from 1."""

    line: int
    kind: str
    time: float
    masked: bool
    fields: Mapping[str, Any]


@dataclass(frozen=True, slots=True)
class Start(Event):
    """A task was given."""

    schema: int
    version: str
    task: str
    files: tuple[str, ...]
    reads: tuple[Entry, ...]
    prompt_parts: Mapping[str, Any]
    settings: Mapping[str, Any]
    tree: Mapping[str, Any] | None


@dataclass(frozen=True, slots=True)
class Turn(Event):
    """An answer. Counts are None where the run did not record them; `faults`: id and kind of unreadable calls."""

    number: int
    tool_choice: str
    text: str
    forced_chars: tuple[int, ...] | None
    calls: tuple[Call, ...]
    faults: tuple[tuple[str, str], ...]
    stop_reason: str
    prompt_tokens: int
    reused_tokens: int
    generated_tokens: int
    forced_tokens: int
    model_steps: int
    drafted_tokens: int | None
    accepted_tokens: int | None
    prefill_s: float
    decode_s: float


@dataclass(frozen=True, slots=True)
class Result(Event):
    """What came of a call, of the person's command (`command`), or of taking a patch back."""

    turn: int
    call_id: str
    command: str | None
    ok: bool
    error_kind: str
    text: str
    data: Mapping[str, Any]
    reads: tuple[Entry, ...]
    changes: tuple[Change, ...]
    changes_left_out: int


@dataclass(frozen=True, slots=True)
class Changed(Event):
    """What other hands changed, or a call that was interrupted."""

    turn: int
    changes: tuple[Change, ...]
    changes_left_out: int


@dataclass(frozen=True, slots=True)
class Note(Event):
    """What the model was told: by the harness, or by the person while the run went on (`by` "person")."""

    text: str
    by: str


@dataclass(frozen=True, slots=True)
class End(Event):
    """How the run ended; `tree` is None in schema 0. `changed_files`: by patches."""

    exit_reason: str
    tests_passed: bool | None
    changed_files: tuple[str, ...]
    tree: tuple[Entry, ...] | None


@dataclass(frozen=True, slots=True)
class Run:
    """One run of a transcript.

    Attributes:
        number: counts from 1 within the file.
        events: those after `start`; of unknown kinds as bare `Event`.
        cut_off: its last line is broken: the process was killed while it wrote.
    """

    number: int
    start: Start
    events: tuple[Event, ...]
    cut_off: bool

    @property
    def turns(self) -> tuple[Turn, ...]:
        """The answers, in order."""
        return tuple(event for event in self.events if isinstance(event, Turn))

    @property
    def last_turn(self) -> int:
        """The number of the last answer; 0 if there is none."""
        return max((turn.number for turn in self.turns), default=0)

    @property
    def end(self) -> End | None:
        """None if the run was killed."""
        return next((event for event in self.events if isinstance(event, End)), None)

    @property
    def test_command(self) -> str | None:
        """The person's command that decided whether the task was done."""
        return self._command("test_command")

    @property
    def stop_hook(self) -> str | None:
        """The person's command that was asked, too, whether the run may stop."""
        return self._command("stop_hook")

    def _command(self, name: str) -> str | None:
        command = self.start.settings.get(name)
        return command if isinstance(command, str) else None

    def call(self, result: Result) -> Call | None:
        """The call that a result belongs to; None for the person's command, and for calls that could not be read."""
        calls = (call for turn in self.turns for call in turn.calls)
        return next((call for call in calls if call.id == result.call_id), None)
