"""What the model is told: who it is, which tools there are, how a patch looks, and the task.

Two sizes. Full, for models that can use it; compact, for small models on a CPU, where every prompt token costs
10 ms. Each part's token cost is counted by its caller, so a prompt that grows is seen to grow.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from typing import Literal

from constrained_agent.grammar.carriers import FREEFORM, Carrier
from constrained_agent.messages import ToolSpec

Size = Literal["full", "compact"]

_FULL = """\
You are a coding agent. You work on one repository, through tools, until the task is done.

- Look before you answer: list, search and read; do not guess what a file says.{editing}
- A tool result that says error tells you what was wrong: mend that, do not send the same call again.
- When the task is done, answer in one or two sentences without a tool call. Say only what you did."""

_EDITING = """
- Read a file before you edit it. Change files with apply_patch alone, in small patches. Keep what the task does \
not speak of."""

_COMPACT = """\
You mend code in a repository. You answer with {calls}, or with a short text when the task is done."""

_CALL_FORM = """\
A call is a JSON object between markers, {where}:
<tool_call>
{{"name": "NAME", "arguments": {{"KEY": "VALUE"}}}}
</tool_call>"""

_ONE_CALL = "alone at the end of your answer"
_SEVERAL_CALLS = (
    "at the end of your answer; several that do not need each other's results may follow one another"
)

_PATCH_TOOL = """\
apply_patch: change, add, delete or rename files. Its patch is not JSON: it follows the name as raw text. """

_PATCH_TOOL_JSON = """\
apply_patch: change, add, delete or rename files. Its patch is one string of JSON, with `\\n` between its lines. """

_PATCH_FULL = """\
Under `*** Update File: PATH` each hunk starts with {start}. Then lines with one character in front: a blank \
for a line that stays, `-` for a line that goes, `+` for a line that comes. Copy lines from the file exactly, \
without line numbers; show two or three lines that stay. `*** Add File: PATH` takes only `+` lines, \
`*** Delete File: PATH` takes none, `*** Move to: PATH` under an Update renames. For example:
"""

_START_WITH_HEADER = """\
`@@`, or with `@@ ` and a line above the change (such as its `def` or `class` line) where the same lines stand more \
than once"""

_START_BARE = """\
`@@` alone, names a file that you have read, and has enough lines that together they stand only once in the file"""

_PATCH_COMPACT = """\
{name} changes files. Before each line: `-` old line, `+` new line, blank for a line that stays:
"""

_EXAMPLE = """\
*** Begin Patch
*** Update File: area.py
{head}     if width < 0:
         raise ValueError(width)
-    return width + height
+    return width * height
*** End Patch"""

_AS_CALL = """\
<tool_call>
{{"name": "{before}{example}{after}
</tool_call>"""


@dataclass(frozen=True, slots=True)
class Part:
    """One part of a prompt, named so that its cost can be shown.

    Attributes:
        trusted: the harness's own words, in which markers count; tool descriptions are not.
    """

    name: str
    text: str
    trusted: bool = True


def system_parts(
    tools: Sequence[ToolSpec],
    size: Size,
    tool_block: Callable[[Sequence[ToolSpec]], str],
    *,
    headers: bool = True,
    carrier: Carrier = FREEFORM,
    parallel: bool = False,
) -> tuple[Part, ...]:
    """The parts of the system message, joined by blank lines by the caller.

    Args:
        tools: the tools on offer; a tool that is not on offer is not spoken of.
        size: full or compact.
        tool_block: how the model's dialect lists tools.
        headers: whether a patch may say `@@ LINE`; located ones do not.
        carrier: how a patch travels.
        parallel: an answer may hold several calls.
    """
    compact = size == "compact"
    editing = _EDITING if any(tool.effect == "write" for tool in tools) else ""
    calls = "tool calls" if parallel else "one tool call"
    parts = [Part("instructions", _COMPACT.format(calls=calls) if compact else _FULL.format(editing=editing))]
    # Whose argument is JSON is listed with its schema like any other tool.
    listed = [replace(tool, freeform=tool.freeform and carrier is FREEFORM) for tool in tools]
    if any(not tool.freeform for tool in listed):
        block = _signatures(listed) if compact else f"# Tools\n\n{tool_block(listed)}"
        parts += [Part("tools", block, trusted=False), call_form(parallel=parallel)]
    if any(tool.freeform for tool in tools):
        parts.append(patch_part(size, headers=headers, carrier=carrier))
    return tuple(parts)


def call_form(*, parallel: bool = False) -> Part:
    """How a call is written.

    Args:
        parallel: an answer may hold several.
    """
    return Part("call_form", _CALL_FORM.format(where=_SEVERAL_CALLS if parallel else _ONE_CALL))


def patch_part(size: Size, *, headers: bool = True, call: bool = True, carrier: Carrier = FREEFORM) -> Part:
    """How a patch is written, with an example.

    Args:
        headers: as in `system_parts`.
        call: a patch is sent as a call of the tool; otherwise it is the whole answer.
        carrier: how it travels in a call.
    """
    start, head = (_START_WITH_HEADER, "@@ def area(width, height):\n") if headers else (_START_BARE, "@@\n")
    if size == "compact":
        how = _PATCH_COMPACT.format(name="apply_patch" if call else "A patch")
    else:
        tool = _PATCH_TOOL if carrier is FREEFORM else _PATCH_TOOL_JSON
        how = (tool if call else "Answer with a patch. ") + _PATCH_FULL.format(start=start)
    example = _EXAMPLE.format(head=head)
    if call:
        before, after = carrier.around("apply_patch", "patch")
        example = _AS_CALL.format(before=before, example=carrier.spell(example), after=after)
    return Part("patch", how + example)


def task_text(task: str, files: Sequence[tuple[str, str]]) -> str:
    """The first user message: files that were put before the model, then the task."""
    shown = [f"I have read {path} for you:\n{text}\n" for path, text in files]
    return "\n".join([*shown, task])


def _signatures(tools: Sequence[ToolSpec]) -> str:
    """Tools in one line each, as signatures: the schema binds the arguments, words would only cost tokens."""
    lines = []
    for tool in tools:
        if not tool.freeform:
            required = tool.parameters.get("required", ())
            properties = tool.parameters.get("properties", {})
            keys = [key if key in required else f"{key}?" for key in properties]
            lines.append(f"{tool.name}({', '.join(keys)})")
    return "Tools: " + ", ".join(lines)
