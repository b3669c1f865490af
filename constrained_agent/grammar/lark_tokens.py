"""Cuts the text of a Lark grammar into tokens with positions; the JSON after `%json` and its like is one token."""

from __future__ import annotations

import json
import re
from collections.abc import Iterator
from dataclasses import dataclass

_TOKEN = re.compile(
    r"""(?P<blank>[ \t\r\f]+|//[^\n]*|\#[^\n]*|\\\r?\n)|(?P<newline>\n)
    |(?P<string>"(?:[^"\\\n]|\\.)*"i?)|(?P<regex>/(?:[^/\\]|\\.)+/[a-z]*)
    |(?P<special><[^<>\s]+>)|(?P<statement>%[a-z_]+)
    |(?P<name>[!?]*_?[A-Za-z]\w*|@\w+)|(?P<number>-?(?:0x)?[0-9a-fA-F]+)|(?P<op>::|->|\.\.|.)""",
    re.VERBOSE | re.DOTALL,
)
_WITH_JSON = ("%json", "%regex", "%llguidance")


@dataclass(frozen=True, slots=True)
class Token:
    """One token; `offset` counts characters, line and column are 1-based."""

    kind: str
    text: str
    offset: int
    line: int
    column: int


def tokens(text: str) -> Iterator[Token]:
    """All tokens but blanks and comments, then one of kind `end`.

    Raises:
        ValueError: broken JSON.
    """
    offset, line, line_start = 0, 1, 0
    while offset < len(text):
        found = _TOKEN.match(text, offset)
        assert found is not None  # the last alternative takes any character
        kind, end = str(found.lastgroup), found.end()
        if kind != "blank":
            yield Token(kind, found.group(), offset, line, offset - line_start + 1)
        if kind == "statement" and found.group() in _WITH_JSON:
            start = end + len(text[end:]) - len(text[end:].lstrip())
            _, json_end = json.JSONDecoder().raw_decode(text, start)
            before = text[:start]
            yield Token(
                "schema", text[start:json_end], start, before.count("\n") + 1, start - before.rfind("\n")
            )
            end = json_end
        n_lines = text.count("\n", offset, end)
        if n_lines:
            line, line_start = line + n_lines, text.rfind("\n", 0, end) + 1
        offset = end
    yield Token("end", "", len(text), line, offset - line_start + 1)
