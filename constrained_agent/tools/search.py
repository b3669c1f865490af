"""Searching text for the model, inside the repository."""

from __future__ import annotations

import json
import shlex
import sys
from dataclasses import asdict
from pathlib import Path
from typing import TYPE_CHECKING

from constrained_agent.errors import ToolError
from constrained_agent.messages import ToolSpec
from constrained_agent.tools import credentials, search_worker
from constrained_agent.tools.files import existing
from constrained_agent.tools.shell import exec_command

if TYPE_CHECKING:
    from constrained_agent.tools.workspace import Workspace

LIMITS = search_worker.Limits(hits=80, hit_chars=200, file_bytes=2_000_000)
"""At most about 6,000 tokens; files over 2 MB are data or build products, hardly ever sources."""

TIME_LIMIT_S = 10
"""Enough for some 100 MB of sources; a pattern that takes exponential time is ended with its process."""

SEARCH_TEXT = ToolSpec(
    name="search_text",
    description=(
        "Find the lines that match a regular expression (Python syntax, upper and lower case differ), "
        "as PATH:LINE: TEXT. To see a file whose name you know use read_file. "
        f'path: a file or folder, "." for the whole repository. At most {LIMITS.hits} lines.'
    ),
    parameters={
        "type": "object",
        "properties": {"pattern": {"type": "string"}, "path": {"type": "string"}},
        "required": ["pattern", "path"],
        "additionalProperties": False,
    },
    effect="read",
)


def search_text(workspace: Workspace, pattern: str, path: str) -> str:
    """The lines below a path that match a regular expression, and what was not searched.

    Cost: a Python process, some 30 ms, and the search itself, up to `TIME_LIMIT_S`.

    Raises:
        PatchError: there is no such path in the repository.
        ToolError: the pattern does not compile.
    """
    if not pattern:
        raise ToolError("the pattern is empty: it would match every line")
    request = {
        "pattern": pattern,
        "start": str(existing(workspace, path)),
        "root": str(workspace.root),
        "limits": asdict(LIMITS),
        "passed_over": credentials.NAME.pattern,
    }
    program = [
        sys.executable,
        "-I",
        "-S",
        "-W",
        "ignore",
        str(Path(search_worker.__file__)),
        json.dumps(request),
    ]
    result = exec_command(workspace.root, shlex.join(program), TIME_LIMIT_S)
    found = result.stdout.rstrip("\n")
    if result.timed_out:
        remark = f"[stopped after {TIME_LIMIT_S} s: use a simpler pattern or a narrower path]"
        return f"{found}\n{remark}" if found else remark
    if result.exit_code == search_worker.BAD_PATTERN:
        raise ToolError(
            f"{pattern!r} is not a regular expression: {found}; "
            "to search for a character like ( [ * + itself, put a backslash before it"
        )
    if result.exit_code != 0:
        raise RuntimeError(f"the search program failed: {result.stderr}")
    return found
