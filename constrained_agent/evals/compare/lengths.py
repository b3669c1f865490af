"""Which items an answer of the allowed length cannot solve: told before a comparison runs, not found out after it."""

from __future__ import annotations

import json
from collections.abc import Sequence

from constrained_agent.agent.runtime import Runtime
from constrained_agent.evals.calls.items import CallItem
from constrained_agent.evals.calls.reference import reference
from constrained_agent.evals.compare.items import Group
from constrained_agent.tools.registry import APPLY_PATCH


def too_long(runtime: Runtime, groups: Sequence[Group], max_tokens: int) -> list[str]:
    """Names of items whose reference answer takes more tokens. Another right answer may be shorter.

    Shell blocks and whole runs, which have none, are left out. Cost: about a millisecond an item.
    """
    long = (group.source_name for group in groups if _n_tokens(runtime, group) > max_tokens)
    return list(dict.fromkeys(long))


def _n_tokens(runtime: Runtime, group: Group) -> int:
    """Of the reference answer; 0 if there is none."""
    markers, tokenizer = runtime.markers, runtime.tokenizer
    calls = _calls(group)
    if group.prompt_name == "prompt-json":
        return len(tokenizer.encode_plain("".join(calls)))
    frame = f"{markers.call_open}\n\n{markers.call_close}"
    n_frame = len(tokenizer.encode(frame) if markers.are_tokens else tokenizer.encode_plain(frame))
    return sum(n_frame + len(tokenizer.encode_plain(call)) for call in calls)


def _calls(group: Group) -> list[str]:
    """What stands between the markers of each call of the reference answer."""
    if group.prompt_name == "regex" or group.items[0].kind == "run":
        return []
    if isinstance(group.source, CallItem):
        calls = reference(group.source)
        return [_as_json({"name": call.name, "arguments": call.arguments}) for call in calls]
    patch = group.source.reference.rstrip("\n")
    if group.prompt_name == "prompt-json":
        return [_as_json({"tool": APPLY_PATCH.name, "patch": patch})]
    if group.prompt_name == "json":
        return [_as_json({"name": APPLY_PATCH.name, "arguments": {"patch": patch}})]
    return [f"{_as_json({'name': APPLY_PATCH.name})}\n{patch}"]


def _as_json(value: object) -> str:
    return json.dumps(value, ensure_ascii=False)
