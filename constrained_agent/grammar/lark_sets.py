"""Which lexemes of a Lark grammar may stand at one place, which may follow which, and which rules can end.

A lexeme is what the engine's lexer reads as one piece: a literal or regex in a rule, a terminal, a `%json`, or a
rule with an attribute such as `lazy`, which the engine makes one piece too.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, field

from constrained_agent.grammar.lark_reader import Definition, Node, Source

_MAX_PLACES = 20_000  # enough for every grammar a person writes

Lexemes = dict[tuple[str, str], Node]
"""Lexemes by kind and text, each with one place where it stands."""


@dataclass(frozen=True, slots=True)
class Sets:
    """Facts about a grammar.

    Attributes:
        places: sets of lexemes that may begin at the same place.
        followers: each lexeme where it stands, with those that may come right after it.
        finite: names that can end: a text of theirs can be derived in finitely many steps.
        nullable: rules that may be empty.
    """

    places: list[Lexemes]
    followers: list[tuple[Node, Lexemes]]
    finite: set[str]
    nullable: set[str]


def is_one_piece(definition: Definition) -> bool:
    """Whether the lexer reads all of a definition as one lexeme."""
    return definition.is_terminal or bool(definition.attributes & {"lazy", "suffix", "stop"})


def sets_of(source: Source) -> Sets:
    """Compute them; linear in the grammar but for chains of rules that need each other."""
    found = _Sets(source)
    return Sets(found.places, found.followers, _finite(source), found.nullable)


@dataclass(slots=True)
class _Sets:
    source: Source
    nullable: set[str] = field(default_factory=set)
    places: list[Lexemes] = field(default_factory=list)
    followers: list[tuple[Node, Lexemes]] = field(default_factory=list)
    _first: dict[str, Lexemes] = field(default_factory=dict)
    _follow: dict[str, Lexemes] = field(default_factory=dict)

    def __post_init__(self) -> None:
        rules = [found for found in self.source.definitions.values() if not is_one_piece(found)]
        self._first = {rule.name: {} for rule in rules}
        self._follow = {rule.name: {} for rule in rules}
        # Backwards first: names are mostly defined after their use. `sum`, since `any` would stop at the first.
        while sum(map(self._grow_nullable, reversed(rules))):
            pass
        while sum(_grown(self._first[rule.name], self.first(rule.body)) for rule in reversed(rules)):
            pass
        while sum(self._spread(rule.body, self._follow[rule.name]) for rule in rules):
            pass
        for rule in rules:
            self._collect(rule.body, self._follow[rule.name])

    def _grow_nullable(self, rule: Definition) -> bool:
        if rule.name in self.nullable or not self.is_nullable(rule.body):
            return False
        self.nullable.add(rule.name)
        return True

    def is_nullable(self, node: Node) -> bool:
        match node.kind:
            case "seq":
                return all(map(self.is_nullable, node.children))
            case "alt":
                return any(map(self.is_nullable, node.children))
            case "repeat":
                return node.low == 0 or self.is_nullable(node.children[0])
            case "name":
                return node.text in self.nullable
        return node.text == '""'

    def first(self, node: Node) -> Lexemes:
        """What may begin a node."""
        match node.kind:
            case "seq":
                return self._first_of(node.children, {})
            case "alt" | "repeat":
                return _merged(map(self.first, node.children))
            case "name" if node.text in self._first:
                return self._first[node.text]
        return {(node.kind, node.text): node}

    def _first_of(self, nodes: tuple[Node, ...], after: Lexemes) -> Lexemes:
        found: Lexemes = {}
        for node in nodes:
            found.update(self.first(node))
            if not self.is_nullable(node):
                return found
        return {**found, **after}

    def _parts(self, node: Node, after: Lexemes) -> Iterator[tuple[Node, Lexemes]]:
        """A node's parts, each with what may follow it."""
        if node.kind == "alt":
            yield from ((child, after) for child in node.children)
        elif node.kind == "repeat":
            again = node.high is None or node.high > 1
            yield node.children[0], {**after, **self.first(node.children[0])} if again else after
        elif node.kind == "seq":
            for position, child in enumerate(node.children):
                yield child, self._first_of(node.children[position + 1 :], after)

    def _spread(self, node: Node, after: Lexemes) -> bool:
        """Hand on what follows a node to the rules that it ends with."""
        if node.kind == "name" and node.text in self._follow:
            return _grown(self._follow[node.text], after)
        return sum(self._spread(child, follow) for child, follow in self._parts(node, after)) > 0

    def _collect(self, node: Node, after: Lexemes) -> None:
        if len(self.places) > _MAX_PLACES:
            return
        if node.kind not in ("alt", "repeat", "seq"):
            if node.kind != "name" or node.text not in self._first:
                self.followers.append((node, after))
            return
        here = {**self.first(node), **(after if self.is_nullable(node) else {})}
        if len(here) > 1:
            self.places.append(here)
        for child, follow in self._parts(node, after):
            self._collect(child, follow)


def _finite(source: Source) -> set[str]:
    finite = set(source.imported)
    left = list(source.definitions.values())

    def ends(node: Node) -> bool:
        match node.kind:
            case "name":
                return node.text in finite or node.text not in source.definitions
            case "alt":
                return any(map(ends, node.children))
            case "repeat":
                return node.low == 0 or ends(node.children[0])
        return all(map(ends, node.children))

    while True:
        n_before = len(finite)
        for one in reversed(left):
            if ends(one.body):
                finite.add(one.name)
        if len(finite) == n_before:
            return finite
        left = [one for one in left if one.name not in finite]


def _merged(sets: Iterator[Lexemes]) -> Lexemes:
    merged: Lexemes = {}
    for one in sets:
        merged.update(one)
    return merged


def _grown(known: Lexemes, more: Lexemes) -> bool:
    before = len(known)
    known.update({key: node for key, node in more.items() if key not in known})
    return len(known) > before
