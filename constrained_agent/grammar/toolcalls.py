"""The grammar of one turn: thinking, free text, and calls of the tools on offer.

Hermes dialect (Qwen3): the open marker, newline, `{"name": NAME, "arguments": ARGS}`, newline, the close
marker; between two calls a newline. A patch call is `{"name": "apply_patch"}`, newline, the raw patch, unless the
carrier is another one (`grammar.carriers`). `grammar.answers` reads it back.
"""

from __future__ import annotations

import json
import re
from collections.abc import Collection, Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from constrained_agent.errors import GrammarError, UserError
from constrained_agent.grammar import endings, matcher, patches, sources
from constrained_agent.grammar.carriers import FREEFORM, Carrier
from constrained_agent.grammar.located.offer import LocatedPatches
from constrained_agent.grammar.located.placing import SPECIAL, Frame, PlacingMatcher
from constrained_agent.grammar.located.rules import written
from constrained_agent.grammar.sources import Grammar
from constrained_agent.messages import ToolSpec

MAX_CALLS = 16
"""In one answer: more than a task has use for, and an end for a model that calls the same thing for ever."""

_NAME = re.compile(r"[A-Za-z_][A-Za-z0-9_.-]*")


@dataclass(frozen=True, slots=True)
class Markers:
    """The words around calls and thinking, and whether they are single special tokens or plain text.

    Attributes:
        are_tokens: True (Qwen3) if the tokenizer has them as tokens of their own; then text can never
            produce them. False (SmolLM2): the same words as text, and free text must not hold `call_open`.
        thinks: whether the dialect has thinking markers.
    """

    are_tokens: bool
    thinks: bool = False
    call_open: str = "<tool_call>"
    call_close: str = "</tool_call>"
    think_open: str = "<think>"
    think_close: str = "</think>"


def turn_grammar(
    tools: Sequence[ToolSpec],
    choice: str,
    markers: Markers,
    *,
    thinking: bool = False,
    patch_rules: str | None = None,
    carrier: Carrier = FREEFORM,
    parallel: bool = False,
    one_patch: bool = False,
) -> Grammar:
    """The language of one model answer.

    Args:
        tools: the tools on offer.
        choice: `auto` (text, or text and a call), `none`, `required` (a call at once), or one tool's name.
        markers: the dialect's markers.
        thinking: the answer starts with a thinking block. False where the prompt holds a closed one already.
        patch_rules: Lark rules in which `patches.RULE` is a patch; the strict language if left out.
        carrier: how a patch travels.
        parallel: up to `MAX_CALLS` calls may follow each other.
        one_patch: among them one patch at most.

    Raises:
        UserError: `choice` names no tool, a call is required but no tool is on offer, or a name is malformed.
    """
    offered = _offered(tools, choice)
    rules = []
    if thinking:
        rules.append(
            f'start: thinking answer\nthinking: {markers.think_open} THINKING? {markers.think_close} "\\n\\n"'
        )
        rules.append("THINKING: /(.|\\n)+/")
    else:
        rules.append("start: answer")
    rules.append(_answer(markers, offered, must_call=choice not in ("auto", "none")))
    if offered:
        rules += (
            _calls(markers, offered, carrier, one_patch) if parallel else [_call(markers, offered, carrier)]
        )
        rules += [_arguments(i, tool) for i, tool in enumerate(offered) if not tool.freeform]
        if any(tool.freeform for tool in offered):
            rules.append(patches.carried_rules(carrier) if patch_rules is None else patch_rules)
    return Grammar(
        f"turn ({choice}: {', '.join(t.name for t in offered) or 'text'})", "lark", "\n".join(rules) + "\n"
    )


def patch_frame(markers: Markers, tool: ToolSpec, carrier: Carrier = FREEFORM) -> Frame:
    """What stands around the patch of a call."""
    mark = SPECIAL if markers.are_tokens else b""
    opener, closer = (mark + marker.encode() + mark for marker in (markers.call_open, markers.call_close))
    head, tail = _around_patch(tool, carrier)
    return Frame(opener + f'\n{{"name": "{head}'.encode(), f"{tail}\n".encode() + closer)


def compile_turn(
    tokenizer: matcher.EngineTokenizer,
    tools: Sequence[ToolSpec],
    choice: str,
    markers: Markers,
    *,
    thinking: bool = False,
    max_added_lines: int = patches.MAX_ADDED_LINES,
    carrier: Carrier = FREEFORM,
    parallel: bool = False,
    located: LocatedPatches | None = None,
) -> endings.ClosableMatcher:
    """`turn_grammar`, compiled; a schema that the engine cannot take is reported by its tool's name.

    Args:
        max_added_lines: `+` lines that may follow each other in a patch.
        carrier: how a patch travels.
        parallel: up to `MAX_CALLS` calls may follow each other; of located patches only one, since after it the
            lines of files are no longer those that the grammar knows.
        located: holds patches to the lines of files, as `carrier` carries them; then compile on a deep stack
            (`grammar.deepstack`).

    Raises:
        GrammarError: names the tool at fault.
        UserError: as `turn_grammar`.
    """
    if located is not None and located.carrier is not carrier:
        raise ValueError(
            f"patches are located as {located.carrier.name}, and to be carried as {carrier.name}"
        )
    patch_tools = [tool for tool in _offered(tools, choice) if tool.freeform]

    def with_patches(rules: str) -> Grammar:
        return turn_grammar(
            tools,
            choice,
            markers,
            thinking=thinking,
            patch_rules=rules,
            carrier=carrier,
            parallel=parallel,
            one_patch=located is not None,
        )

    grammar = with_patches(patches.carried_rules(carrier, max_added_lines))
    try:
        if located is None or not patch_tools:
            return endings.closable(tokenizer, grammar)
        placed, frame = with_patches(written(located)), patch_frame(markers, patch_tools[0], carrier)
        return PlacingMatcher(tokenizer, placed, located, ends_of=grammar, frame=frame)
    except GrammarError:
        for schema in parameter_grammars(tools):
            matcher.validate(schema, tokenizer)
        raise


def parameter_grammars(tools: Sequence[ToolSpec]) -> Iterator[Grammar]:
    """Each tool's schema by itself: compiled one by one, they name the tool that a turn's grammar fails on."""
    for tool in tools:
        yield sources.from_json_schema(closed(tool.parameters), name=f"parameters of tool {tool.name}")


def closed(schema: Any) -> Any:
    """A copy of a JSON schema in which every object that leaves it open takes no further keys.

    Open objects let a model invent keys, and an open empty object never has to end.
    """
    if isinstance(schema, list):
        return [closed(item) for item in schema]
    if not isinstance(schema, Mapping):
        return schema
    copy = {
        key: value if key in ("enum", "const", "default", "examples") else closed(value)
        for key, value in schema.items()
    }
    if schema.get("type") == "object" and "patternProperties" not in schema:
        copy.setdefault("additionalProperties", False)
    return copy


def check_choice(tools: Sequence[ToolSpec], choice: str) -> None:
    """Refuse a choice that `turn_grammar` would refuse, before a model is loaded for it.

    Raises:
        UserError: as there.
    """
    _offered(tools, choice)


def _offered(tools: Sequence[ToolSpec], choice: str) -> list[ToolSpec]:
    for tool in tools:
        if not _NAME.fullmatch(tool.name):
            raise UserError(f"tool name {tool.name!r} is not made of letters, digits, '_', '.' and '-'")
    if choice == "none":
        return []
    if choice == "auto":
        return list(tools)
    offered = [tool for tool in tools if choice in ("required", tool.name)]
    if not offered:
        known = ", ".join(tool.name for tool in tools) or "none"
        raise UserError(f"tool choice {choice!r} names no tool on offer; there are: {known}")
    return offered


def _answer(markers: Markers, offered: Sequence[ToolSpec], *, must_call: bool) -> str:
    """The rules for free text and for where a call may start.

    With text markers the marker itself ends the text: a greedy text lexeme would swallow it, so there is one
    lexeme that ends lazily at the marker and one that must not hold it.
    """
    opener = markers.call_open if markers.are_tokens else json.dumps(markers.call_open)
    if must_call:
        return f"answer: {opener} call"
    if markers.are_tokens:
        return (
            f"answer: TEXT | TEXT? {opener} call\nTEXT: /(.|\\n)+/"
            if offered
            else "answer: TEXT\nTEXT: /(.|\\n)+/"
        )
    held = re.escape(markers.call_open).replace("/", "\\/")
    plain = f"TEXT: /(.|\\n)+/ & ~/(.|\\n)*{held}(.|\\n)*/"
    if not offered:
        return f"answer: TEXT\n{plain}"
    return f"answer: TEXT | text_and_opener call\n{plain}\ntext_and_opener[lazy]: /(.|\\n)*{held}/"


def _call(
    markers: Markers,
    offered: Sequence[ToolSpec],
    carrier: Carrier,
    *,
    name: str = "call",
    freeform: Collection[bool] = (False, True),
) -> str:
    """The rule of a call after its open marker.

    The common beginning stands once: LLGuidance keeps the lexemes of a `%json` part apart, and a literal and
    a `%json` that start at the same place are not tried side by side.

    Args:
        name: of the rule.
        freeform: of the tools that may be called.
    """
    closer = markers.call_close if markers.are_tokens else json.dumps(markers.call_close)
    heads = []
    for i, tool in enumerate(offered):
        if tool.freeform not in freeform:
            continue
        if tool.freeform:
            before, after = _around_patch(tool, carrier)
            heads.append(f"{json.dumps(before)} {patches.RULE}" + (f" {json.dumps(after)}" if after else ""))
        else:
            literal = json.dumps(f'{tool.name}", "arguments": ')
            heads.append(f'{literal} arguments_{i} "}}"')
    opening = json.dumps('\n{"name": "')
    return f'{name}: {opening} ( {" | ".join(heads)} ) "\\n" {closer}'


def _calls(markers: Markers, offered: Sequence[ToolSpec], carrier: Carrier, one_patch: bool) -> Iterator[str]:
    """The rules of several calls after the first one's open marker."""
    more = f'"\\n" {markers.call_open}' if markers.are_tokens else json.dumps(f"\n{markers.call_open}")
    kinds = {tool.freeform for tool in offered}
    if one_patch and kinds == {True}:
        yield _call(markers, offered, carrier)
    elif not one_patch or kinds == {False}:
        yield f"call: one_call ({more} one_call){{0,{MAX_CALLS - 1}}}"
        yield _call(markers, offered, carrier, name="one_call")
    else:
        yield f"call: calls_{MAX_CALLS}"
        yield "calls_1: patch_call | other_call"
        for n in range(2, MAX_CALLS + 1):  # calls that may come, a patch among them
            others = f"({more} other_call){{0,{n - 1}}}"
            yield f"calls_{n}: patch_call {others} | other_call ({more} calls_{n - 1})?"
        yield _call(markers, offered, carrier, name="patch_call", freeform=(True,))
        yield _call(markers, offered, carrier, name="other_call", freeform=(False,))


def _around_patch(tool: ToolSpec, carrier: Carrier) -> tuple[str, str]:
    return carrier.around(tool.name, next(iter(tool.parameters["properties"])))


def _arguments(index: int, tool: ToolSpec) -> str:
    schema = sources.compacted(closed(dict(tool.parameters)))
    return f"arguments_{index}: %json {json.dumps(schema, ensure_ascii=False)}"
