"""Transcripts read back, and what stands in them. No model is needed, and none of its libraries is loaded.

A transcript is a file of JSON lines, one event each, in UTF-8. It may hold several runs, one after the other: each
begins with `start` and, unless it was killed, ends with `end`. Every event has `event` (its kind) and `time` (seconds
since 1970). Readers skip events and fields that they do not know; writers add such without a new schema number, and
raise the number when something known changes its meaning. `masked` is true on an event, and on an object in a list of
it, if a secret was taken out of a text in it; `***` and the secret's last characters stand there instead
(`agent.secrets` says what is taken for one).

An *entry* is what stands at a path: `"100644 SHA256"` for a file, `100755` for one that can be executed, `120000` for a
symbolic link (SHA-256 of its target), `?` for bytes that nobody looked into, null for no file. A *change* is `path`,
`before` and `after` (entries), and where they are known and not too long, `text` (the file after it) and `before_text`
(the file before its first change). Paths are relative to the repository, with `/`.

`start`: a task was given.
    `schema` 1 · `version` of the program · `model` its card's name · `task` · `told` what the model was told with it
    (patches taken back before) · `files` paths that were put before the model · `reads` their entries (a list of
    `path`, `entry`) · `prompt_parts` tokens by part · `settings` as given: `decoding`, `limits`, `test_command`, ... ·
    `tree` `sha256` over all files of the repository, `files` their number, `complete` false if there were too many to
    watch
`turn`: the model answered.
    `number` counts from 1 · `tool_choice`, "none" for the last words of a run that met a limit · `ids` the tokens, null
    if masked · `text` they stand for · `forced` lengths of alternating stretches of tokens, sampled ones first:
    [2, 5, 1] = 2 sampled, 5 forced, 1 sampled · `forced_chars` the same in characters of `text`, null if masked or if a
    stretch ends inside a character · `thinking`, `answer` parts of the text · `calls` a list of `id`, `name`,
    `arguments` · `faults` calls that could not be read: `kind`, `message`, `call_id` ("" for one that was only
    printed, which gets no result) · `stop_reason`, `complete`, `thinking_cut`, `end_token` how it ended ·
    `prompt_messages` what the prompt was made of: a list of name, tokens, which sum to `prompt_tokens` ·
    `prompt_tokens`, `reused_tokens` (of them, found in the cache), `generated_tokens`, `forced_tokens`, `model_steps`,
    `drafted_tokens`, `accepted_tokens` counts · `prefill_s`, `decode_s` seconds
`result`: what came of a call, or of the person's test command. Each call of a turn has one, also one that was not run.
    `turn` number of the turn before · `call_id`, "tests" for the person's command, "undo" for a patch that was taken
    back (also after the end) · `command` the person's · `ok` · `error_kind` · `text` for the model · `data`
    facts, by tool · `reads` as in `start` · `changes` a list · `changes_left_out` how many more there were
    A patch: `data.files`, `data.diff`, `data.leniencies` · `data.undo` takes it back (`tools.undo`) ·
    `data.syntax_errors` that files did not have before: a list of `path`, `line`, `column`, `message`
    A patch taken back: `data.files`, `data.diff` · `data.undone` the `call_id` that it had
    A command that came to its end: `data.exit_code`, `data.stdout`, `data.stderr`, `data.duration_s`, ...
    A call that was not run, or interrupted: `error_kind` "not_run", "interrupted", and no `data`
`changed`: files changed between two calls, by other hands or by a call that was interrupted.
    `turn` · `changes` · `changes_left_out`
`note`: the model was told something. `text` · `by` "person" if a person typed it while the run went on; without it, it
    was the harness
`constraint`: answers from now on are held to another level (also between two runs). `level`
`shrink`: the conversation was made shorter. `messages` how many · `tokens` that it has now
`end`: the run is over.
    `exit_reason` · `tests_passed` · `changed_files` by patches · `usage` token counts of all turns · `failures` counts
    by class · `tree` files that are not as they were at the start: a list of `path`, `entry`

Schema 0 (no `schema` in `start`) has neither entries nor changes, and of the counts of a turn only those of the prompt
and the steps: such a run can be shown, not replayed.
"""

from __future__ import annotations

import json
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from constrained_agent.agent.events import (
    Call,
    Change,
    Changed,
    End,
    Entry,
    Event,
    Note,
    Result,
    Run,
    Start,
    Turn,
)
from constrained_agent.agent.fields import Fields
from constrained_agent.errors import UserError

SCHEMA = 1
"""What this program writes; it reads this and everything before."""


@dataclass(frozen=True, slots=True)
class Stretch:
    """The lines of one run, not yet looked into: so a run can be read whatever became of the others of its file.

    Attributes:
        number: counts from 1 within the file.
        lines: number and object of each line, `start` first; None for what is none.
    """

    file: str
    number: int
    lines: tuple[tuple[int, dict[str, Any] | None], ...]

    def run(self) -> Run:
        """What they say.

        Raises:
            UserError: something in them cannot be read, or is of a newer program.
        """
        (line, first), *others = self.lines
        assert first is not None
        start = _start(Fields(line, first, f"{self.file}: line {line}"))
        cut_off = bool(others) and others[-1][1] is None  # the process was killed while it wrote
        events: list[Event] = []
        for line, fields in others[:-1] if cut_off else others:
            if fields is None:
                raise _no_object(self.file, line)
            events.append(_event(Fields(line, fields, f"{self.file}: line {line}"), events))
        return Run(self.number, start, tuple(events), cut_off)


def read(file: str | Path) -> tuple[Run, ...]:
    """The runs of a transcript, at least one.

    Raises:
        UserError: there is no such file, it is no transcript, or one of a newer program.
    """
    return tuple(stretch.run() for stretch in stretches(file))


def stretches(file: str | Path) -> tuple[Stretch, ...]:
    """The runs of a transcript, at least one, each to be read when it is wanted.

    Raises:
        UserError: there is no such file, or it does not begin as a transcript does.
    """
    runs: list[list[tuple[int, dict[str, Any] | None]]] = []
    for line, fields in _lines(Path(file)):
        if fields is not None and fields.get("event") == "start":
            runs.append([])
        elif not runs and fields is None:
            raise _no_object(str(file), line)
        elif not runs:
            raise UserError(f"{file}: line {line}: a transcript begins with a start event: is this one?")
        runs[-1].append((line, fields))
    if not runs:
        raise UserError(f"{file}: there is no run in it; `run --transcript FILE` writes one")
    return tuple(Stretch(str(file), number, tuple(lines)) for number, lines in enumerate(runs, start=1))


def _no_object(file: str, line: int) -> UserError:
    return UserError(f"{file}: line {line}: not a JSON object; each line of a transcript is one")


def _lines(file: Path) -> Iterator[tuple[int, dict[str, Any] | None]]:
    """The number and object of each line that is not blank; None for what is none."""
    try:
        lines = file.read_bytes().decode("utf-8", "backslashreplace").split("\n")
    except OSError as error:
        raise UserError(f"{file}: {error.strerror}; give a file that `run --transcript` wrote") from error
    return ((number, _parsed(line)) for number, line in enumerate(lines, start=1) if line.strip())


def _parsed(line: str) -> dict[str, Any] | None:
    try:
        fields = json.loads(line)
    except (ValueError, RecursionError):
        return None
    return fields if isinstance(fields, dict) else None


def _start(fields: Fields) -> Start:
    schema = fields.integer("schema", 0)
    if schema > SCHEMA:
        raise UserError(
            f"{fields.where}: schema {schema} is of a newer program ({fields.text('version', 'unknown')}); this one "
            f"reads up to {SCHEMA}: update constrained-agent, or take another run of the file, if it holds one (--run)"
        )
    return Start(
        *fields.base(),
        schema=schema,
        version=fields.text("version", ""),
        task=fields.text("task"),
        files=fields.texts("files"),
        reads=_entries(fields, "reads"),
        prompt_parts=fields.mapping("prompt_parts"),
        settings=fields.mapping("settings"),
        tree=fields.mapping("tree") if schema else None,
    )


def _event(fields: Fields, before: list[Event]) -> Event:
    """One event; `before` are those of its run so far."""
    turn = next((event.number for event in reversed(before) if isinstance(event, Turn)), 0)
    match fields.text("event"):
        case "turn":
            return _turn(fields)
        case "result":
            return _result(fields, turn)
        case "changed":
            left_out = fields.integer("changes_left_out", 0)
            return Changed(*fields.base(), fields.integer("turn", turn), _changes(fields), left_out)
        case "note":
            return Note(*fields.base(), fields.text("text"), fields.text("by", "harness"))
        case "end":
            passed, changed = fields.optional_flag("tests_passed"), fields.texts("changed_files")
            tree = _entries(fields, "tree") if "tree" in fields.values else None
            return End(*fields.base(), fields.text("exit_reason"), passed, changed, tree)
    return Event(*fields.base())


def _turn(fields: Fields) -> Turn:
    ids, forced = fields.counts("ids") or (), fields.counts("forced") or ()
    return Turn(
        *fields.base(),
        number=fields.integer("number"),
        tool_choice=fields.text("tool_choice"),
        text=fields.text("text"),
        forced_chars=fields.counts("forced_chars"),
        calls=tuple(
            Call(
                item.text("id"),
                item.text("name"),
                item.mapping("arguments"),
                item.values.get("masked") is True,
            )
            for item in fields.objects("calls")
        ),
        faults=tuple((item.text("call_id", ""), item.text("kind", "")) for item in fields.objects("faults")),
        stop_reason=fields.text("stop_reason"),
        prompt_tokens=fields.integer("prompt_tokens"),
        reused_tokens=fields.integer("reused_tokens"),
        generated_tokens=fields.integer("generated_tokens", len(ids)),
        forced_tokens=fields.integer("forced_tokens", sum(forced[1::2])),
        model_steps=fields.integer("model_steps"),
        drafted_tokens=fields.optional_integer("drafted_tokens"),
        accepted_tokens=fields.optional_integer("accepted_tokens"),
        prefill_s=fields.number("prefill_s"),
        decode_s=fields.number("decode_s"),
    )


def _result(fields: Fields, turn: int) -> Result:
    return Result(
        *fields.base(),
        turn=fields.integer("turn", turn),
        call_id=fields.text("call_id"),
        command=fields.optional_text("command"),
        ok=fields.flag("ok"),
        error_kind=fields.text("error_kind", ""),
        text=fields.text("text"),
        data=fields.mapping("data"),
        reads=_entries(fields, "reads"),
        changes=_changes(fields),
        changes_left_out=fields.integer("changes_left_out", 0),
    )


def _entries(fields: Fields, key: str) -> tuple[Entry, ...]:
    return tuple(Entry(item.text("path"), item.optional_text("entry")) for item in fields.objects(key))


def _changes(fields: Fields) -> tuple[Change, ...]:
    return tuple(
        Change(
            item.text("path"),
            item.optional_text("before"),
            item.optional_text("after"),
            item.optional_text("text"),
            item.optional_text("before_text"),
            item.values.get("masked") is True,
        )
        for item in fields.objects("changes")
    )
