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
    `arguments` · `faults` calls that could not be read: `kind`, `message`, `call_id` · `stop_reason`, `complete`,
    `thinking_cut`, `end_token` how it ended · `prompt_tokens`, `reused_tokens` (of them, found in the cache),
    `generated_tokens`, `forced_tokens`, `model_steps`, `drafted_tokens`, `accepted_tokens` counts · `prefill_s`,
    `decode_s` seconds
`result`: what came of a call, or of the person's test command.
    `turn` number of the turn before · `call_id`, "tests" for the person's command, "undo" for a patch that was taken
    back (also after the end) · `command` the person's · `ok` · `error_kind` · `text` for the model · `data`
    facts, by tool · `reads` as in `start` · `changes` a list · `changes_left_out` how many more there were
    A patch: `data.files`, `data.diff`, `data.leniencies` · `data.undo` takes it back (`tools.undo`) ·
    `data.syntax_errors` that files did not have before: a list of `path`, `line`, `column`, `message`
    A patch taken back: `data.files`, `data.diff` · `data.undone` the `call_id` that it had
    A command: `data.exit_code`, `data.stdout`, `data.stderr`, `data.duration_s`, ...
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
from collections.abc import Iterator, Mapping
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
from constrained_agent.errors import UserError

SCHEMA = 1
"""What this program writes; it reads this and everything before."""


def read(file: str | Path) -> tuple[Run, ...]:
    """The runs of a transcript, at least one.

    Raises:
        UserError: there is no such file, it is no transcript, or one of a newer program.
    """
    runs: list[tuple[Start, list[Event], list[int]]] = []
    for line, fields in _lines(Path(file)):
        where = f"{file}: line {line}"
        if fields is None:
            if runs:
                runs[-1][2].append(line)
        elif fields.get("event") == "start":
            runs.append((_start(_Fields(line, fields, where)), [], []))
        elif not runs:
            raise UserError(f"{where}: a transcript begins with a start event: is this one?")
        else:
            runs[-1][1].append(_event(_Fields(line, fields, where), runs[-1][1]))
    if not runs:
        raise UserError(f"{file}: there is no run in it; `run --transcript FILE` writes one")
    return tuple(
        Run(number, start, tuple(events), bool(broken))
        for number, (start, events, broken) in enumerate(runs, start=1)
    )


def _lines(file: Path) -> Iterator[tuple[int, dict[str, Any] | None]]:
    """Each line's number and object; None for the broken last line of a run that was killed."""
    try:
        lines = file.read_bytes().decode("utf-8", "backslashreplace").split("\n")
    except OSError as error:
        raise UserError(f"{file}: {error.strerror}; give a file that `run --transcript` wrote") from error
    found = [(number, _parsed(line)) for number, line in enumerate(lines, start=1) if line.strip()]
    for at, (number, fields) in enumerate(found):
        following = found[at + 1][1] if at + 1 < len(found) else {"event": "start"}
        if fields is None and not (following or {}).get("event") == "start":
            raise UserError(f"{file}: line {number}: not a JSON object; each line of a transcript is one")
        yield number, fields


def _parsed(line: str) -> dict[str, Any] | None:
    try:
        fields = json.loads(line)
    except (ValueError, RecursionError):
        return None
    return fields if isinstance(fields, dict) else None


class _Fields:
    """The fields of one event, taken out by name and type."""

    def __init__(self, line: int, values: Mapping[str, Any], where: str) -> None:
        self.line, self.values, self.where = line, values, where
        self.where = f"{where} ({self.text('event')})" if "event" in values else where

    def base(self) -> tuple[int, str, float, bool, Mapping[str, Any]]:
        """What every event has."""
        masked = self.values.get("masked") is True
        return self.line, self.text("event"), self.number("time"), masked, self.values

    def text(self, key: str, default: str | None = None) -> str:
        return str(self._get(key, str, default))

    def optional_text(self, key: str) -> str | None:
        return None if self.values.get(key) is None else self.text(key)

    def integer(self, key: str, default: int | None = None) -> int:
        return int(self._get(key, int, default))

    def optional_integer(self, key: str) -> int | None:
        return None if self.values.get(key) is None else self.integer(key)

    def number(self, key: str) -> float:
        return float(self._get(key, (int, float), None))

    def flag(self, key: str) -> bool:
        return bool(self._get(key, bool, None))

    def mapping(self, key: str) -> Mapping[str, Any]:
        found: Mapping[str, Any] = self._get(key, dict, {})
        return found

    def objects(self, key: str) -> Iterator[_Fields]:
        """The objects of a list; none where there is no list."""
        for at, item in enumerate(self._get(key, list, [])):
            if not isinstance(item, dict):
                raise UserError(f"{self.where}: {key}[{at}] must be an object")
            yield _Fields(self.line, item, f"{self.where}: {key}[{at}]")

    def _get(self, key: str, kind: type | tuple[type, ...], default: Any) -> Any:
        value = self.values.get(key, default)
        if value is None:
            raise UserError(f"{self.where}: `{key}` is missing")
        if not isinstance(value, kind) or (isinstance(value, bool) and kind is not bool):
            names = " or ".join(t.__name__ for t in (kind if isinstance(kind, tuple) else (kind,)))
            raise UserError(f"{self.where}: `{key}` must be of type {names}, not {type(value).__name__}")
        return value


def _start(fields: _Fields) -> Start:
    schema = fields.integer("schema", 0)
    if schema > SCHEMA:
        raise UserError(
            f"{fields.where}: schema {schema} is of a newer program ({fields.text('version', 'unknown')}); this one "
            f"reads up to {SCHEMA}: update constrained-agent"
        )
    return Start(
        *fields.base(),
        schema=schema,
        version=fields.text("version", ""),
        task=fields.text("task"),
        reads=_entries(fields, "reads"),
        prompt_parts=fields.mapping("prompt_parts"),
        settings=fields.mapping("settings"),
        tree=fields.mapping("tree") if schema else None,
    )


def _event(fields: _Fields, before: list[Event]) -> Event:
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
            passed = fields.values.get("tests_passed")
            tree = _entries(fields, "tree") if "tree" in fields.values else None
            return End(*fields.base(), fields.text("exit_reason"), passed, tree)
    return Event(*fields.base())


def _turn(fields: _Fields) -> Turn:
    ids, forced = fields.values.get("ids"), fields.values.get("forced")
    n_ids = len(ids) if isinstance(ids, list) else 0
    n_forced = sum(forced[1::2]) if isinstance(forced, list) else 0
    chars = fields.values.get("forced_chars")
    return Turn(
        *fields.base(),
        number=fields.integer("number"),
        tool_choice=fields.text("tool_choice"),
        text=fields.text("text"),
        forced_chars=tuple(chars) if isinstance(chars, list) else None,
        calls=tuple(
            Call(
                item.text("id"),
                item.text("name"),
                item.mapping("arguments"),
                item.values.get("masked") is True,
            )
            for item in fields.objects("calls")
        ),
        stop_reason=fields.text("stop_reason"),
        prompt_tokens=fields.integer("prompt_tokens"),
        reused_tokens=fields.integer("reused_tokens"),
        generated_tokens=fields.integer("generated_tokens", n_ids),
        forced_tokens=fields.integer("forced_tokens", n_forced),
        model_steps=fields.integer("model_steps"),
        drafted_tokens=fields.optional_integer("drafted_tokens"),
        accepted_tokens=fields.optional_integer("accepted_tokens"),
        prefill_s=fields.number("prefill_s"),
        decode_s=fields.number("decode_s"),
    )


def _result(fields: _Fields, turn: int) -> Result:
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


def _entries(fields: _Fields, key: str) -> tuple[Entry, ...]:
    return tuple(Entry(item.text("path"), item.optional_text("entry")) for item in fields.objects(key))


def _changes(fields: _Fields) -> tuple[Change, ...]:
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
