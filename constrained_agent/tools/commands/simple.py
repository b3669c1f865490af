"""Simple commands with their assignments and redirections; what each leaves behind."""

from __future__ import annotations

import re
from dataclasses import dataclass, field
from typing import TYPE_CHECKING

from constrained_agent.tools.commands import builtins, flow, outputs, programs, redirects
from constrained_agent.tools.commands.scene import (
    NO_OUTPUT,
    UNKNOWN,
    Call,
    Output,
    Result,
    Scene,
    is_harmless,
)
from constrained_agent.tools.commands.verdict import Judgement, Risk, Simple, shortened
from constrained_agent.tools.commands.words import (
    expand,
    first_word,
    holds_command,
    note,
    read_inside,
    text,
    text_of,
)

if TYPE_CHECKING:
    from tree_sitter import Node

MAX_RULE_CHARS = 4_000
"""Of a command that a rule can allow."""

_KEYWORDS = frozenset(["{", "!", "if", "then", "elif", "else", "while", "until", "do"])
"""After `!`, `time` and `coproc` the grammar takes them for names of programs, and assignments too."""

_ASSIGNMENT = re.compile(r"[A-Za-z_]\w*=")

_REDIRECTS = frozenset(["file_redirect", "heredoc_redirect", "herestring_redirect"])
_COMMAND_VARIABLE = re.compile(
    r".*(?:PAGER|EDITOR|ASKPASS|SSH_COMMAND|BROWSER|_DIFF|PROXY_COMMAND)|VISUAL|LESSOPEN|LESSCLOSE|PROMPT_COMMAND|GIT_SSH|PS4"
)
_SPECIAL_VARIABLE = re.compile(
    r"PATH|IFS|ENV|BASH_ENV|CDPATH|PS4|PROMPT_COMMAND|(?:LD|DYLD)_.*|GIT_.*|.*PAGER|.*EDITOR|PYTHON.*|PERL.*|RUBY.*|NODE_.*"
)


@dataclass(slots=True)
class _Parts:
    """A command with what is redirected, and what a here-document's first line holds after it."""

    body: Node | None = None
    redirects: list[Node] = field(default_factory=list)
    more_words: list[Node] = field(default_factory=list)
    tail: list[tuple[str, Node]] = field(default_factory=list)


def run(node: Node, scene: Scene, stdin: Output | None) -> Result:
    """A command, or any statement with redirections."""
    parts = _Parts()
    _collect(node, parts)
    return _run_parts(node, parts, scene, stdin)


def _run_parts(node: Node, parts: _Parts, scene: Scene, stdin: Output | None) -> Result:
    if parts.body is not None and parts.body.type == "list":
        # `cd x && echo > y`: to the grammar the whole list is redirected, to a shell its last command.
        first, *_, last = parts.body.named_children
        both = any(child.type == "&&" for child in parts.body.children)
        parts.body = last
        before = scene.engine.statement(first, scene, stdin)
        return flow.branched(before, lambda branch: _run_parts(node, parts, branch, stdin), scene, both=both)
    targets: list[str] = []
    for redirect in parts.redirects:
        given = redirects.follow(redirect, scene, targets)
        stdin = given if given is not None else stdin
    if parts.body is not None and text_of(parts.body) == "exec" and stdin is not None:
        scene.input = stdin  # from here on the shell itself reads from there
    if parts.body is None and not parts.more_words:
        result = Result(NO_OUTPUT, scene)
    elif parts.body is None or parts.body.type == "command":
        dashes = ["-"] if parts.body is not None and _leaves_dash(node, parts.body) else []
        result = _command(parts.body or node, scene, stdin, parts.more_words, dashes)
    else:
        result = scene.engine.statement(parts.body, scene, stdin)
    if targets:
        redirects.remember(targets, result.output, scene)
        result = Result(NO_OUTPUT, result.succeeded)
    for kind, statement in parts.tail:
        if kind == "|":
            result = scene.engine.statement(statement, scene.copy(), result.output)
        else:
            result = flow.then(result, statement, scene, stdin, both=kind == "&&")
    return result


def _leaves_dash(node: Node, body: Node) -> bool:
    """Whether a lone `-` stands between a command and its here-document: the grammar drops it."""
    following = body.next_sibling
    if following is None or node == body:
        return False
    source = node.text or b""
    return source[body.end_byte - node.start_byte : following.start_byte - node.start_byte].strip() == b"-"


def _collect(node: Node, parts: _Parts) -> None:
    if node.type in _REDIRECTS:
        parts.redirects.append(node)
    elif node.type == "command":
        parts.body = node
        parts.redirects += [child for child in node.children if child.type in _REDIRECTS]
    else:
        parts.body = node.child_by_field_name("body")
        parts.redirects += [child for child in node.children if child.type in _REDIRECTS]
        if parts.body is not None and parts.body.type == "command":
            parts.redirects += [child for child in parts.body.children if child.type in _REDIRECTS]
    for redirect in list(parts.redirects):
        if redirect.type == "heredoc_redirect":
            _collect_first_line(redirect, parts)
    for redirect in parts.redirects:
        # `rm >log -rf /`: to the grammar all that follows belongs to the redirection.
        destinations = redirect.children_by_field_name("destination")
        parts.more_words += destinations[first_word(destinations) :]


def _collect_first_line(redirect: Node, parts: _Parts) -> None:
    """`cmd <<EOF words > file | next` and `cmd <<EOF && next`: the tree hangs them below the here-document."""
    operator = "&&"
    for number, child in enumerate(redirect.children):
        role = redirect.field_name_for_child(number)
        if child.type in _REDIRECTS:
            parts.redirects.append(child)
        elif role == "argument":
            parts.more_words.append(child)
        elif child.type in ("&&", "||"):
            operator = child.type
        elif child.type == "pipeline":
            parts.tail += [("|", stage) for stage in child.named_children]
        elif role == "right":
            parts.tail.append((operator, child))


def _command(
    node: Node, scene: Scene, stdin: Output | None, more_words: list[Node], dashes: list[str]
) -> Result:
    scene.moved, scene.part = None, shortened(text_of(node))
    assigned: list[tuple[str, str]] = []
    words: list[Node] = []
    for child in node.children:
        if child.type == "variable_assignment":
            assigned += _assignment(child, scene)
        elif child.type in _REDIRECTS or child.type == "comment" or node.type != "command":
            continue
        elif child.type == "subshell":
            scene.engine.statement(child, scene, stdin)  # `time (cmd)`
        else:
            words.append(child)
    argv = expand(words, scene) + dashes + expand(more_words, scene)
    if not argv:
        _keep(assigned, scene)
        return Result(NO_OUTPUT, scene)
    return _execute(argv, assigned, scene, stdin)


def _execute(argv: list[str], assigned: list[tuple[str, str]], scene: Scene, stdin: Output | None) -> Result:
    """Judge it with its own variables set, then work out what it prints and where `cd` went."""
    before = {name: scene.variables.get(name) for name, _ in assigned}
    scene.variables.update({name: (value,) for name, value in assigned})
    plain = all(is_harmless(name) for name, _ in assigned)
    stdin = scene.input if stdin is None else stdin
    judge_and_note(argv, scene, stdin, plain=plain)
    output = outputs.printed(Call(argv, scene, stdin))
    for name, old in before.items():
        if old is None:
            scene.variables.pop(name, None)
        else:
            scene.variables[name] = old
    sure = builtins.surely_moves(argv, scene)
    moved, scene.moved = scene.moved, None
    if moved is None:
        return Result(output, scene)
    succeeded = scene.copy()
    succeeded.cwds = moved
    scene.cwds = moved if sure else scene.cwds | moved
    return Result(output, succeeded)


def judge_and_note(argv: list[str], scene: Scene, stdin: Output | None, *, plain: bool = True) -> Judgement:
    """Judge a command and record it. `plain`: it runs in the environment as it is."""
    scene.record.step()
    while len(argv) > 1 and (argv[0] in _KEYWORDS or _ASSIGNMENT.match(argv[0])):
        plain = plain and (argv[0] in _KEYWORDS or is_harmless(argv[0].partition("=")[0]))
        argv = argv[1:]
    part = scene.part or shortened(" ".join(argv))
    judgement = programs.judge(Call(argv, scene, stdin))
    risk = Risk.READ_ONLY if judgement.looked_through else judgement.risk
    reason = judgement.reason
    if not plain and risk is Risk.READ_ONLY:
        risk, reason = Risk.WRITES, "runs with variables that may change what it does"
    text = " ".join(argv).replace(UNKNOWN, "…")
    scene.record.found.append(
        Simple(
            text[:MAX_RULE_CHARS],
            risk,
            reason,
            part,
            spellings=programs.spellings(argv),
            certain=plain and len(text) <= MAX_RULE_CHARS and not any(UNKNOWN in word for word in argv),
            looked_through=judgement.looked_through,
        )
    )
    return judgement


def _assignment(node: Node, scene: Scene) -> list[tuple[str, str]]:
    """Name and value; an array is set at once. Commands hidden in a value count."""
    name_node, value_node = node.child_by_field_name("name"), node.child_by_field_name("value")
    if name_node is None:
        return []
    if name_node.type == "subscript":
        read_inside(name_node, scene)
        name = text_of(name_node).partition("[")[0]
        scene.variables[name] = (UNKNOWN,)
        if value_node is not None:
            expand([value_node], scene)
        return []
    name = text_of(name_node)
    if value_node is not None and value_node.type == "array":
        scene.variables[name] = tuple(expand(value_node.named_children, scene))
        return []
    value = "" if value_node is None else text(value_node, scene)
    if any(child.type == "+=" for child in node.children):
        value = scene.value(name) + value
    check_value(name, value, scene)
    return [(name, value)]


def check_value(name: str, value: str, scene: Scene) -> None:
    """A value that holds a command (`X='$(rm -rf /)'`), or is one (`PAGER=...`), may be run later."""
    if name in ("BASH_ENV", "ENV"):
        note(scene, f"{name}={value}", Risk.DANGEROUS, "makes shells read another file of commands first")
    if holds_command(value) or _COMMAND_VARIABLE.fullmatch(name):
        judgement = programs.hidden(value, scene)
        if judgement.risk > Risk.WRITES:
            note(scene, f"{name}={value}", judgement.risk, f"holds a command that {judgement.reason}")


def _keep(assigned: list[tuple[str, str]], scene: Scene, *, exported: bool = False) -> None:
    """Set variables for the rest of the line; those that programs see may change what these do."""
    for name, value in assigned:
        scene.variables[name] = (value,)
        known = scene.record.environment or {}
        seen = exported or name in known or _SPECIAL_VARIABLE.fullmatch(name)
        if seen and not is_harmless(name):
            shown = f"{name}={value}".replace(UNKNOWN, "…")
            reason = "sets a variable that may change what commands do"
            scene.record.found.append(
                Simple(shown, Risk.WRITES, reason, scene.part, certain=UNKNOWN not in value)
            )


def declare(node: Node, scene: Scene) -> Result:
    """`X=1`, `export X=1`, `declare -i X`, `unset X`."""
    scene.part = shortened(text_of(node))
    if node.type == "unset_command":
        read_inside(node, scene)
        for child in node.named_children:
            scene.variables[text_of(child)] = (UNKNOWN,)
        return Result(NO_OUTPUT, scene)
    assigned: list[tuple[str, str]] = []
    for child in [node] if node.type == "variable_assignment" else node.named_children:
        if child.type == "variable_assignment":
            assigned += _assignment(child, scene)
            continue
        for word in expand([child], scene):
            if re.match(r"-\w*n", word):
                note(scene, scene.part, Risk.DANGEROUS, "gives a variable another name")
            name, sign, value = word.partition("=")
            scene.record.strangers |= UNKNOWN in name
            check_value(name, value, scene)
            if holds_command(name):
                note(scene, scene.part, Risk.DANGEROUS, "evaluates text that holds a command")
            if sign:
                assigned.append((name, value))
    _keep(assigned, scene, exported=node.type == "declaration_command")
    return Result(NO_OUTPUT, scene)
