"""The project's own items (`own_items.toml`): strings, numbers and structures that are hard to write as JSON."""

from __future__ import annotations

import json
import tomllib
from collections.abc import Mapping
from pathlib import Path
from typing import Any

from constrained_agent.evals.calls.items import CallItem, expected_calls
from constrained_agent.grammar.toolcalls import closed
from constrained_agent.messages import ToolSpec

SET = "own"

_ITEMS = Path(__file__).resolve().with_name("own_items.toml")


def load() -> list[CallItem]:
    """All of them, in file order."""
    entries = tomllib.loads(_ITEMS.read_text(encoding="utf-8"))
    tools = {entry["name"]: _tool(entry) for entry in entries["tool"]}
    return [_item(entry, tools) for entry in entries["item"]]


def _tool(entry: Mapping[str, Any]) -> ToolSpec:
    return ToolSpec(entry["name"], entry["description"], closed(json.loads(entry["parameters"])), "read")


def _item(entry: Mapping[str, Any], tools: Mapping[str, ToolSpec]) -> CallItem:
    return CallItem(
        id=entry["id"],
        set=SET,
        prompt=entry["prompt"].strip(),
        tools=tuple(tools[name] for name in entry["tools"]),
        expected=expected_calls(json.loads(entry["expected"])),
        parallel=entry.get("parallel", False),
        exact=True,
    )
