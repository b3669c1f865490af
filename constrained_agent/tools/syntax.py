"""Syntax errors that an edit brings into a file: found by parsers, compared with those that it had, told in words.

Covered: Python (this interpreter's own compiler), JSON, TOML, YAML, and by tree-sitter's grammars JavaScript,
TypeScript, Java, Go, Rust, C, C++ and shell scripts. Other files, files over `MAX_BYTES`, and whatever a parser
cannot cope with count as free of errors: a check that fails never holds up an edit.
"""

from __future__ import annotations

import codecs
import re
import sys
from collections import Counter
from collections.abc import Iterator, Sequence
from dataclasses import dataclass

from constrained_agent.errors import PatchError
from constrained_agent.patch.align import Gap, gaps
from constrained_agent.patch.diff import FilePlan
from constrained_agent.tools import python_worker, syntax_worker
from constrained_agent.tools.files import numbered
from constrained_agent.tools.languages import language
from constrained_agent.tools.syntax_worker import Found

MAX_BYTES = 1_000_000
"""Of one file: larger ones are data or made by programs, and their parsers take seconds."""

MAX_SHOWN = 5
"""Of the errors of one patch: the first ones are where to look."""

TIME_LIMIT_S = 5.0
"""For all files of a patch, which take 0.1 s; a parser that hangs is ended with its process."""

_MAX_ANSWER_BYTES = 10_000_000
_MAX_CARET_COLUMN = 200

_NUMBER = re.compile(r"\d+")


@dataclass(frozen=True, slots=True)
class SyntaxProblem:
    """One syntax error.

    Attributes:
        line, column: where it was noticed, from 1; the column in characters.
        message: the parser's.
        text: the line, without its ending.
    """

    line: int
    column: int
    message: str
    text: str


@dataclass(frozen=True, slots=True)
class Broken:
    """A file of a patch and the syntax errors that it has by it.

    Attributes:
        path: where the file is after the patch.
        is_new: the patch adds the file.
        language: whose parser found them.
        problems: at least one, in file order.
        changed: first and last line that the patch changed, from 1; None for a file that it only moved.
    """

    path: str
    is_new: bool
    language: str
    problems: tuple[SyntaxProblem, ...]
    changed: tuple[int, int] | None


def new_errors(path: str, old: bytes | None, new: bytes) -> tuple[SyntaxProblem, ...]:
    """The errors that a file has and did not have before, in file order. Never raises.

    One that only moved is not new: they are compared by message and text of their line. Where the old text was
    broken already, an error counts as new if its line is changed, or stands before the first one of then: what is
    below that, the parser may not have seen. In C, C++ and TypeScript only an edit that opens or closes other brackets
    than before has any (`syntax_worker.LOOSE` says why). Where it cannot know, it says nothing.

    Args:
        path: its name tells the language.
        old: the bytes before; None for a new file.
        new: the bytes now.

    Cost: a Python process, 40 to 100 ms, and the parser: 0.1 s for 100 KB of Python, less for others.
    """
    return _compared([(path, old, new)])[0]


def broken_by(files: Sequence[FilePlan]) -> tuple[Broken, ...]:
    """The files of a patch that have new errors by it; all are looked at in one process."""
    there = [(file.new_path or file.path, file, file.new) for file in files if file.new is not None]
    compared = _compared([(path, file.old, new) for path, file, new in there])
    return tuple(
        Broken(path, file.old is None, language(path, new) or "", problems, _changed(file))
        for (path, file, new), problems in zip(there, compared, strict=True)
        if problems
    )


def report(files: Sequence[Broken]) -> list[str]:
    """The errors in words, each with its line and a mark below it; the first `MAX_SHOWN` of them."""
    lines: list[str] = []
    room = MAX_SHOWN
    for file in files:
        verb, since = ("has", "") if file.is_new else ("now has", " that it did not have before")
        lines += _told(file, f"{file.path} {verb}", since, room)
        room = max(0, room - len(file.problems))
    return lines


def facts(files: Sequence[Broken]) -> list[dict[str, str | int]]:
    """The errors as facts for the transcript; the first `MAX_SHOWN` of them."""
    found: list[dict[str, str | int]] = [
        {"path": file.path, "line": problem.line, "column": problem.column, "message": problem.message}
        for file in files
        for problem in file.problems
    ]
    return found[:MAX_SHOWN]


def refusal(files: Sequence[Broken]) -> PatchError:
    """What the model is told instead, where a patch that breaks files is not applied."""
    first, *others = files
    since = "" if first.is_new else " that it does not have now"
    lines = _told(first, "nothing was written: with this patch it would have", since, MAX_SHOWN)
    lines += [
        f"{file.path} would be broken, too: line {file.problems[0].line}" for file in others[:MAX_SHOWN]
    ]
    lines.append("write the whole patch anew, without the error")
    numbers = tuple(problem.line for problem in first.problems[:MAX_SHOWN])
    return PatchError("write_failed", "\n".join(lines), path=first.path, lines=numbers)


def _told(file: Broken, subject: str, since: str, room: int) -> list[str]:
    shown, n = file.problems[:room], len(file.problems)
    head = f"{subject} a syntax error{since}: " if n == 1 else f"{subject} {n} syntax errors{since}:\n"
    lines = (head + "\n".join(part for problem in shown for part in _shown(problem))).split("\n")
    if n > len(shown):
        lines = [line for line in lines if line] + [f"[{n - len(shown)} more]"]
    if file.changed and not any(file.changed[0] <= p.line <= file.changed[1] for p in file.problems):
        first, last = file.changed
        where = f"line {first}" if first == last else f"lines {first}-{last}"
        lines.append(f"the patch changed {where}: look for the cause there")
    if file.language == "python":
        version = ".".join(map(str, sys.version_info[:2]))
        lines.append(f"(read as Python {version}; what is meant for another version may be right)")
    return lines


def _shown(problem: SyntaxProblem) -> Iterator[str]:
    yield f"line {problem.line}: {problem.message}"
    width = len(str(problem.line))
    yield from numbered([problem.text], problem.line, width)
    before = problem.text[: problem.column - 1]
    if len(before) <= _MAX_CARET_COLUMN:
        yield f"{' ' * width}│{''.join(char if char == chr(9) else ' ' for char in before)}^"


def _changed(file: FilePlan) -> tuple[int, int] | None:
    if not file.changes:
        return None
    first = file.changes[0].new_start + 1
    return first, max(first, file.changes[-1].new_end)


def _compared(files: Sequence[tuple[str, bytes | None, bytes]]) -> list[tuple[SyntaxProblem, ...]]:
    """For each file (path, old, new) its new errors."""
    found: list[tuple[SyntaxProblem, ...]] = [()] * len(files)
    places = [i for i, (path, old, new) in enumerate(files) if _is_checked(path, old, new)]
    asked = [files[i] for i in places]
    requests = [
        (language(path, new), new.decode("latin-1"), None if old is None else old.decode("latin-1"))
        for path, old, new in asked
    ]
    # No answer at all if a parser hung or crashed.
    for i, (now, before) in zip(places, _answers(requests), strict=False):
        path, old, new = files[i]
        problems = list(_problems(now, new))
        if before and old is not None:
            loose = language(path, new) in syntax_worker.LOOSE
            problems = _fresh(list(_problems(before, old)), problems, old, new, anywhere=loose)
        found[i] = tuple(problems)
    return found


def _is_checked(path: str, old: bytes | None, new: bytes) -> bool:
    return old != new and max(len(old or b""), len(new)) <= MAX_BYTES and language(path, new) is not None


def _answers(requests: Sequence[tuple[str | None, str, str | None]]) -> list[tuple[list[Found], list[Found]]]:
    if not requests:
        return []
    answers = python_worker.ask(
        [syntax_worker.__file__], requests, limit_bytes=_MAX_ANSWER_BYTES, timeout_s=TIME_LIMIT_S
    )
    return [(now, before) for now, before in answers or ()]


def _problems(found: Sequence[Found], data: bytes) -> Iterator[SyntaxProblem]:
    lines = data.removeprefix(codecs.BOM_UTF8).removesuffix(b"\n").split(b"\n")
    for line, column, message in found:
        number = min(max(1, line), len(lines))
        text = lines[number - 1].decode("utf-8", "replace").removesuffix("\r")
        # What is missing at the end of the file is missing behind its last line.
        yield SyntaxProblem(number, max(1, column) if number == line else len(text) + 1, message, text)


def _fresh(
    before: Sequence[SyntaxProblem], now: Sequence[SyntaxProblem], old: bytes, new: bytes, *, anywhere: bool
) -> list[SyntaxProblem]:
    """Of the errors now, those that were not there before, as far as can be told: see `new_errors`.

    Args:
        anywhere: below the first error of then, too, since it is known that the edit broke something.
    """
    changes = _line_gaps(old, new)
    first = _moved(before[0].line - 1, changes)
    known = Counter(map(_key, before))
    fresh = []
    # Of two equal errors, the one on an old line is the old one.
    for problem in sorted(now, key=lambda problem: _is_changed(problem.line - 1, changes)):
        if known[_key(problem)]:
            known[_key(problem)] -= 1
        elif anywhere or problem.line - 1 < first or _is_changed(problem.line - 1, changes):
            fresh.append(problem)
    return sorted(fresh, key=lambda problem: (problem.line, problem.column))


def _key(problem: SyntaxProblem) -> tuple[str, str]:
    return _NUMBER.sub("", problem.message), problem.text.strip()  # some messages name a line


def _line_gaps(old: bytes, new: bytes) -> list[Gap]:
    numbers: dict[bytes, int] = {}
    a, b = ([numbers.setdefault(line, len(numbers)) for line in data.split(b"\n")] for data in (old, new))
    return gaps(a, b)


def _moved(line: int, changes: Sequence[Gap]) -> int:
    """Where an old line (0-based) is now; one that is gone, where what stands for it ends."""
    shift = 0
    for gap in changes:
        if gap.a_start <= line < gap.a_end:
            return gap.b_end
        if gap.a_end <= line:
            shift = gap.b_end - gap.a_end
    return line + shift


def _is_changed(line: int, changes: Sequence[Gap]) -> bool:
    """Whether a new line (0-based) came with the edit, or stands where lines were taken away."""
    return any(gap.b_start <= line < max(gap.b_end, gap.b_start + 1) for gap in changes)
