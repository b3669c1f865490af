"""Patch text to sections and back: by the decoder's own grammar file, and what that refuses, line by line."""

from __future__ import annotations

import re
from collections.abc import Mapping
from dataclasses import dataclass

from constrained_agent.errors import PatchError
from constrained_agent.patch.envelope import BEGIN, END
from constrained_agent.patch.lenient import END_OF_FILE, LENIENCIES, read
from constrained_agent.patch.sections import AddFile, DeleteFile, Patch, Section, UpdateFile

# In a line, U+DC80 to U+DCFF stand for undecodable bytes of the file; any other half of a pair has no bytes at
# all, and a path that cannot be shown cannot be spoken of either.
_HALF_CHARACTER = re.compile("[\ud800-\udc7f\udd00-\udfff]|^[ \t]*\\*{3}.*[\ud800-\udfff]", re.MULTILINE)


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
    if found := _HALF_CHARACTER.search(text):
        line = text.count("\n", 0, found.end() - 1) + 1
        reason = f"line {line} holds half a character (U+{ord(found[0][-1]):04X})"
        raise PatchError("bad_line", reason, lines=(line,))
    from constrained_agent.patch.strict import parse_strict  # loads the parser library

    strict = parse_strict(text)
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
