"""Reads patch text line by line: for what the strict grammar refuses, and to say why it refuses it.

Meant for unconstrained output. Every leniency has a name and is counted; whatever has no obvious reading is
refused with the kind that fits. A text of the strict language is read without any leniency, to the same patch.
"""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Mapping
from dataclasses import dataclass

from constrained_agent.errors import PatchError, PatchErrorKind
from constrained_agent.patch.envelope import BEGIN, END, begin_fault, end_fault, shown
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

LENIENCIES: dict[str, tuple[PatchErrorKind, str]] = {
    "byte_order_mark": ("bad_envelope", f"a byte-order mark stands before {BEGIN}"),
    "crlf": ("bad_envelope", "the lines end in CRLF"),
    "blank_around": ("bad_envelope", "blank lines stand around the patch"),
    "padded_marker": ("bad_line", "blanks stand around a marker"),
    "marker_spacing": ("bad_line", "the blank after a marker's colon or after @@ is missing"),
    "loose_path": ("bad_path", "the path holds `.` or empty parts"),
    "blank_context": ("bad_line", "an empty context line lacks its blank"),
    "blank_added": ("bad_line", "an empty line of a new file lacks its +"),
    "blank_before_marker": ("bad_line", "an empty line stands before a marker"),
    "no_newline_note": ("bad_line", "a 'No newline at end of file' note does not belong here"),
    "hunk_after_end_of_file": ("bad_line", "a hunk stands after *** End of File"),
}
"""Name of a leniency to the kind and reason with which strict reading refuses the line."""

END_OF_FILE = "*** End of File"
_SECTION = re.compile(r"\*\*\* (Add|Update|Delete) File:( ?)(.*)", re.DOTALL)
_MOVE = re.compile(r"\*\*\* Move to:( ?)(.*)", re.DOTALL)
_CONTROL = re.compile(r"[\x00-\x1f\x7f]")
_OPS: dict[str, Op] = {" ": " ", "+": "+", "-": "-"}


@dataclass(frozen=True, slots=True)
class Reading:
    """A patch read line by line.

    Attributes:
        leniencies: how often each was needed.
        first: name and line number (1-based) of the first one, None if there was none.
    """

    patch: Patch
    leniencies: Mapping[str, int]
    first: tuple[str, int] | None


def read(text: str) -> Reading:
    """Read a patch line by line; linear in the text.

    Raises:
        PatchError: `bad_envelope`, `bad_line`, `bad_path`, `outside_root`, `empty_patch`, `empty_update`,
            `empty_hunk` or `no_change`.
    """
    reader = _Reader(text)
    patch = Patch(tuple(reader.sections()))
    return Reading(patch, dict(reader.counts), reader.first)


class _Reader:
    """A cursor over the lines between the two markers; each method reads one construct and moves on."""

    def __init__(self, text: str) -> None:
        self.counts: Counter[str] = Counter()
        self.first: tuple[str, int] | None = None
        self.at = self.solid = 0
        if text.startswith("\ufeff"):
            text = text[1:]
            self._note("byte_order_mark")
        self.lines = text.split("\n")
        first = next((i for i, line in enumerate(self.lines) if line.strip()), len(self.lines))
        if first == len(self.lines) or self.lines[first].strip() != BEGIN:
            reason = begin_fault(self.lines, first)
            raise PatchError("bad_envelope", reason, lines=(min(first, len(self.lines) - 1) + 1,))
        self._drop_carriage_returns(first)
        self._check_envelope(first)

    def _drop_carriage_returns(self, first: int) -> None:
        if self.lines[first].endswith("\r"):
            # The whole text travelled as CRLF; one CR a line belongs to the transport, a second one stays.
            self._note("crlf")
            self.lines = [line.removesuffix("\r") for line in self.lines]

    def _check_envelope(self, first: int) -> None:
        last = max(i for i, line in enumerate(self.lines) if line.strip())
        if self.lines[last].strip() != END:
            reason, line = end_fault(self.lines, last)
            raise PatchError("bad_envelope", reason, lines=(line + 1,))
        blanks_after = len(self.lines) - 1 - last
        if first or blanks_after > 1 or (self.lines[-1] and blanks_after):
            self._note("blank_around")
        for self.at in (first, last):
            if self.lines[self.at] not in (BEGIN, END):
                self._note("padded_marker")
        self.at, self.end = first + 1, last

    def sections(self) -> list[Section]:
        found: list[Section] = []
        while (line := self._peek()) is not None:
            if not line.strip():
                self._skip("blank_before_marker")
                continue
            verb, path = self._section_header(line)
            if verb == "Add":
                found.append(self._add(path))
            elif verb == "Delete":
                found.append(DeleteFile(path))
            else:
                found.append(self._update(path))
        if not found:
            raise PatchError("empty_patch", "there is no section between *** Begin Patch and *** End Patch")
        return found

    def _section_header(self, line: str) -> tuple[str, str]:
        if line.rstrip() in (BEGIN, END):
            where = f"a second {line.rstrip()} stands on line {self.at + 1}; send one patch with all sections"
            raise PatchError("bad_envelope", where, lines=(self.at + 1,))
        header = _SECTION.fullmatch(line.lstrip())
        if header is None:
            raise self._bad_line(
                "expected *** Add File: PATH, *** Update File: PATH or *** Delete File: PATH"
            )
        if line[0] != "*":
            self._note("padded_marker")
        path = self._path(header[2], header[3])
        self.at += 1
        return header[1], path

    def _add(self, path: str) -> AddFile:
        lines: list[str] = []
        while (line := self._peek()) is not None:
            if line.startswith("+"):
                lines.append(line[1:])
                self.at += 1
            elif line.lstrip().startswith("***"):
                break
            elif line.strip():
                raise self._bad_line("every line of a new file starts with +", path)
            elif self._next_after_blanks().startswith("+"):
                lines.append("")
                self._skip("blank_added")
            else:
                self._skip("blank_before_marker")
        return AddFile(path, tuple(lines))

    def _update(self, path: str) -> UpdateFile:
        move_to, hunks = None, list[Hunk]()
        while (line := self._peek()) is not None:
            after_end = bool(hunks) and hunks[-1].end_of_file
            if not line.strip() and (after_end or self._next_after_blanks().startswith(("***", "@@"))):
                self._skip("blank_before_marker")
            elif (move := _MOVE.fullmatch(line)) and move_to is None and not hunks:
                move_to = self._path(move[1], move[2])
                self.at += 1
            elif move:
                raise self._bad_line("*** Move to: stands directly below *** Update File:, once", path)
            elif line.rstrip() == END_OF_FILE:
                raise self._bad_line("*** End of File closes a hunk, and there is none above it", path)
            elif line.startswith("***"):
                break
            elif after_end and not line.startswith("@@"):
                raise self._bad_line(
                    "after *** End of File comes a section, an @@ line or *** End Patch", path
                )
            else:
                if after_end:
                    self._note("hunk_after_end_of_file")
                hunks.append(self._hunk(path, len(hunks) + 1))
        if not hunks and move_to is None:
            reason = "the section has no hunk; give the changed lines, or leave the section out"
            raise PatchError("empty_update", reason, path=path)
        return UpdateFile(path, move_to, tuple(hunks))

    def _hunk(self, path: str, number: int) -> Hunk:
        start = self.at + 1
        headers = self._headers(path, number)
        lines = self._hunk_lines(path, number)
        line = self._peek()
        ends_file = line is not None and line.rstrip() == END_OF_FILE
        if not lines:
            reason = f"line {start}: the hunk has no lines; below @@ come context, - and + lines"
            raise PatchError("empty_hunk", reason, path=path, hunk=number, lines=(start,))
        if all(line.op == " " for line in lines):
            reason = f"line {start}: the hunk has only context lines; mark what changes with - and +"
            raise PatchError("no_change", reason, path=path, hunk=number, lines=(start,))
        if ends_file:
            if line != END_OF_FILE:
                self._note("padded_marker")
            self.at += 1
        return Hunk(headers, tuple(lines), ends_file)

    def _headers(self, path: str, number: int) -> tuple[str, ...]:
        headers: list[str] = []
        while (line := self._peek()) is not None:
            if not line.strip() and headers and self._next_after_blanks().startswith("@@"):
                self._skip("blank_before_marker")
                continue
            if not line.startswith("@@"):
                break
            text = line[2:]
            if text.startswith("@"):
                raise self._bad_line(
                    "a hunk starts with @@ and, after a blank, a line of the file", path, number
                )
            if not text.strip():
                self._note_if(text == " " or (bool(text) and text[0] != " "), "padded_marker")
            else:
                self._note_if(text[0] != " ", "marker_spacing")
                headers.append(text[1:] if text[0] == " " else text)
            self.at += 1
        return tuple(headers)

    def _hunk_lines(self, path: str, number: int) -> list[HunkLine]:
        lines: list[HunkLine] = []
        while (line := self._peek()) is not None:
            op = _OPS.get(line[:1])
            if op is not None:
                lines.append(HunkLine(op, line[1:]))
                self.at += 1
            elif not line.strip():
                if self._next_after_blanks().startswith("***"):
                    self._skip("blank_before_marker")
                else:
                    lines.append(HunkLine(" ", ""))
                    self._skip("blank_context")
            elif line.startswith("\\ No newline"):
                self._skip("no_newline_note")
            elif line.startswith(("@@", "***")):
                break
            else:
                raise self._bad_line("every line of a hunk starts with a blank, + or -", path, number)
        return lines

    def _path(self, blank: str, raw: str) -> str:
        """Check a path's spelling and tidy it; the cursor stands on its line."""
        path = raw.strip(" \t\r")
        if not path:
            raise PatchError("bad_path", f"line {self.at + 1}: the path is blank", lines=(self.at + 1,))
        reason = f"line {self.at + 1}: {shown(path)}: "
        parts = path.split("/")
        if path.startswith("/") or ".." in parts:
            reason += "paths are relative to the root and do not leave it"
            raise PatchError("outside_root", reason, path=path, lines=(self.at + 1,))
        kept = [part for part in parts if part not in ("", ".")]
        if _CONTROL.search(path) or parts[-1] in ("", ".") or any(part.strip(" ") != part for part in kept):
            reason += "a path names a file, without control characters and without blanks around a part"
            raise PatchError("bad_path", reason, path=path.replace("\0", "\\0"), lines=(self.at + 1,))
        self._note_if(not blank, "marker_spacing")
        self._note_if(path != raw, "padded_marker")
        self._note_if(len(kept) != len(parts), "loose_path")
        return "/".join(kept)

    def _peek(self) -> str | None:
        return self.lines[self.at] if self.at < self.end else None

    def _next_after_blanks(self) -> str:
        """The first non-blank line from the cursor on; the end marker counts as one.

        Remembers it, so that a long run of blank lines costs one look at each.
        """
        self.solid = max(self.solid, self.at)
        while self.solid < self.end and not self.lines[self.solid].strip():
            self.solid += 1
        return self.lines[self.solid] if self.solid < self.end else END

    def _skip(self, leniency: str) -> None:
        self._note(leniency)
        self.at += 1

    def _note(self, leniency: str) -> None:
        self.counts[leniency] += 1
        self.first = self.first or (leniency, self.at + 1)

    def _note_if(self, needed: bool, leniency: str) -> None:
        if needed:
            self._note(leniency)

    def _bad_line(self, expected: str, path: str | None = None, hunk: int | None = None) -> PatchError:
        number = self.at + 1
        reason = f"line {number}: {shown(self.lines[self.at])}: {expected}"
        return PatchError("bad_line", reason, path=path, hunk=hunk, lines=(number,))
