"""What may be edited, and what of it is on offer: files, and runs of their lines.

A patch of this language names files that were read, quotes runs of lines that stand there, and ends a hunk only
where the run stands nowhere else (or ends the file, and says so). It can be applied at exactly one place.
`located.rules` writes it as a grammar.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from functools import cached_property

from constrained_agent.grammar import patches
from constrained_agent.grammar.carriers import FREEFORM, Carrier
from constrained_agent.grammar.located import automaton
from constrained_agent.grammar.located.automaton import LineAutomaton
from constrained_agent.grammar.located.newpaths import NewPaths

MAX_FILES = 23
"""On offer at once: the grammar has one bit for each."""

MAX_NEW_FILES = 8
"""In one patch: a small model goes on to name new files for ever."""

MAX_ADDED_LINES = 4_095
"""Of a hunk or a new file: the most that the grammar can count."""

MAX_LINES = 3_000
"""Lines on offer in all files together: code of that size compiles in 0.7 s, the worst seen in 4 s."""

MAX_STATES = 5_000
"""The same for states, where lines repeat a lot; the engine takes 65,525 symbols."""

MAX_LINE_CHARS = 4_000
"""Of a line on offer: a longer one is more than an answer has room for."""

_MARGIN = 3
"""Lines around what was read of a large file that a hunk may hold, too."""

_MAX_ONWARD = 400
"""Lines down the file that are taken along to make a run unique that starts in what was read."""

_NO_TEXT = re.compile("[\0\ud800-\udfff]")
"""Characters that stand for bytes that are no UTF-8, and NUL, which no patch may hold."""

CanSpell = Callable[[str], bool]
"""Whether the tokenizer has ids for a text."""


@dataclass(frozen=True, slots=True)
class OfferedFile:
    """A file that may be edited.

    Attributes:
        path: as patches name it.
        lines: as the exact match level sees them: without endings, without byte-order mark.
        read: 0-based lines that were read, the latest last; None for all. Counts where there is no room for all.
    """

    path: str
    lines: tuple[str, ...]
    read: tuple[range, ...] | None = None


@dataclass(frozen=True, slots=True)
class Editable:
    """What a patch may do.

    Attributes:
        files: the files that it may update or delete; the most important ones last.
        new_paths: the files that it may add.
        renames: whether it may move files.
    """

    files: tuple[OfferedFile, ...] = ()
    new_paths: NewPaths = field(default_factory=NewPaths)
    renames: bool = True


@dataclass(frozen=True)  # without slots, for the cached properties
class LocatedFile:
    """A file on offer and the runs of its lines; without states it can only be deleted or renamed."""

    path: str
    automaton: LineAutomaton
    carrier: Carrier = FREEFORM

    @cached_property
    def number_of(self) -> Mapping[str, int]:
        """Number of each line's text."""
        return {text: i for i, text in enumerate(self.automaton.texts)}

    @cached_property
    def data(self) -> Sequence[bytes]:
        """Each line's text and its end as a patch carries them, as bytes."""
        return [self.carrier.carried(f"{text}\n") for text in self.automaton.texts]

    @cached_property
    def to_end(self) -> Sequence[int]:
        """For each state the fewest bytes of old lines until a hunk may end."""
        states = self.automaton.states
        least = [0] * len(states)
        # What follows a state has a longer run, so it comes later in a walk along the runs: go backwards.
        for number in reversed(_in_order(states)):
            state = states[number]
            if state.end is None and not state.at_end:
                least[number] = min(len(self.data[line]) + 1 + least[to] for line, to in state.next.items())
        return least

    @cached_property
    def onward(self) -> Sequence[Sequence[tuple[int, int, int]]]:
        """For each state what follows it, the shortest way to an end first: bytes to there, line number, state."""
        return [
            sorted((len(self.data[line]) + 1 + self.to_end[to], line, to) for line, to in state.next.items())
            for state in self.automaton.states
        ]


@dataclass(frozen=True, eq=False)
class LocatedPatches:
    """The language of the patches of some files.

    Attributes:
        files: those on offer.
        new_paths: names of files that may be added.
        max_added_lines: `+` lines of a hunk or a new file.
        renames: whether files may be moved.
        carrier: how the patches are spelled.
    """

    files: tuple[LocatedFile, ...]
    new_paths: NewPaths
    max_added_lines: int
    renames: bool = True
    carrier: Carrier = FREEFORM

    @cached_property
    def file_of(self) -> Mapping[str, int]:
        """Number of the file of each path."""
        return {file.path: i for i, file in enumerate(self.files)}


def locate(
    editable: Editable,
    *,
    max_added_lines: int = patches.MAX_ADDED_LINES,
    can_spell: CanSpell | None = None,
    carrier: Carrier = FREEFORM,
) -> LocatedPatches:
    """Build the automata of the files on offer.

    Args:
        max_added_lines: `+` lines of a hunk or a new file, at most `MAX_ADDED_LINES`.
        can_spell: all texts can be spelled if left out.
        carrier: how the patches are spelled.

    Cost: about 3 microseconds a line of the files.
    """
    if max_added_lines > MAX_ADDED_LINES:
        raise ValueError(f"max_added_lines: at most {MAX_ADDED_LINES}, got {max_added_lines}")
    n_states = MAX_STATES
    files: list[LocatedFile] = []
    for file, near in reversed(_offered(editable)):
        if can_spell is None or can_spell(carrier.spell(file.path)):
            files.append(located_file(file.path, file.lines, near, max(n_states, 2), can_spell, carrier))
            n_states -= len(files[-1].automaton.states)
    files.reverse()
    return LocatedPatches(tuple(files), editable.new_paths, max_added_lines, editable.renames, carrier)


def located_file(
    path: str,
    lines: Sequence[str],
    near: Iterable[int],
    max_states: int,
    can_spell: CanSpell | None = None,
    carrier: Carrier = FREEFORM,
) -> LocatedFile:
    """A file with the runs of those of its lines (0-based) that are near and can stand in a patch."""

    def can_stand(line: str) -> bool:
        if len(line) > MAX_LINE_CHARS or _NO_TEXT.search(line):
            return False
        return can_spell is None or can_spell(carrier.spell(line))

    spoken = [i for i in near if can_stand(lines[i])]
    made = automaton.build(lines, spoken, max_states)
    last = len(lines) - 1
    if not made.states and last >= 0 and can_stand(lines[last]):
        # Nothing near is unique; the last lines can still be told from the others, by what follows them.
        made = automaton.build(lines, [*spoken, last], max_states)
    return LocatedFile(path, made, carrier)


def left_out(editable: Editable) -> tuple[str, ...]:
    """Paths for which there is no room: too many files, or too many lines in those that come after them."""
    offered = {file.path for file, _ in _offered(editable)}
    return tuple(file.path for file in editable.files if file.path not in offered)


def _offered(editable: Editable) -> list[tuple[OfferedFile, list[int]]]:
    """The files for which there is room, in their order, and the lines of each that are on offer.

    Whole files if all have room. Otherwise first what was read of each, the last file and the latest reading first,
    then the rest of as many files as possible.
    """
    files = list(reversed(editable.files[-MAX_FILES:]))
    n_left = MAX_LINES
    if sum(len(file.lines) for file in files) <= n_left:
        return [(file, list(range(len(file.lines)))) for file in reversed(files)]
    offered: list[tuple[OfferedFile, list[int]]] = []
    for file in files:
        near = _near(file, n_left)
        if near or not file.lines:
            offered.append((file, near))
        n_left -= len(near)
    for i, (file, near) in enumerate(offered):
        more = len(file.lines) - len(near)
        if more <= n_left:
            offered[i] = (file, list(range(len(file.lines))))
            n_left -= more
    return offered[::-1]


def _near(file: OfferedFile, n_lines: int) -> list[int]:
    """At most so many of the lines that were read, the latest first, and around them what makes them unique."""
    n = len(file.lines)
    found: set[int] = set()
    for part in reversed(file.read if file.read is not None else [range(n)]):
        stop = min(n, part.stop)
        onward = automaton.alone(file.lines, stop, _MAX_ONWARD)
        for line in range(max(0, part.start - _MARGIN), min(n, max(onward, stop + _MARGIN))):
            if len(found) == n_lines:
                break
            found.add(line)
    return sorted(found)


def _in_order(states: Sequence[automaton.State]) -> list[int]:
    """All states, each before those that follow it."""
    n_before = [0] * len(states)
    for state in states:
        for to in state.next.values():
            n_before[to] += 1
    order = [number for number, n in enumerate(n_before) if n == 0]
    for number in order:
        for to in states[number].next.values():
            n_before[to] -= 1
            if n_before[to] == 0:
                order.append(to)
    return order
