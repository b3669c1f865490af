"""The terminal of a conversation, by what this one can do."""

from __future__ import annotations

import os
import sys
from pathlib import Path

from constrained_agent.cli.interactive.typed import Terminal


def terminal(root: Path) -> Terminal:
    """An input line at the bottom of the screen; on a terminal that has no cursor to move, plain lines.

    Args:
        root: the repository; what is typed is remembered outside of it.
    """
    from constrained_agent.cli.interactive.plain import PlainTerminal

    if not sys.stderr.isatty() or os.environ.get("TERM", "") in ("", "dumb", "unknown"):
        return PlainTerminal()
    from constrained_agent.cli.interactive.history import history
    from constrained_agent.cli.interactive.line_editor import LineEditor

    return LineEditor(history(root))
