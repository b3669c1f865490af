"""Joins the folders of one comparison that was run in parts on several machines."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from constrained_agent.errors import UserError
from constrained_agent.evals.compare.facts import machines
from constrained_agent.evals.compare.records import Folder, Record, same

_OF_A_SHARD = ("schema", "shard", "fingerprint", "circumstances", "n_items")
"""Facts in which parts of one comparison may differ: machines may be others, versions and weights may not."""


def merge(parts: Sequence[Folder], into: Folder) -> list[Record]:
    """Put the records of all parts into a new folder.

    Raises:
        UserError: the parts are not of one comparison, two of them have an item with different records, or there is
            a comparison in the new folder already.
    """
    if into.exists:
        raise UserError(f"{into.path} holds a comparison already: name a new folder")
    facts = [part.facts() for part in parts]
    for part, found in zip(parts[1:], facts[1:], strict=True):
        if differing := [key for key in _common(facts[0] | found) if found.get(key) != facts[0].get(key)]:
            key = differing[0]
            raise UserError(
                f"{part.path} and {parts[0].path} are not of one comparison: {key} is {found.get(key)!r} in one and "
                f"{facts[0].get(key)!r} in the other"
            )
    first = _first_records(parts)
    joined = {key: facts[0][key] for key in _common(facts[0])}
    joined["n_items"] = facts[0]["n_all_items"]
    joined["circumstances"] = [one for found in facts for one in machines(found)]
    joined["shard"] = None
    into.begin(joined)
    for record, part in first.values():
        into.take_transcripts(part, [record])
    into.rewrite(first[id_][0] for id_ in sorted(first))
    return [record for record, _ in first.values()]


def _first_records(parts: Sequence[Folder]) -> dict[str, tuple[Record, Folder]]:
    """Each record with the first part that has it."""
    found: dict[str, tuple[Record, Folder]] = {}
    for part, of_part in [(part, part.load()) for part in parts]:
        for record in of_part.values():
            other, _ = found.setdefault(record.id, (record, part))
            if not same(other, record):
                raise UserError(f"{record.id} has two different records; the second is in {part.path}")
    return found


def _common(facts: dict[str, Any]) -> list[str]:
    return [key for key in facts if key not in _OF_A_SHARD]
