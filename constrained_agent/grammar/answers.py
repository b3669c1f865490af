"""Reads an answer back: token ids or text to thinking, text and tool calls. Nothing is ever dropped.

Under the turn grammar every call reads cleanly. Unconstrained output is read by the same code; what cannot be
read becomes a `Fault` with its class and a message for the model.
"""

from __future__ import annotations

import json
import re
from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from typing import Any

from constrained_agent.grammar.toolcalls import Markers
from constrained_agent.messages import ToolCall, ToolSpec


@dataclass(frozen=True, slots=True)
class Fault:
    """A call that could not be read. `kind` is a failure class; `message` is for the model."""

    kind: str
    message: str
    call_id: str = ""


@dataclass(frozen=True, slots=True)
class Answer:
    """One model answer.

    Attributes:
        thinking: text of the thinking block, without its markers.
        thinking_closed: False if the block never ended; then there is neither text nor call.
        text: free text around the calls, stripped.
        items: what it called, in order: calls, and faults in the place of those that could not be read.
    """

    thinking: str
    thinking_closed: bool
    text: str
    items: tuple[ToolCall | Fault, ...]

    @property
    def calls(self) -> tuple[ToolCall, ...]:
        """The calls that could be read."""
        return tuple(item for item in self.items if isinstance(item, ToolCall))

    @property
    def faults(self) -> tuple[Fault, ...]:
        """Those that could not."""
        return tuple(item for item in self.items if isinstance(item, Fault))


@dataclass(frozen=True, slots=True)
class _Span:
    """A stretch of an answer: free text, or the inside of a call; `closed`: its end marker came."""

    text: str
    is_call: bool = False
    closed: bool = True


class AnswerReader:
    """Reads answers of one dialect and tool set; call ids count up over its lifetime."""

    def __init__(self, tools: Sequence[ToolSpec], markers: Markers) -> None:
        self._tools = {tool.name: tool for tool in tools}
        self._markers = markers
        self._n_calls = 0

    def read_ids(
        self,
        ids: Sequence[int],
        decode: Callable[[Sequence[int]], str],
        token_id: Callable[[str], int | None],
        *,
        cut: bool = False,
    ) -> Answer:
        """Read an answer from token ids, so that marker text inside arguments is just text.

        Args:
            ids: the answer without its end token.
            decode: ids to text.
            token_id: id of a marker that is a token of its own, else None.
            cut: the answer was ended by a limit.
        """
        m = self._markers
        if not m.are_tokens:
            return self.read_text(decode(ids), cut=cut)
        ids = list(ids)
        thinking, closed = "", True
        think_open, think_close = token_id(m.think_open), token_id(m.think_close)
        if think_open is not None and ids[:1] == [think_open]:
            end = ids.index(think_close) if think_close in ids else None
            closed, thinking = end is not None, decode(ids[1:end])
            ids = ids[end + 1 :] if end is not None else []
        spans = _spans_of_ids(ids, decode, token_id(m.call_open), token_id(m.call_close))
        return self._answer(thinking, closed, spans, cut)

    def read_text(self, text: str, *, cut: bool = False) -> Answer:
        """Read an answer whose markers are text. The end of a call is found by its structure, not by the
        first close marker, which may stand inside a string."""
        m = self._markers
        thinking, closed = "", True
        head = text.lstrip()
        if m.thinks and head.startswith(m.think_open):
            thinking, found, text = head[len(m.think_open) :].partition(m.think_close)
            closed = bool(found)
        return self._answer(thinking, closed, _spans_of_text(text, m) if closed else [], cut)

    def _answer(self, thinking: str, closed: bool, spans: Sequence[_Span], cut: bool) -> Answer:
        items: list[ToolCall | Fault] = []
        for span in spans:
            if span.is_call:
                self._n_calls += 1
                read = self._read_call(span, cut)
                items.append(replace(read, call_id=self._id) if isinstance(read, Fault) else read)
        text = "".join(span.text for span in spans if not span.is_call).strip()
        if not items and (fault := self._unwrapped(text)):
            items.append(fault)
        return Answer(thinking.strip(), closed, text, tuple(items))

    def _read_call(self, span: _Span, cut: bool) -> ToolCall | Fault:
        if not span.closed:
            if cut:
                return Fault(
                    "cut", "the call was cut off by the token limit and not run; send smaller pieces"
                )
            return Fault(
                "wrapper_unclosed", f"the call does not end with {self._markers.call_close}; resend it whole"
            )
        body = span.text.strip("\n ")
        if re.match(r"<(function|invoke|parameter)\b", body):
            return Fault(
                "wrong_dialect", 'expected JSON {"name": …, "arguments": {…}} between the markers, not XML'
            )
        try:
            head, end = _DECODER.raw_decode(body)
        except (ValueError, RecursionError) as error:
            return Fault(
                "json_invalid", f"the call is not valid JSON: {_json_error(error)}; resend it mended"
            )
        rest = body[end:]
        name = head.get("name") if isinstance(head, dict) else None
        tool = self._tools.get(name) if isinstance(name, str) else None
        if tool and tool.freeform and set(head) == {"name"} and rest.startswith("\n"):
            return self._call(tool.name, {next(iter(tool.parameters["properties"])): rest[1:]})
        if rest.strip():
            return Fault(
                "json_invalid",
                f"after the call's JSON object comes {rest.strip()[:20]!r}; only one object may stand there",
            )
        return self._read_object(head)

    def _read_object(self, head: Any) -> ToolCall | Fault:
        if not isinstance(head, dict):
            return Fault("wrong_shape", f"a call is one JSON object, not {_kind(head)}")
        if not isinstance(head.get("name"), str) or "arguments" not in head:
            keys = ", ".join(map(str, head)) or "none"
            return Fault("wrong_shape", f'a call has the keys "name" and "arguments"; this one has: {keys}')
        if head["name"] not in self._tools:
            return Fault(
                "unknown_tool", f"no tool {head['name']}; tools are: {', '.join(sorted(self._tools))}"
            )
        arguments = head["arguments"]
        if isinstance(arguments, str):
            # Some models quote the object once more; the meaning is beyond doubt.
            try:
                arguments = _DECODER.decode(arguments)
            except (ValueError, RecursionError):
                return Fault("wrong_shape", "arguments must be an object, not a string")
        if not isinstance(arguments, dict):
            return Fault("wrong_shape", f"arguments must be an object, not {_kind(arguments)}")
        return self._call(head["name"], arguments)

    def _unwrapped(self, text: str) -> Fault | None:
        """A call or a patch that was printed as plain text."""
        bare = re.sub(r"^```\w*\n|\n```$", "", text.strip())
        names = "|".join(map(re.escape, self._tools))
        if names and re.match(rf'\{{\s*"name"\s*:\s*"(?:{names})"', bare):
            return Fault(
                "no_wrapper",
                f"a call must stand between {self._markers.call_open} and {self._markers.call_close}",
            )
        if re.search(r"^\*\*\* Begin Patch", bare, re.MULTILINE) and any(
            t.freeform for t in self._tools.values()
        ):
            return Fault(
                "no_wrapper", "a patch that is only printed changes nothing: send it as a call of apply_patch"
            )
        return None

    def _call(self, name: str, arguments: dict[str, Any]) -> ToolCall:
        return ToolCall(self._id, name, arguments)

    @property
    def _id(self) -> str:
        return f"call_{self._n_calls}"


def _unique_keys(pairs: list[tuple[str, Any]]) -> dict[str, Any]:
    keys = [key for key, _ in pairs]
    for key in keys:
        if keys.count(key) > 1:
            raise ValueError(f"the key {key!r} stands twice in one object")
    return dict(pairs)


def _json_error(error: ValueError | RecursionError) -> str:
    """What is wrong and where, quoting the text there: positions alone mean little to a model."""
    if not isinstance(error, json.JSONDecodeError):
        return str(error)
    what = error.msg.lower().replace("\\escape", "escape")
    return f"{what} at position {error.pos}, near {error.doc[max(0, error.pos - 10) : error.pos + 10]!r}"


def _integer(digits: str) -> int | float:
    """An integer; beyond what Python reads at once (4,300 digits) it is infinite, and its schema's business."""
    return int(digits) if len(digits) <= _MAX_DIGITS else float(digits)


_MAX_DIGITS = 4_000

_DECODER = json.JSONDecoder(object_pairs_hook=_unique_keys, parse_int=_integer)


def _kind(value: Any) -> str:
    return {list: "an array", str: "a string", type(None): "null", bool: "true or false"}.get(
        type(value), "a number"
    )


def _spans_of_ids(
    ids: Sequence[int], decode: Callable[[Sequence[int]], str], opener: int | None, closer: int | None
) -> list[_Span]:
    spans: list[_Span] = []
    start, inside = 0, False
    for i, token in enumerate(ids):
        if token == opener and not inside:
            spans.append(_Span(decode(ids[start:i])))
            start, inside = i + 1, True
        elif token == closer and inside:
            spans.append(_Span(decode(ids[start:i]), is_call=True))
            start, inside = i + 1, False
    spans.append(_Span(decode(ids[start:]), is_call=inside, closed=not inside))
    return spans


def _spans_of_text(text: str, markers: Markers) -> list[_Span]:
    spans: list[_Span] = []
    while True:
        before, opened, rest = text.partition(markers.call_open)
        spans.append(_Span(before))
        if not opened:
            return spans
        end = rest.find(markers.call_close, _structure_end(rest))
        if end < 0:
            spans.append(_Span(rest, is_call=True, closed=False))
            return spans
        spans.append(_Span(rest[:end], is_call=True))
        text = rest[end + len(markers.call_close) :]


def _structure_end(text: str) -> int:
    """Where the JSON object (and the raw patch after it) at a call's start ends; 0 if unreadable."""
    start = len(text) - len(text.lstrip())
    try:
        head, end = _DECODER.raw_decode(text, start)
    except (ValueError, RecursionError):
        return 0
    if isinstance(head, dict) and "arguments" not in head:
        # A patch line starts with +, - or a blank, so only the patch's own last line starts like this.
        patch_end = text.find("\n*** End Patch", end)
        return patch_end if patch_end >= 0 else end
    return int(end)
