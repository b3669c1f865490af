"""Control structures: what runs after what, what runs perhaps, what runs again."""

from __future__ import annotations

import re
from collections.abc import Callable, Mapping
from typing import TYPE_CHECKING

from constrained_agent.tools.commands.scene import NO_OUTPUT, UNKNOWN, UNKNOWN_OUTPUT, Output, Result, Scene
from constrained_agent.tools.commands.verdict import Risk
from constrained_agent.tools.commands.words import expand, note, note_unknown_sum, read_inside, text_of

if TYPE_CHECKING:
    from tree_sitter import Node

MAX_LOOP_VALUES = 32
"""Values of a `for` loop that are tried one by one; more count as one unknown value."""

_FOREVER = re.compile(
    r"while\s+(?:true|:|1|\[+ 1 \]+|\(\( *1 *\)\))\s*(?:;|\n)|until\s+false\s*(?:;|\n)|for\s*\(\(\s*;\s*;"
)


def sequence(node: Node, scene: Scene, stdin: Output | None) -> Result:
    """The statements of a node, one after another."""
    output, succeeded = NO_OUTPUT, scene
    for child in node.named_children:
        result = scene.engine.statement(child, scene, stdin)
        output, succeeded = output + result.output, result.succeeded
    return Result(output, succeeded)


def _compound(node: Node, scene: Scene, stdin: Output | None) -> Result:
    if node.children and node.children[0].type == "((":
        read_inside(node, scene)
        note_unknown_sum(text_of(node), scene)
        return Result(NO_OUTPUT, scene)
    return sequence(node, scene, stdin)


def _list(node: Node, scene: Scene, stdin: Output | None) -> Result:
    """`A && B`, `A || B`."""
    parts = node.named_children
    first = scene.engine.statement(parts[0], scene, stdin)
    if len(parts) < 2:
        return first
    return then(first, parts[1], scene, stdin, both=any(child.type == "&&" for child in node.children))


def then(first: Result, node: Node, scene: Scene, stdin: Output | None, *, both: bool) -> Result:
    """What follows a statement that succeeded (`both`), or that failed."""
    return branched(first, lambda branch: scene.engine.statement(node, branch, stdin), scene, both=both)


def branched(first: Result, second_in: Callable[[Scene], Result], scene: Scene, *, both: bool) -> Result:
    """As `then`, given what reads the second statement."""
    branch = (first.succeeded if both else scene).copy()
    second = second_in(branch)
    succeeded = second.succeeded.copy() if both else scene
    scene.merge(branch)
    return Result(first.output + second.output if both else UNKNOWN_OUTPUT, succeeded)


def _pipeline(node: Node, scene: Scene, stdin: Output | None) -> Result:
    """Each part runs in its own subshell and gets what the part before printed."""
    output = stdin
    for child in node.named_children:
        output = scene.engine.statement(child, scene.copy(), output).output
    return Result(output or NO_OUTPUT, scene)


def _subshell(node: Node, scene: Scene, stdin: Output | None) -> Result:
    return Result(sequence(node, scene.copy(), stdin).output, scene)


def _negated(node: Node, scene: Scene, stdin: Output | None) -> Result:
    return Result(sequence(node, scene, stdin).output, scene)


def _if(node: Node, scene: Scene, stdin: Output | None) -> Result:
    """Also `elif` and `else`: their own conditions and bodies."""
    current, succeeded, branches = scene, scene, []
    for child in node.children:
        if child.type == "then":
            current = succeeded.copy()
            branches.append(current)
        elif child.type in ("elif_clause", "else_clause"):
            branches.append(scene.copy())
            _if(child, branches[-1], stdin)
        elif child.is_named:
            succeeded = scene.engine.statement(child, current, stdin).succeeded
    for branch in branches:
        scene.merge(branch)
    return Result(UNKNOWN_OUTPUT, scene)


def _while(node: Node, scene: Scene, stdin: Output | None) -> Result:
    _check_endless(node, scene)
    for _ in range(2):  # the second time with what the first one may have set
        succeeded = scene
        for child in node.named_children:
            if child.type != "do_group":
                succeeded = scene.engine.statement(child, scene, stdin).succeeded
                continue
            branch = succeeded.copy()
            scene.engine.statement(child, branch, stdin)
            scene.merge(branch)
    return Result(UNKNOWN_OUTPUT, scene)


def _for(node: Node, scene: Scene, stdin: Output | None) -> Result:
    variable = node.child_by_field_name("variable")
    body = node.child_by_field_name("body")
    values = expand(node.children_by_field_name("value"), scene)
    if not any(child.type == "in" for child in node.children):
        values = list(scene.positional)
    if len(values) > MAX_LOOP_VALUES:
        values = [UNKNOWN]
    if len(values) == 1 and re.search(f"[*?\\[{UNKNOWN}]", values[0]):
        values *= 2  # stands for several
    output = NO_OUTPUT
    for value in values:
        branch = scene.copy()
        if variable is not None:
            branch.variables[text_of(variable)] = (value,)
        if body is not None:
            output += scene.engine.statement(body, branch, stdin).output
        scene.merge(branch)
    return Result(output, scene)


def _c_style_for(node: Node, scene: Scene, stdin: Output | None) -> Result:
    _check_endless(node, scene)
    body = node.child_by_field_name("body")
    for child in node.named_children:
        if child != body:
            read_inside(child, scene)
            for name in re.findall(r"([A-Za-z_]\w*)\s*=", text_of(child)):
                scene.variables[name] = ("1",)
    for _ in range(2 if body is not None else 0):
        branch = scene.copy()
        assert body is not None
        scene.engine.statement(body, branch, stdin)
        scene.merge(branch)
    return Result(UNKNOWN_OUTPUT, scene)


def _case(node: Node, scene: Scene, stdin: Output | None) -> Result:
    for child in node.named_children:
        if child.type != "case_item":
            expand([child], scene)
            continue
        branch = scene.copy()
        for number, part in enumerate(child.children):
            if child.field_name_for_child(number) == "value":
                read_inside(part, scene)
            elif part.is_named:
                scene.engine.statement(part, branch, stdin)
        scene.merge(branch)
    return Result(UNKNOWN_OUTPUT, scene)


def _function(node: Node, scene: Scene, stdin: Output | None) -> Result:
    """Its body is read when it is called, with the words of the call."""
    name, body = node.child_by_field_name("name"), node.child_by_field_name("body")
    if name is not None and body is not None:
        scene.define(text_of(name), body)
        scene.record.uncalled[text_of(name)] = body
    for child in node.children_by_field_name("redirect"):
        scene.engine.statement(child, scene, stdin)
    return Result(NO_OUTPUT, scene)


def _test(node: Node, scene: Scene, _stdin: Output | None) -> Result:
    read_inside(node, scene)
    return Result(NO_OUTPUT, scene)


def _check_endless(node: Node, scene: Scene) -> None:
    source = text_of(node)
    if _FOREVER.match(source) and re.search(r"(?<![&>])&(?![&>\d])", source):
        note(scene, source, Risk.DANGEROUS, "starts processes without end")


Handler = Callable[["Node", Scene, "Output | None"], Result]

HANDLERS: Mapping[str, Handler] = {
    "compound_statement": _compound,
    "list": _list,
    "pipeline": _pipeline,
    "subshell": _subshell,
    "negated_command": _negated,
    "if_statement": _if,
    "while_statement": _while,
    "for_statement": _for,
    "c_style_for_statement": _c_style_for,
    "case_statement": _case,
    "function_definition": _function,
    "test_command": _test,
}
