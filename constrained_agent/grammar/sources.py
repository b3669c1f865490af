"""Grammars as values: where their text comes from, and what identifies it.

A `Grammar` is text plus its kind; `grammar.matcher` compiles it. Shipped grammars lie in `grammars/*.lark`.
"""

from __future__ import annotations

import hashlib
import json
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Literal

from constrained_agent import resources
from constrained_agent.errors import UserError

Kind = Literal["lark", "json_schema", "regex"]

# The decoder's JSON: what `json.dumps` writes, so that keys are forced and no whitespace can run away.
_COMPACT = {"whitespace_flexible": False, "item_separator": ", ", "key_separator": ": "}

_MAX_NESTING = 120  # LLGuidance's own limit for JSON is 128
_MAX_NAME = 60  # characters of a regex in messages


@dataclass(frozen=True, slots=True)
class Grammar:
    """The text of one grammar.

    Attributes:
        name: how messages speak of it.
        kind: `lark` is LLGuidance's Lark dialect.
        text: the grammar, the schema's JSON, or the regex.
    """

    name: str
    kind: Kind
    text: str

    @property
    def sha256(self) -> str:
        """Identity of kind and text, for transcripts and caches."""
        return hashlib.sha256(f"{self.kind}\0{self.text}".encode("utf-8", "surrogateescape")).hexdigest()


def load(name_or_file: str) -> Grammar:
    """Read a shipped grammar by name, or a Lark file by path.

    Raises:
        UserError: neither exists, or the file is not UTF-8 text.
    """
    try:
        found = resources.path("grammars", name_or_file, ".lark") or Path(name_or_file)
        exists = found.is_file()
    except OSError:  # longer than a file name may be
        exists = False
    if not exists:
        known = ", ".join(resources.names("grammars", ".lark"))
        raise UserError(f"no grammar {name_or_file!r}: neither a file nor one of the shipped ones ({known})")
    return Grammar(name_or_file, "lark", read_text(found))


def from_json_schema(schema: Any, *, name: str = "schema", compact: bool = False) -> Grammar:
    """A grammar of the JSON texts that a schema admits.

    Args:
        schema: the schema as parsed JSON (an object, or true/false).
        name: how messages speak of it.
        compact: the decoder's whitespace (`", "` and `": "`, nothing else) instead of LLGuidance's own rules.
    """
    if compact and isinstance(schema, dict):
        schema = compacted(schema)
    return Grammar(name, "json_schema", json.dumps(schema, ensure_ascii=False))


def from_json_schema_file(file: str, *, compact: bool = False) -> Grammar:
    """Read a JSON schema file.

    Raises:
        UserError: the file is missing, not UTF-8 or not JSON.
    """
    return from_json_schema(read_json(Path(file)), name=file, compact=compact)


def from_regex(pattern: str) -> Grammar:
    """A grammar of the texts that a regular expression (Rust syntax, whole text) matches."""
    shown = pattern if len(pattern) <= _MAX_NAME else pattern[:_MAX_NAME] + "…"
    return Grammar(f"regex /{shown}/", "regex", pattern)


def compacted(schema: dict[str, Any]) -> dict[str, Any]:
    """A copy of the schema that asks LLGuidance for the decoder's whitespace (key `x-guidance`)."""
    given = schema.get("x-guidance")
    return {**schema, "x-guidance": {**(given if isinstance(given, dict) else {}), **_COMPACT}}


def read_json(file: Path) -> Any:
    """The value in a JSON file.

    Raises:
        UserError: the file cannot be read, or is not JSON; the message names line and column.
    """
    try:
        value = json.loads(read_text(file))
    except json.JSONDecodeError as error:
        raise UserError(f"{file}:{error.lineno}:{error.colno}: not JSON: {error.msg}") from None
    except (RecursionError, ValueError) as error:  # nested too deep; a number of thousands of digits
        raise UserError(f"{file}: JSON that Python does not read: {error}") from None
    if _nested_deeper(value, _MAX_NESTING):
        raise UserError(
            f"{file}: JSON nested more than {_MAX_NESTING} deep: the grammar engine reads no more"
        )
    return value


def _nested_deeper(value: Any, levels: int) -> bool:
    """Whether a JSON value has more levels; not recursive, since Python's own stack is the danger."""
    layer = [value]
    for _ in range(levels + 1):
        inner: list[Any] = []
        for item in layer:
            if isinstance(item, dict):
                inner += item.values()
            elif isinstance(item, list):
                inner += item
        if not inner:
            return False
        layer = inner
    return True


def read_text(file: Path) -> str:
    """The text of a file, newlines untouched.

    Raises:
        UserError: the file cannot be read or is not UTF-8; the message names the first bad byte.
    """
    try:
        return file.read_bytes().decode("utf-8")
    except UnicodeDecodeError as error:
        raise UserError(
            f"{file}: not UTF-8 text (byte {error.start} is 0x{error.object[error.start]:02x})"
        ) from None
    except OSError as error:
        raise UserError(f"{file}: cannot be read: {error.strerror}") from None
