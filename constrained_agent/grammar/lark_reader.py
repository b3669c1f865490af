"""Reads the text of a Lark grammar, LLGuidance's additions included, into definitions with positions.

For lint alone: the engine reads grammars by itself. What lint has no use for (attributes' values, conditions,
nested grammars) is skipped.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, field
from typing import Literal

from constrained_agent.grammar.lark_tokens import Token, tokens

Kind = Literal["alt", "seq", "repeat", "string", "regex", "range", "name", "json", "and", "not", "other"]


class UnreadableError(Exception):
    """The text is no Lark that this reader knows; the engine's own message says more."""


@dataclass(frozen=True, slots=True)
class Node:
    """A part of a definition.

    Attributes:
        kind: what it is; `other` stands for special tokens, nested grammars and the like.
        line, column: where it begins, 1-based.
        text: the source of a literal, regex or range, the name, or the schema.
        children: its parts.
        low, high: of a repetition; `high` None: without end.
    """

    kind: Kind
    line: int
    column: int
    text: str = ""
    children: tuple[Node, ...] = ()
    low: int = 1
    high: int | None = 1

    def walk(self) -> Iterator[Node]:
        """It and everything within it."""
        yield self
        for child in self.children:
            yield from child.walk()


@dataclass(frozen=True, slots=True)
class Definition:
    """A rule or terminal.

    Attributes:
        name: without `!` and `?`.
        attributes: names in its brackets, such as `lazy`.
        source: its text, to be compiled apart.
    """

    name: str
    line: int
    column: int
    attributes: frozenset[str]
    body: Node
    source: str

    @property
    def is_terminal(self) -> bool:
        return self.name.lstrip("_")[:1].isupper()


@dataclass(slots=True)
class Source:
    """All of a grammar text.

    Attributes:
        definitions: by name.
        imported: names that `%import` brings.
        ignored: what `%ignore` names.
        statements: the statements, each as a node with its source.
    """

    definitions: dict[str, Definition] = field(default_factory=dict)
    imported: set[str] = field(default_factory=set)
    ignored: list[Node] = field(default_factory=list)
    statements: list[Node] = field(default_factory=list)


def read(text: str) -> Source:
    """Read a grammar.

    Raises:
        UnreadableError: it cannot be read.
    """
    try:
        return _Reader(text).read()
    except (ValueError, RecursionError) as error:
        raise UnreadableError(str(error)) from None


class _Reader:
    """Recursive descent; the engine allows about 30 levels of brackets, so Python's stack is safe."""

    def __init__(self, text: str) -> None:
        self._text = text
        self._tokens = list(tokens(text))
        self._at = 0
        self._depth = 0  # brackets, within which newlines mean nothing

    @property
    def _now(self) -> Token:
        while self._depth and self._tokens[self._at].kind == "newline":
            self._at += 1
        return self._tokens[self._at]

    def _take(self) -> Token:
        token = self._now
        self._at += token.kind != "end"
        return token

    def _take_if(self, text: str) -> bool:
        if self._now.text != text:
            return False
        self._take()
        return True

    def read(self) -> Source:
        source = Source()
        while (token := self._now).kind != "end":
            if token.kind == "newline":
                self._take()
            elif token.kind == "statement":
                self._statement(source)
            else:
                found = self._definition()
                source.definitions.setdefault(found.name, found)
        return source

    def _statement(self, source: Source) -> None:
        first = self._take()
        if first.text == "%ignore":
            source.ignored.append(self._expansions())
        while self._now.kind not in ("newline", "end"):
            token = self._take()
            if first.text == "%import" and token.kind == "name":
                source.imported.add(token.text)
        source.statements.append(_node("other", first, self._text[first.offset : self._now.offset]))

    def _definition(self) -> Definition:
        first = self._take()
        if first.kind != "name":
            raise ValueError(f"line {first.line}: {first.text!r} begins no rule")
        attributes = set()
        while (token := self._take()).text != ":":  # parameters, priority, attributes
            if token.kind in ("newline", "end"):
                raise ValueError(f"line {first.line}: no colon after {first.text}")
            if token.kind == "name":
                attributes.add(token.text)
        body = self._expansions()
        source = self._text[first.offset : self._now.offset]
        return Definition(
            first.text.lstrip("!?"), first.line, first.column, frozenset(attributes), body, source
        )

    def _expansions(self) -> Node:
        first = self._now
        options = [self._conjunction()]
        while self._bar():
            options.append(self._conjunction())
        return options[0] if len(options) == 1 else _node("alt", first, children=tuple(options))

    def _bar(self) -> bool:
        """Take a `|`, at the beginning of a later line too."""
        ahead = self._at
        while self._tokens[ahead].kind == "newline":
            ahead += 1
        if self._tokens[ahead].text != "|":
            return False
        self._at = ahead + 1
        return True

    def _conjunction(self) -> Node:
        first = self._now
        parts = [self._sequence()]
        while self._take_if("&"):
            parts.append(self._sequence())
        return parts[0] if len(parts) == 1 else _node("and", first, children=tuple(parts))

    def _sequence(self) -> Node:
        first = self._now
        parts = []
        while self._now.kind not in ("newline", "end") and self._now.text not in ("|", ")", "]", "&"):
            if self._now.text in ("->", "%if"):
                while self._now.kind not in ("newline", "end") and self._now.text not in ("|", "&"):
                    self._take()
                break
            parts.append(self._repeated())
        return parts[0] if len(parts) == 1 else _node("seq", first, children=tuple(parts))

    def _repeated(self) -> Node:
        first = self._now
        if self._take_if("~"):
            return _node("not", first, children=(self._repeated(),))
        node = self._atom()
        while (counts := self._counts()) is not None:
            node = Node("repeat", first.line, first.column, "", (node,), *counts)
        return node

    def _counts(self) -> tuple[int, int | None] | None:
        simple = {"?": (0, 1), "*": (0, None), "+": (1, None)}.get(self._now.text)
        if simple is not None:
            self._take()
            return simple
        if self._now.text == "~" and self._tokens[self._at + 1].kind == "number":
            self._take()
            low = int(self._take().text)
            return low, int(self._take().text) if self._take_if("..") else low
        if not self._take_if("{"):
            return None
        inside = []
        while (token := self._take()).text != "}":
            if token.kind == "end":
                raise ValueError("a brace is not closed")
            inside.append(token.text)
        low_text, comma, high_text = "".join(inside).partition(",")
        low = int(low_text or 0)
        return low, low if not comma else int(high_text) if high_text else None

    def _atom(self) -> Node:
        token = self._take()
        if token.text in ("(", "["):
            self._depth += 1
            inner = self._expansions()
            closing = self._now.text
            self._depth -= 1
            if closing != {"(": ")", "[": "]"}[token.text]:
                raise ValueError(f"line {token.line}: a bracket is not closed")
            self._take()
            optional = token.text == "["
            return Node("repeat", token.line, token.column, "", (inner,), 0, 1) if optional else inner
        if token.kind == "string" and self._take_if(".."):
            return _node("range", token, f"{token.text}..{self._take().text}")
        if token.kind == "string":
            return _node("string", token, token.text)
        if token.kind == "regex":
            return _node("regex", token, token.text)
        if token.kind == "name" and not token.text.startswith("@"):
            if self._take_if("::"):
                self._argument()
            return _node("name", token, token.text)
        if token.kind == "statement":
            return self._embedded(token)
        if token.kind == "special" or token.text.startswith("@"):
            return _node("other", token, token.text)
        raise ValueError(f"line {token.line}: {token.text!r} does not belong here")

    def _argument(self) -> None:
        """Skip what a parametric rule is given."""
        self._take()
        if self._now.text == "(":
            self._skip("(", ")")

    def _embedded(self, token: Token) -> Node:
        if self._now.kind == "schema":
            schema = self._take().text
            return _node("json" if token.text == "%json" else "other", token, schema)
        self._skip("{", "}")
        return _node("other", token, token.text)

    def _skip(self, opening: str, closing: str) -> None:
        depth = 0
        while (token := self._take()).kind != "end":
            depth += (token.text == opening) - (token.text == closing)
            if depth <= 0:
                return


def _node(kind: Kind, token: Token, text: str = "", *, children: tuple[Node, ...] = ()) -> Node:
    return Node(kind, token.line, token.column, text, children)
