"""Reads the file that `--tools` names: the tools on offer, and whose schema a refused grammar is to blame on."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path
from typing import Any

from constrained_agent.errors import UserError
from constrained_agent.messages import ToolSpec


def read(file: str) -> list[ToolSpec]:
    """Tools from a JSON list of `{"name", "description", "parameters"}`, each bare or under `"function"`.

    A tool with `"freeform": true` takes a raw patch after the call's head, as `apply_patch` does.

    Raises:
        UserError: names the entry at fault.
    """
    from constrained_agent.grammar.sources import read_json

    entries = read_json(Path(file))
    if not isinstance(entries, list) or not entries:
        raise UserError(f"{file}: expected a JSON list of at least one tool")
    tools = [_tool(file, i, entry) for i, entry in enumerate(entries)]
    names = [tool.name for tool in tools]
    for i, name in enumerate(names):
        if name in names[:i]:
            raise UserError(f"{file}: entry {i}: a second tool named {name!r}")
    return tools


def _tool(file: str, index: int, entry: Any) -> ToolSpec:
    tool = entry.get("function", entry) if isinstance(entry, dict) else None
    if not isinstance(tool, dict) or not isinstance(tool.get("name"), str):
        raise UserError(f'{file}: entry {index} is not a tool: expected {{"name": …, "parameters": …}}')
    parameters = tool.get("parameters") or {"type": "object", "properties": {}}
    if not isinstance(parameters, dict):
        raise UserError(
            f'{file}: entry {index}: "parameters" of {tool["name"]!r} is not a JSON schema object'
        )
    if parameters.get("type", "object") != "object":
        raise UserError(
            f'{file}: entry {index}: "parameters" of {tool["name"]!r} is of type {parameters["type"]!r}; '
            "a call's arguments are an object"
        )
    freeform = tool.get("freeform") is True
    properties = parameters.get("properties")
    if freeform and not (isinstance(properties, dict) and len(properties) == 1):
        raise UserError(
            f"{file}: entry {index}: the freeform tool {tool['name']!r} needs exactly one property"
        )
    return ToolSpec(tool["name"], str(tool.get("description", "")), parameters, "read", freeform)


def raise_for_schema_at_fault(tools: Sequence[ToolSpec]) -> None:
    """Compile each tool's schema by itself, so that the error of a whole turn's grammar names the tool.

    Raises:
        GrammarError: of the first tool whose schema does not compile.
    """
    from constrained_agent.grammar import prefix
    from constrained_agent.grammar.toolcalls import parameter_grammars

    for schema in parameter_grammars(tools):
        prefix.check(b"", schema)
