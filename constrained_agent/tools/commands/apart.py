"""A verdict from a process of its own: `tools.python_worker` says why."""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path
from typing import Any

import constrained_agent
from constrained_agent.tools import python_worker
from constrained_agent.tools.commands import worker
from constrained_agent.tools.commands.classify import refused
from constrained_agent.tools.commands.verdict import Risk, Simple, Verdict

TIME_LIMIT_S = 20.0
"""A line takes a millisecond, a hostile one seconds; starting the process takes a quarter of a second."""

_MAX_ANSWER_BYTES = 20_000_000


def classify_apart(command: str, root: Path | None, environment: Mapping[str, str] | None) -> Verdict:
    """As `classify`, but safe from what the parser may do; a line that brings it down is dangerous.

    Cost: the start of a Python process.
    """
    # This package comes from where it came from here.
    package = str(Path(constrained_agent.__file__).parent.parent)
    code = f"import sys; sys.path.insert(0, {package!r}); from {worker.__name__} import main; main()"
    request = [command, None if root is None else str(root), dict(environment or {})]
    answer = python_worker.ask(["-c", code], request, limit_bytes=_MAX_ANSWER_BYTES, timeout_s=TIME_LIMIT_S)
    if answer is None:
        return refused(command, "cannot be judged: the parser does not come to an end with it")
    return _read(answer)


def _read(fields: dict[str, Any]) -> Verdict:
    commands: list[dict[str, Any]] = fields["commands"]
    simple = (
        Simple(**{**one, "risk": Risk(one["risk"]), "spellings": tuple(one["spellings"])}) for one in commands
    )
    return Verdict(Risk(fields["risk"]), fields["part"], fields["reason"], tuple(simple))
