"""What patches may edit from one answer to the next, and what the model has to be told of that."""

from __future__ import annotations

from constrained_agent.agent.editable import editable
from constrained_agent.agent.values import Settings
from constrained_agent.grammar.located.offer import Editable, left_out
from constrained_agent.tools.registry import Tools


class Offers:
    """Remembers what was on offer last."""

    def __init__(self, tools: Tools) -> None:
        self._tools = tools
        self._readable: set[str] = set()

    def now(self, settings: Settings) -> tuple[Editable | None, list[str]]:
        """What the next answer may edit, and which files it no longer may. Cost: see `editable`.

        Returns:
            Nothing to edit (None) where patches are not located. The files are those that are still there: of what a
            patch of the run itself took away, nobody has to be told.
        """
        patches = any(tool.freeform for tool in self._tools.specs)
        if settings.decoding.level != "located" or not patches:
            return None, []
        offered = editable(self._tools, renames=settings.prompt_size == "full")
        readable = {file.path for file in offered.files} - set(left_out(offered))
        lost = sorted(path for path in self._readable - readable if path in offered.new_paths.files)
        self._readable = readable
        return offered, lost
