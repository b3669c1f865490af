"""What is known of programs and files by their names alone: the tables in `tables.toml`."""

from __future__ import annotations

import tomllib
from collections.abc import Mapping
from dataclasses import dataclass
from functools import cache
from pathlib import Path
from typing import Any


@dataclass(frozen=True, slots=True)
class Tool:
    """The words of a tool that talks to other machines; patterns, one of which must fit a whole word.

    Attributes:
        asks: words that change nothing elsewhere; all others may. Empty where `changes` decides.
        changes: words that change something elsewhere; no other does.
        loses: words that delete.
        reason: what a change is.
    """

    asks: str
    changes: str
    loses: str
    reason: str


@cache
def _tables() -> Mapping[str, Any]:
    return tomllib.loads(Path(__file__).with_name("tables.toml").read_text(encoding="utf-8"))


def names(section: str, key: str) -> list[str]:
    """The words of one list."""
    text: str = _tables()[section][key]
    return text.split()


def always() -> dict[str, str]:
    """Programs that are dangerous whatever follows, with the reason."""
    return {name: reason for reason, text in _tables()["always"].items() for name in text.split()}


@cache
def tools() -> Mapping[str, Tool]:
    """Tools that talk to other machines, by name."""
    found: dict[str, Tool] = {}
    for row in _tables()["tool"]:
        asks, changes, loses = ("|".join(row.get(key, "").split()) for key in ("asks", "changes", "loses"))
        tool = Tool(asks, changes, loses, row.get("reason", "changes something on another machine"))
        found.update(dict.fromkeys(row["names"].split(), tool))
    return found
