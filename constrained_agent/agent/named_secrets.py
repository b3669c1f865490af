"""What stands behind a name that ends in PASSWORD, SECRET, TOKEN or the like: a secret, or only code. Pure.

A value of six characters or more counts as a secret, unless it is plainly something else: a reference (`$PASSWORD`,
`settings.password`, `get_password()`), a type (`password: string`), a placeholder (`<your password>`, `changeme`,
`***`), a path, or a text with blanks in it. How much it takes depends on how it stands there:

    `DB_PASSWORD=…`            nothing more: such lines are settings, not code
    `"password": "…"`          nothing more for a password; letters and digits for a token: `token: "word"` is common
    `password=…`, `token: …`   digits, for this may be code; letters alone only on a line of their own (`password: …`)

Not covered: passwords with blanks, tokens of letters alone, values on another line than their name, what follows the
first 200 characters of a value.
"""

from __future__ import annotations

import re
from collections.abc import Iterator

MARK = "***"
"""Stands for a secret."""

_MIN_CHARS = 6
_NAME = r"(?P<name>passw(?:or)?d|secret|token|api[_-]?key|private[_-]?key)"
_NAMED = re.compile(
    rf"{_NAME}(?P<shut>\\?[\"'`]?\]?)"
    # A type may stand between a name and its value: password: str = "..."
    r"(?P<sign>[ \t]{0,4}(?::[ ]?[A-Za-z_&][\w.\[\]| ]{0,40}?=[ ]?(?=[bfru]{0,2}[\"'`])"
    r"|:=|=>|=(?![=~])|:(?![:=]))[ \t]{0,4})"
    # Looked at, not taken: there may be a further name inside the value.
    r"(?=[bfru]{0,2}(?P<quote>\\?[\"'`])(?P<quoted>(?:(?!(?P=quote))(?:\\.|[^\n\\])){6,200})"
    r"|(?P<bare>(?:[^\s\"'`;\\]|\\(?![nrt\"'])){6,200}))",
    re.IGNORECASE,
)
_ENDS_IN_NAME = re.compile(rf"{_NAME}\Z", re.IGNORECASE)
_NAME_IN_IT = re.compile(r"passw(?:or)?d|secret|token|key|credential", re.IGNORECASE)
_PLACEHOLDER = re.compile(
    r"example|change[-_]?(?:me|this)|placeholder|your[-_]|redacted|dummy|(?:replace|insert|fill)[-_]|todo|\.\.\.|…",
    re.IGNORECASE,
)
_TEMPLATE = re.compile(
    r"\$\{|\$\(|\A\$[A-Za-z_]\w*\Z|\A%\w+%\Z|\{[\w.!:()\[\] -]*\}|%\(|%[sdr]|<[^<>]*>|\A\[.*\]\Z|\A[:@][A-Za-z_.]+\Z"
)
_PLACE = re.compile(r"[a-z][a-z0-9+.-]*://|(?:~|\.{1,2})?(?:/[A-Za-z_.][\w.-]*)+/?\Z|[A-Za-z]:\\")
_TYPE = re.compile(
    r"(?:u?int|float|complex|base|utf|sha|md|uuid|hex|bytes?|char|str)[-_]?\d+[A-Za-z_-]*", re.IGNORECASE
)
_WORD = re.compile(
    r"string|object|number|boolean|integer|double|complex|bytearray|frozenset|memoryview|unknown|symbol|bigint|buffer"
    r"|varchar|keyword|literal|undefined|required|optional|nullable|sensitive|hidden|masked|always|default|enabled"
    r"|disabled|invalid|missing|nothing|expired|revoked|secure|datetime",
    re.IGNORECASE,
)
"""Types and states, which stand where a value could."""

_DOTTED = re.compile(r"[A-Za-z_$]\w*(?:(?:\.|->|::|\?\.)[A-Za-z_$#]\w*)+[!?]?")
_IDENTIFIER = re.compile(r"[A-Za-z_$][\w$]*")
_CONSTANT = re.compile(r"[A-Z][A-Z_]*")
_CALL = re.compile(r"[A-Za-z_$][\w.$:!?>-]*[(\[{<]")
_CODE = re.compile(r"->|=>|\|\||&&|[=!<>+*-]=|\?\.|\?\?")
_GOES_ON = re.compile(r"[ \t]+(?:[-+*/%|&<>=?.(\[{]|(?:if|or|and|for|in|is|not|as|else|unless|with)\b)")
_NUMBER = re.compile(r"0[xX][0-9A-Fa-f_]+|#[0-9A-Fa-f]{3,8}")  # or a colour
_RUN = re.compile(r"[A-Za-z0-9]+")
_TURN = re.compile(r"(?<=[0-9])[A-Za-z]|(?<=[A-Za-z])[0-9]")
_LINE_BEFORE = re.compile(r"[\s\d│|+>~-]*[\w.-]*")
_LINE_AFTER = re.compile(r"[ \t]*(?:#.*)?(?:\r?\n|\Z)")


def turns(text: str) -> int:
    """How often letters and digits take turns: in words hardly ever, in random values all the time."""
    return len(_TURN.findall(text))


def spans(text: str) -> Iterator[tuple[int, int]]:
    """Where the values of such names stand that are secrets, in order: start and end. Cost: as `Masker.text`."""
    done = 0
    for found in _NAMED.finditer(text):
        span = _quoted(found) if found["quoted"] is not None else _bare(found)
        if span is not None and span[0] >= done:
            done = span[1]
            yield span


def is_secret(name: str, value: str) -> bool:
    """Whether a value is one, behind a name: both are those of a JSON object's member, without quotes."""
    found = _ENDS_IN_NAME.search(name)
    return found is not None and _is_literal(_kind(found["name"]), value)


def _kind(name: str) -> str:
    """`password`, `token`, or `key` for the others: what stands behind them looks different."""
    name = name.lower()
    return "password" if name.startswith("passw") else "token" if name == "token" else "key"


def _quoted(found: re.Match[str]) -> tuple[int, int] | None:
    return found.span("quoted") if _is_literal(_kind(found["name"]), found["quoted"]) else None


def _is_literal(kind: str, value: str) -> bool:
    """Whether a text in quotes is a secret."""
    if _is_something_else(value) or any(char.isspace() for char in value):
        return False
    if kind == "token":
        return _is_mixed(value)
    if any(char.isdigit() for char in value):
        return kind == "password" or any(char.isalpha() for char in value)
    return kind == "password" or value.isalpha()


def _bare(found: re.Match[str]) -> tuple[int, int] | None:
    """The span of a value without quotes, if it is a secret."""
    start = found.start("bare")
    setting = found["name"].isupper() and found["shut"] == "" and found["sign"] == "="
    value = found["bare"] if setting else found["bare"].split(",")[0]
    value = value.rstrip(")]},")
    enclosed = start + len(value) < found.end("bare")  # brackets or a comma follow
    if value[:1] in tuple("$%{<[(") or _CALL.match(value) or _is_something_else(value):
        return None
    if not (_is_setting(value) if setting else _is_outside_code(found, value, enclosed=enclosed)):
        return None
    return start, start + len(value)


def _is_setting(value: str) -> bool:
    """Whether a value behind `NAME=` is a secret: it is, unless it names a constant or a member of something."""
    return any(char.isdigit() for char in value) or not (
        _CONSTANT.fullmatch(value) or _DOTTED.fullmatch(value)
    )


def _is_outside_code(found: re.Match[str], value: str, *, enclosed: bool) -> bool:
    """Whether a value that might be an expression is a secret.

    Args:
        enclosed: a bracket or a comma follows, as behind an argument.
    """
    if value[0] in "&*@|>#!.-" or _CODE.search(value) or _DOTTED.fullmatch(value) or _TYPE.fullmatch(value):
        return False
    if _NAME_IN_IT.search(value) and _IDENTIFIER.fullmatch(value):
        return False
    after = found.start("bare") + len(value)
    if _GOES_ON.match(found.string, after):
        return False
    if enclosed:
        return turns(value) >= 3 and "_" not in value
    if _kind(found["name"]) != "password":
        return _is_mixed(value)
    if any(char.isdigit() for char in value):
        return True
    if value.isalpha():
        return value.islower() and _is_line_of_its_own(found, after)
    return any(char in "!@#$^~" for char in value[:-1])


def _is_line_of_its_own(found: re.Match[str], after: int) -> bool:
    """Whether a line says `name: value` and nothing else, as YAML does; numbers and signs of listings aside."""
    line = found.string.rfind("\n", 0, found.start()) + 1
    alone = _LINE_BEFORE.fullmatch(found.string, line, found.start()) is not None
    return alone and found["sign"] == ": " and _LINE_AFTER.match(found.string, after) is not None


def _is_mixed(value: str) -> bool:
    """Whether letters and digits are mixed as no word mixes them."""
    if _TYPE.fullmatch(value) or _NUMBER.fullmatch(value):
        return False
    runs = [run for run in _RUN.findall(value) if not (run.isalpha() or run.isdigit())]
    digits = sum(char.isdigit() for run in runs for char in run)
    return turns(value) >= 2 or digits >= 4


def _is_something_else(value: str) -> bool:
    """Whether a value is plainly none that anyone should not see."""
    if len(value) < _MIN_CHARS or MARK in value or len(set(value)) <= 2:
        return True
    if sum(char.isalnum() for char in value) < 3 or _WORD.fullmatch(value):
        return True
    if _PLACEHOLDER.search(value) or _TEMPLATE.search(value) or _PLACE.match(value):
        return True
    if any(char.isdigit() for char in value):
        return False
    return _NAME_IN_IT.search(value) is not None or _DOTTED.fullmatch(value) is not None
