"""How mlx-lm's own server reads tool calls: with its parser, so that nothing is claimed that it does not do."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any


def read_calls(bodies: Sequence[str]) -> list[Any]:
    """The values of calls, given the texts between their markers; None for each that the server leaves out.

    mlx-lm 0.32 catches the parser's ValueError, logs a warning and goes on with the next call.
    """
    from mlx_lm.tool_parsers.json_tools import parse_tool_call

    found: list[Any] = []
    for body in bodies:
        try:
            found.append(parse_tool_call(body, None))
        except (ValueError, RecursionError):
            found.append(None)
    return found
