"""What the model is asked: one prompt for all arms that differ in their mask alone."""

from __future__ import annotations

import tempfile
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path

from constrained_agent.agent.conversation import joined
from constrained_agent.agent.editable import editable
from constrained_agent.agent.prompt import Part, system_parts, task_text
from constrained_agent.agent.runtime import Runtime
from constrained_agent.errors import UserError
from constrained_agent.evals.calls.items import CallItem
from constrained_agent.evals.tasks import Shown, Task
from constrained_agent.grammar import carriers
from constrained_agent.grammar.located.offer import Editable
from constrained_agent.messages import ToolCall, ToolSpec
from constrained_agent.tools.permissions import Policy
from constrained_agent.tools.registry import APPLY_PATCH, Tools
from constrained_agent.tools.workspace import Workspace

_ASKS_FOR_CALLS = "You answer by calling tools: one call for each thing that is asked, nothing else."

_AS_JSON = """\
You mend code in a repository. You answer with one JSON object and nothing else. It has two keys: "tool", which is \
always "apply_patch", and "patch", a string. In the patch, before each line: `-` old line, `+` new line, blank for a \
line that stays. For example:
{"tool": "apply_patch", "patch": "*** Begin Patch\\n*** Update File: area.py\\n@@\\n     if width < 0:\\n         \
raise ValueError(width)\\n-    return width + height\\n+    return width * height\\n*** End Patch\\n"}"""

_AS_SHELL = """\
You mend code in a repository. You answer with one block of shell commands that make the change; they are run in the \
repository's root. For example:
```sh
cat > area.py <<'END'
def area(width, height):
    if width < 0:
        raise ValueError(width)
    return width * height
END
```"""


@dataclass(frozen=True, slots=True)
class Prompt:
    """A prompt, and what an answer to it may hold.

    Attributes:
        ids: up to where the answer begins.
        tools: on offer.
        editable: what a patch may do, at level `located`; None for calls that are no patches.
    """

    ids: tuple[int, ...]
    tools: tuple[ToolSpec, ...]
    editable: Editable | None


def make(runtime: Runtime, source: Task | CallItem, prompt: str) -> Prompt:
    """The prompt of a task or a call.

    Args:
        prompt: `arms.Arm.prompt_name`.
    """
    if isinstance(source, CallItem):
        # In full, whatever the model: without descriptions of their tools the questions make no sense.
        described = system_parts(source.tools, "full", runtime.dialect.tool_block, parallel=True)
        about_calls = [part for part in described if part.name in ("tools", "call_form")]
        parts = [Part("instructions", _ASKS_FOR_CALLS), *about_calls]
        return Prompt(prompt_ids(runtime, parts, source.prompt), source.tools, None)
    shown, may_edit = _read(runtime, source)
    return Prompt(
        prompt_ids(runtime, _system(runtime, prompt), task_text(source.instruction, shown)),
        (APPLY_PATCH,),
        may_edit,
    )


def prompt_ids(runtime: Runtime, system: Sequence[Part], user: str) -> tuple[int, ...]:
    """A system message, what the user says, and the head of an answer without thinking."""
    dialect = runtime.dialect
    return (*dialect.system(*joined(system)), *dialect.user(user), *dialect.open_answer(thinking=False))


def _system(runtime: Runtime, prompt: str) -> Sequence[Part]:
    if prompt == "prompt-json":
        return [Part("instructions", _AS_JSON)]
    if prompt == "regex":
        return [Part("instructions", _AS_SHELL)]
    dialect = runtime.dialect
    # No `@@ LINE` headers: located patches have none, and all arms are told the same.
    return system_parts(
        [APPLY_PATCH],
        runtime.card.prompt,
        dialect.tool_block,
        headers=False,
        carrier=carriers.by_name(prompt),
    )


def _read(runtime: Runtime, task: Task) -> tuple[list[tuple[str, str]], Editable]:
    """The files as `read_file` shows them, and what may be edited after that."""
    with tempfile.TemporaryDirectory(prefix="constrained-agent-") as folder:
        root = Path(folder, "repo")
        task.copy_to(root)
        tools = Tools(Workspace(root), Policy(read_only=True))
        shown = [(one.path, _page(tools, task, one)) for one in task.shown]
        return shown, editable(tools, renames=runtime.card.prompt == "full")


def _page(tools: Tools, task: Task, shown: Shown) -> str:
    arguments: dict[str, object] = {"path": shown.path}
    if shown.first is not None and shown.last is not None:
        arguments |= {"offset": shown.first, "limit": shown.last - shown.first + 1}
    result = tools.run(ToolCall("shown", "read_file", arguments))
    if not result.ok:
        raise UserError(f"task {task.name}: {shown.path} cannot be shown: {result.text}")
    return result.text
