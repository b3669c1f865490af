"""What a comparison keeps: one JSON line per item, with all that is needed to judge it again without the model.

A folder holds `run.json` (what was asked for, and on which machine) and `records.jsonl`. A record is written when its
item is judged, and reaches the disk before the next item starts: after a kill at most the last line is torn.
"""

from __future__ import annotations

import json
import os
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import asdict, dataclass, field, replace
from pathlib import Path
from typing import Any, BinaryIO

from constrained_agent.errors import UserError
from constrained_agent.evals.compare.outcomes import Judgement
from constrained_agent.grammar.spans import Marker, Piece, as_text

SCHEMA = 2
"""Version of both files. 1 had `kind` for `error_kind`, and failures of whole runs under other names."""

_NEEDED = (
    "model",
    "markers",
    "sampling",
    "max_tokens",
    "samples",
    "seed",
    "drafts",
    "n_items",
    "circumstances",
)
"""What a report and a judge read of `RUN`."""

RUN, RECORDS = "run.json", "records.jsonl"


@dataclass(frozen=True, slots=True)
class Written:
    """What the model wrote for an item.

    Attributes:
        pieces: the answer, text and marker tokens apart.
        stop_reason: why it ended (`decode.steps.StopReason`, or `end_token`).
        whole: it ended by itself.
        forced: stretches of the text, in characters, that the grammar left no choice about.
        prompt_tokens, tokens, forced_tokens, model_steps: counts; of steps, those after the prompt.
        prefill_s, decode_s: seconds; prompts that were in the cache cost next to nothing.
        mask_us: p50, p99 and max of what a mask took; empty where nothing was masked.
        wait_s: seconds that the answer waited for its grammar to compile, after the prompt had run.
        failures: of a whole run: what went wrong in it on the way, as outcomes (`run_outcomes.counted`), and how often;
            its exit reason is `stop_reason`.
        transcript_sha256: of a whole run: of the bytes of its transcript.
    """

    pieces: tuple[Piece, ...]
    stop_reason: str
    whole: bool
    forced: tuple[tuple[int, int], ...]
    prompt_tokens: int
    tokens: int
    forced_tokens: int
    model_steps: int
    prefill_s: float
    decode_s: float
    mask_us: Mapping[str, float]
    wait_s: float = 0.0
    failures: Mapping[str, int] = field(default_factory=dict)
    transcript_sha256: str = ""

    @property
    def text(self) -> str:
        """The answer as a person reads it."""
        return as_text(self.pieces)


@dataclass(frozen=True, slots=True)
class Record:
    """One item, what was written for it, and what became of it.

    Attributes:
        id, kind, name, arm, sample, seed: as `items.Item` has them.
        set: where the question comes from: `tasks`, a set of the leaderboard, or `own`.
        judge_s: seconds that tests and judging took.
    """

    id: str
    kind: str
    name: str
    arm: str
    sample: int
    seed: int
    written: Written
    judgement: Judgement
    judge_s: float
    set: str = ""

    def as_json(self) -> dict[str, Any]:
        fields = asdict(self)
        fields["written"]["pieces"] = [
            piece if isinstance(piece, str) else {"marker": piece.name} for piece in self.written.pieces
        ]
        return {"schema": SCHEMA, **fields}

    def rejudged(self, judgement: Judgement) -> Record:
        return replace(self, judgement=judgement)


class Folder:
    """The folder of one comparison. Use by one process at a time.

    Args:
        path: made if it is missing.
    """

    def __init__(self, path: Path) -> None:
        self.path = path
        self._records = path / RECORDS

    @property
    def exists(self) -> bool:
        """Whether a comparison was started there."""
        return (self.path / RUN).exists()

    def begin(self, facts: Mapping[str, Any]) -> None:
        """Write down what the comparison is.

        Raises:
            UserError: the folder cannot be written.
        """
        try:
            self.path.mkdir(parents=True, exist_ok=True)
            text = json.dumps({"schema": SCHEMA, **facts}, indent=1, ensure_ascii=False)
            _replace(self.path / RUN, _encoded(text + "\n"))
        except OSError as error:
            raise UserError(
                f"--out {self.path}: {error.strerror}: name a folder that can be written"
            ) from error

    def facts(self) -> dict[str, Any]:
        """What was written down.

        Raises:
            UserError: there is no comparison, or one of another version.
        """
        try:
            facts = json.loads((self.path / RUN).read_text(encoding="utf-8"))
        except FileNotFoundError:
            raise UserError(f"{self.path}: there is no comparison in it ({RUN} is missing)") from None
        except (OSError, ValueError) as error:
            raise UserError(f"{self.path / RUN} cannot be read: {error}") from error
        if not isinstance(facts, dict) or facts.get("schema") != SCHEMA:
            raise UserError(f"{self.path / RUN} is not of schema version {SCHEMA}, which this version reads")
        if missing := [name for name in _NEEDED if name not in facts]:
            raise UserError(f"{self.path / RUN} is damaged: it lacks {', '.join(missing)}")
        return facts

    def check_same(self, facts: Mapping[str, Any]) -> None:
        """Hold what is to be compared, or some of it, against what was written down.

        Raises:
            UserError: names what differs.
        """
        there = self.facts()
        for key, value in facts.items():
            if there.get(key) != value:
                raise UserError(
                    f"{self.path} holds another comparison: {key} is {there.get(key)!r} there and {value!r} here; "
                    "give the same flags, or name a new folder"
                )

    def transcript(self, id_: str) -> Path:
        """Where the transcript of a whole run lies."""
        return self.path / "transcripts" / (id_.replace("/", "_") + ".jsonl")

    def load(self) -> dict[str, Record]:
        """The records so far, by id, but for a torn last line, which a kill leaves behind.

        Raises:
            UserError: another line cannot be read.
        """
        try:
            data = self._records.read_bytes()
        except FileNotFoundError:
            return {}
        except OSError as error:
            raise UserError(f"{self._records} cannot be read: {error.strerror}") from error
        found: dict[str, Record] = {}
        for number, line in enumerate(data.split(b"\n")[:-1], 1):
            try:
                record = read(json.loads(line))
            except (ValueError, TypeError, RecursionError) as error:
                raise UserError(f"{self._records}:{number} is no record: {error}") from error
            found[record.id] = record
        return found

    def add(self, record: Record) -> None:
        """Append a record; it is on the disk when this returns.

        Raises:
            UserError: it cannot be written.
        """
        try:
            with self._records.open("ab+") as file:
                _cut_torn_line(file)
                file.write(_line(record))
                file.flush()
                os.fsync(file.fileno())
        except OSError as error:
            raise UserError(
                f"{self._records}: {error.strerror}: make room, then --resume goes on with what is there"
            ) from error

    def take_transcripts(self, source: Folder, records: Iterable[Record]) -> None:
        """Copy those of whole runs out of another folder.

        Raises:
            UserError: one is missing there, or cannot be written here.
        """
        for record in records:
            if record.kind == "run":
                there, here = source.transcript(record.id), self.transcript(record.id)
                try:
                    here.parent.mkdir(parents=True, exist_ok=True)
                    here.write_bytes(there.read_bytes())
                except OSError as error:
                    raise UserError(f"{there} cannot be copied to {here}: {error.strerror}") from error

    def rewrite(self, records: Iterable[Record]) -> None:
        """Put records in the place of those that are there, all or none."""
        _replace(self._records, b"".join(map(_line, records)))


def read(fields: Mapping[str, Any]) -> Record:
    """A record from its JSON.

    Raises:
        TypeError, ValueError: it is none, or one of another version.
    """
    if not isinstance(fields, dict) or fields.get("schema") != SCHEMA:
        raise ValueError(f"not an object of schema version {SCHEMA}")
    try:
        written = dict(fields["written"])
        written["pieces"] = tuple(
            piece if isinstance(piece, str) else Marker(piece["marker"]) for piece in written["pieces"]
        )
        written["forced"] = tuple((start, end) for start, end in written["forced"])
        rest = {key: value for key, value in fields.items() if key not in ("schema", "written", "judgement")}
        return Record(**rest, written=Written(**written), judgement=Judgement(**fields["judgement"]))
    except KeyError as error:
        raise ValueError(f"the key {error} is missing") from error


def same(one: Record, other: Record) -> bool:
    """Whether two records are of the same run but for what it took; messages tell of seconds and folders, too."""
    return _lasting(one) == _lasting(other)


def _lasting(record: Record) -> Record:
    written = replace(record.written, prefill_s=0, decode_s=0, wait_s=0, mask_us={}, transcript_sha256="")
    return replace(record, written=written, judgement=replace(record.judgement, message=""), judge_s=0)


def by_arm(records: Iterable[Record]) -> dict[tuple[str, str], list[Record]]:
    """Records by kind and arm."""
    found: dict[tuple[str, str], list[Record]] = {}
    for record in records:
        found.setdefault((record.kind, record.arm), []).append(record)
    return found


def paired(ones: Sequence[Record], others: Sequence[Record]) -> list[tuple[Record, Record]]:
    """Records of two arms about the same item, sample and seed."""
    partner = {(record.name, record.sample, record.seed): record for record in others}
    keys = [(record, (record.name, record.sample, record.seed)) for record in ones]
    return [(record, partner[key]) for record, key in keys if key in partner]


def _line(record: Record) -> bytes:
    return _encoded(json.dumps(record.as_json(), ensure_ascii=False)) + b"\n"


def _encoded(text: str) -> bytes:
    # In JSON a half of a surrogate pair stands as its escape.
    return text.encode("utf-8", "backslashreplace")


def _cut_torn_line(file: BinaryIO) -> None:
    """Cut off what stands behind the last newline, and stand at the end."""
    end = file.seek(0, os.SEEK_END)
    if end:
        file.seek(end - 1)
        if file.read(1) != b"\n":
            file.seek(0)
            file.truncate(file.read().rfind(b"\n") + 1)
    file.seek(0, os.SEEK_END)


def _replace(path: Path, data: bytes) -> None:
    """Write a file whole or not at all."""
    new = path.with_name(path.name + ".new")
    with new.open("wb") as file:
        file.write(data)
        file.flush()
        os.fsync(file.fileno())
    new.replace(path)
