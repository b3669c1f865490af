"""Which items an answer of the allowed length cannot solve: told before a comparison runs, not found out after it."""

from __future__ import annotations

import json
from collections.abc import Sequence

from constrained_agent.agent.runtime import Runtime
from constrained_agent.evals.calls.items import CallItem
from constrained_agent.evals.calls.reference import reference
from constrained_agent.evals.compare.items import Group
from constrained_agent.grammar import carriers


def too_long(runtime: Runtime, groups: Sequence[Group], max_tokens: int) -> list[str]:
    """Names of items whose reference answer alone takes more tokens. Another right answer may be shorter.

    Shell blocks and whole runs, which have none, are left out. Cost: about a millisecond an item.
    """
    texts = ((group.source_name, _reference(group)) for group in groups)
    long = (name for name, text in texts if len(runtime.tokenizer.encode_plain(text)) > max_tokens)
    return list(dict.fromkeys(long))


def _reference(group: Group) -> str:
    """The part of a right answer that no way of asking can spare; empty if none is known."""
    if group.prompt_name == "regex" or group.items[0].kind == "run":
        return ""
    if isinstance(group.source, CallItem):
        calls = reference(group.source)
        return "\n".join(json.dumps(call.arguments, ensure_ascii=False) for call in calls)
    as_string = group.prompt_name in ("json", "prompt-json")
    return (carriers.JSON if as_string else carriers.FREEFORM).spell(group.source.reference)
