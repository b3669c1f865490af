"""The prompt of `generate --edit`, for a file that lies nowhere."""

from __future__ import annotations

import tempfile
from dataclasses import dataclass
from pathlib import Path

from constrained_agent.agent.conversation import joined
from constrained_agent.agent.editable import editable
from constrained_agent.agent.prompt import patch_part, task_text
from constrained_agent.agent.runtime import Runtime
from constrained_agent.grammar.located.offer import Editable
from constrained_agent.tools.permissions import Policy
from constrained_agent.tools.registry import Tools
from constrained_agent.tools.workspace import Workspace


@dataclass(frozen=True, slots=True)
class PatchPrompt:
    """A prompt whose answer is a patch.

    Attributes:
        ids: system message, the file and the instruction, and the head of the answer.
        editable: what the patch may do: update the file, or add others.
    """

    ids: tuple[int, ...]
    editable: Editable


def patch_prompt(runtime: Runtime, instruction: str, path: str, content: bytes) -> PatchPrompt:
    """The same prompt and offer as in a folder that holds the file alone.

    Args:
        path: within that folder.

    Raises:
        UserError: the file is no text, or there is no room for it on the disk.
    """
    with tempfile.TemporaryDirectory() as folder:
        file = Path(folder, path)
        file.parent.mkdir(parents=True, exist_ok=True)
        file.write_bytes(content)
        tools = Tools(Workspace(folder), Policy(read_only=True))
        shown = tools.show(path)
        may_edit = editable(tools, renames=runtime.card.prompt == "full")
    dialect = runtime.dialect
    part = patch_part(runtime.card.prompt, headers=False, call=False)
    prompt = task_text(instruction, [(path, shown)])
    ids = [*dialect.system(*joined([part])), *dialect.user(prompt), *dialect.open_answer(thinking=False)]
    return PatchPrompt(tuple(ids), may_edit)
