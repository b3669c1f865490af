"""The place within a JSON schema that the engine refuses."""

from __future__ import annotations

from typing import Any

import pytest

from constrained_agent.errors import GrammarError
from constrained_agent.grammar import prefix, schemas, sources

ARRAY = {"type": "array", "uniqueItems": True}


@pytest.mark.parametrize(
    ("schema", "words"),
    [
        ({"properties": {"a/b": ARRAY}}, ['"uniqueItems" at #/properties/a~1b']),
        ({"items": {"anyOf": [{}, {"not": {}}]}}, ['"not" at #/items/anyOf/1']),
        ({"$ref": "#/$defs/x", "$defs": {"x": {"if": {}}}}, ['"if" at #/$defs/x']),
        (
            {"properties": {f"p{i}": ARRAY for i in range(9)}},
            ["#/properties/p0;", "#/properties/p4;", "4 more"],
        ),
        ({"uniqueItems": True, "contains": {}}, ['"uniqueItems" at #', '"contains" at #']),
        ({"properties": {"a": {"items": {"type": "foo"}}}}, ["Invalid type: foo (at #/properties/a/items)"]),
        ({"properties": {"a": {"pattern": "(?=a)"}}}, ["look-around", "(at #/properties/a)"]),
        ({"type": "string", "format": "nosuch"}, ["nosuch"]),
    ],
)
def test_what_is_refused_is_named_with_its_path(schema: Any, words: list[str]) -> None:
    with pytest.raises(GrammarError) as caught:
        prefix.check(b"", sources.from_json_schema(schema))

    assert all(word in str(caught.value) for word in words), str(caught.value)


def test_names_of_properties_are_no_keywords() -> None:
    assert (
        prefix.check(b"{", sources.from_json_schema({"properties": {"not": {}, "if": {}}})).status == "prefix"
    )
    assert [path for path, _ in schemas.subschemas({"properties": {"not": {}}})] == ["#", "#/properties/not"]
