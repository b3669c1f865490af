"""Secrets in what is written down: each becomes `***`, and the last four characters of a long one.

Covered: keys that are known by their form (GitHub, OpenAI, Anthropic, AWS, Slack, Google, Hugging Face, GitLab, npm,
PyPI, Stripe, JSON web tokens), private keys, passwords in addresses, what stands behind `Bearer`, long random values
behind names like `password` or `token`, shorter ones behind names that end so (`agent.named_secrets` says which), and
the values of environment variables with such names.

Not covered: what is encoded once more (base64 of a key), what is split over several texts, passwords behind no such
name that no variable of this process holds, and the middle of a private key whose head was not shown.
"""

from __future__ import annotations

import json
import os
import re
from collections.abc import Iterable, Mapping
from typing import Any

from constrained_agent.agent import named_secrets
from constrained_agent.agent.named_secrets import MARK
from constrained_agent.tools.environment import names_secret

_MIN_CHARS_FOR_TAIL, _TAIL_CHARS = 12, 4
_MIN_VALUE_CHARS = 8  # of a variable's value: shorter ones stand everywhere ("true", "1234")
_MIN_LINE_CHARS = 16  # of one line of a value of several, such as a key
_MIN_RANDOM_CHARS, _MIN_TURNS = 16, 3  # of a value behind a name; letters and digits taking turns
_MIN_WORD_CHARS = 16  # of a value of letters alone; a shorter one may be a word like "localhost"

_FORMS = re.compile(
    r"(?<![A-Za-z0-9_])(?:"
    r"github_pat_[A-Za-z0-9_]{20,}"
    r"|gh[opsur]_[A-Za-z0-9]{20,}"
    r"|sk-(?=[A-Za-z_-]{0,60}\d)[A-Za-z0-9_-]{20,}"  # sk-ant- and sk-proj- too; a CSS class has no digit so early
    r"|(?:AKIA|ASIA)[0-9A-Z]{16}(?![0-9A-Za-z])"
    r"|xox[a-z]-[A-Za-z0-9-]{10,}|xapp-[A-Za-z0-9-]{10,}"
    r"|AIza[0-9A-Za-z_-]{30,}"
    r"|hf_[A-Za-z0-9]{30,}|glpat-[A-Za-z0-9_-]{20,}|npm_[A-Za-z0-9]{36}|pypi-[A-Za-z0-9_-]{50,}"
    r"|[rs]k_(?:live|test)_[A-Za-z0-9]{20,}"
    r"|eyJ[A-Za-z0-9_-]{10,}\.[A-Za-z0-9_-]{10,}(?:\.[A-Za-z0-9_-]*)?"
    r")"
)
_PRIVATE_KEY = re.compile(
    r"(?P<head>-----BEGIN [A-Z0-9 ]{0,40}PRIVATE KEY[A-Z ]{0,20}-----)"
    r"(?P<body>(?:(?!-----)[\s\S]){0,20000})(?P<end>-----END [A-Z0-9 ]{0,60}-----)?"
)
_KEY_LINE = re.compile(r"[A-Za-z0-9+/=]{30,}")
_ADDRESS = re.compile(  # brackets and backslashes cannot stand in one: a template, a pattern
    r"(?P<before>://[^\s/:@\"'\[\]{}<>\\]{0,200}:)(?P<value>[^\s/@\"'\[\]{}<>\\]{4,200})(?=@)"
)
_BEARER = re.compile(
    r"(?P<before>\b(?:bearer|basic)\s{1,4})(?P<value>[A-Za-z0-9._~+/=-]{16,})", re.IGNORECASE
)
_SECRET_NAME = r"(?:passw(?:or)?d|passphrase|secret|token|credentials?|(?:api|access|private|auth)[_-]?key)"
_ASSIGNED = re.compile(
    rf"(?P<before>{_SECRET_NAME}[A-Za-z0-9_]{{0,30}}[\"'\\]{{0,2}}\]?"  # its name, maybe in quotes or brackets
    r"\s{0,4}(?::=|=>|[:=])\s{0,4}[bfru\\]?[\"'\\]{0,2})"
    r"(?P<value>[A-Za-z0-9_+/=~!@#$%^&.-]{16,})",
    re.IGNORECASE,
)
_RUN = re.compile(r"[A-Za-z0-9+/]{8,}")
_DOTTED = re.compile(r"[A-Za-z_]\w*(?:\.[A-Za-z_]\w*)+")
_VARIABLE = re.compile(
    r"SECRET|PASSWORD|PASSWD|PASSPHRASE|CREDENTIAL|API_?KEY|ACCESS_?KEY|PRIVATE_?KEY|TOKEN$|_(?:PAT|PWD|AUTH|KEY)$",
    re.IGNORECASE,
)

_WHERE = re.compile(r"_(?:SOCK|FILE|PATH|DIR|HOME|CMD|COMMAND|ASKPASS)$", re.IGNORECASE)
"""Ends of names that say where a secret is, or who gives it."""


class Masker:
    """Takes secrets out of texts and records.

    Args:
        environment: names to values; those whose names look like a secret's are looked for wherever they stand.
    """

    def __init__(self, environment: Mapping[str, str] | None = None) -> None:
        values = sorted(_values(environment or {}), key=len, reverse=True)
        self._values = re.compile("|".join(map(re.escape, values))) if values else None

    def text(self, text: str) -> str:
        """The text with every secret masked; the same text if there is none. Cost: some 0.1 ms for 1,000 characters."""
        if self._values is not None:
            text = self._values.sub(lambda found: _masked(found[0]), text)
        if "PRIVATE KEY" in text:
            text = _PRIVATE_KEY.sub(_without_key, text)
        text = _FORMS.sub(lambda found: _masked(found[0]), text)
        text = _ADDRESS.sub(_without_value, text)
        text = _BEARER.sub(_without_value, text)
        text = _ASSIGNED.sub(
            lambda found: _without_value(found) if _is_random(found["value"]) else found[0], text
        )
        return _without_named(text)

    def record(self, fields: Mapping[str, Any]) -> dict[str, Any]:
        """A JSON object with every string in it masked.

        Where something was masked, the object gets `masked: true`, and so does each object in a list on the way to
        it (a call, a change). Its `ids` and `forced_chars` become null: ids are the text once more, and the lengths
        are those of the text as it was.
        """
        record, changed = self._value(dict(fields))
        assert isinstance(record, dict)
        if changed:
            record["masked"] = True
            record.update({key: None for key in ("ids", "forced_chars") if key in record})
        return record

    def _value(self, value: Any) -> tuple[Any, bool]:
        """A JSON value, masked, and whether that changed anything."""
        if isinstance(value, str):
            masked = self.text(value)
            return masked, masked != value
        if isinstance(value, dict):
            pairs = {key: self._member(key, item) for key, item in value.items()}
            return {key: item for key, (item, _) in pairs.items()}, any(
                changed for _, changed in pairs.values()
            )
        if isinstance(value, list):
            items = [self._value(item) for item in value]
            return [_flagged(item, changed) for item, changed in items], any(changed for _, changed in items)
        return value, False

    def _member(self, key: str, value: Any) -> tuple[Any, bool]:
        """A member of an object: `"password": "..."` is an assignment, too."""
        if isinstance(value, str) and re.search(_SECRET_NAME, key, re.IGNORECASE) and _is_random(value):
            return _masked(value), True
        if isinstance(value, str) and named_secrets.is_secret(key, value):
            return MARK, True
        return self._value(value)


def _flagged(item: Any, changed: bool) -> Any:
    return {**item, "masked": True} if changed and isinstance(item, dict) else item


def _masked(secret: str) -> str:
    return MARK + (secret[-_TAIL_CHARS:] if len(secret) >= _MIN_CHARS_FOR_TAIL else "")


def _without_value(found: re.Match[str]) -> str:
    if found["value"].startswith(MARK):
        return found[0]
    return found["before"] + _masked(found["value"])


def _without_named(text: str) -> str:
    """A text without the values of names; without their ends, too, which of a short one would say much."""
    pieces, at = [], 0
    for start, end in named_secrets.spans(text):
        pieces += [text[at:start], MARK]
        at = end
    return "".join([*pieces, text[at:]])


def _without_key(found: re.Match[str]) -> str:
    """A private key without its body; one that only names the markers (a program that looks for them) stays."""
    body = found["body"]
    lines = list(_KEY_LINE.finditer(body))
    if not lines:
        return found[0]
    # Of a key that was cut off, what follows its last long line is some other text.
    rest = "" if found["end"] else body[lines[-1].end() :]
    return f"{found['head']}{MARK}{found['end'] or ''}{rest}"


def _is_random(value: str) -> bool:
    """Whether a value looks drawn, not written: long, and letters and digits take turns in it."""
    if len(value) < _MIN_RANDOM_CHARS or value.startswith(MARK) or _DOTTED.fullmatch(value):
        return False
    return any(named_secrets.turns(run) >= _MIN_TURNS and len(set(run)) >= 6 for run in _RUN.findall(value))


def _values(environment: Mapping[str, str]) -> Iterable[str]:
    """What to look for: the values, their single lines, and how they stand inside a JSON string."""
    for name, value in environment.items():
        named = _VARIABLE.search(name) or (names_secret(name) and not _WHERE.search(name))
        if not named or not _is_secret(value):
            continue
        yield value
        yield from (line for line in value.splitlines() if len(line) >= _MIN_LINE_CHARS)
        yield json.dumps(value, ensure_ascii=False)[1:-1]


def _is_secret(value: str) -> bool:
    """Whether a value can be looked for: no word that stands everywhere, and no path of a file with the secret."""
    if len(value) < _MIN_VALUE_CHARS or (value.isalpha() and len(value) < _MIN_WORD_CHARS):
        return False
    return not (value.startswith(("/", "~", ".")) and os.path.lexists(os.path.expanduser(value)))
