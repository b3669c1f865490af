"""The patch grammar that knows the files: context and removed lines are lines of the real file, in one place of it.

A patch of this language names files that were read, quotes runs of lines that stand there, and ends a hunk only
where the run stands nowhere else (or ends the file, and says so). It can be applied at exactly one place.

The grammar is the automaton of each file's lines (`grammar.automaton`) written as rules. A rule is a state, its
alternatives are what may come next, and the last thing in each is the state after: nothing may be empty, so the
parser's rows stay small. What a state does not tell stands in the parameter that LLGuidance hands from rule to rule:

    bits 0-23   lines of the file that are behind: the end of the hunk before, and the old lines of this one
    bits 24-35  lines that the hunk, or the new file, has added
    bit 36      the hunk has removed a line
    bits 37-40  files that the patch has added
    bits 41-63  files that the patch has named

Functions of the parameter stand behind a terminal only: LLGuidance 1.9.1 loses or refuses some that do not.
"""

from __future__ import annotations

import json
import re
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from functools import cached_property

from constrained_agent.grammar import automaton, patches
from constrained_agent.grammar.automaton import ROOT, LineAutomaton, State
from constrained_agent.grammar.newpaths import NewPaths
from constrained_agent.grammar.sources import Grammar

MAX_FILES = 23
"""Bits that the parameter has left for files."""

MAX_NEW_FILES = 8
"""In one patch: a small model goes on to name new files for ever."""

MAX_LINES = 3_000
"""Lines on offer in all files together: about 0.7 s to compile. Of larger files, those around what was read."""

MAX_STATES = 5_000
"""The same for states, where lines repeat a lot; the engine takes 65,525 symbols."""

MAX_LINE_CHARS = 20_000
"""Of a line on offer: a longer one is more than an answer has room for."""

MAX_ADDED_LINES = 4_095
"""The most that the parameter can count."""

_N_POSITION, _N_ADDED = 24, 12
_REMOVED = _N_POSITION + _N_ADDED
_FIRST_NEW = _REMOVED + 1
_FIRST_FILE = _FIRST_NEW + 4
_POSITION, _ADDED = f"[0:{_N_POSITION}]", f"[{_N_POSITION}:{_REMOVED}]"
_NEW_FILES = f"[{_FIRST_NEW}:{_FIRST_FILE}]"
_CHANGED = f"gt([{_N_POSITION}:{_FIRST_NEW}], 0)"
_LEAVE = f"bit_and({(1 << 64) - (1 << _FIRST_NEW):#x})"
"""Keeps nothing but the files."""

_TO_SECTION = f'"*** " section::{_LEAVE}'
_LF = "\n"

_UNDECODABLE = re.compile("[\ud800-\udfff]")

_MARGINS = (3, 50, 400)
"""Lines around what was read that a hunk of a large file may hold, too; the more, the harder it is to be unique."""


@dataclass(frozen=True, slots=True)
class OfferedFile:
    """A file that may be edited.

    Attributes:
        path: as patches name it.
        lines: as the exact match level sees them: without endings, without byte-order mark.
        read: 0-based lines that were read; None for all. Only a large file is narrowed down to them.
    """

    path: str
    lines: Sequence[str]
    read: Sequence[range] | None = None


@dataclass(frozen=True, slots=True)
class Editable:
    """What a patch may do.

    Attributes:
        files: the files that it may update or delete; the most important ones last.
        new_paths: the files that it may add.
        renames: whether it may move files.
    """

    files: Sequence[OfferedFile] = ()
    new_paths: NewPaths = field(default_factory=NewPaths)
    renames: bool = True


@dataclass(frozen=True, slots=True)
class LocatedFile:
    """A file on offer and the runs of its lines; without states it can only be deleted or renamed.

    Attributes:
        number_of: number of each line's text.
        n_bytes: length of each line's text.
    """

    path: str
    automaton: LineAutomaton
    number_of: Mapping[str, int]
    n_bytes: Sequence[int]


@dataclass(frozen=True)  # without slots, for the cached properties
class LocatedPatches:
    """The language of the patches of some files.

    Attributes:
        files: those on offer.
        left_out: paths for which there was no room.
        new_paths: names of files that may be added.
        max_added_lines: `+` lines of a hunk or a new file.
        renames: whether files may be moved.
    """

    files: tuple[LocatedFile, ...]
    left_out: tuple[str, ...]
    new_paths: NewPaths
    max_added_lines: int
    renames: bool = True

    @cached_property
    def file_of(self) -> Mapping[str, int]:
        """Number of the file of each path."""
        return {file.path: i for i, file in enumerate(self.files)}

    @cached_property
    def rules(self) -> str:
        """Lark rules in which `patches.RULE` is a patch, without a newline after its end."""
        return "\n".join(_Writer(self).rules()) + "\n"

    def grammar(self) -> Grammar:
        """The grammar of a text that is one patch."""
        names = ", ".join(file.path for file in self.files) or "new files"
        return Grammar(f"located patch ({names})", "lark", f"start: {patches.RULE}\n{self.rules}")


def locate(
    editable: Editable,
    *,
    max_added_lines: int = patches.MAX_ADDED_LINES,
    can_spell: Callable[[str], bool] | None = None,
) -> LocatedPatches:
    """Build the automata of the files on offer.

    Args:
        max_added_lines: `+` lines of a hunk or a new file, at most `MAX_ADDED_LINES`.
        can_spell: whether the tokenizer has ids for a text; all have them if left out.

    Cost: about 3 microseconds a line of the files.
    """
    n_states = MAX_STATES
    files: list[LocatedFile] = []
    for file, n_lines in reversed(_shares(editable)):
        made = _automaton(file, n_lines, max(n_states, 2), can_spell)
        numbers = {text: i for i, text in enumerate(made.texts)}
        lengths = [len(text.encode("utf-8", "surrogatepass")) for text in made.texts]
        files.append(LocatedFile(file.path, made, numbers, lengths))
        n_states -= len(made.states)
    return LocatedPatches(
        tuple(reversed(files)), left_out(editable), editable.new_paths, max_added_lines, editable.renames
    )


def left_out(editable: Editable) -> tuple[str, ...]:
    """Paths for which there is no room: too many files, or too many lines in those that come after them."""
    offered = {file.path for file, _ in _shares(editable)}
    return tuple(file.path for file in editable.files if file.path not in offered)


def patch_grammar(editable: Editable, max_added_lines: int = patches.MAX_ADDED_LINES) -> Grammar:
    """The grammar of a text that is one patch of these files."""
    return locate(editable, max_added_lines=max_added_lines).grammar()


def _shares(editable: Editable) -> list[tuple[OfferedFile, int]]:
    """The files for which there is room, and how many of its lines each may offer; the last ones come first."""
    room = MAX_LINES
    shares: list[tuple[OfferedFile, int]] = []
    for file in reversed(editable.files[-MAX_FILES:]):
        n_lines = min(len(_near(file, room, _MARGINS[0])), room)
        if n_lines or not file.lines:
            shares.append((file, room))
        room -= n_lines
    return shares[::-1]


def _automaton(
    file: OfferedFile, n_lines: int, max_states: int, can_spell: Callable[[str], bool] | None
) -> LineAutomaton:
    """The runs of the lines near those that were read, with as much around them as makes some of them unique."""
    spoken: list[int] = []
    for margin in _MARGINS:
        near = _near(file, n_lines, margin)
        spoken = [i for i in near if _can_stand(file.lines[i], can_spell)]
        made = automaton.build(file.lines, spoken, max_states)
        if made.states or len(near) >= min(n_lines, len(file.lines)):
            break
    last = len(file.lines) - 1
    if made.states or last < 0 or not _can_stand(file.lines[last], can_spell):
        return made
    # Nothing near is unique; the last lines can still be told from the others, by what follows them.
    return automaton.build(file.lines, [*spoken, last], max_states)


def _near(file: OfferedFile, n_lines: int, margin: int) -> list[int]:
    """Lines that hunks may hold: all of them, or if that is too much, as many as possible of those read."""
    n = len(file.lines)
    if n <= n_lines:
        return list(range(n))
    ranges = file.read if file.read is not None else [range(n)]
    around = (range(max(0, part.start - margin), min(n, part.stop + margin)) for part in ranges)
    return sorted({line for part in around for line in part})[: max(0, n_lines)]


def _can_stand(line: str, can_spell: Callable[[str], bool] | None) -> bool:
    if len(line) > MAX_LINE_CHARS or _UNDECODABLE.search(line):
        return False
    return can_spell is None or can_spell(line)


class _Writer:
    """Writes the rules; names: `f1s7` is state 7 of file 1, `f1o7` an old line there, `f1n7` the next hunk."""

    def __init__(self, located: LocatedPatches) -> None:
        self._located = located
        self._terminals: dict[str, str] = {}

    def rules(self) -> Iterator[str]:
        sections = list(self._sections())
        yield _rule(patches.RULE, ['"*** Begin Patch\\n*** " first_section::0'])
        yield _rule("first_section::_", sections)
        yield _rule("section::_", ['"End Patch"', *sections])
        yield _rule("after_delete::_", [_TO_SECTION])
        yield _rule("added_lines::_", [self._added("added_lines"), _TO_SECTION])
        yield "ADDED: /\\+[^\\n\\x00]*\\n/"
        yield from self._located.new_paths.rules("NEW")
        for i, file in enumerate(self._located.files):
            yield from self._file(i, file.automaton)
        for text, name in self._terminals.items():
            yield _rule(name, [_literal(text + "\n")])

    def _sections(self) -> Iterator[str]:
        yield f'"Add File: " NEW "\\n" added_lines::incr({_NEW_FILES}) %if lt({_NEW_FILES}, {MAX_NEW_FILES})'
        for i, file in enumerate(self._located.files):
            bit = _FIRST_FILE + i
            once = f"set_bit({bit}) %if bit_clear({bit})"
            if self._located.renames or file.automaton.states:
                yield f"{_literal(f'Update File: {file.path}{_LF}')} f{i}::{once}"
            yield f"{_literal(f'Delete File: {file.path}{_LF}')} after_delete::{once}"

    def _added(self, after: str) -> str:
        return f"ADDED {after}::incr({_ADDED}) %if lt({_ADDED}, {self._located.max_added_lines})"

    def _file(self, i: int, lines: LineAutomaton) -> Iterator[str]:
        hunks = []
        if lines.states:
            hunks = [f'"@@\\n" f{i}s{ROOT}::_', *self._lines(i, ROOT, lines.states[ROOT], lines)]
        if self._located.renames:
            yield _rule(f"f{i}moved::_", [_TO_SECTION, *hunks])
            yield _rule(f"f{i}::_", [f'"*** Move to: " NEW "\\n" f{i}moved::_', *hunks])
        elif hunks:
            yield _rule(f"f{i}::_", hunks)
        for number, state in enumerate(lines.states):
            onward = [*self._lines(i, number, state, lines), *self._ends(i, number, state, lines)]
            yield _rule(f"f{i}s{number}::_", onward)
            if state.next:
                yield _rule(f"f{i}o{number}::_", self._old_lines(i, state, lines))
            if _may_go_on(state, lines):
                yield _rule(f"f{i}n{number}::_", [f'"\\n" f{i}s{ROOT}::bit_or({state.end})'])
        if any(state.at_end and state.end is not None for state in lines.states):
            sections = ['"End Patch"', *self._sections()]
            yield _rule(f"f{i}last::_", ['"End of File\\n*** " section::_', *sections])

    def _lines(self, i: int, number: int, state: State, lines: LineAutomaton) -> Iterator[str]:
        """Alternatives for one more line of a hunk."""
        if state.next:
            room = max(lines.states[target].room for target in state.next.values())
            yield f'" " f{i}o{number}::_{_in_time(room, state)}'
            yield f'"-" f{i}o{number}::set_bit({_REMOVED}){_in_time(room, state)}'
        yield self._added(f"f{i}s{number}")

    def _old_lines(self, i: int, state: State, lines: LineAutomaton) -> Iterator[str]:
        for line, target in state.next.items():
            in_time = _in_time(lines.states[target].room, state)
            yield f"{self._terminal(lines.texts[line])} f{i}s{target}::incr({_POSITION}){in_time}"

    def _ends(self, i: int, number: int, state: State, lines: LineAutomaton) -> Iterator[str]:
        """Alternatives for the end of a hunk."""
        if _may_go_on(state, lines):
            yield f'"@@" f{i}n{number}::{_LEAVE} %if {_CHANGED}'
        if state.end is not None:
            after = f"f{i}last" if state.at_end else "section"
            yield f'"*** " {after}::{_LEAVE} %if {_CHANGED}'
        elif state.at_end:
            yield f'"*** End of File\\n*** " section::{_LEAVE} %if {_CHANGED}'

    def _terminal(self, text: str) -> str:
        return self._terminals.setdefault(text, f"L{len(self._terminals)}")


def _in_time(room: int, state: State) -> str:
    """The condition that one more line still leads to where a run may end `room` lines down the file.

    Every text that has come to a state ends within that state's room; where the next one has a line more, all do.
    """
    return "" if room > state.room else f" %if lt({_POSITION}, {room})"


def _may_go_on(state: State, lines: LineAutomaton) -> bool:
    """Whether another hunk fits behind this place."""
    return state.end is not None and bool(lines.n_lines) and state.end <= lines.states[ROOT].room


def _rule(name: str, alternatives: Iterable[str]) -> str:
    first, *others = alternatives
    if name.endswith("::_") and not others and "%if" not in first:
        # LLGuidance 1.9.1 panics where it puts the only alternative of a rule in the place of the rule.
        first += f" %if ge({_POSITION}, 0)"
    return f"{name}: {' | '.join([first, *others])}"


def _literal(text: str) -> str:
    return json.dumps(text, ensure_ascii=False).replace("\x7f", "\\u007f")
