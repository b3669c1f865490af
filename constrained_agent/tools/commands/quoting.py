"""What quotes, backslashes, braces and `%` of the shell stand for: text in, text out."""

from __future__ import annotations

import re
from fnmatch import fnmatchcase

from constrained_agent.tools.commands.scene import MAX_FIELDS, OUTSIDE, UNKNOWN

OPEN, COMMA, CLOSE, BREAK, QUOTED = "\ue001\ue002\ue003\ue004\ue005"
"""Marks in a word while it is expanded: live braces and commas, a border between words, the place of quotes."""

MARKS = re.compile("[\ue001-\ue005]")

_SIMPLE_ESCAPES = {
    "a": "\a",
    "b": "\b",
    "e": "\x1b",
    "E": "\x1b",
    "f": "\f",
    "n": "\n",
    "r": "\r",
    "t": "\t",
    "v": "\v",
    **{one: one for one in "\\'\"?"},
}
_ESCAPE = re.compile(
    r"\\(x[0-9a-fA-F]{1,2}|u[0-9a-fA-F]{1,4}|U[0-9a-fA-F]{1,8}|0?[0-7]{1,3}|c.|.)", re.DOTALL
)
_LIVE = str.maketrans({"{": OPEN, ",": COMMA, "}": CLOSE})
_DEAD = str.maketrans({OPEN: "{", COMMA: ",", CLOSE: "}", QUOTED: None})


def unescape(text: str) -> str:
    r"""The text of `$'...'`, of `printf`'s format and of `echo -e`: `\x72` is `r`."""

    def one(match: re.Match[str]) -> str:
        body = match[1]
        if body[0] in "xuU" and len(body) > 1:
            number = int(body[1:], 16)
        elif body[0] in "01234567":
            number = int(body, 8)
        elif body[0] == "c" and len(body) > 1:
            number = ord(body[1]) & 0x1F
        else:
            return _SIMPLE_ESCAPES.get(body, match[0])
        known = 0 < number < 0x110000 and not 0xD800 <= number < 0xE000 and not MARKS.match(chr(number))
        return chr(number) if known else ""

    return _ESCAPE.sub(one, text)


def bare(text: str) -> str:
    """Text outside quotes: backslashes are taken, braces and commas become live marks."""
    pieces = re.split(r"\\(\n|.)", text, flags=re.DOTALL)
    for number, piece in enumerate(pieces):
        if number % 2 == 0:
            pieces[number] = piece.translate(_LIVE)
        else:
            pieces[number] = "" if piece == "\n" else piece + QUOTED
    return "".join(pieces)


def double_quoted(text: str) -> str:
    """Text inside double quotes (and here-documents), where few characters can be escaped."""
    return re.sub(
        r'\\(\n|[$`"\\])', lambda match: "" if match[1] == "\n" else match[1], text, flags=re.DOTALL
    )


def fields(marked: str) -> list[str]:
    """A word with marks to the words that a command gets: braces expanded, split, marks gone."""
    words: list[str] = []
    for alternative in _braces(marked):
        for field in alternative.split(BREAK):
            plain = field.translate(_DEAD)
            if plain or QUOTED in field:
                words.append(plain)
        if len(words) > MAX_FIELDS:
            return [*words[:MAX_FIELDS], UNKNOWN]
    return words


def _braces(text: str) -> list[str]:
    """`a{b,c}d` to `abd` and `acd`; braces without a comma stay as they are."""
    start = text.find(OPEN)
    if start < 0:
        return [text]
    parts, end = _alternatives(text, start + 1)
    if end < 0:
        return [f"{text[:start]}{{{rest}" for rest in _braces(text[start + 1 :])]
    if len(parts) > 1:
        middles = [one for part in parts for one in _braces(part)]
    else:
        middles = _sequence(parts[0]) or [f"{{{one}}}" for one in _braces(parts[0])]
    tails = _braces(text[end + 1 :])
    if len(middles) * len(tails) > MAX_FIELDS:
        return [UNKNOWN]
    return [text[:start] + middle + tail for middle in middles for tail in tails]


def _alternatives(text: str, start: int) -> tuple[list[str], int]:
    """What stands between the commas of a brace that opened before `start`, and where it closes (-1: nowhere)."""
    parts, depth, begin = [], 0, start
    for mark in re.finditer(f"[{OPEN}{COMMA}{CLOSE}]", text[start:]):
        place = start + mark.start()
        if mark[0] == OPEN:
            depth += 1
        elif depth == 0:
            parts.append(text[begin:place])
            begin = place + 1
            if mark[0] == CLOSE:
                return parts, place
        elif mark[0] == CLOSE:
            depth -= 1
    return parts, -1


def _sequence(inner: str) -> list[str]:
    """`1..3` and `a..c`; empty for anything else, and for one too long to write out."""
    if numbers := re.fullmatch(r"(-?\d{1,6})\.\.(-?\d{1,6})", inner):
        first, last = int(numbers[1]), int(numbers[2])
    elif letters := re.fullmatch(r"([A-Za-z])\.\.([A-Za-z])", inner):
        first, last = ord(letters[1]), ord(letters[2])
    else:
        return [UNKNOWN, UNKNOWN] if ".." in inner and COMMA not in inner else []
    step = 1 if last >= first else -1
    values = range(first, last + step, step)
    if len(values) > MAX_FIELDS:
        return [UNKNOWN, UNKNOWN]
    return [str(value) if inner[-1].isdigit() else chr(value) for value in values]


_MAX_TRIMMED_CHARS = 1_000


def trimmed(value: str, sign: str, pattern: str) -> str:
    """`${X%pattern}` and its kin: a value without its end or its beginning."""
    stands_for_others = re.search(r"[*?\[]", value) is not None
    fits = value.endswith(pattern) if "%" in sign else value.startswith(pattern)
    if (
        UNKNOWN in value
        or OUTSIDE in value
        or len(value) > _MAX_TRIMMED_CHARS
        or (stands_for_others and (not fits or re.search(r"[*?]", pattern)))
    ):
        return UNKNOWN
    cuts = range(len(value) + 1)
    if "%" in sign:
        ends = [value[:cut] for cut in cuts if fnmatchcase(value[cut:], pattern)]
        return (ends[0] if sign == "%%" else ends[-1]) if ends else value
    ends = [value[cut:] for cut in cuts if fnmatchcase(value[:cut], pattern)]
    return (ends[-1] if sign == "##" else ends[0]) if ends else value
