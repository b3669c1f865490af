"""The strict language, parsed with the very grammar file that masks the decoder.

Imports `lark` (0.1 s), so it is itself imported only by the first `parse`.
"""

from __future__ import annotations

import functools
from collections.abc import Callable
from typing import Any

from lark import Lark, Transformer
from lark.exceptions import LarkError

from constrained_agent import resources
from constrained_agent.patch.sections import AddFile, DeleteFile, Hunk, HunkLine, Op, Patch, UpdateFile


def parse_strict(text: str) -> Patch | None:
    """The patch, or None if the text is not in the language. About 1.5 s a megabyte."""
    try:
        patch: Any = _parser().parse(text)
    except LarkError:
        return None
    assert isinstance(patch, Patch)
    return patch


@functools.cache
def _parser() -> Lark:
    file = resources.path("grammars", "apply_patch_strict", ".lark")
    assert file is not None, "grammars/apply_patch_strict.lark is part of every installation"
    return Lark(
        file.read_text(encoding="utf-8"),
        parser="lalr",
        lexer="contextual",
        maybe_placeholders=False,
        transformer=_ToSections(),
    )


def _line(op: Op) -> Callable[[Any, list[str]], HunkLine]:
    # Children are the text, unless the line is empty, and the line's end.
    return lambda _, children: HunkLine(op, str(children[0]) if len(children) > 1 else "")


class _ToSections(Transformer[Any, Patch]):
    """One method for each rule of the grammar, called while it parses with what the rule's parts became."""

    context, removed, added = _line(" "), _line("-"), _line("+")

    def text(self, children: list[str]) -> str:
        return children[0]

    def path(self, children: list[str]) -> str:
        return str(children[0])

    def header(self, children: list[str]) -> str:
        return str(children[0]) if len(children) > 1 else ""

    def lines(self, children: list[HunkLine]) -> tuple[HunkLine, ...]:
        return tuple(children)

    def hunk(self, children: list[Any]) -> Hunk:
        *headers, lines = children
        return Hunk(tuple(header for header in headers if header.strip()), lines)

    first_hunk = hunk

    def end_of_file(self, _: list[str]) -> bool:
        return True

    def hunks(self, children: list[Any]) -> tuple[Hunk, ...]:
        *hunks, last = children
        if last is True:
            *hunks, last = hunks
            last = Hunk(last.headers, last.lines, end_of_file=True)
        return (*hunks, last)

    def move(self, children: list[str]) -> tuple[str]:
        return (children[0],)

    def add(self, children: list[Any]) -> AddFile:
        path, _, *lines = children
        return AddFile(path, tuple(line.text for line in lines))

    def delete(self, children: list[str]) -> DeleteFile:
        return DeleteFile(children[0])

    def update(self, children: list[Any]) -> UpdateFile:
        path, _, *rest = children
        moves = isinstance(rest[0][0], str)
        return UpdateFile(path, rest.pop(0)[0] if moves else None, rest[0] if rest else ())

    def start(self, children: list[Any]) -> Patch:
        return Patch(tuple(children[1:-1]))
