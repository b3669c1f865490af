"""Lint: each trap is found where it stands, and nothing is found where nothing is wrong."""

from __future__ import annotations

import pytest

from constrained_agent.grammar import findings, prefix, sources
from constrained_agent.grammar.carriers import JSON
from constrained_agent.grammar.lint import lint
from constrained_agent.grammar.sources import Grammar
from constrained_agent.grammar.toolcalls import Markers, turn_grammar
from constrained_agent.messages import ToolSpec

PATH = {"type": "object", "properties": {"path": {"type": "string"}}, "required": ["path"]}
TOOLS = [
    ToolSpec("read", "", PATH, "read"),
    ToolSpec("read_file", "", PATH, "read"),
    ToolSpec("apply_patch", "", PATH, "write", freeform=True),
]
LONG_CHAIN = "start: r0\n" + "".join(f'r{i}: "a" r{i + 1}\n' for i in range(2_000)) + 'r2000: "b"\n'
CASES = [
    ('start: body "END"\nbody: /(.|\\n)*/', [("open_ended_terminal", 2, 7)]),
    ('start: NAME "if"\nNAME: /[a-z]+/', [("open_ended_terminal", 1, 8)]),
    ('start: ("list" | "listen") "ed"', [("prefix_terminals", 1, 9)]),
    ('start: a | b\na: "list" "ed"\nb: "listen"', [("prefix_terminals", 2, 4)]),
    ('start: "{\\"name\\": 1}" | %json {"type": "object"}', [("json_beside_literal", 1, 8)]),
    ("start: letter+\nletter: /[a-z]/", [("single_character_rule", 1, 8)]),
    ('start: ("a" | "b" | DIGIT)* "."\nDIGIT: "0".."9"', [("single_character_rule", 1, 8)]),
    ('start: list\nlist: "x" list |', [("right_recursion", 2, 1)]),
    ('start: list\nlist: "x" list?\n  | ', [("right_recursion", 2, 1)]),
    (LONG_CHAIN, [("long_chain", 1, 1)]),
    ('start: "x" /.+/', [("dot_newline", 1, 12)]),
    ("start: TEXT\nTEXT: /(.)*/", [("dot_newline", 2, 7)]),
    ('start: "a"\nb: c', [("undefined_name", 2, 4), ("unreachable_rule", 2, 1)]),
    ('start: a\na: "(" a ")"', [("endless_rule", 1, 1), ("endless_rule", 2, 1)]),
    ("start: start", [("endless_rule", 1, 1)]),
    ('start: A\nA.2: "x"', [("priority", 2, 1)]),
    ("start: /(?=a)b/", [("look_around", 1, 8)]),
    ("start: /(a)\\1/", [("back_reference", 1, 8)]),
    ("start: /a\\b/", [("word_boundary", 1, 8)]),
    ('%override start: "a"\nstart: "b"', [("unsupported_statement", 1, 1)]),
    ("start: nosuch other", [("undefined_name", 1, 8), ("undefined_name", 1, 15)]),
    ('start: "a" (', [("compile_error", 1, 13)]),
    ("start: 'a'", [("compile_error", 1, 8)]),
    ("", [("compile_error", 1, 1)]),
    ("start: " + "(" * 5_000, [("compile_error", 1, 37)]),
]
CLEAN = [
    'start: NAME "=" NAME\nNAME: /[a-z]+/',
    'start: "(" start ")" | "x"',
    'start: "a" start | "b"',
    'start: "\\"" /[^"]*/ "\\""',
    '%ignore /\\s+/\nstart: "if" N "then" N\nN: /[a-z]+/',
    'start: body\nbody[suffix="END"]: /(.|\\n)*/',
    'start: ("true" | "false" | "t" /[0-9]/) " "*',
    'start: <tool_call> "x" | /[^<]+/',
    'start: /.*/ "\\n"',
    'start: "[" "x" "]" | %json {"type": "array"}',
    'start: /[(?=]\\\\b/ // (?=x)\n  | "a" # /\\b/\n',
    'start: a::0x1\na::_: "x" a::incr(_) %if lt(_, 3) | "y"',
    '%import common.INT\nstart: [ INT ] ("," INT){2,3} -> list',
    "start: T\nT: /[a-z]+/ & ~/if|else/",
    'start: T "b"~2 | "a"~2..3\nT: /(.|\\n)*/ & ~/(.|\\n)*b(.|\\n)*/',
    'start: %lark {\nstart: "a" /[}]/\n} "x"',
    'start: %regex {"substring_words": "a b c"}',
]


def places(text: str) -> list[tuple[str, int, int]]:
    return sorted((one.code, one.line, one.column) for one in lint(Grammar("g", "lark", text)))


@pytest.mark.parametrize(("text", "found"), CASES, ids=[repr(text[:40]) for text, _ in CASES])
def test_each_trap_is_found_where_it_stands(text: str, found: list[tuple[str, int, int]]) -> None:
    assert places(text) == sorted(found)


@pytest.mark.parametrize("text", CLEAN)
def test_no_false_alarms(text: str) -> None:
    assert places(text) == []


@pytest.mark.parametrize("name", ["apply_patch", "apply_patch_strict"])
def test_the_shipped_grammars_are_clean(name: str) -> None:
    assert lint(sources.load(name)) == []


@pytest.mark.parametrize("choice", ["auto", "none", "required", "read_file", "apply_patch"])
@pytest.mark.parametrize("markers", ["token", "thinking", "text"])
def test_turn_grammars_are_clean(choice: str, markers: str) -> None:
    tokens = markers != "text"
    assert lint(turn_grammar(TOOLS, choice, Markers(tokens, tokens), thinking=markers == "thinking")) == []


@pytest.mark.parametrize("tokens", [True, False], ids=["token", "text"])
@pytest.mark.parametrize("one_patch", [True, False])
def test_turn_grammars_of_several_calls_and_of_patches_in_json_are_clean(
    tokens: bool, one_patch: bool
) -> None:
    made = turn_grammar(TOOLS, "auto", Markers(tokens), carrier=JSON, parallel=True, one_patch=one_patch)
    assert lint(made) == []


def test_every_kind_has_an_example_and_is_tested() -> None:
    seen = {code for _, found in CASES for code, _, _ in found} | {
        "ignored_keyword",
        "template",
        "unreadable",
    }

    assert seen == set(findings.EXAMPLES)
    assert [code for code, example in findings.EXAMPLES.items() if not example] == [
        "compile_error",
        "unreadable",
    ]


@pytest.mark.parametrize(
    ("text", "dead"),
    [
        ('start: body "END"\nbody: /(.|\\n)*/', "fooEND"),
        ('start: ("list" | "listen") "ed"', "listed"),
        ('start: a | b\na: "{\\"name\\": 1}"\nb: %json {"type": "object"}', '{"name": 2}'),
    ],
)
def test_the_traps_are_real(text: str, dead: str) -> None:
    """What lint warns of: a text of the grammar as its author reads it, which the engine does not accept."""
    assert places(text)
    assert prefix.check(dead.encode(), Grammar("g", "lark", text)).status != "complete"


def test_mended_grammars_take_the_text() -> None:
    mended = 'start: body\nbody[suffix="END"]: /(.|\\n)*/'

    assert places(mended) == []
    assert prefix.check(b"fooEND", Grammar("g", "lark", mended)).status == "complete"


def test_regular_expressions_and_schemas() -> None:
    def codes(grammar: Grammar) -> list[tuple[str, bool]]:
        return [(one.code, "#/properties/a" in one.message) for one in lint(grammar)]

    assert codes(sources.from_regex("[a-z]+")) == []
    assert codes(sources.from_regex("(?=a)b")) == [("look_around", False)]
    assert codes(sources.from_regex("(a")) == [("compile_error", False)]
    nullable = {"properties": {"a": {"type": "string", "nullable": True}}}
    assert codes(sources.from_json_schema(nullable)) == [("ignored_keyword", True)]
    assert codes(sources.from_json_schema({"properties": {"a": {"not": {}}}})) == [("compile_error", True)]
