"""What may come next, folded into entries that a person can read."""

from __future__ import annotations

import pytest

from constrained_agent.grammar import characters
from constrained_agent.grammar.cursor import Cursor
from constrained_agent.grammar.expected import Expected, expected_next
from constrained_agent.grammar.matcher import Matcher, byte_tokenizer
from constrained_agent.grammar.sources import Grammar, from_json_schema, load

PATCH = load("apply_patch")
BEGIN = b"*** Begin Patch\n"
ANY_SECTION = ["*** Add File: ", "*** Delete File: "]
ANY_LINE = ["@@", " ", "+", "-"]


def entries(grammar: Grammar | str, text: bytes = b"", specials: tuple[str, ...] = ()) -> list[Expected]:
    if isinstance(grammar, str):
        grammar = Grammar("test", "lark", grammar)
    matcher = Matcher(byte_tokenizer(specials), grammar)
    matcher.consume(text)
    return expected_next(Cursor(matcher), specials)


def texts(grammar: Grammar | str, text: bytes = b"", specials: tuple[str, ...] = ()) -> list[str]:
    return [entry.text for entry in entries(grammar, text, specials)]


@pytest.mark.parametrize(
    ("text", "right"),
    [
        (b"", ["*** Begin Patch\n"]),
        (b"*** Begin Pa", ["tch\n"]),
        (BEGIN[:-1], ["\n"]),
        (BEGIN, ["*** Add File: ", "*** Delete File: ", "*** Update File: "]),
        (BEGIN + b"*** Delete File: ", ["any character except newline"]),
        (BEGIN + b"*** Delete File: a", ["\n", "any character except newline"]),
        (BEGIN + b"*** Delete File: a\n*** End Patch", ["\n", "end of text"]),
        (BEGIN + b"*** Update File: a\n@@", ["\n", " "]),
        (
            BEGIN + b"*** Update File: a\n",
            [*ANY_SECTION, "*** End Patch", "*** Move to: ", "*** Update File: ", *ANY_LINE],
        ),
        (
            BEGIN + b"*** Update File: a\n-b\n",
            [*ANY_SECTION, "*** End Patch", "*** End of File\n", "*** Update File: ", *ANY_LINE],
        ),
    ],
)
def test_patch_places(text: bytes, right: list[str]) -> None:
    assert texts(PATCH, text) == right


def test_json_places() -> None:
    schema = from_json_schema(
        {
            "type": "object",
            "properties": {"path": {"type": "string"}, "mode": {"enum": ["on", "off", "online", None]}},
            "required": ["path"],
            "additionalProperties": False,
        }
    )

    assert texts(schema) == ["{"]
    assert texts(schema, b"{") == ['"path"', "whitespace"]
    free = 'any character except double quote, "\\" and control characters'
    assert texts(schema, b'{"path": "x') == ['"', "\\", free]
    assert texts(schema, b'{"path": "x"') == [",", "}", "whitespace"]
    assert texts(schema, b'{"path":"x","mode":') == ['"off"', '"on"', '"online"', "null", "whitespace"]


@pytest.mark.parametrize(
    ("grammar", "right"),
    [
        ('start: "true" | "try" "x" | "trapezoid"', ["trapezoid", "true", "tryx"]),
        ('start: ("ab" | "cd")+', ["ab", "cd"]),
        ("start: /[0-9]+/", ["a digit [0-9]"]),
        ("start: /[A-Za-z_]/", ["[A-Z_a-z]"]),
        ("start: /[abc]/", ["a", "b", "c"]),
        ("start: /[\\]^a-z-]/", ["[\\-\\]\\^a-z]"]),
        ("start: /[ \\t]/ /[xy]/", ["tab or blank"]),
        ("start: /(.|\\n)/", ["any character"]),
        ("start: /[^\\x00-\\x7f]/", ["any non-ASCII character"]),
        ("start: /[à-ü]|[α-ω]/", ["[à-üα-ω]"]),
        ("start: /[一-鿿]/", ["[一-鿿]"]),
        ("start: /[\\w]/", ["[0-9A-Z_a-z]", "some non-ASCII characters"]),
        ("start: /[^é]/", ["any ASCII character", "some non-ASCII characters"]),
        ('start: "é文" | "ab"', ["ab", "é文"]),
        ('start: "long" /.{3}/ | "x"', ["long", "x"]),
        ("start: /[\\x01-\\x06]/", ["[\\x01-\\x06]"]),
        ("start: /[^a-z]/", ["[\\x00-`{-\\x7f] or any non-ASCII character"]),
    ],
)
def test_folding(grammar: str, right: list[str]) -> None:
    assert texts(grammar) == right


def test_special_tokens_go_by_name() -> None:
    specials = ("<call>", "</call>")

    found = entries('start: "x" | <call> "y"', b"", specials)

    assert [(entry.kind, entry.text, entry.example) for entry in found] == [
        ("literal", "x", b"x"),
        ("token", "<call>", b"<call>"),
    ]
    assert texts('start: "ab" <call>', b"", specials) == ["ab"]


def test_a_literal_ends_with_its_line() -> None:
    assert texts('start: "one\\ntwo\\n" | "one\\nthree"') == ["one\n"]


def test_a_place_without_a_way_on_has_no_entries() -> None:
    assert entries('start: "a" X\nX: "ab" & "cd"', b"a") == []


def test_a_literal_of_thousands_of_characters_is_cut() -> None:
    found = entries(f'start: "{"ab" * 5_000}"')

    assert len(found) == 1
    assert len(found[0].text) == 2_000


def test_many_keywords_stay_within_bounds() -> None:
    words = " | ".join(f'"{a}1{b}2{c}3"' for a in "abcdefgh" for b in "abcdefgh" for c in "abcdefgh")

    found = entries(f"start: {words}")

    assert 8 <= len(found) <= 512
    assert all(entry.kind == "literal" for entry in found)


@pytest.mark.parametrize(
    ("character", "right"),
    [
        ("x", '"x"'),
        (" ", '" " (blank)'),
        ("\n", "newline"),
        ("\r", "carriage return (U+000D)"),
        ("\t", "tab (U+0009)"),
        ("\x00", "NUL (U+0000)"),
        ("\x07", "control character (U+0007)"),
        ("\ufeff", "byte order mark (U+FEFF)"),
        ("\u2019", '"’" (U+2019 RIGHT SINGLE QUOTATION MARK)'),
        ("\u200b", "(U+200B ZERO WIDTH SPACE)"),
    ],
)
def test_characters_in_words(character: str, right: str) -> None:
    assert characters.describe(character) == right
