"""The grammar of one turn: thinking, free text, and calls of the tools on offer.

Hermes dialect (Qwen3): the open marker, newline, `{"name": NAME, "arguments": ARGS}`, newline, the close
marker. A patch call is `{"name": "apply_patch"}`, newline, the raw patch. `grammar.answers` reads it back.
"""

from __future__ import annotations

import json
import re
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from constrained_agent.errors import GrammarError, UserError
from constrained_agent.grammar import endings, matcher, patches, sources
from constrained_agent.grammar.located.offer import LocatedPatches
from constrained_agent.grammar.located.placing import SPECIAL, Frame, PlacingMatcher
from constrained_agent.grammar.located.rules import written
from constrained_agent.grammar.sources import Grammar
from constrained_agent.messages import ToolSpec

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
) -> Grammar:
    """The language of one model answer.

    Args:
        tools: the tools on offer.
        choice: `auto` (text, or text and a call), `none`, `required` (a call at once), or one tool's name.
        markers: the dialect's markers.
        thinking: the answer starts with a thinking block. False where the prompt holds a closed one already.
        patch_rules: Lark rules in which `patches.RULE` is a patch; the strict language if left out.

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
        rules.append(_call(markers, offered))
        rules += [_arguments(i, tool) for i, tool in enumerate(offered) if not tool.freeform]
        if any(tool.freeform for tool in offered):
            rules.append(patches.freeform_rules() if patch_rules is None else patch_rules)
    return Grammar(
        f"turn ({choice}: {', '.join(t.name for t in offered) or 'text'})", "lark", "\n".join(rules) + "\n"
    )


def patch_frame(markers: Markers, tool: str) -> Frame:
    """What stands around the raw patch of a call."""
    mark = SPECIAL if markers.are_tokens else b""
    opener, closer = (mark + marker.encode() + mark for marker in (markers.call_open, markers.call_close))
    return Frame(opener + f'\n{{"name": "{tool}"}}\n'.encode(), b"\n" + closer)


def compile_turn(
    tokenizer: matcher.EngineTokenizer,
    tools: Sequence[ToolSpec],
    choice: str,
    markers: Markers,
    *,
    thinking: bool = False,
    max_added_lines: int = patches.MAX_ADDED_LINES,
    located: LocatedPatches | None = None,
) -> endings.ClosableMatcher:
    """`turn_grammar`, compiled; a schema that the engine cannot take is reported by its tool's name.

    Args:
        max_added_lines: `+` lines that may follow each other in a patch.
        located: holds patches to the lines of files; then compile on a deep stack (`grammar.deepstack`).

    Raises:
        GrammarError: names the tool at fault.
        UserError: as `turn_grammar`.
    """
    strict = patches.freeform_rules(max_added_lines)
    grammar = turn_grammar(tools, choice, markers, thinking=thinking, patch_rules=strict)
    patch_tools = [tool.name for tool in _offered(tools, choice) if tool.freeform]
    try:
        if located is None or not patch_tools:
            return endings.closable(tokenizer, grammar)
        placed = turn_grammar(tools, choice, markers, thinking=thinking, patch_rules=written(located))
        frame = patch_frame(markers, patch_tools[0])
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


def _call(markers: Markers, offered: Sequence[ToolSpec]) -> str:
    """The call after its open marker.

    The common beginning stands once: LLGuidance keeps the lexemes of a `%json` part apart, and a literal and
    a `%json` that start at the same place are not tried side by side.
    """
    closer = markers.call_close if markers.are_tokens else json.dumps(markers.call_close)
    heads = []
    for i, tool in enumerate(offered):
        if tool.freeform:
            literal = json.dumps(f'{tool.name}"}}\n')
            heads.append(f"{literal} {patches.RULE}")
        else:
            literal = json.dumps(f'{tool.name}", "arguments": ')
            heads.append(f'{literal} arguments_{i} "}}"')
    opening = json.dumps('\n{"name": "')
    return f'call: {opening} ( {" | ".join(heads)} ) "\\n" {closer}'


def _arguments(index: int, tool: ToolSpec) -> str:
    schema = sources.compacted(closed(dict(tool.parameters)))
    return f"arguments_{index}: %json {json.dumps(schema, ensure_ascii=False)}"
