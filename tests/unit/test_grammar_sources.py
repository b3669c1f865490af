"""Where grammars come from: shipped ones by name, files, schemas, regular expressions."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from constrained_agent import resources
from constrained_agent.errors import UserError
from constrained_agent.grammar import sources


@pytest.mark.parametrize("name", ["apply_patch", "apply_patch_strict"])
def test_shipped_grammars_load_by_name(name: str) -> None:
    grammar = sources.load(name)

    assert (grammar.name, grammar.kind) == (name, "lark")
    assert grammar.text == (resources.directory("grammars") / f"{name}.lark").read_text(encoding="utf-8")


def test_a_file_loads_by_path_with_its_newlines(tmp_path: Path) -> None:
    file = tmp_path / "g.lark"
    file.write_bytes('start: "é"\r\n'.encode())

    assert sources.load(str(file)).text == 'start: "é"\r\n'


@pytest.mark.parametrize("name", ["", "nosuch", "nosuch.lark", ".", "no/such", "x" * 5_000])
def test_an_unknown_grammar_names_the_known_ones(name: str) -> None:
    with pytest.raises(UserError, match=r"apply_patch, apply_patch_strict"):
        sources.load(name)


def test_a_grammar_that_is_not_utf8_is_refused_with_the_byte(tmp_path: Path) -> None:
    file = tmp_path / "g.lark"
    file.write_bytes(b"start: \xff")

    with pytest.raises(UserError, match=r"not UTF-8 text \(byte 7 is 0xff\)"):
        sources.load(str(file))


def test_schema_texts_keep_non_ascii() -> None:
    assert sources.from_json_schema({"const": "é"}).text == '{"const": "é"}'


def test_compact_asks_for_the_decoders_whitespace_and_leaves_the_rest() -> None:
    schema = {"type": "object", "x-guidance": {"coerce_one_of": True}}

    made = json.loads(sources.from_json_schema(schema, compact=True).text)

    assert made["x-guidance"] == {
        "coerce_one_of": True,
        "whitespace_flexible": False,
        "item_separator": ", ",
        "key_separator": ": ",
    }
    assert schema == {"type": "object", "x-guidance": {"coerce_one_of": True}}


@pytest.mark.parametrize("schema", [True, False])
def test_compact_takes_schemas_that_are_not_objects(schema: bool) -> None:
    assert json.loads(sources.from_json_schema(schema, compact=True).text) is schema


@pytest.mark.parametrize(
    ("content", "words"),
    [
        (b'{"a": 1,\n}', ":2:1: not JSON"),
        (b"", ":1:1: not JSON"),
        (b"[" * 100_000, "JSON that Python does not read"),
        (b"9" * 5_000, "JSON that Python does not read"),
        (b'{"a": "\xe9"}', "not UTF-8"),
    ],
)
def test_a_schema_file_that_cannot_be_read(tmp_path: Path, content: bytes, words: str) -> None:
    file = tmp_path / "s.json"
    file.write_bytes(content)

    with pytest.raises(UserError, match=words):
        sources.from_json_schema_file(str(file))


def test_missing_files_and_directories(tmp_path: Path) -> None:
    with pytest.raises(UserError, match="cannot be read: No such file"):
        sources.from_json_schema_file(str(tmp_path / "nosuch.json"))
    with pytest.raises(UserError, match="cannot be read: Is a directory"):
        sources.read_text(tmp_path)


def test_identity_covers_kind_and_text_but_not_the_name() -> None:
    one = sources.Grammar("one", "lark", "start: /a/")

    assert one.sha256 == sources.Grammar("two", "lark", "start: /a/").sha256
    assert one.sha256 != sources.Grammar("one", "regex", "start: /a/").sha256
    assert one.sha256 != sources.Grammar("one", "lark", "start: /b/").sha256
    assert sources.from_regex("a\udcff").sha256  # an argument that was not UTF-8
