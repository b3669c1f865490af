"""Lint's look at the lexer: places where it takes more text than the grammar's author had in mind.

The lexer takes the longest piece and never goes back. What a piece matches is asked of the engine itself.
"""

from __future__ import annotations

import json
from collections.abc import Iterator
from functools import cache

from constrained_agent.errors import GrammarError, MatcherError
from constrained_agent.grammar import characters, closing, sources
from constrained_agent.grammar.cursor import Cursor, Path
from constrained_agent.grammar.findings import Finding, finding
from constrained_agent.grammar.lark_reader import Node, Source
from constrained_agent.grammar.lark_sets import Lexemes, Sets
from constrained_agent.grammar.matcher import Matcher
from constrained_agent.grammar.sources import Grammar
from constrained_agent.grammar.walk import byte_matcher

# Pairs that are tried with the engine; each costs about 0.1 ms once its lexemes are compiled.
_MAX_PAIRS = 20_000
_MAX_COMPILED = 500
_MIN_SHARED = 2  # a bracket alone in common is no trouble: it is a lexeme of the JSON too


def traps(source: Source, sets: Sets) -> Iterator[Finding]:
    """All of them, in no order; some may come twice."""
    pieces = _Pieces(source)
    if not source.ignored:  # what is ignored mostly separates the lexemes
        yield from _open_ended(sets, pieces)
        yield from _prefixes(sets, pieces)
    yield from _beside_json(sets, pieces)


class _Pieces:
    """The lexemes of a grammar, compiled apart."""

    def __init__(self, source: Source) -> None:
        self._source = source
        self._context = "\n".join(
            [one.text for one in source.statements if not one.text.startswith("%ignore")]
            + [one.source for one in source.definitions.values() if one.is_terminal]
        )
        self._n_compiled = 0
        self.matcher = cache(self._matcher)
        self.sample = cache(self._sample)

    def _matcher(self, node: Node) -> Matcher | None:
        """Of a lexeme by itself; None if the engine cannot say."""
        named = self._source.definitions.get(node.text) if node.kind == "name" else None
        lazy = named is not None and not named.is_terminal
        self._n_compiled += 1
        if node.kind == "other" or lazy or self._n_compiled > _MAX_COMPILED:
            return None
        text = node.text if node.kind != "json" else f"%json {node.text}"
        grammar = Grammar("lexeme", "lark", f"start: {text}\n{self._context}\n")
        if node.kind == "json":
            grammar = sources.from_json_schema(json.loads(node.text))
        try:
            return byte_matcher(grammar)
        except GrammarError:
            return None

    def _sample(self, node: Node) -> bytes:
        """The shortest text of a lexeme that is not empty; empty if none is known."""
        if node.kind == "string":
            return literal(node.text)
        matcher = self.matcher(node)
        if matcher is None:
            return b""
        try:
            path = closing.shortest(matcher)
            if path == ():
                path = _not_empty(matcher)
        except MatcherError:
            return b""
        return bytes(path or ())

    def goes_on(self, node: Node, text: bytes) -> bool:
        """Whether a lexeme that could end takes a text all the same."""
        matcher = self.matcher(node)
        if matcher is None:
            return False
        try:
            path = closing.shortest(matcher)
            if path is None:
                return False
            after = matcher.copy()
            after.consume(path)
            return after.accepted_prefix(text) == len(text)
        except MatcherError:
            return False

    def may_begin(self, node: Node, text: bytes) -> int:
        """How many bytes of a text a lexeme may begin with."""
        matcher = self.matcher(node)
        return 0 if matcher is None else matcher.accepted_prefix(text)


def _not_empty(matcher: Matcher) -> Path | None:
    """The shortest way on that takes at least one byte."""
    allowed = [token for token in Cursor(matcher).at(()).tokens() if token < 256]
    if not allowed:
        return None
    first = characters.plainest({token for token in allowed if token < 0x80} or set(allowed))
    longer = matcher.copy()
    longer.consume([first])
    return (first, *(closing.shortest(longer) or ()))


def literal(source: str) -> bytes:
    """The text of a literal; empty if its escapes are unknown."""
    try:
        return str(json.loads(source.removesuffix("i"))).encode()
    except (ValueError, UnicodeEncodeError):
        return b""


def _open_ended(sets: Sets, pieces: _Pieces) -> Iterator[Finding]:
    n_pairs = 0
    for node, followers in sets.followers:
        if node.kind not in ("regex", "name", "range"):
            continue
        for key, follower in followers.items():
            n_pairs += 1
            if n_pairs > _MAX_PAIRS or key == (node.kind, node.text):
                continue
            text = pieces.sample(follower)
            if text and pieces.goes_on(node, text):
                yield finding(
                    "open_ended_terminal",
                    node.line,
                    node.column,
                    f"{node.text} also matches {_shown(text)}, which should come after it: the lexer takes the "
                    "longest match and never goes back, so that text is swallowed",
                )
                break


def _prefixes(sets: Sets, pieces: _Pieces) -> Iterator[Finding]:
    after: dict[tuple[str, str], Lexemes] = {}
    for node, followers in sets.followers:
        after.setdefault((node.kind, node.text), {}).update(followers)
    for place in sets.places:
        words = (
            sorted(
                (text, node)
                for node in place.values()
                if node.kind == "string" and (text := literal(node.text))
            )
            if len(place) <= _MAX_PAIRS
            else []
        )
        for (short, node), (long, _) in _prefix_pairs(words):
            onward = long[len(short) :][:1]
            if any(pieces.may_begin(one, onward) for one in after.get(("string", node.text), {}).values()):
                yield finding(
                    "prefix_terminals",
                    node.line,
                    node.column,
                    f"{_shown(short)} begins {_shown(long)}, and {_shown(onward)} may follow it: at that "
                    f"character the lexer goes on with {_shown(long)} and never comes back",
                )


def _prefix_pairs(words: list[tuple[bytes, Node]]) -> Iterator[tuple[tuple[bytes, Node], tuple[bytes, Node]]]:
    """Pairs of sorted texts of which the first begins the second."""
    for position, short in enumerate(words):
        for long in words[position + 1 :]:
            if not long[0].startswith(short[0]):
                break
            if long[0] != short[0]:
                yield short, long


def _beside_json(sets: Sets, pieces: _Pieces) -> Iterator[Finding]:
    for place in sets.places:
        schemas = [node for node in place.values() if node.kind == "json"]
        for node in place.values() if schemas else ():
            text = b"" if node.kind == "json" else pieces.sample(node)
            for schema in schemas if len(text) >= _MIN_SHARED else ():
                if pieces.may_begin(schema, text) >= _MIN_SHARED:
                    yield finding(
                        "json_beside_literal",
                        node.line,
                        node.column,
                        f"{_shown(text)} and the %json of line {schema.line} begin alike at the same place: the "
                        "engine keeps their lexemes apart and follows only one of the two",
                    )


def _shown(text: bytes) -> str:
    shown = text.decode("utf-8", "replace")
    return json.dumps(shown if len(shown) <= 40 else shown[:40] + "…", ensure_ascii=False)
