"""Which commits of this program made a comparison: another one on the way is no error, but a person should know."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from constrained_agent.evals.compare.facts import machines
from constrained_agent.evals.compare.records import Folder


def several(facts: Mapping[str, Any]) -> str | None:
    """A warning if a comparison was made by several commits; None if by one.

    Args:
        facts: as `run.json` has them.
    """
    found = list(dict.fromkeys(map(_program, machines(facts))))
    if len(found) < 2:
        return None
    return (
        f"made by different programs ({'; '.join(found)}); --rejudge judges all that they wrote with this one"
    )


def take_down(folder: Folder, circumstances: Mapping[str, Any]) -> None:
    """Add the circumstances under which a comparison is gone on with, if the program is another one than before.

    Raises:
        UserError: the folder cannot be read or written.
    """
    facts = folder.facts()
    before = machines(facts)
    if _program(circumstances) not in map(_program, before):
        folder.begin({**facts, "circumstances": [*before, circumstances]})


def _program(one: Mapping[str, Any]) -> str:
    version = one["versions"].get("constrained-agent", "of an unknown version")
    commit = f", commit {one['commit']}{' and changes' if one['dirty'] else ''}" if one["commit"] else ""
    return f"constrained-agent {version}{commit}"
