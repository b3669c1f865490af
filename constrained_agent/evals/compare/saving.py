"""What could be made of unconstrained text that failed, and what a server of today makes of it."""

from __future__ import annotations

import json
import re
from typing import Any

from constrained_agent.errors import PatchError
from constrained_agent.evals.compare import landing
from constrained_agent.evals.tasks import Task
from constrained_agent.grammar.toolcalls import Markers
from constrained_agent.patch import parse

_PATCH = re.compile(r"\*\*\* Begin Patch.*?\*\*\* End Patch", re.DOTALL)


def saved(task: Task, text: str) -> str | None:
    """The outcome if the first patch in a text, wherever it stands, is read as leniently as can be.

    Returns:
        None if there is none, or it cannot be read even so.
    """
    found = _PATCH.search(text)
    if found is None:
        return None
    patch = found[0]
    if "\n" not in patch.removeprefix("*** Begin Patch")[:2]:  # its lines are escaped, in a JSON string
        patch = _unescaped(patch)
    try:
        return landing.patched(task, [parse(patch).patch]).outcome
    except PatchError:
        return None


def server_finds(text: str, markers: Markers) -> dict[str, Any]:
    """How mlx-lm's server reads the calls of an answer.

    Returns:
        `calls`: marked spans; `dropped`: those that its parser refuses, which are left out of its response with
        no more than a line in its log; `broken`: those that it reads and then fails on, for want of a key.
    """
    from constrained_agent.model.server import read_calls

    bodies = _marked(text, markers)
    calls = read_calls(bodies)
    return {
        "calls": len(bodies),
        "dropped": sum(call is None for call in calls),
        "broken": sum(call is not None and not _has_arguments(call) for call in calls),
    }


def _has_arguments(call: Any) -> bool:
    """Whether the server finds what it needs; it takes a list of calls, too."""
    calls = call if isinstance(call, list) else [call]
    return all(isinstance(one, dict) and "arguments" in one for one in calls)


def _marked(text: str, markers: Markers) -> list[str]:
    """What the server takes for calls. It looks for markers in the text, whatever tokens wrote them; in a thinking
    block it does not look, and a last call may lack its end."""
    opened, closed = re.escape(markers.call_open), re.escape(markers.call_close)
    pattern = f"{opened}(.*?)(?:{closed}|\\Z)"
    if markers.thinks:
        pattern += f"|{re.escape(markers.think_open)}.*?(?:{re.escape(markers.think_close)}|\\Z)"
    found = re.finditer(pattern, text, re.DOTALL)
    return [one[1] for one in found if one[1] is not None and one[0] != markers.call_open]


def _unescaped(patch: str) -> str:
    """The text of a JSON string's inside, as far as it is one."""
    try:
        return str(json.loads(f'"{patch}"', strict=False))
    except ValueError:
        return patch.replace("\\n", "\n").replace("\\t", "\t").replace('\\"', '"').replace("\\\\", "\\")
