"""The engine: text to a syntax tree, and each statement of it to the one who knows its kind."""

from __future__ import annotations

import re
from collections.abc import Sequence
from functools import cache
from typing import TYPE_CHECKING

from constrained_agent.tools.commands import flow, loose, second, simple
from constrained_agent.tools.commands.options import names
from constrained_agent.tools.commands.scene import NO_OUTPUT, UNKNOWN, Output, Result, Scene
from constrained_agent.tools.commands.source import encoded
from constrained_agent.tools.commands.verdict import Judgement, Risk
from constrained_agent.tools.commands.words import note, text_of

if TYPE_CHECKING:
    from tree_sitter import Node, Parser

_SKIPPED = frozenset(["comment", "heredoc_start", "heredoc_end", "file_descriptor"])
_COMMANDS = frozenset(
    ["command", "redirected_statement", "file_redirect", "herestring_redirect", "heredoc_redirect"]
)
_DECLARATIONS = frozenset(
    ["variable_assignment", "variable_assignments", "declaration_command", "unset_command"]
)


@cache
def _parser() -> Parser:
    """The parser of the shell's language. Cost: milliseconds, once; imported no sooner than it is needed."""
    import tree_sitter_bash
    from tree_sitter import Language, Parser

    return Parser(Language(tree_sitter_bash.language()))


_TEXTS = frozenset(
    names(
        "string translated_string heredoc_body expansion arithmetic_expansion test_command c_style_for_statement "
        "binary_expression unary_expression parenthesized_expression ternary_expression postfix_expression subscript"
    )
)
_NEVER_TOUCH = frozenset(["variable_assignment", "herestring_redirect", "file_redirect"])
"""What is followed by a blank or a sign, unless the grammar parts a word wrongly."""

_LITERAL = frozenset(
    [
        "raw_string",
        "ansi_c_string",
        "comment",
        "heredoc_body",
        "heredoc_content",
        "heredoc_start",
        "heredoc_end",
    ]
)
_SUBSTITUTION = re.compile(rb"(?<!\\)(?:\\\\)*(?:`|\$\(.)", re.DOTALL)
"""No word has one in it; but the grammar takes those in `${x:-`a`}` for text, and reads `a` `b` as one."""

_NAME = re.compile(rb"[\w{(@*#?!$-]")
"""What makes a `$` before it an expansion; the grammar ends a word at some of those: `a$b-c$d/`."""

_BLANK = re.compile(rb"(?<!\\)(?:\\\\)*[ \t\n]")
_GAP = re.compile(rb"(?:\s|\\\r?\n)*")
_GAPS = {
    "concatenation": re.compile(rb"(?:\\\n)*"),
    # On one line; the grammar leaves out a `-` before `<<`, and takes some newlines for blanks.
    **dict.fromkeys(
        names(
            "command declaration_command unset_command variable_assignments file_redirect herestring_redirect"
        ),
        re.compile(rb"(?:[ \t]|\\\n)*"),
    ),
    "redirected_statement": re.compile(rb"(?:[ \t]|\\\n)*(?:-[ \t]+)?"),
}
"""What may stand between the parts of a node, by its kind."""


def _misread(source: bytes, root: Node) -> bool:
    """Whether the tree is no trustworthy reading, though it may have no error.

    Something between its parts is left out, a word goes on where it has ended it, a here-document ends nowhere, or a
    substitution is taken for text.
    """
    outside = (source[: root.start_byte], source[root.end_byte :])
    if not all(_GAP.fullmatch(text) for text in outside):
        return True
    waiting = [root]
    while waiting:
        node = waiting.pop()
        if node.type == "comment" and _may_go_on(source[: node.start_byte]):
            return True
        if node.is_missing or (node.type == "heredoc_redirect" and not _ends(node)):
            return True
        waiting += node.children
        if node.type == "redirected_statement" and _parts_words(node):
            return True
        if not node.children and _hides_expansion(node, source):
            return True
        if node.type == "word" and _BLANK.search(node.text or b""):
            return True
        if node.type in _TEXTS:
            continue
        position, previous = node.start_byte, ""
        for child in node.children:
            gap = source[position : child.start_byte]
            touches = not gap and child.is_named and position > node.start_byte
            if not _GAPS.get(node.type, _GAP).fullmatch(gap):
                return True
            if (touches and previous in _NEVER_TOUCH) or (not child.is_named and b" " in (child.text or b"")):
                return True
            position, previous = child.end_byte, child.type
    return False


def _hides_expansion(leaf: Node, source: bytes) -> bool:
    """Whether a leaf of the tree holds a substitution, or is a `$` that belongs to what follows it."""
    if leaf.text == b"$":
        return leaf.next_sibling is None and _NAME.match(source, leaf.end_byte) is not None
    return leaf.type not in (*_LITERAL, "`", "$((") and _SUBSTITUTION.search(leaf.text or b"") is not None


def _parts_words(node: Node) -> bool:
    """Whether words of a command were given to a redirection of something larger: `ls | rm >log <<E -rf /`."""
    body = node.child_by_field_name("body")
    if body is None or body.type == "command":
        return False
    more = [child for one in node.children for child in (one, *one.children) if one != body]
    return any(
        one.children_by_field_name("argument") or len(one.children_by_field_name("destination")) > 1
        for one in more
        if one.type in ("file_redirect", "heredoc_redirect")
    )


def _may_go_on(before: bytes) -> bool:
    """Whether `#` after this text may stand within a word, so that it begins no comment: `\\ #`."""
    return re.search(rb"(?:^|(?<!\\)[ \t\n]|[;&|()`])$", before) is None


def _ends(node: Node) -> bool:
    """Whether a here-document ends with its own delimiter, and that is a word to a shell, too."""
    texts = {child.type: text_of(child) for child in node.children}
    start, end = texts.get("heredoc_start", ""), texts.get("heredoc_end", "")
    return re.search(r"[;&|()<>`$\s]", start) is None and re.sub(r"[\"'\\]", "", start) == end.strip()


class Reader:
    """Reads statements, lines and commands; keeps nothing itself."""

    def statement(self, node: Node, scene: Scene, stdin: Output | None) -> Result:
        following = node.next_sibling
        if following is not None and following.type == "&":  # in a subshell
            return Result(self._statement(node, scene.copy(), stdin).output, scene)
        return self._statement(node, scene, stdin)

    def _statement(self, node: Node, scene: Scene, stdin: Output | None) -> Result:
        scene.record.step()
        with scene.level():
            if node.type in _SKIPPED:
                return Result(NO_OUTPUT, scene)
            if node.type in _COMMANDS:
                return simple.run(node, scene, stdin)
            if node.type in _DECLARATIONS:
                return simple.declare(node, scene)
            # What is left has statements below it: a program, a group, something that does not parse.
            return flow.HANDLERS.get(node.type, flow.sequence)(node, scene, stdin)

    def line(self, text: str, scene: Scene) -> Judgement:
        found = scene.record.found
        before = len(found)
        scene.record.step(1 + len(text) // 20)
        source = encoded(text.replace(UNKNOWN, "$UNKNOWN_"))
        tree = _parser().parse(source)
        looked_at = not scene.hidden or loose.begins_like_a_command(text)
        if looked_at and (tree.root_node.has_error or loose.is_odd(text) or _misread(source, tree.root_node)):
            loose.search(text, scene)
        self.statement(tree.root_node, scene, None)
        risk = max((one.risk for one in found[before:]), default=Risk.READ_ONLY)
        if risk is Risk.READ_ONLY and not second.explained(text, [one.text for one in found[before:]]):
            note(scene, text, risk := Risk.WRITES, "can be read in two ways")
        reason = next((one.reason for one in found[before:] if one.risk is risk), "does nothing")
        return Judgement(risk, reason, looked_through=True)

    def command(self, argv: Sequence[str], scene: Scene, stdin: Output | None) -> Judgement:
        with scene.level():
            judgement = simple.judge_and_note(list(argv), scene, stdin)
        return Judgement(judgement.risk, judgement.reason, looked_through=True)
