"""A right answer to a question for calls."""

from __future__ import annotations

from typing import Any

from constrained_agent.evals.calls import values
from constrained_agent.evals.calls.items import CallItem, ExpectedCall
from constrained_agent.messages import ToolCall


def reference(item: CallItem) -> list[ToolCall]:
    """The first answer that is right and that the schemas admit."""
    schemas = {tool.name: tool.parameters for tool in item.tools}
    return [
        ToolCall(f"call_{number}", call.name, _arguments(item, call, schemas[call.name]))
        for number, call in enumerate(item.expected, 1)
    ]


def _arguments(item: CallItem, call: ExpectedCall, schema: values.Schema) -> dict[str, Any]:
    from jsonschema import Draft202012Validator

    found = {}
    for name, inner in schema["properties"].items():
        for right in call.arguments.get(name, ()):
            value = right if item.exact else _chosen(right)
            whole = {**inner, "$defs": schema.get("$defs", {})}
            may_be_left_out = right == values.LEFT_OUT and name not in schema.get("required", ())
            if not may_be_left_out and Draft202012Validator(whole).is_valid(value):
                found[name] = value
                break
    return found


def _chosen(right: Any) -> Any:
    """The first right value of each key, as objects of the leaderboard are written."""
    if isinstance(right, dict):
        return {key: inner[0] for key, inner in right.items()}
    return [_chosen(element) for element in right] if isinstance(right, list) else right
