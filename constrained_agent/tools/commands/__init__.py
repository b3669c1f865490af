"""Command lines, parsed and classed: what one may do, judged before it runs."""

from constrained_agent.tools.commands.classify import classify
from constrained_agent.tools.commands.scene import MAX_TEXT_CHARS
from constrained_agent.tools.commands.verdict import Risk, Simple, Verdict

__all__ = ["MAX_TEXT_CHARS", "Risk", "Simple", "Verdict", "classify"]
