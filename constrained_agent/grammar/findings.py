"""What lint can find: one code for each kind of fault, with an explanation and a mended example."""

from __future__ import annotations

from dataclasses import dataclass


@dataclass(frozen=True, slots=True)
class Finding:
    """One fault or trap in a grammar.

    Attributes:
        code: its kind, a key of `EXAMPLES`.
        line, column: 1-based place in the grammar's text.
        message: what stands there and why it is trouble.
        example: how it reads when mended; empty where there is no usual way.
    """

    code: str
    line: int
    column: int
    message: str
    example: str


EXAMPLES = {
    "compile_error": "",
    "unreadable": "",
    "ignored_keyword": '{"anyOf": [{"type": "string"}, {"type": "null"}]} instead of nullable',
    "look_around": r'no "not followed by": spell out what may come, as in `BODY: /([^*]|\*+[^*\/])*/`',
    "back_reference": r"one alternative for each text that comes back: `/\"[^\"]*\"|'[^']*'/`",
    "word_boundary": "leave `\\b` out: the lexer takes the longest match anyway",
    "priority": "`KEYWORD: /if|else/` and `NAME: /[a-z]+/ & ~/if|else/` instead of `KEYWORD.2`",
    "template": 'one rule for each use: `numbers: NUMBER ("," NUMBER)*`',
    "unsupported_statement": "write the rule or terminal out in this file",
    "undefined_name": 'define it: `name: "text"`',
    "unreachable_rule": "use it from `start`, or delete it",
    "endless_rule": 'give it an alternative that ends: `list: "(" list ")" | "()"`',
    "open_ended_terminal": 'exclude what ends it: `body: /[^;]*/ ";"`; or `body[suffix="END"]: /.*/`',
    "prefix_terminals": "let one terminal hold both with what follows: `word: /list(en)?ed/`",
    "json_beside_literal": (
        'factor the common beginning out: `"{\\"name\\": " ( "\\"a\\"}" | %json {"const": "b"} "}" )`'
    ),
    "single_character_rule": "make it one terminal: `NAME: /[a-z]+/` instead of `name: LETTER+`",
    "right_recursion": "repeat with `*`: `list: item*` instead of `list: item list |`",
    "long_chain": "fewer rules that need each other: `*`, `{m,n}` and alternatives instead of one rule per step",
    "dot_newline": r"`/(.|\n)*/` or `/(?s:.*)/` for text of several lines",
}
"""Mended examples by code."""


def finding(code: str, line: int, column: int, message: str) -> Finding:
    return Finding(code, line, column, message, EXAMPLES[code])
