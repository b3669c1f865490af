"""A person's rules for commands and variables, from TOML files.

```toml
[permissions]
allow = ["pytest*", "ruff check*"]   # run without a question
ask = ["git commit*"]                # asked about, also with --yes
deny = ["git push*"]                 # never

[environment]
pass = ["NPM_TOKEN"]                 # given to commands though its name looks like a secret's
```

A pattern is held against each simple command of a line: its words, without their quotes, joined by single blanks.
`*` stands for anything, `?` for one character, `[ab]` for one of them. What a command writes by redirection is
held against patterns as `> PATH`. Deny wins over ask, ask over allow.

The file in the repository may come from a stranger: its `allow` never lifts more than the question about a command
that may change files, and it has no `[environment]`. The file in the home may also allow what changes other
machines. Nothing allows what is dangerous.
"""

from __future__ import annotations

import os
import re
import tomllib
from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from fnmatch import fnmatchcase
from pathlib import Path
from typing import Any

from constrained_agent.errors import UserError

REPOSITORY_NAME = ".constrained-agent.toml"
HOME_NAME = Path("constrained-agent", "config.toml")

MAX_BYTES = 100_000
"""Of a file of rules: some thousand patterns."""


@dataclass(frozen=True, slots=True)
class Rules:
    """What a person has said about commands beforehand.

    Attributes:
        allow: from the home: commands that run without a question, also those that change other machines.
        repository_allow: from the repository: the same for commands that may change files.
        ask, deny: from both.
        passed: variables that commands get although they look like secrets.
    """

    allow: tuple[str, ...] = ()
    repository_allow: tuple[str, ...] = ()
    ask: tuple[str, ...] = ()
    deny: tuple[str, ...] = ()
    passed: tuple[str, ...] = ()


def fits(patterns: Iterable[str], texts: Iterable[str]) -> str | None:
    """The first pattern that fits one of the texts."""
    known = [re.sub(r"\s+", " ", text) for text in texts]
    return next((one for one in patterns if any(fnmatchcase(text, one) for text in known)), None)


def load(root: Path, environment: Mapping[str, str]) -> Rules:
    """The rules for a repository, from its own file and from the person's; a file that is not there has none.

    Args:
        environment: where `XDG_CONFIG_HOME` and `HOME` are looked up.

    Raises:
        UserError: a file cannot be read, is no TOML, or says something that is not known; with file and line.
    """
    home, repository = home_file(environment), root / REPOSITORY_NAME
    own, others = _read(home, ("permissions", "environment")), _read(repository, ("permissions",))
    return Rules(
        allow=own["allow"],
        repository_allow=others["allow"],
        ask=own["ask"] + others["ask"],
        deny=own["deny"] + others["deny"],
        passed=own["pass"],
    )


def home_file(environment: Mapping[str, str]) -> Path:
    """Where the person's own rules lie."""
    base = environment.get("XDG_CONFIG_HOME", "")
    home = environment.get("HOME") or os.path.expanduser("~")
    return (Path(base) if os.path.isabs(base) else Path(home, ".config")) / HOME_NAME


_KEYS = {"permissions": ("allow", "ask", "deny"), "environment": ("pass",)}


def _read(path: Path, sections: tuple[str, ...]) -> dict[str, tuple[str, ...]]:
    """All lists of a file by their keys; those that it lacks are empty."""
    found: dict[str, tuple[str, ...]] = {key: () for keys in _KEYS.values() for key in keys}
    text = _text(path)
    for section, table in _parsed(path, text).items():
        if section not in sections:
            known = ", ".join(f"[{name}]" for name in sections)
            why = " (only the file in the home may have it)" if section in _KEYS else ""
            raise _error(path, text, section, f"[{section}] is not known here{why}; there is {known}")
        if not isinstance(table, dict):
            raise _error(path, text, section, f"{section}: a table is needed: [{section}]")
        for key, value in table.items():
            if key not in _KEYS[section]:
                known = ", ".join(_KEYS[section])
                raise _error(path, text, key, f"{section}.{key} is not known; there are {known}")
            found[key] = _strings(path, text, key, value)
    return found


def _text(path: Path) -> str:
    try:
        with path.open("rb") as file:
            data = file.read(MAX_BYTES + 1)
        if len(data) > MAX_BYTES:
            raise UserError(f"{path}: larger than {MAX_BYTES:,} bytes, which no file of rules is")
        return data.decode("utf-8")
    except FileNotFoundError:
        return ""
    except (OSError, UnicodeDecodeError) as error:
        raise UserError(f"{path}: the rules cannot be read: {error}") from None


def _parsed(path: Path, text: str) -> dict[str, Any]:
    try:
        return tomllib.loads(text)
    except tomllib.TOMLDecodeError as error:
        place = re.search(r"\(at line (\d+), column (\d+)\)|\(at end of document\)", str(error))
        reason = str(error)[: place.start()].strip() if place else str(error)
        line = place[1] if place and place[1] else str(text.count("\n") + 1)
        raise UserError(f"{path}:{line}: no TOML: {reason}") from None


def _strings(path: Path, text: str, key: str, value: object) -> tuple[str, ...]:
    if not isinstance(value, list):
        raise _error(path, text, key, f'{key}: a list of patterns is needed: {key} = ["…"], not {value!r}')
    for one in value:
        if not isinstance(one, str) or not one.strip():
            raise _error(path, text, key, f"{key}: a text that is not empty is needed, not {one!r}")
    return tuple(value)


def _error(path: Path, text: str, key: str, message: str) -> UserError:
    """With the line where the key seems to stand: TOML's reader does not say."""
    lines = text.splitlines()
    pattern = re.compile(rf"\s*(?:\[+\s*)?[\"']?{re.escape(key)}[\"']?\s*(?:[=.\]]|$)")
    line = next((number for number, one in enumerate(lines, 1) if pattern.match(one)), 1)
    return UserError(f"{path}:{line}: {message}")
