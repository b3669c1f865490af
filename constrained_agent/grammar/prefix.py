"""The prefix checker: where a text leaves a grammar, what stood there, and what could have come instead.

The engine that masks the decoder walks the text byte by byte, so the checker and the decoder cannot disagree.
"""

from __future__ import annotations

import codecs
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any, Literal

from constrained_agent.grammar import closing
from constrained_agent.grammar.characters import describe
from constrained_agent.grammar.cursor import Cursor, State
from constrained_agent.grammar.expected import END_OF_TEXT, Expected, expected_next
from constrained_agent.grammar.sources import Grammar
from constrained_agent.grammar.walk import byte_matcher, feed, guarded

Status = Literal["complete", "prefix", "invalid"]

MAX_EXPECTED = 20
_MAX_FORCED = 20_000  # tokens; a grammar that goes on for ever forces more than anyone can read


@dataclass(frozen=True, slots=True)
class Report:
    """What the grammar says about a text.

    `forced` and `completion` hold the rest of a cut character as surrogate escapes:
    `.encode("utf-8", "surrogateescape")` gives exactly the bytes to append.

    Attributes:
        status: `complete`: the grammar accepts the text. `prefix`: it accepts the text as a beginning.
            `invalid`: it refuses the byte at `valid_bytes`, or nothing can follow.
        valid_bytes: bytes accepted before the refusal.
        valid_chars: whole characters among them.
        line, column: 1-based place of the first character that is not accepted; columns count characters.
        found: what stands there, in words; "end of text" if everything was accepted.
        expected: what could stand there, the most specific first.
        n_more: how many further entries `expected` leaves out.
        forced: text that must follow the accepted part because there is no choice; the first 20,000 bytes.
        completion: the shortest text found that completes the accepted part; None if none was found.
        hint: a likely cause or a limit that was met, in words; empty if there is none.
    """

    status: Status
    valid_bytes: int
    valid_chars: int
    line: int
    column: int
    found: str
    expected: tuple[Expected, ...]
    n_more: int
    forced: str
    completion: str | None
    hint: str

    def as_json(self) -> dict[str, Any]:
        """The report for programs: `expected` as texts, `expected_detail` with kind, count and example."""
        detail = [
            {
                "kind": entry.kind,
                "text": entry.text,
                "count": entry.count,
                "example": entry.example.decode("utf-8", "surrogateescape"),
            }
            for entry in self.expected
        ]
        return {
            "status": self.status,
            "valid_bytes": self.valid_bytes,
            "valid_chars": self.valid_chars,
            "line": self.line,
            "column": self.column,
            "found": self.found,
            "expected": [entry.text for entry in self.expected],
            "forced": self.forced,
            "completion": self.completion,
            "hint": self.hint or None,
            "expected_detail": detail,
            "expected_left_out": self.n_more,
        }


def check(
    data: bytes,
    grammar: Grammar,
    *,
    specials: Sequence[str] = (),
    max_expected: int | None = MAX_EXPECTED,
) -> Report:
    """Walk a text through a grammar.

    Args:
        data: the text; need not be UTF-8.
        grammar: what it is checked against.
        specials: names of special tokens (`"<tool_call>"`). Where the text holds such a name and the grammar
            allows the token there, it is taken as the token, else as plain text.
        max_expected: how many entries of `expected` to keep; None for all.

    Returns:
        The report. Linear in the text, about 1 s for 1 MB; looking ahead takes up to 0.2 s on top.

    Raises:
        GrammarError: the grammar does not compile.
        UserError: it takes too much time or memory; the work then goes on in a daemon thread until the process
            ends.
        MatcherError: the engine met one of its limits within the text.
    """
    return guarded(lambda: _checked(data, grammar, specials, max_expected), grammar, len(data))


def _checked(data: bytes, grammar: Grammar, specials: Sequence[str], max_expected: int | None) -> Report:
    matcher = byte_matcher(grammar, specials)
    n_valid = feed(matcher, data, specials)
    cursor = Cursor(matcher)
    expected = expected_next(cursor, specials, unfinished(data[:n_valid]))
    path = closing.shortest(matcher)
    completion = None if path is None else _as_text(path, specials)
    shown = expected[:max_expected]
    return reported(
        data, n_valid, cursor.at(()), shown, completion, n_more=len(expected) - len(shown), specials=specials
    )


def reported(
    data: bytes,
    n_valid: int,
    here: State,
    expected: Sequence[Expected],
    completion: str | None,
    *,
    n_more: int,
    specials: Sequence[str] = (),
    hint: str = "",
) -> Report:
    """The report on a text of which the first `n_valid` bytes are accepted.

    Args:
        here: what the grammar says behind them.
        hint: a likely cause, if the bytes themselves show none.
    """
    text, cut = _decoded(data[:n_valid])
    dead = not here.bits and not here.accepting and not here.unknown
    return Report(
        status="invalid" if n_valid < len(data) or dead else "complete" if here.accepting else "prefix",
        valid_bytes=n_valid,
        valid_chars=len(text),
        line=text.count("\n") + 1,
        column=len(text) - text.rfind("\n"),
        found=_found(data, n_valid - len(cut), n_valid),
        expected=tuple(expected),
        n_more=n_more,
        forced=_as_text(here.forced[:_MAX_FORCED], specials),
        completion=completion,
        hint=_hint(data, n_valid, here) or hint,
    )


def unfinished(data: bytes) -> bytes:
    """The bytes of a last character that is not whole."""
    return _decoded(data)[1]


def _decoded(data: bytes) -> tuple[str, bytes]:
    """The whole characters of accepted bytes, and the bytes of a last one that is not whole."""
    decoder = codecs.getincrementaldecoder("utf-8")("surrogateescape")
    text = decoder.decode(data)
    return text, decoder.getstate()[0]


def _as_text(path: Sequence[int], specials: Sequence[str]) -> str:
    data = b"".join(bytes([token]) if token < 256 else specials[token - 256].encode() for token in path)
    return data.decode("utf-8", "surrogateescape")


def _found(data: bytes, start: int, refused: int) -> str:
    """What stands at a place, in words.

    Args:
        data: the text.
        start: where the character begins.
        refused: the byte that was refused, within it or the first after it.
    """
    if refused == len(data):
        return END_OF_TEXT
    character = data[start : start + 4].decode("utf-8", "ignore")[:1]
    if character and data.startswith(character.encode(), start):
        return describe(character)
    return f"byte 0x{data[refused]:02X}"


def _hint(data: bytes, refused: int, here: State) -> str:
    """A likely cause of a refusal, in words a person can act on; empty if none is known."""
    if here.unknown:
        return f"what may follow is not known: {here.trouble}"
    if not here.bits and not here.accepting:
        return "the grammar has a dead end here: nothing may follow, and the text is not complete"
    if refused == len(data):
        return ""
    if data.startswith((b"\xff\xfe", b"\xfe\xff")):
        return "the text begins with a UTF-16 byte order mark: save it as UTF-8"
    if data.startswith(codecs.BOM_UTF8) and refused < 3:
        return "the text begins with a byte order mark: save it as UTF-8 without one"
    where = f"byte {refused} is"
    if data[refused] == 0x00:
        return f"{where} NUL: is this a text file, and is it UTF-8?"
    if data[refused] == 0x0D:
        newline = data[refused + 1 : refused + 2] == b"\n"
        kind = "the first half of a CRLF line ending" if newline else "a carriage return"
        return f"{where} {kind}: the grammar wants LF alone here, so convert the line endings"
    start = refused - len(_decoded(data[:refused])[1])
    if not _is_utf8_at(data, start):
        return f"{where} 0x{data[refused]:02X}, which is not UTF-8 here: is the text in another encoding?"
    return ""


def _is_utf8_at(data: bytes, start: int) -> bool:
    """Whether a character, whole or cut by the end of the text, begins here."""
    text, unfinished = _decoded(data[start : start + 4])
    return bool(text and not "\udc80" <= text[0] <= "\udcff") or (not text and bool(unfinished))
