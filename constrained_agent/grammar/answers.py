"""Reads an answer back: token ids or text to thinking, text and tool calls. Nothing is ever dropped.

Under the turn grammar every call reads cleanly. Unconstrained output is read by the same code; what cannot be
read becomes a `Fault` with its class and a message for the model.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass, replace
from itertools import groupby
from typing import Any

from constrained_agent.grammar.call_json import BLANKS, DECODER, what_is_wrong
from constrained_agent.grammar.spans import PATCH_BEGIN, Marker, Piece, Span, as_pieces, as_text, sections
from constrained_agent.grammar.toolcalls import Markers
from constrained_agent.messages import ToolCall, ToolSpec


@dataclass(frozen=True, slots=True)
class Fault:
    """A call that could not be read.

    Attributes:
        kind: a failure class.
        message: for the model.
        at: the character of the answer, markers counted as their names, from which on it cannot be read.
    """

    kind: str
    message: str
    call_id: str = ""
    at: int | None = None


@dataclass(frozen=True, slots=True)
class Answer:
    """One model answer.

    Attributes:
        thinking: text of the thinking block, without its markers.
        thinking_closed: False if the block never ended; then there is neither text nor call.
        text: free text around the calls, stripped.
        items: what it called, in order: calls, and faults in the place of those that could not be read. Each has an
            id, but for one that was only printed (`no_wrapper`), which stands alone: it is no call.
        starts: where each item begins: characters of the answer, markers counted as their names.
        beside: a call or patch that was printed beside real ones, and not sent.
        open: it ends inside a call.
    """

    thinking: str
    thinking_closed: bool
    text: str
    items: tuple[ToolCall | Fault, ...]
    starts: tuple[int, ...] = ()
    beside: Fault | None = None
    open: bool = False

    @property
    def calls(self) -> tuple[ToolCall, ...]:
        """The calls that could be read."""
        return tuple(item for item in self.items if isinstance(item, ToolCall))

    @property
    def faults(self) -> tuple[Fault, ...]:
        """Those that could not."""
        return tuple(item for item in self.items if isinstance(item, Fault))


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
        return self.read_pieces(self.pieces(ids, decode, token_id), cut=cut)

    def pieces(
        self,
        ids: Sequence[int],
        decode: Callable[[Sequence[int]], str],
        token_id: Callable[[str], int | None],
    ) -> list[Piece]:
        """What `read_pieces` needs of token ids: with it, an answer can be read later, without its tokenizer."""
        m = self._markers
        names = (m.call_open, m.call_close, m.think_open, m.think_close) if m.are_tokens else ()
        marker_of = {token_id(name): Marker(name) for name in names}
        pieces: list[Piece] = []
        for marker, group in groupby(ids, marker_of.get):
            found = list(group)
            pieces += [decode(found)] if marker is None else [marker] * len(found)
        return pieces

    def read_pieces(self, pieces: Sequence[Piece], *, cut: bool = False) -> Answer:
        """Read an answer from its text and markers."""
        if not self._markers.are_tokens:
            return self.read_text(as_text(pieces), cut=cut)
        return self._answer(pieces, cut)

    def read_text(self, text: str, *, cut: bool = False) -> Answer:
        """Read an answer whose markers are text."""
        return self._answer(as_pieces(text, self._markers), cut)

    def _answer(self, pieces: Sequence[Piece], cut: bool) -> Answer:
        found = sections(pieces, self._markers, cut=cut)
        items: list[ToolCall | Fault] = []
        starts: list[int] = []
        for span in found.spans:
            if span.is_call and (span.closed or span.text.strip() or cut or not items):
                self._n_calls += 1
                read = self._read_call(span, cut)
                items.append(replace(read, call_id=self._id) if isinstance(read, Fault) else read)
                starts.append(span.start + len(span.text) - len(span.text.lstrip()))
        free = [span for span in found.spans if not span.is_call]
        text = "".join(span.text for span in free).strip()
        printed = self.printed(text, _sent(found.spans, items))
        beside = printed if items and not cut else None
        if printed and not items:
            starts.append(_place(free, printed.at or 0))
            items.append(replace(self._answerable(printed), at=starts[-1]))
        is_open = bool(found.spans) and found.spans[-1].is_call and not found.spans[-1].closed
        thinking = found.thinking.strip()
        return Answer(thinking, found.closed, text, tuple(items), tuple(starts), beside, is_open)

    def _answerable(self, printed: Fault) -> Fault:
        """With an id, if it counts as a call: another dialect's markers are an attempt at one."""
        if printed.kind == "no_wrapper":
            return printed
        self._n_calls += 1
        return replace(printed, call_id=self._id)

    def _read_call(self, span: Span, cut: bool) -> ToolCall | Fault:
        if not span.closed:
            if cut:
                return Fault(
                    "cut", "the call was cut off by the token limit and not run; send smaller pieces"
                )
            reason = f"the call does not end with {self._markers.call_close}; resend it whole"
            return Fault("wrapper_unclosed", reason, at=span.start + len(span.text))
        body = span.text.strip(BLANKS)
        start = span.start + span.text.index(body)
        if fault := self._not_json(body):
            return replace(fault, at=start)
        try:
            head, end = DECODER.raw_decode(body)
        except (ValueError, RecursionError) as error:
            hint = self._raw_hint(re.match(r'\{\s*"name"\s*:\s*"([^"]*)"', body))
            reason = f"the call is not valid JSON: {what_is_wrong(error)}; resend it mended{hint}"
            return Fault("json_invalid", reason, at=start + getattr(error, "pos", 0))
        rest = body[end:]
        name = head.get("name") if isinstance(head, dict) else None
        tool = self._tools.get(name) if isinstance(name, str) else None
        if tool and tool.freeform and (patch := _raw_patch(head, rest)):
            return self._call(tool.name, {next(iter(tool.parameters["properties"])): patch})
        if rest.strip():
            reason = (
                f"after the call's JSON object comes {rest.strip()[:20]!r}; only one object may stand there"
            )
            return Fault("json_invalid", reason, at=start + end)
        return self._read_object(head)

    def _not_json(self, body: str) -> Fault | None:
        """What is no attempt at a JSON object."""
        m = self._markers
        if not body:
            return Fault("json_invalid", f"the call is empty: expected JSON {_FORM} between the markers")
        if body.startswith(m.call_open):
            reason = f"the call begins with {m.call_open} twice, and ends once; resend it with one"
            return Fault("wrapper_unclosed", reason)
        if re.match(r"</?[A-Za-z]", body):
            return Fault("wrong_dialect", f"expected JSON {_FORM} between the markers, not XML")
        if re.match(r"[\w.-]+\s*<arg_key>", body):
            return Fault("wrong_dialect", f"expected JSON {_FORM} between the markers, not keys and values")
        if re.match(r"\[?\s*[A-Za-z_][\w.]*\(", body):
            return Fault("wrong_dialect", f"expected JSON {_FORM} between the markers, not a Python call")
        raw = next((tool for tool in self._tools.values() if tool.freeform), None)
        if raw and body.startswith(PATCH_BEGIN):
            return Fault(
                "wrong_shape", f'before the patch stands a line that names the tool: {{"name": "{raw.name}"}}'
            )
        return None

    def _raw_hint(self, named: re.Match[str] | None) -> str:
        """How the argument of a tool is sent that takes it as raw text."""
        tool = self._tools.get(named[1]) if named else None
        if tool is None or not tool.freeform:
            return ""
        return f', or send the patch as raw text after the line {{"name": "{tool.name}"}}'

    def _read_object(self, head: Any) -> ToolCall | Fault:
        if not isinstance(head, dict):
            return Fault("wrong_shape", f"a call is one JSON object, not {_kind(head)}")
        name = head.get("name")
        if "name" in head and not isinstance(name, str):
            return Fault("wrong_shape", f"the name of a tool must be a string, not {_kind(name)}")
        tool = self._tools.get(name) if name else None
        if tool and tool.freeform and set(head) == {"name"}:
            return Fault("wrong_shape", "there is no patch: it follows as raw text, from the next line on")
        if name is None or "arguments" not in head:
            keys = ", ".join(map(str, head)) or "none"
            return Fault("wrong_shape", f'a call has the keys "name" and "arguments"; this one has: {keys}')
        if name not in self._tools:
            shown = name if name.strip() == name != "" else repr(name)
            return Fault("unknown_tool", f"no tool {shown}; tools are: {', '.join(sorted(self._tools))}")
        arguments = head["arguments"]
        if isinstance(arguments, str):
            # Some models quote the object once more; the meaning is beyond doubt.
            try:
                arguments = DECODER.decode(arguments)
            except (ValueError, RecursionError):
                return Fault("wrong_shape", "arguments must be an object, not a string")
        if not isinstance(arguments, dict):
            return Fault("wrong_shape", f"arguments must be an object, not {_kind(arguments)}")
        return self._call(name, arguments)

    def printed(self, text: str, sent: Iterable[str] = ()) -> Fault | None:
        """A call or a patch that was printed as plain text.

        Args:
            text: the answer's free text.
            sent: calls and patches that were sent as well: to quote them is no fault.

        Returns:
            A fault whose place is one of the text, if nothing was sent.
        """
        for one in sent:
            text = text.replace(one, "")
        m = self._markers
        names = "|".join(map(re.escape, self._tools))
        keys = "|".join(
            re.escape(key) for tool in self._tools.values() for key in tool.parameters.get("properties", ())
        )
        if names and (found := re.search(_PRINTED.format(names=names), text, re.MULTILINE)):
            reason = f"a call must stand between {m.call_open} and {m.call_close}"
            return Fault("no_wrapper", reason, at=found.start())
        for pattern in _PRINTED_OTHERWISE if names else ():
            if found := re.search(pattern.format(names=names, keys=keys or "(?!)"), text, re.MULTILINE):
                reason = f"a call is JSON {_FORM} between {m.call_open} and {m.call_close}, not XML, Python or the like"
                return Fault("wrong_dialect", reason, at=found.start())
        raw = next((tool for tool in self._tools.values() if tool.freeform), None)
        if raw and (found := re.search(_PRINTED_PATCH, text, re.MULTILINE)):
            reason = (
                f"a patch that is only printed changes nothing: send it as a call of {raw.name}, between "
                f'{m.call_open} and {m.call_close}, after a line {{"name": "{raw.name}"}}'
            )
            return Fault("no_wrapper", reason, at=found.start())
        return None

    def _call(self, name: str, arguments: dict[str, Any]) -> ToolCall:
        return ToolCall(self._id, name, arguments)

    @property
    def _id(self) -> str:
        return f"call_{self._n_calls}"


_FORM = '{"name": …, "arguments": {…}}'

# A line that begins with a call, maybe behind another wrapper, a fence or in an array; a whole call after words; a
# whole call of a tool that there is not.
_PRINTED = (
    r"^[ \t]*(?:</?[\w|]+>|\[[A-Z_]+\]|```\w*|\[|[ \t])*\{{\s*"
    r'(?:"name"\s*:\s*"(?:{names})"|"(?:arguments|parameters)"\s*:[^\n]*"name"\s*:\s*"(?:{names})"|'
    r'"name"\s*:\s*"[\w.-]+"\s*,\s*"(?:arguments|parameters)"\s*:\s*\{{)|'
    r'^(?!.*`)[^\n]*\{{[ \t]*"name"[ \t]*:[ \t]*"(?:{names})"[ \t]*,[ \t]*"(?:arguments|parameters)"[ \t]*:[ \t]*\{{'
)
_PRINTED_OTHERWISE = (
    # XML, with a known name, or with parameters behind any
    r'^(?!.*`)[^\n]*<(?:function\s*=\s*"?|(?:function|invoke|tool_call)\s+name\s*=\s*"?)(?:{names})\b',
    r'^[ \t]*<function\s*=\s*"?[\w.-]+"?>\s*(?:<parameter\b|</function>)',
    r"^[ \t]*<(?:{names})>\s*<(?:{keys})>",
    # Python
    r"^[ \t]*(?:<\|\w+\|>)?(?:\[|print\(|await |\w+ = )?(?:{names})\(\s*(?:{keys})\s*=",
    r"^[ \t]*functions\.(?:{names})\(",
    # JSON that is none
    r"^[ \t]*\{{\s*(?:'name'\s*:\s*'(?:{names})'|name\s*:\s*[\"'](?:{names})[\"'])",
    # of other interfaces: a line of JSON that names a tool, and does not describe it
    r'^[ \t]*(?:functools)?[\[{{](?!.*"(?:description|properties)"\s*:)[^\n]*'
    r'"(?:name|tool|function|action|tool_name)"\s*:\s*"(?:{names})"',
    # of OpenAI's interface, Mistral, ReAct, DeepSeek, harmony
    r'"function"\s*:\s*\{{\s*"name"\s*:\s*"(?:{names})"\s*,\s*"arguments"',
    r"^[ \t]*\[TOOL_CALLS\]\s*(?:{names})\b",
    r"^[ \t]*Action:[ \t]*(?:{names})[ \t]*$",
    r"<[|\uff5c]tool[_\u2581]sep[|\uff5c]>\s*(?:{names})\b",
    r"<\|channel\|>[^\n]*\bto=functions\.(?:{names})\b",
)
"""Calls in other dialects, as free text; more of them than a model that was trained on this one writes."""
_PRINTED_PATCH = r"^[ \t]*\*\*\* Begin Patch[ \t\r]*$"


def _place(spans: Sequence[Span], at: int) -> int:
    """From a character of the joined text of spans, stripped, to one of the answer."""
    joined = "".join(span.text for span in spans)
    at += len(joined) - len(joined.lstrip())
    for span in spans:
        if at < len(span.text):
            return span.start + at
        at -= len(span.text)
    return 0


def _sent(spans: Iterable[Span], items: Iterable[ToolCall | Fault]) -> list[str]:
    """The calls of an answer and their patches, as one may quote them."""
    bodies = [span.text.strip() for span in spans if span.is_call and '"name"' in span.text]
    arguments = [value for item in items if isinstance(item, ToolCall) for value in item.arguments.values()]
    patches = [value.strip() for value in arguments if isinstance(value, str) and PATCH_BEGIN in value]
    return [*bodies, *patches]


def _raw_patch(head: dict[str, Any], rest: str) -> str | None:
    """The raw text after a call's head, if that leaves no doubt that one follows."""
    lines = re.match(r"[ \t\r]*\n(?=.*\S)", rest, re.DOTALL)
    if set(head) == {"name"} and lines:
        return rest[lines.end() :]
    if not head.get("arguments") and rest.lstrip().startswith(PATCH_BEGIN):
        return rest.lstrip()
    return None


def _kind(value: Any) -> str:
    return {list: "an array", str: "a string", type(None): "null", bool: "true or false"}.get(
        type(value), "a number"
    )
