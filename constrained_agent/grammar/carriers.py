"""How a patch travels in a tool call: as raw text, or as a string of JSON.

A carrier spells each character by itself, and no spelling is the beginning of another one. So a grammar of raw texts
becomes one of carried texts by its literals and its sets of characters alone.
"""

from __future__ import annotations

import json
import re
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from functools import cached_property
from typing import Literal, get_args

from constrained_agent.errors import UserError

CarrierName = Literal["freeform", "json"]

_NUL = "\0"
"""Never in a set of characters: what holds it is no text to a patch."""


@dataclass(frozen=True, eq=False)  # without slots, for the cached properties
class Carrier:
    """One way.

    Attributes:
        name: as people choose it.
        escapes: how characters are spelled that do not stand for themselves.
        line: a line of carried text (group 1) with what ends it.
        half: at the end of carried text, an escape (group 1) that is not whole.
    """

    name: CarrierName
    escapes: Mapping[str, str]
    line: re.Pattern[bytes]
    half: re.Pattern[bytes]

    @cached_property
    def _spelled(self) -> Mapping[int, str]:
        return {ord(char): spelled for char, spelled in self.escapes.items()}

    @cached_property
    def _char_of(self) -> Mapping[str, str]:
        return {spelled: char for char, spelled in self.escapes.items()}

    def around(self, tool: str, argument: str) -> tuple[str, str]:
        """What stands in a call between `{"name": "` and the patch, and between the patch and the last newline."""
        if not self.escapes:
            return f'{tool}"}}\n', ""
        return f'{tool}", "arguments": {{{json.dumps(argument, ensure_ascii=False)}: "', '"}}'

    def spell(self, text: str) -> str:
        """A raw text as it is carried."""
        return text.translate(self._spelled)

    def carried(self, text: str) -> bytes:
        """The same as bytes."""
        return self.spell(text).encode("utf-8", "surrogatepass")

    def read(self, data: bytes) -> str:
        """A raw text from whole characters as they are carried."""
        text = data.decode("utf-8")
        if not self.escapes:
            return text
        return re.sub(r"\\(?:u....|.)", lambda found: self._char_of.get(found[0], found[0]), text)

    def lines(self, data: bytes) -> Iterator[tuple[bytes, int]]:
        """The whole lines of a carried text without what ends them, each with where the next one begins.

        What ends the string that carries a patch ends its last line.
        """
        start = 0
        while found := self.line.match(data, start):
            start = found.end()
            yield found[1], start

    def half_escape(self, data: bytes) -> bytes:
        """The beginning of an escape that a carried text ends with; empty if it ends with none."""
        found = self.half.search(data)
        return found[1] if found else b""

    def finished(self, half: bytes) -> bytes:
        """The rest of any escape that begins so, in an added line."""
        spelled = (text.encode() for char, text in self.escapes.items() if char not in (_NUL, "\n"))
        return next(text for text in spelled if text.startswith(half))[len(half) :]

    def pattern(self, regex: str) -> str:
        """The regular expression of texts as they are carried, from one of raw texts.

        Args:
            regex: with sets of characters that say what they do not hold (or `.`), `\\n`, and besides nothing that
                has an escape. What comes out holds no NUL, even escaped.
        """
        if not self.escapes:
            return regex
        return re.sub(r"\\.|\[(?:\\.|[^\]\\])*\]|\.", lambda found: self._piece(found[0]), regex)

    def rules(self, text: str) -> str:
        """The same for the strings and regular expressions of rules in Lark."""
        if not self.escapes:
            return text
        quoted = r'(?m)^//.*\n|"(?:\\.|[^"\\])*"|/(?:\\.|[^/\\\n])+/'
        return re.sub(quoted, lambda found: self._literal(found[0]), text)

    def _literal(self, quoted: str) -> str:
        if quoted.startswith("//"):
            return ""
        if quoted.startswith("/"):
            return f"/{self.pattern(quoted[1:-1])}/"
        return json.dumps(self.spell(json.loads(quoted)), ensure_ascii=False)

    def _piece(self, piece: str) -> str:
        if piece == r"\n":
            return re.escape(self.spell("\n"))
        if piece == ".":
            piece = r"[^\n]"
        if not piece.startswith("["):
            return piece
        if not piece.startswith("[^"):
            raise ValueError(f"{piece} in a regular expression: only sets that say what they do not hold")
        held = [char for char in self.escapes if char != _NUL and re.fullmatch(piece, char)]
        others = piece[:-1] + r"\x22\\\x00-\x1f]"
        escaped = "|".join(re.escape(self.escapes[char]) for char in held)
        return f"({others}|{escaped})" if escaped else others


FREEFORM = Carrier("freeform", {}, re.compile(rb"([^\n]*+)\n"), re.compile(rb"((?!))"))
"""`{"name": "apply_patch"}`, newline, the patch as it is."""

JSON = Carrier(
    "json",
    {char: json.dumps(char)[1:-1] for char in ('"', "\\", *map(chr, range(0x20)))},
    re.compile(rb'((?:[^\\"]++|\\[^n])*+)(?:\\n|")', re.DOTALL),
    re.compile(rb"(?<!\\)(?:\\\\)*+(\\(?:u[0-9a-f]{0,3})?)\Z"),
)
"""`{"name": "apply_patch", "arguments": {"patch": "…"}}`, as `json.dumps(…, ensure_ascii=False)` writes it."""


def by_name(name: str) -> Carrier:
    """The carrier of a name.

    Raises:
        UserError: there is none.
    """
    for carrier in (FREEFORM, JSON):
        if carrier.name == name:
            return carrier
    raise UserError(f"no carrier {name!r}: there are {', '.join(get_args(CarrierName))}")
