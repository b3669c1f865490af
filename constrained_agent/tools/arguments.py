"""Arguments of calls, held against the schema of their tool."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from constrained_agent.messages import ToolSpec
from constrained_agent.tools.output import shortened

MAX_VIOLATIONS, MAX_VIOLATION_CHARS = 3, 200
"""Of one bad call: a message quotes the wrong value, which may be a whole patch."""


def violations(spec: ToolSpec, arguments: Mapping[str, Any]) -> list[str]:
    """What is wrong with the arguments of a call, the first few things, each with its place; empty if nothing is."""
    from jsonschema import Draft202012Validator

    found = sorted(
        Draft202012Validator(spec.parameters).iter_errors(arguments), key=lambda error: error.json_path
    )
    return [
        f"{error.json_path}: {shortened(error.message, MAX_VIOLATION_CHARS)}"
        for error in found[:MAX_VIOLATIONS]
    ]
