"""What a report says of how a comparison was made, from its `run.json`; alike in Markdown and HTML."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any


def machines(facts: Mapping[str, Any]) -> list[Mapping[str, Any]]:
    """The circumstances of each part; a comparison that was run in one piece has one."""
    found = facts["circumstances"]
    return list(found) if isinstance(found, list) else [found]


def machine(one: Mapping[str, Any]) -> str:
    """One of `machines` in a line, but for its command."""
    versions = ", ".join(f"{name} {version}" for name, version in one["versions"].items())
    commit = f", commit {one['commit']}{' and changes' if one['dirty'] else ''}" if one["commit"] else ""
    return (
        f"{one['date']}, {one['machine']}, {one['device']}, load {one['load']} at the start; {versions}, "
        f"Python {one['python']}{commit}."
    )


def systems(facts: Mapping[str, Any]) -> str:
    """The operating systems of `machines`."""
    return " and ".join(dict.fromkeys(one["machine"].split(",")[0] for one in machines(facts)))


def asked(facts: Mapping[str, Any]) -> str:
    """What was asked for, in a line."""
    sampling = ", ".join(f"{name} {value}" for name, value in facts["sampling"].items())
    return (
        f"Model {facts['model']}; {sampling}; {facts['max_tokens']} tokens an answer (what takes more is never "
        f"right); samples of each item: {facts['samples']}, seed {facts['seed']}; "
        f"drafts {'on' if facts['drafts'] else 'off'}."
    )
