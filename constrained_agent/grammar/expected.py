"""What may come next at one place of a text, folded from the allowed bytes into readable entries.

A byte that starts a run without choices becomes a literal (`*** Add File: `), the rest become character
classes, one for each set of bytes that lead to places that look alike (`any character except newline`).
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from itertools import takewhile
from typing import Literal

from constrained_agent.grammar import characters
from constrained_agent.grammar.cursor import Cursor, Path, State

Kind = Literal["literal", "class", "token", "end", "line", "path", "rule"]

END_OF_TEXT = "end of text"

# A literal goes on past a choice of at most this many bytes, so that three keywords with one beginning show
# as three keywords; more are a character class.
_MAX_BRANCHES = 8
_MAX_OPENED = 64  # choices inside literals that are followed, over all literals
_MAX_LITERAL = 2_000  # bytes
# Groups of at most this many characters are listed one by one.
_MAX_LISTED = 4
_MAX_SPLIT = (
    70  # characters of a group whose whitespace is listed apart: letters and digits, but not most of ASCII
)
_MAX_PROBED = 600  # places looked at to find which non-ASCII characters are meant
_MAX_RANGES = 8
_MANY = 1_000  # stands for the number of non-ASCII characters
_LEADS = frozenset(range(0xC2, 0xF5))  # first bytes of all non-ASCII characters in UTF-8
# Where fewer than 64 second bytes are legal.
_SECOND_BYTES = {0xE0: (0xA0, 0xBF), 0xED: (0x80, 0x9F), 0xF0: (0x90, 0xBF), 0xF4: (0x80, 0x8F)}


@dataclass(frozen=True, slots=True)
class Expected:
    """One thing that may come next.

    Attributes:
        kind: `literal` is text to be written as it stands; `class` one of several characters; `token` a
            special token; `end` the end of the text. Where texts are held to files (`grammar.located_prefix`):
            `line` is one of a file's lines, `path` a path, `rule` a condition on what comes next.
        text: the literal itself, the token's name, "end of text", everything else in words.
        count: how many characters or texts this admits; for classes with many non-ASCII ones, a lower bound.
        example: bytes that may be appended to the text (for a token, its name).
    """

    kind: Kind
    text: str
    count: int
    example: bytes


@dataclass(slots=True)
class _Group:
    """Single characters that lead to places that look alike."""

    ascii: set[int]
    leads: set[int]


def expected_next(cursor: Cursor, specials: Sequence[str] = (), unfinished: bytes = b"") -> list[Expected]:
    """Everything that may come next at the cursor's origin.

    Args:
        cursor: over a byte tokenizer.
        specials: names of the special tokens; the i-th has id 256 + i.
        unfinished: bytes of a character that the text was cut in.

    Returns:
        Entries, the most specific first; empty where the grammar has a dead end. Takes 0.1 to 5 ms.
    """
    state = cursor.at(())
    found = [Expected("end", END_OF_TEXT, 1, b"")] if state.accepting else []
    for token in state.tokens():
        if token >= 256:
            found.append(Expected("token", specials[token - 256], 1, specials[token - 256].encode()))
    first_bytes = [token for token in state.tokens() if token < 256]
    if unfinished:
        found += _rest_of_character(unfinished, first_bytes)
    else:
        found += _Folder(cursor).fold(first_bytes)
    return sorted(found, key=_vagueness)


class _Folder:
    """Turns allowed first bytes into literals and classes."""

    def __init__(self, cursor: Cursor) -> None:
        self._cursor = cursor
        self._opened = 0
        self._probed = 0

    def fold(self, first_bytes: Sequence[int]) -> list[Expected]:
        literals: list[Expected] = []
        groups: dict[State, _Group] = {}
        for byte in first_bytes:
            run, after = self._run((byte,))
            text = _whole_characters(run)
            if len(text) > 1 or (text and byte >= 0x80):
                literals += [_literal(text) for text in self._branches(run, ())]
            else:
                # All first bytes of non-ASCII characters look different; they belong together all the same.
                key = after if byte < 0x80 else State(0, False, (), "character")
                group = groups.setdefault(key, _Group(set(), set()))
                (group.ascii if byte < 0x80 else group.leads).add(byte)
        return literals + self._classes(list(groups.values()))

    def _run(self, path: Path) -> tuple[Path, State]:
        """A path, followed by the bytes that are forced after it; and the state right after the path."""
        after = self._cursor.at(path)
        plain = takewhile(lambda token: token < 256, after.forced[: _MAX_LITERAL - len(path)])
        return (*path, *plain), after

    def _branches(self, path: Path, choices: tuple[frozenset[bytes], ...]) -> list[str]:
        """The literals that begin with a run: followed to the end of the line, or to a choice of characters.

        Args:
            path: the run so far.
            choices: the choices passed on the way; meeting one again means a loop.
        """
        text = _whole_characters(path)
        if "\n" in text:
            return [text[: text.index("\n") + 1]]
        state = self._cursor.at(path)
        tokens = list(state.tokens())
        if (
            state.accepting
            or not 1 < len(tokens) <= _MAX_BRANCHES
            or max(tokens) >= 0x80
            or self._opened >= _MAX_OPENED
        ):
            return [text]
        self._opened += 1
        runs = [self._run((*path, token))[0] for token in tokens]
        choice = frozenset(bytes(run[len(path) :]) for run in runs)
        if choice in choices or all(len(run) == len(path) + 1 for run in runs):
            return [text]
        return [literal for run in runs for literal in self._branches(run, (*choices, choice))]

    def _classes(self, groups: list[_Group]) -> list[Expected]:
        leads = next((group.leads for group in groups if group.leads), set())
        free = leads >= _LEADS and all(map(self._continues_freely, leads))
        if free and (widest := max(groups, key=lambda group: len(group.ascii))).ascii:
            # Free text: its ASCII and its other characters are one class.
            groups = [group for group in groups if group.ascii]
            widest.leads = leads
        return [entry for group in groups for entry in self._described(group, free)]

    def _continues_freely(self, lead: int) -> bool:
        """Whether every second byte that UTF-8 has after this first one is allowed (third ones are not tried)."""
        low, high = _SECOND_BYTES.get(lead, (0x80, 0xBF))
        wanted = (1 << high + 1) - (1 << low)
        return self._cursor.at((lead,)).bits & wanted == wanted

    def _described(self, group: _Group, free: bool) -> list[Expected]:
        codes = group.ascii
        if group.leads and free:
            example = chr(characters.plainest(codes)) if codes else "é"
            return [Expected("class", characters.free(codes), len(codes) + _MANY, example.encode())]
        if group.leads:
            return [self._non_ascii_class(group.leads)]
        spaces = codes & characters.WHITESPACE
        if len(spaces) > 1 and len(codes) < _MAX_SPLIT:
            split = [_class(spaces)]
            return (
                split if codes == spaces else [*split, *self._described(_Group(codes - spaces, set()), False)]
            )
        if len(codes) <= _MAX_LISTED:
            return [_literal(chr(byte)) for byte in sorted(codes)]
        return [_class(codes)]

    def _non_ascii_class(self, leads: set[int]) -> Expected:
        points: list[int] = []
        complete = self._characters((), sorted(leads), points)
        ranges = characters.ranges(points)
        if complete and len(ranges) <= _MAX_RANGES:
            text = "[" + "".join(ranges) + "]"
        else:
            text = "some non-ASCII characters"
        example = chr(points[0]).encode() if points else bytes([min(leads)])
        return Expected("class", text, max(len(points), 2), example)

    def _characters(self, path: Path, bytes_next: Sequence[int], points: list[int]) -> bool:
        """Collect the characters that begin with a path; False when there are too many to look at."""
        for byte in bytes_next:
            longer = (*path, byte)
            text = _whole_characters(longer)
            if text:
                points.append(ord(text))
                continue
            self._probed += 1
            if self._probed > _MAX_PROBED:
                return False
            if not self._characters(longer, list(self._cursor.at(longer).tokens()), points):
                return False
        return True


def _vagueness(entry: Expected) -> tuple[int, int]:
    """Sorts long literals first, then single characters, tokens and the end, then classes by size."""
    return entry.count, -min(len(entry.text), 2) if entry.kind == "literal" else 0


def _literal(text: str) -> Expected:
    return Expected("literal", text, 1, text.encode())


def _class(codes: set[int]) -> Expected:
    return Expected("class", characters.one_of(codes), len(codes), bytes([characters.plainest(codes)]))


def _rest_of_character(unfinished: bytes, bytes_next: Sequence[int]) -> list[Expected]:
    if not bytes_next:
        return []
    begun = " ".join(f"{byte:02X}" for byte in unfinished)
    text = f"the rest of the character that begins with byte{'s' * (len(unfinished) > 1)} {begun}"
    return [Expected("class", text, len(bytes_next), bytes(bytes_next[:1]))]


def _whole_characters(path: Path) -> str:
    """The path as text, without the bytes of a last character that is not whole."""
    return bytes(path).decode("utf-8", "ignore")
