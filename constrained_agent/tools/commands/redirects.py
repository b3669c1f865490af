"""Redirections: where output goes, what is read in its place, and what a file holds after that."""

from __future__ import annotations

import re
from typing import TYPE_CHECKING

from constrained_agent.tools.commands import paths
from constrained_agent.tools.commands.scene import NO_OUTPUT, UNKNOWN, UNKNOWN_OUTPUT, Output, Scene
from constrained_agent.tools.commands.verdict import Risk, Simple, danger, shortened
from constrained_agent.tools.commands.words import expand, first_word, heredoc, text, text_of

if TYPE_CHECKING:
    from tree_sitter import Node


def follow(node: Node, scene: Scene, targets: list[str]) -> Output | None:
    """Judge a redirection. Returns what it gives to read; adds where it sends the output to `targets`."""
    if node.type == "herestring_redirect":
        return Output("".join(text(child, scene) for child in node.named_children) + "\n")
    if node.type == "heredoc_redirect":
        start = next((text_of(child) for child in node.children if child.type == "heredoc_start"), "")
        raw = re.search(r"[\"'\\]", start) is not None
        bodies = [child for child in node.children if child.type == "heredoc_body"]
        return Output("".join(heredoc(body, scene, raw=raw) for body in bodies))
    operator = next((child.type for child in node.children if not child.is_named), ">")
    descriptor = node.child_by_field_name("descriptor")
    given: Output | None = None
    destinations = node.children_by_field_name("destination")
    for path in expand(destinations[: first_word(destinations)], scene):
        if re.fullmatch(r"\d*-?", path):
            given = UNKNOWN_OUTPUT if operator == "<&" and path.isdigit() else given
            continue  # another descriptor
        _note_redirection(node, path, scene, writing=">" in operator)
        if operator in ("<", "<<"):
            given = _content(path, scene)
        elif descriptor is None or text_of(descriptor) == "1":
            targets.append(path)
    return given


def _note_redirection(node: Node, path: str, scene: Scene, *, writing: bool) -> None:
    if re.match(r"/dev/(tcp|udp)/", path):
        judgement = danger("opens a network connection")
    elif writing:
        judgement = paths.writing(path, scene)
    else:
        judgement = paths.reading(path, scene)
    if judgement.risk is not Risk.READ_ONLY:
        sign = ">" if writing else "<"
        part = shortened(text_of(node))
        certain = UNKNOWN not in path
        shown = f"{sign} {paths.shown(path)}"
        scene.record.found.append(Simple(shown, judgement.risk, judgement.reason, part, certain=certain))


def _content(path: str, scene: Scene) -> Output:
    known = [scene.files[full] for full in paths.absolute(path, scene) if full in scene.files]
    if known:
        return known[0]
    return NO_OUTPUT if path == "/dev/null" else UNKNOWN_OUTPUT


def remember(targets: list[str], output: Output, scene: Scene) -> None:
    """What was written to which file; a second text for a file makes it unknown."""
    for full in (full for path in targets for full in paths.absolute(path, scene)):
        known = scene.files.get(full)
        scene.files[full] = output if known in (None, output) else UNKNOWN_OUTPUT
