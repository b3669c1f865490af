"""Laws of the prefix checker, on random texts of 12 grammars and 12 schemas.

Every beginning of a valid text is a prefix, its completion completes it, and whatever is expected may be appended.
A changed character is found at its first dead byte, as feeding the engine byte by byte finds it. Seeded, so that a
failure comes again; PREFIX_LAW_CASES=5000 in the environment makes the long run (five minutes).
"""

from __future__ import annotations

import json
import os
import random
import string
from collections.abc import Callable
from functools import cache
from typing import Any

import pytest

from constrained_agent.errors import MatcherError
from constrained_agent.grammar import prefix, sources
from constrained_agent.grammar.matcher import EngineTokenizer, Matcher, byte_tokenizer
from constrained_agent.grammar.sources import Grammar
from constrained_agent.grammar.toolcalls import Markers, turn_grammar
from constrained_agent.messages import ToolSpec

Random = random.Random
N_LANGUAGES = 24
N_CASES = int(os.environ.get("PREFIX_LAW_CASES", "240")) // N_LANGUAGES + 1
SEED = 4

LETTERS = string.ascii_lowercase + "éß文件😀"


def word(rng: Random, letters: str = LETTERS, low: int = 1, high: int = 8) -> str:
    return "".join(rng.choices(letters, k=rng.randint(low, high)))


def many(rng: Random, make: Callable[[Random], str], low: int = 0, high: int = 4) -> list[str]:
    return [make(rng) for _ in range(rng.randint(low, high))]


# --- texts ---


def patch(rng: Random) -> str:
    """In the strict language and in the loose one."""
    lines = ["*** Begin Patch"]
    for _ in range(rng.randint(1, 3)):
        path = "/".join(many(rng, lambda r: word(r, LETTERS + "_-"), 1, 3))
        text = many(rng, lambda r: word(r, LETTERS + " .*@\t\\\"'"), 1, 4)
        kind = rng.choice(["add", "delete", "update", "update", "move"])
        if kind == "add":
            lines += [f"*** Add File: {path}", *("+" + line for line in text)]
        elif kind == "delete":
            lines.append(f"*** Delete File: {path}")
        else:
            lines.append(f"*** Update File: {path}")
            if kind == "move":
                lines.append(f"*** Move to: {path}.new")
            for _ in range(rng.randint(1, 2)):
                lines.append(rng.choice(["@@", f"@@ {word(rng)}"]))
                lines += [" context", *(rng.choice("+- ") + line for line in text), "-old", "+new"]
    return "\n".join([*lines, "*** End Patch"]) + rng.choice(["", "\n"])


def value(rng: Random, depth: int = 2) -> Any:
    kinds = ["text", "number", "bool", "null"] + ["array", "object"] * (depth > 0)
    match rng.choice(kinds):
        case "text":
            return word(rng, LETTERS + '"\\\n\t /')
        case "number":
            return rng.choice([rng.randint(-999, 999), rng.uniform(-5, 5), 1e30])
        case "bool":
            return rng.choice([True, False])
        case "array":
            return [value(rng, depth - 1) for _ in range(rng.randint(0, 3))]
        case "object":
            return {word(rng): value(rng, depth - 1) for _ in range(rng.randint(0, 3))}
    return None


def dumped(made: Any) -> str:
    return json.dumps(made, ensure_ascii=False)


def answer(rng: Random) -> str:
    text = word(rng, LETTERS + " \n<>")
    return text + rng.choice(
        [
            "",
            f'<tool_call>\n{{"name": "read_file", "arguments": {{"path": {dumped(word(rng))}}}}}\n</tool_call>',
            f'<tool_call>\n{{"name": "apply_patch"}}\n{patch(rng).rstrip()}\n</tool_call>',
        ]
    )


def term(rng: Random, depth: int = 3) -> str:
    if depth == 0 or rng.random() < 0.3:
        return str(rng.randint(0, 99))
    return rng.choice(["({}+{})", "({}*{})"]).format(term(rng, depth - 1), term(rng, depth - 1))


def point(rng: Random) -> Any:
    return {"path": word(rng), **({"line": rng.randint(-99, 99)} if rng.random() < 0.5 else {})}


def tree(rng: Random, depth: int = 3) -> Any:
    n_children = rng.randint(0, 2) if depth else 0
    return {"name": word(rng), "children": [tree(rng, depth - 1) for _ in range(n_children)]}


# --- grammars and schemas ---


def closed(properties: dict[str, Any], *required: str) -> dict[str, Any]:
    return {
        "type": "object",
        "properties": properties,
        "required": list(required),
        "additionalProperties": False,
    }


POINT = closed({"path": {"type": "string"}, "line": {"type": "integer"}}, "path")
TREE = {
    "$ref": "#/$defs/node",
    "$defs": {
        "node": closed(
            {"name": {"type": "string"}, "children": {"type": "array", "items": {"$ref": "#/$defs/node"}}},
            "name",
            "children",
        )
    },
}
READ = ToolSpec("read_file", "", closed({"path": {"type": "string"}}, "path"), "read")
PATCH = ToolSpec("apply_patch", "", closed({"patch": {"type": "string"}}, "patch"), "write", freeform=True)
TURN = turn_grammar([READ, PATCH], "auto", Markers(are_tokens=False))

GRAMMARS: dict[str, tuple[Grammar | str, Callable[[Random], str]]] = {
    "loose patch": (sources.load("apply_patch"), patch),
    "strict patch": (sources.load("apply_patch_strict"), patch),
    "turn": (Grammar("turn", "lark", TURN.text), answer),
    "nested": ('start: "(" start ")" | /[a-zß-ü文件😀]+/', lambda r: "(" * 5 + word(r) + ")" * 5),
    "suffix": ('start: body\nbody[suffix="END"]: /.*/', lambda r: word(r, LETTERS + "EN") + "END"),
    "words": (
        'start: ("true" | "try" "x" | "trapezoid" | "tr" /[0-9]{3}/)+',
        lambda r: "".join(r.choices(["true", "tryx", "trapezoid", "tr042"], k=3)),
    ),
    "pairs": (
        'start: (/[a-z]+/ "=" /[^\\n]*/ "\\n")+',
        lambda r: "".join(f"{word(r, 'abc')}={word(r)}\n" for _ in range(3)),
    ),
    "ignore": (
        '%ignore /[ \\t]+/\nstart: "if" NAME ":" "pass"+\nNAME: /[a-z]+/',
        lambda r: f"if  {word(r, 'xyz')}\t: pass pass",
    ),
    "counted": ('start: ("ab" | "cd"){3,5}', lambda r: "".join(r.choices(["ab", "cd"], k=r.randint(3, 5)))),
    "arithmetic": ('start: "(" start ("+" | "*") start ")" | /[0-9]+/', term),
    "inline JSON": (
        f'start: "x=" %json {json.dumps(sources.compacted(POINT))} ";"',
        lambda r: f"x={dumped(point(r))};",
    ),
    "regex": (
        sources.from_regex(r"(\d{3}-)+x?[α-ω]*"),
        lambda r: "".join(many(r, lambda r: f"{r.randint(100, 999)}-", 1, 4)) + word(r, "αβω", 0),
    ),
}
SCHEMAS: dict[str, tuple[Any, Callable[[Random], Any]]] = {
    "anything": ({}, value),
    "point": (POINT, point),
    "tree": (TREE, tree),
    "enum": (
        {"enum": ["red", "green", "grün", 1, None, {"a": 1}]},
        lambda r: r.choice(["red", "green", "grün", 1, None, {"a": 1}]),
    ),
    "pattern": ({"type": "string", "pattern": "^[a-f0-9]{8}$"}, lambda r: word(r, "abcdef0123", 8, 8)),
    "length": ({"type": "string", "minLength": 3, "maxLength": 9}, lambda r: word(r, LETTERS + '"', 3, 9)),
    "array": (
        {"type": "array", "items": {"type": "boolean"}, "minItems": 2, "maxItems": 5},
        lambda r: r.choices([True, False], k=r.randint(2, 5)),
    ),
    "tuple": (
        {"type": "array", "prefixItems": [{"type": "string"}, {"type": "number"}], "minItems": 2},
        lambda r: [word(r), r.uniform(-9, 9), value(r)],
    ),
    "range": ({"type": "integer", "minimum": -40, "maximum": 1234}, lambda r: r.randint(-40, 1234)),
    "union": (
        {"anyOf": [POINT, {"type": "null"}, {"type": "integer"}]},
        lambda r: r.choice([point(r), None, 7]),
    ),
    "open object": (
        {
            "type": "object",
            "properties": {"a": {"type": "integer"}},
            "additionalProperties": {"type": "string"},
        },
        lambda r: {"a": r.randint(0, 9), **{word(r, "bcd"): word(r) for _ in range(2)}},
    ),
    "formats": (
        closed({"day": {"type": "string", "format": "date"}, "on": {"const": True}}, "day", "on"),
        lambda r: {"day": f"20{r.randint(10, 99)}-0{r.randint(1, 9)}-1{r.randint(0, 9)}", "on": True},
    ),
}


def language(name: str) -> tuple[Grammar, Callable[[Random], str]]:
    if name in GRAMMARS:
        given, make = GRAMMARS[name]
        return (given if isinstance(given, Grammar) else Grammar(name, "lark", given)), make
    schema, make = SCHEMAS[name]
    return sources.from_json_schema(schema), lambda rng: dumped(make(rng))


NAMES = [*GRAMMARS, *SCHEMAS]


@cache
def tokenizer() -> EngineTokenizer:
    return byte_tokenizer()


@cache
def compiled(grammar: Grammar) -> Matcher:
    return Matcher(tokenizer(), grammar)


def fed(grammar: Grammar, data: bytes) -> tuple[int, bool]:
    """How many bytes the engine takes, one call for each, and whether it accepts after them."""
    matcher = compiled(grammar).copy()
    for position, byte in enumerate(data):
        before = matcher.copy()
        try:
            matcher.consume([byte])
        except MatcherError:
            return position, before.accepting
    return len(data), matcher.accepting


def test_there_are_twelve_of_each() -> None:
    assert len(GRAMMARS) == len(SCHEMAS) == N_LANGUAGES // 2


@pytest.mark.parametrize("name", NAMES)
def test_beginnings_of_valid_texts(name: str) -> None:
    grammar, make = language(name)
    rng = Random(f"{SEED} {name}")
    for _ in range(N_CASES):
        data = make(rng).encode()
        assert fed(grammar, data) == (len(data), True), data.decode()
        cut = data[: rng.randint(0, len(data))]

        report = prefix.check(cut, grammar)

        assert report.status == ("complete" if fed(grammar, cut)[1] else "prefix")
        assert report.valid_bytes == len(cut)
        assert report.completion is not None, cut
        completed = cut + report.completion.encode("utf-8", "surrogateescape")
        assert prefix.check(completed, grammar).status == "complete"
        assert data[len(cut) :].startswith(report.forced.encode("utf-8", "surrogateescape"))
        for entry in report.expected:
            longer = cut + entry.example
            assert fed(grammar, longer)[0] == len(longer), (cut, entry)
        if report.expected:
            longer = cut + rng.choice(report.expected).example
            assert prefix.check(longer, grammar).status in ("prefix", "complete")


@pytest.mark.parametrize("name", NAMES)
def test_changed_characters(name: str) -> None:
    grammar, make = language(name)
    rng = Random(f"{SEED} {name} changed")
    for _ in range(N_CASES):
        text = make(rng)
        at = rng.randrange(len(text))
        other = rng.choice([*text, *'x\né文*\0 9"\r{}]<', ""])
        data = (text[:at] + other + text[at + 1 :]).encode()

        report = prefix.check(data, grammar)

        n_valid, accepting = fed(grammar, data)
        assert report.valid_bytes == n_valid, data
        if n_valid < len(data):
            assert report.status == "invalid"
        else:
            assert report.status == ("complete" if accepting else "prefix")
