"""Lint: faults of a grammar that the engine reports, and traps that it does not."""

from __future__ import annotations

import json
import re
from collections.abc import Iterator, Sequence

from constrained_agent.errors import GrammarError
from constrained_agent.grammar import lark_reader, lexer_traps, schemas
from constrained_agent.grammar.findings import Finding, finding
from constrained_agent.grammar.lark_reader import Definition, Node, Source
from constrained_agent.grammar.lark_sets import Sets, is_one_piece, sets_of
from constrained_agent.grammar.sources import Grammar
from constrained_agent.grammar.walk import byte_matcher, guarded

# About 3,000 chained rules overflow the stack of an ordinary thread, by which decoding compiles.
_MAX_CHAIN = 1_000
_SPECIAL = re.compile(r"<[A-Za-z_/|][^<>\s]*>")
# Of JSON Schema's older drafts and of OpenAPI; the engine passes over them in silence.
_IGNORED_KEYWORDS = ("nullable", "divisibleBy", "extends", "disallow")
_UNSUPPORTED = (
    ("look_around", r"\(\?<?[=!]", "the engine has no look-ahead and look-behind"),
    ("back_reference", r"\\[1-9]|\(\?P=", "the engine has no references back to a group"),
    ("word_boundary", r"\\[bB]", "the engine has no word boundaries"),
)
_FREE_DOT = re.compile(r"\.\)?(?:[*+]|\{\d*,)")


def lint(grammar: Grammar, specials: Sequence[str] = ()) -> list[Finding]:
    """Look for faults and traps; 10 ms to some seconds for thousands of rules.

    Args:
        grammar: of any kind; Lark grammars have most to look at.
        specials: names of special tokens; those that the grammar itself names are known without.

    Returns:
        Findings in the order of the text, each place and code once.

    Raises:
        UserError: it takes too much time or memory.
    """
    return guarded(lambda: _linted(grammar, specials), grammar, len(grammar.text))


def _linted(grammar: Grammar, specials: Sequence[str]) -> list[Finding]:
    found = {
        "lark": lambda: _of_lark(grammar, specials),
        "regex": lambda: _of_regex(grammar),
        "json_schema": lambda: _of_schema(grammar),
    }[grammar.kind]()
    first: dict[tuple[str, int, int], Finding] = {}
    for one in found:
        first.setdefault((one.code, one.line, one.column), one)
    return sorted(first.values(), key=lambda one: (one.line, one.column, one.code))


def _of_lark(grammar: Grammar, specials: Sequence[str]) -> list[Finding]:
    error = _compiled(grammar, [*dict.fromkeys([*specials, *_SPECIAL.findall(grammar.text)])])
    try:
        source = lark_reader.read(grammar.text)
    except lark_reader.UnreadableError as unreadable:
        return [error or finding("unreadable", 1, 1, f"lint cannot read this grammar: {unreadable}")]
    sets = sets_of(source)
    found = [*_unsupported(source), *_names(source), *_endless(source, sets)]
    explained = error and any(one.line == error.line for one in found)
    found += [*_long_chains(source), *_slow(source, sets)]
    if error is None:
        found += [*lexer_traps.traps(source, sets), *_dots(source, sets)]
    return found if explained or error is None else [*found, error]


def _of_regex(grammar: Grammar) -> list[Finding]:
    error = _compiled(grammar, ())
    found = list(_unsupported_in(grammar.text, 1, 1))
    return found or ([error] if error else [])


def _of_schema(grammar: Grammar) -> list[Finding]:
    error = _compiled(grammar, ())
    return ([error] if error else []) + [
        finding(
            "ignored_keyword", 1, 1, f'"{key}" at {path} has no effect: it is no keyword of the drafts in use'
        )
        for path, schema in schemas.subschemas(json.loads(grammar.text))
        for key in _IGNORED_KEYWORDS
        if key in schema
    ]


def _compiled(grammar: Grammar, specials: Sequence[str]) -> Finding | None:
    """The engine's own error, if any."""
    try:
        byte_matcher(grammar, specials)
    except GrammarError as error:
        return finding("compile_error", error.line or 1, error.column or 1, error.reason)
    return None


def _unsupported(source: Source) -> Iterator[Finding]:
    for rule in source.definitions.values():
        if re.match(r"[!?]*\w+\s*\.\s*-?\d", rule.source):
            yield finding("priority", rule.line, rule.column, f"{rule.name}: the engine has no priorities")
        if re.match(r"[!?]*\w+\s*\{", rule.source):
            yield finding(
                "template", rule.line, rule.column, f"{rule.name}: the engine has no rule templates"
            )
        for node in rule.body.walk():
            if node.kind == "regex":
                yield from _unsupported_in(node.text, node.line, node.column)
    for one in source.statements:
        if re.match(r"%(declare|override|extend)\b", one.text):
            message = f"the engine does not know {one.text.split()[0]}"
            yield finding("unsupported_statement", one.line, one.column, message)


def _unsupported_in(pattern: str, line: int, column: int) -> Iterator[Finding]:
    bare = re.sub(r"\\\\", "", re.sub(r"\[\^?\]?(?:\\.|[^\]\\])*\]", "", pattern))
    for code, found, message in _UNSUPPORTED:
        if match := re.search(found, bare):
            yield finding(code, line, column, f"{match.group()} in a regular expression: {message}")


def _names(source: Source) -> Iterator[Finding]:
    """Names that are not defined, and definitions that nothing needs."""
    reached: set[str] = set()
    left = ["start"] + [node.text for one in source.ignored for node in one.walk() if node.kind == "name"]
    while left:
        name = left.pop()
        if name in reached or name not in source.definitions:
            continue
        reached.add(name)
        left += [node.text for node in source.definitions[name].body.walk() if node.kind == "name"]
    for one in source.definitions.values():
        for node in one.body.walk():
            known = node.text in source.definitions or node.text in source.imported
            if node.kind == "name" and not known:
                yield finding("undefined_name", node.line, node.column, f"{node.text} is not defined")
        if one.name not in reached and "start" in source.definitions:
            yield finding(
                "unreachable_rule", one.line, one.column, f"nothing that start needs uses {one.name}"
            )


def _endless(source: Source, sets: Sets) -> Iterator[Finding]:
    for one in source.definitions.values():
        if one.name not in sets.finite:
            message = f"{one.name} can never end: each of its alternatives needs a rule that goes on for ever"
            yield finding("endless_rule", one.line, one.column, message)


def _slow(source: Source, sets: Sets) -> Iterator[Finding]:
    for one in source.definitions.values():
        if is_one_piece(one):
            continue
        for node in one.body.walk():
            unbounded = node.kind == "repeat" and (node.high is None or node.high > 100)
            if unbounded and _is_one_of_many(node.children[0], source):
                message = f"{one.name} repeats a single character as a rule: each becomes a lexeme of its own"
                yield finding("single_character_rule", node.line, node.column, message)
        if one.name in sets.nullable and any(_ends_with(option, one.name) for option in _options(one.body)):
            message = f"{one.name} ends with itself and may be empty: time grows with the cube of its length"
            yield finding("right_recursion", one.line, one.column, message)


def _options(node: Node) -> tuple[Node, ...]:
    return node.children if node.kind == "alt" else (node,)


def _ends_with(option: Node, name: str) -> bool:
    last = option.children[-1] if option.kind == "seq" and len(option.children) > 1 else None
    if last is not None and last.kind == "repeat" and last.high == 1:
        last = last.children[0]
    return last is not None and last.kind == "name" and last.text == name


def _is_one_of_many(node: Node, source: Source, depth: int = 0) -> bool:
    """Whether it is always one character, but not always the same one."""
    if node.kind == "range":
        return True
    if node.kind == "regex":
        pattern = node.text[1 : node.text.rindex("/")]
        return bool(re.fullmatch(r"\[(?:\\.|[^\]\\])+\]|\.|\\[wdsWDS]|\\[pP]\{\w+\}|\\[pP]\w", pattern))
    if node.kind == "alt":
        return all(_is_one_of_many(one, source, depth) or _is_character(one) for one in node.children)
    if node.kind == "name" and depth < 20 and (found := source.definitions.get(node.text)):
        return _is_one_of_many(found.body, source, depth + 1)
    return False


def _is_character(node: Node) -> bool:
    return node.kind == "string" and len(lexer_traps.literal(node.text).decode("utf-8", "replace")) == 1


def _long_chains(source: Source) -> Iterator[Finding]:
    """Rules that need rules that need rules: the engine follows them on its stack."""
    depth: dict[str, int] = {}
    for root in source.definitions:
        stack: list[tuple[str, bool]] = [(root, False)]
        while stack:
            name, done = stack.pop()
            needed = _needed(source.definitions[name])
            if done:
                depth[name] = 1 + max((depth.get(other, 0) for other in needed), default=0)
            elif name not in depth:
                depth[name] = 0  # met again before it is done: a loop
                stack.append((name, True))
                stack += [
                    (other, False) for other in needed if other in source.definitions and other not in depth
                ]
    if depth and (longest := max(depth, key=lambda name: depth[name])) and depth[longest] > _MAX_CHAIN:
        one = source.definitions[longest]
        message = (
            f"{longest} begins a chain of {depth[longest]:,} rules: some 3,000 overflow the engine's stack"
        )
        yield finding("long_chain", one.line, one.column, message)


def _needed(one: Definition) -> list[str]:
    return [node.text for node in one.body.walk() if node.kind == "name"]


def _dots(source: Source, sets: Sets) -> Iterator[Finding]:
    """Free text by `.` that no newline follows."""
    ended_by_newline: dict[tuple[str, str], bool] = {}
    for node, followers in sets.followers:
        newline = any(_begins_with_newline(one, source) for one in followers.values())
        key = (node.kind, node.text)
        ended_by_newline[key] = ended_by_newline.get(key, False) or newline
    for node, _ in sets.followers:
        if ended_by_newline[node.kind, node.text]:
            continue
        named = source.definitions.get(node.text) if node.kind == "name" else None
        for part in named.body.walk() if named else [node]:
            if part.kind == "regex" and _stops_at_newline(part.text):
                message = (
                    f"`.` in {part.text} matches no newline: text of several lines is refused at the first"
                )
                yield finding("dot_newline", part.line, part.column, message)


def _stops_at_newline(regex: str) -> bool:
    pattern, _, flags = regex[1:].rpartition("/")
    bare = re.sub(r"\\.|\[\^?\]?(?:\\.|[^\]\\])*\]", "_", pattern)
    return bool(_FREE_DOT.search(bare)) and "s" not in flags and "(?s" not in bare


def _begins_with_newline(node: Node, source: Source, depth: int = 0) -> bool:
    if node.kind == "name" and depth < 20 and (found := source.definitions.get(node.text)):
        return any(_begins_with_newline(one, source, depth + 1) for one in found.body.walk())
    return node.kind in ("string", "regex") and node.text[1:].startswith(
        ("\\n", "\\r", "(\\n", "(\\r", "[\\n", "[\\r")
    )
