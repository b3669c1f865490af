"""Finds the place within a JSON schema that the engine refuses: its messages name no path."""

from __future__ import annotations

import json
import re
from collections.abc import Callable, Iterator
from typing import Any

Refusal = Callable[[Any], str]
"""Why the engine refuses a schema by itself; empty if it takes it."""

# Where subschemas stand: as the value, in a list, or under names.
_ONE = (
    *("not", "if", "then", "else", "contains", "propertyNames", "additionalProperties", "additionalItems"),
    *("unevaluatedItems", "unevaluatedProperties", "items"),
)
_LISTS = ("allOf", "anyOf", "oneOf", "prefixItems", "items")
_NAMED = ("properties", "patternProperties", "$defs", "definitions", "dependentSchemas")
_SHARED = ("$schema", "$defs", "definitions")  # what references within a subschema need of the whole

_UNSUPPORTED = re.compile(r"Unimplemented keys: (\[.*\])")
_MAX_NAMED = 5  # places that one message names
# Each level of the search compiles once for every subschema on it.
_MAX_COMPILED = 100
_MAX_SEARCHED_CHARS = 100_000


def subschemas(schema: Any, path: str = "#") -> Iterator[tuple[str, dict[str, Any]]]:
    """A schema and every schema within it, each with its JSON pointer, outer ones first."""
    if not isinstance(schema, dict):
        return
    yield path, schema
    for inner_path, inner in _children(path, schema):
        yield from subschemas(inner, inner_path)


def explained(reason: str, schema_text: str, refusal: Refusal) -> str:
    """The engine's reason with the place it is about.

    Args:
        reason: the engine's words.
        schema_text: the whole schema.
        refusal: asks the engine about other schemas; called at most 100 times.
    """
    schema = json.loads(schema_text)
    if unsupported := _UNSUPPORTED.search(reason):
        keys = json.loads(unsupported[1])
        places = [
            f'unsupported keyword "{key}" at {path}'
            for path, inner in subschemas(schema)
            for key in keys
            if key in inner
        ]
        more = f"; and {len(places) - _MAX_NAMED} more" if len(places) > _MAX_NAMED else ""
        return "; ".join(places[:_MAX_NAMED]) + more if places else reason
    if len(schema_text) > _MAX_SEARCHED_CHARS:
        return reason
    path = _innermost(reason, schema, refusal)
    return reason if path == "#" else f"{reason} (at {path})"


def _innermost(reason: str, schema: Any, refusal: Refusal) -> str:
    """Path of the smallest subschema that is refused for the same reason."""
    if not isinstance(schema, dict):
        return "#"
    shared = {key: schema[key] for key in _SHARED if key in schema}
    path, node, n_compiled = "#", schema, 0
    while True:
        for inner_path, inner in _children(path, node):
            if not isinstance(inner, dict) or n_compiled >= _MAX_COMPILED:
                continue
            n_compiled += 1
            if refusal({**shared, **inner}) == reason:
                path, node = inner_path, inner
                break
        else:
            return path


def _children(path: str, schema: dict[str, Any]) -> Iterator[tuple[str, Any]]:
    for key in _ONE:
        if isinstance(schema.get(key), dict):
            yield f"{path}/{key}", schema[key]
    for key in _LISTS:
        if isinstance(schema.get(key), list):
            for position, inner in enumerate(schema[key]):
                yield f"{path}/{key}/{position}", inner
    for key in _NAMED:
        if isinstance(schema.get(key), dict):
            for name, inner in schema[key].items():
                yield f"{path}/{key}/{name.replace('~', '~0').replace('/', '~1')}", inner
