"""Patch text to sections and back: by the decoder's own grammar file, and what that refuses, line by line."""

from __future__ import annotations

import functools
import re
from collections.abc import Mapping
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from constrained_agent import resources
from constrained_agent.errors import PatchError
from constrained_agent.patch.envelope import BEGIN, END
from constrained_agent.patch.lenient import END_OF_FILE, LENIENCIES, read
from constrained_agent.patch.sections import (
    AddFile,
    DeleteFile,
    Hunk,
    HunkLine,
    Op,
    Patch,
    Section,
    UpdateFile,
)

if TYPE_CHECKING:
    from lark import Lark

# U+DC80 to U+DCFF stand for the undecodable bytes of a file; any other half of a pair has no bytes at all.
_LONE_SURROGATE = re.compile("[\ud800-\udc7f\udd00-\udfff]")


@dataclass(frozen=True, slots=True)
class Parsed:
    """A patch and how it had to be read.

    Attributes:
        patch: the sections.
        leniencies: how often each leniency was needed (`lenient.LENIENCIES` says what they mean); empty for
            a text of the strict language.
    """

    patch: Patch
    leniencies: Mapping[str, int]


def parse(text: str, *, lenient: bool = True) -> Parsed:
    """Read a patch.

    Args:
        text: the patch, without anything around it. Lines end in `\\n`.
        lenient: also read what the strict grammar refuses but has one obvious reading.

    Raises:
        PatchError: of a kind that says what is wrong, with line numbers of the patch in `lines`.

    Cost: about 1.5 s a megabyte; the first call also builds the parser (0.1 s).
    """
    if found := _LONE_SURROGATE.search(text):
        line = text.count("\n", 0, found.start()) + 1
        raise PatchError(
            "bad_line", f"line {line} holds half a character (U+{ord(found[0]):04X})", lines=(line,)
        )
    strict = _parse_strict(text)
    if strict is not None:
        return Parsed(strict, {})
    reading = read(text)
    if not lenient:
        assert reading.first is not None, "the line reader took a text that the grammar refuses"
        name, line = reading.first
        kind, what = LENIENCIES[name]
        raise PatchError(kind, f"line {line}: {what} (read only when leniency is on)", lines=(line,))
    return Parsed(reading.patch, reading.leniencies)


def render(patch: Patch) -> str:
    """The text of a patch; `parse(render(patch)).patch == patch` for every patch that `parse` returns."""
    lines = [BEGIN]
    for section in patch.sections:
        lines += _section_lines(section)
    return "\n".join([*lines, END, ""])


def _section_lines(section: Section) -> list[str]:
    match section:
        case AddFile(path, added):
            return [f"*** Add File: {path}", *("+" + text for text in added)]
        case DeleteFile(path):
            return [f"*** Delete File: {path}"]
        case UpdateFile(path, move_to, hunks):
            lines = [f"*** Update File: {path}"]
            if move_to is not None:
                lines.append(f"*** Move to: {move_to}")
            for hunk in hunks:
                lines += [f"@@ {header}" for header in hunk.headers] or ["@@"]
                lines += [line.op + line.text for line in hunk.lines]
                lines += [END_OF_FILE] if hunk.end_of_file else []
            return lines


def _parse_strict(text: str) -> Patch | None:
    """The patch, or None if the text is not in the strict language."""
    from lark.exceptions import LarkError

    try:
        patch: Any = _strict_parser().parse(text)
    except LarkError:
        return None
    assert isinstance(patch, Patch)
    return patch


@functools.cache
def _strict_parser() -> Lark:
    """LALR parser from the very file that masks the decoder; rules become sections while it parses."""
    from lark import Lark, Transformer

    def line(op: Op) -> Any:
        # Children are the text, unless the line is empty, and the line's end.
        return lambda _, children: HunkLine(op, str(children[0]) if len(children) > 1 else "")

    class ToSections(Transformer[Any, Patch]):
        context, removed, added = line(" "), line("-"), line("+")

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

    file = resources.path("grammars", "apply_patch_strict", ".lark")
    assert file is not None, "grammars/apply_patch_strict.lark is part of every installation"
    grammar = file.read_text(encoding="utf-8")
    return Lark(
        grammar, parser="lalr", lexer="contextual", maybe_placeholders=False, transformer=ToSections()
    )
