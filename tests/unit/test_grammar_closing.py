"""The shortest completion: it completes, it is short, and where there is none the search gives up."""

from __future__ import annotations

from typing import Any

import pytest

from constrained_agent.grammar import closing
from constrained_agent.grammar.cursor import Cursor
from constrained_agent.grammar.matcher import Matcher, byte_tokenizer
from constrained_agent.grammar.sources import Grammar, from_json_schema, from_regex, load

BEGIN = "*** Begin Patch\n"
UPDATE = BEGIN + "*** Update File: a\n"
FILE = {
    "type": "object",
    "properties": {"path": {"type": "string"}, "line": {"type": "integer"}},
    "required": ["path", "line"],
    "additionalProperties": False,
}


def completed(grammar: Grammar | str, text: str, specials: tuple[str, ...] = ()) -> list[int] | None:
    """The completion, checked to complete the text."""
    if isinstance(grammar, str):
        grammar = Grammar("test", "lark", grammar)
    matcher = Matcher(byte_tokenizer(specials), grammar)
    matcher.consume(text.encode())
    found = closing.shortest(matcher)
    if found is None:
        return None
    matcher.consume(found)
    assert matcher.accepting
    return list(found)


def as_text(found: list[int] | None) -> str | None:
    return None if found is None else bytes(found).decode()


@pytest.mark.parametrize(
    ("name", "text", "right"),
    [
        ("apply_patch", "", BEGIN + "*** Add File: a\n+\n*** End Patch"),
        ("apply_patch", UPDATE[:-1], "\n*** End Patch"),
        ("apply_patch", UPDATE, "*** End Patch"),
        ("apply_patch", UPDATE + "@@\n-x\n+", "\n*** End Patch"),
        ("apply_patch", UPDATE + "-x\n*** End of", " File\n*** End Patch"),
        ("apply_patch", UPDATE + "-x\n*** End Patch", ""),
        ("apply_patch_strict", "", BEGIN + "*** Add File: a\n*** End Patch"),
        ("apply_patch_strict", BEGIN + "*** Update File: a/", "a\n-\n*** End Patch"),
        ("apply_patch_strict", UPDATE + "*** Move to: .", "a\n*** End Patch"),
        ("apply_patch_strict", UPDATE + "@@\n a\n b", "\n-\n*** End Patch"),
    ],
)
def test_patches(name: str, text: str, right: str) -> None:
    assert as_text(completed(load(name), text)) == right


@pytest.mark.parametrize(
    ("schema", "text", "right"),
    [
        ({}, "", "0"),
        ({}, "[[[[", "]]]]"),
        ({}, '{"a":[{"b":"x', '"}]}'),
        ({}, '{"a":[tr', "ue]}"),
        (FILE, "", '{"path":"","line":0}'),
        (FILE, '{"path": "x', '","line":0}'),
        ({"type": "array", "items": {"type": "boolean"}, "minItems": 2}, "[", "true,true]"),
        ({"enum": ["red", "green"]}, '"g', 'reen"'),
    ],
)
def test_json(schema: Any, text: str, right: str) -> None:
    assert as_text(completed(from_json_schema(schema), text)) == right


@pytest.mark.parametrize(
    ("grammar", "text", "right"),
    [
        ('start: "(" start ")" | /[a-z]+/', "((((", "a))))"),
        ('start: "trueness" | "try" "x"', "t", "ryx"),
        ('start: (a | b)+ "."\na: "foo"\nb: "b" c c c\nc: "x" | "yy" a', "foob", "xxx."),
        ("start: /[^|]*/ /[|]/", "ab", "|"),
        ('start: body\nbody[suffix="END"]: /(.|\\n)*/', "foo", "END"),
        ("start: /[ab]{50}c/", "a", "a" * 49 + "c"),
        ("start: /.{200}END/", "a", "a" * 199 + "END"),
        ("start: /[一-龥]+/ /[。]/", "", "一。"),
    ],
)
def test_lark(grammar: str, text: str, right: str) -> None:
    assert as_text(completed(grammar, text)) == right


def test_deep_nesting_closes() -> None:
    assert as_text(completed(from_json_schema({}), "[" * 400)) == "]" * 400


def test_long_forced_text_is_followed_to_its_end() -> None:
    assert as_text(completed(f'start: "{"ab" * 10_000}"', "ab")) == "ab" * 9_999


def test_long_minimum_lengths_are_met() -> None:
    found = as_text(completed(from_json_schema({"type": "string", "minLength": 300}), '"a'))

    assert found is not None
    assert len(found) < 400


def test_a_regex() -> None:
    assert as_text(completed(from_regex(r"(\d{3}-)+x"), "12")) == "0-x"


def test_special_tokens_are_steps_too() -> None:
    assert completed('start: "x" <call> ("y" | "zz")', "x", ("<call>",)) == [256, ord("y")]


@pytest.mark.parametrize(
    ("grammar", "text"),
    [
        ('start: body "END"\nbody: /.*/', "foo"),  # the body swallows END
        ('start: "a" b\nb: "c" b', "a"),
        ('start: "a" b\nb: "c" b | "d" b', "a"),
        ('start: "a" X | "b"\nX: "ab" & "cd"', "a"),
    ],
)
def test_no_end_is_no_completion(grammar: str, text: str) -> None:
    assert completed(grammar, text) is None


def test_the_search_leaves_the_matcher_where_it_is() -> None:
    matcher = Matcher(byte_tokenizer(), load("apply_patch"))
    matcher.consume(BEGIN.encode())
    before = matcher.bitmask().tobytes()

    closing.shortest(matcher)

    assert matcher.bitmask().tobytes() == before
    matcher.consume(b"*** Delete File: ")


@pytest.mark.parametrize("grammar", ["start: /[abc]{3}/ | /a+d/", 'start: t "z"\nt[max_tokens=9]: /[abcd]*/'])
def test_a_cursor_says_the_same_as_fresh_matchers(grammar: str) -> None:
    tokenizer = byte_tokenizer()
    origin = Matcher(tokenizer, Grammar("test", "lark", grammar))
    cursor = Cursor(origin)

    for text in ("", "a", "ab", "aa", "", "aad", "aaa", "b", "x", "b", "a", "aaaa", ""):
        fresh = origin.copy()
        state = cursor.at(tuple(text.encode()))
        if fresh.accepted_prefix(list(text.encode())) < len(text):
            assert state.trouble
            continue
        fresh.consume(text.encode())
        mask = fresh.bitmask()
        allowed = {i for i in range(256) if int(mask[i // 32]) >> (i % 32) & 1}
        assert (set(state.tokens()), state.accepting) == (allowed, fresh.accepting)
        assert not state.trouble
