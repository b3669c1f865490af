"""Asks a Python program of ours, in a process of its own.

For parsers that are C code and are fed with what a model wrote: they may crash or take any time, and take nothing down
with them here.
"""

from __future__ import annotations

import json
import sys
from collections.abc import Sequence
from pathlib import Path
from typing import Any

from constrained_agent.errors import ToolError
from constrained_agent.tools.capture import capture


def ask(script: Sequence[str], request: Any, *, limit_bytes: int, timeout_s: float) -> Any | None:
    """What a program answers.

    Args:
        script: what Python is to run, as on its command line: a file, or `-c` and code.
        request: for JSON; the program gets it on stdin.
        limit_bytes: of the answer.

    Returns:
        Its answer, read from JSON; None where it crashed, took too long or gave no answer.

    Cost: the start of a Python process, 40 to 250 ms.
    """
    # -P: neither the program's folder nor this one is a place to import from.
    program = [sys.executable, "-P", "-W", "ignore", *script]
    given = json.dumps(request).encode("ascii")
    try:
        return json.loads(capture(Path(__file__).parent, program, given, limit_bytes, timeout_s))
    except (ToolError, ValueError):
        return None
