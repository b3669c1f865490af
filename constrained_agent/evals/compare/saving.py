"""What could be made of text that failed, and what a server of today makes of unconstrained text."""

from __future__ import annotations

import json
import re
from collections.abc import Iterator
from typing import Any

from constrained_agent.errors import PatchError
from constrained_agent.evals.compare import landing
from constrained_agent.evals.tasks import Task
from constrained_agent.grammar.toolcalls import Markers
from constrained_agent.patch import Patch, parse

_BEGIN, _END = "*** Begin Patch", "*** End Patch"

# From a beginning to the next end. A second beginning means that the first patch never ended, unless it stands in
# a line of the patch.
_PATCH = re.compile(
    rf"{re.escape(_BEGIN)}((?:(?!(?<![-+ ]){re.escape(_BEGIN)}).)*?){re.escape(_END)}", re.DOTALL
)

_AFTER = re.compile(r"\n(?:```|</)")
"""Begins a line that can be no part of a patch: the end of a code block, or of a call."""

_STRING_END = re.compile(r'(?<!\\)(?:\\\\)*(")')


def saved(task: Task, text: str, *, whole: bool = False) -> str | None:
    """The outcome if every patch in a text, wherever it stands, is read as leniently as can be and applied.

    One that is there twice is meant once; what cannot be read even so is passed over.

    Args:
        whole: the text ended by itself. Then a last patch may lack its end.

    Returns:
        None if no patch can be read.
    """
    patches = [patch for patch in map(_read, dict.fromkeys(_found(text, whole=whole))) if patch is not None]
    return landing.patched(task, patches).outcome if patches else None


def _found(text: str, *, whole: bool) -> Iterator[str]:
    """The patches of a text, each with both of its markers and real line breaks."""
    end = 0
    for found in _PATCH.finditer(text):
        yield _with_line_breaks(found[1])
        end = found.end()
    last = text.rfind(_BEGIN, end)
    if whole and last >= 0:
        yield _with_line_breaks(_up_to_its_end(text[last + len(_BEGIN) :]))


def _up_to_its_end(body: str) -> str:
    """The inside of a patch without an end marker, up to what can be no part of it."""
    if _is_escaped(body):
        over = _STRING_END.search(body)
        return body[: over.start(1)] if over else body
    return _AFTER.split(body, maxsplit=1)[0]


def _with_line_breaks(body: str) -> str:
    text = _unescaped(body) if _is_escaped(body) else body
    return f"{_BEGIN}{text}{'' if text.endswith(chr(10)) else chr(10)}{_END}"


def _is_escaped(body: str) -> bool:
    """Whether the lines of a patch are those of a JSON string: no real line break stands behind the first marker."""
    return "\n" not in body[:2]


def _read(text: str) -> Patch | None:
    try:
        return parse(text).patch
    except PatchError:
        return None


def server_finds(text: str, markers: Markers) -> dict[str, Any] | None:
    """How mlx-lm's server reads the calls of an answer.

    The server looks for calls where the tokenizer's settings name a parser (`tool_parser_type`) or the chat template
    has the words of one: `<tool_call>` and `tool_call.name` for this dialect (mlx-lm 0.32.2, tokenizer_utils.py,
    `_infer_tool_parser`). Else it passes everything on as text and logs a warning. Here that is told by whether the
    markers are tokens, as they are in Qwen3. SmolLM2-135M has neither the tokens nor a template with tools; a model
    whose template names calls in plain words would be read by the server, and is not asked about here.

    Returns:
        `calls`: marked spans; `dropped`: those that its parser refuses, which are left out of its response with
        no more than a line in its log; `broken`: those that it reads and then fails on, for want of a key. None where
        the markers are text: it does not apply.
    """
    from constrained_agent.model.server import read_calls

    if not markers.are_tokens:
        return None
    bodies = _marked(text, markers)
    calls = read_calls(bodies)
    return {
        "calls": len(bodies),
        "dropped": sum(call is None for call in calls),
        "broken": sum(call is not None and not _has_arguments(call) for call in calls),
    }


def _has_arguments(call: Any) -> bool:
    """Whether the server finds what it needs; it takes a list of calls, too."""
    calls = call if isinstance(call, list) else [call]
    return all(isinstance(one, dict) and "arguments" in one for one in calls)


def _marked(text: str, markers: Markers) -> list[str]:
    """What the server takes for calls: an approximation of mlx-lm 0.32.2.

    There (generate.py, `make_text_state_machine`; server.py, `handle_completion`) a call begins at its marker, in
    plain text or in a thinking block, whatever tokens wrote the marker, and ends at the other one, back in plain text.
    What is left at the end of the answer is a call, unless nothing stands in it. Left out here: markers of other
    dialects, stop words, and a close marker that is cut in two by the end of the answer, which the server drops.
    """
    opened, closed = re.escape(markers.call_open), re.escape(markers.call_close)
    found = re.finditer(f"{opened}(.*?)(?:{closed}|\\Z)", text, re.DOTALL)
    return [one[1] for one in found if one[0] != markers.call_open]


def _unescaped(patch: str) -> str:
    """The text of a JSON string's inside, as far as it is one."""
    try:
        return str(json.loads(f'"{patch}"', strict=False))
    except ValueError:
        return patch.replace("\\n", "\n").replace("\\t", "\t").replace('\\"', '"').replace("\\\\", "\\")
