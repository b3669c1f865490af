"""Which runs of lines a file has, and where a run is the only one: a suffix automaton over its lines.

A state stands for all runs that end at the same places of the file, so it knows what may follow them and whether
they name one place. At most two states a line, whatever repeats (A. Blumer et al., "The smallest automaton
recognizing the subwords of a text", 1985). Of a large file only the states around some lines are kept; whether a
run is unique is always said of the whole file.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass

ROOT = 0
"""The state before the first line of a run."""


@dataclass(frozen=True, slots=True)
class State:
    """Where a run of lines can be, and how it can go on.

    Attributes:
        next: number of a line's text to the state after it; all lines that lead to a place that can be named.
        end: how many lines of the file lie before the end of the run, if it stands in the file only once.
        at_end: the run is the last lines of the file.
        latest_end: the latest end of a run here from which a nameable place can still be reached.
    """

    next: Mapping[int, int]
    end: int | None
    at_end: bool
    latest_end: int


@dataclass(frozen=True, slots=True)
class LineAutomaton:
    """The runs of a file's lines.

    Attributes:
        texts: text of each line number; equal lines have one number.
        states: `states[ROOT]` is the empty run. No state is a dead end. Empty if no place can be named.
        n_lines: lines of the file.
    """

    texts: tuple[str, ...]
    states: tuple[State, ...]
    n_lines: int


def build(lines: Sequence[str], spoken: Iterable[int], max_states: int) -> LineAutomaton:
    """The automaton of a file.

    Args:
        lines: the whole file, without endings.
        spoken: 0-based lines that a run may hold; the others only count for what is unique.
        max_states: where there are more, those of the longest runs are left out.

    Cost: about 2 microseconds a line of the file, 4 if all are equal.
    """
    numbers: dict[str, int] = {}
    sequence = [numbers.setdefault(line, len(numbers)) for line in lines]
    full = _SuffixAutomaton(sequence)
    kept = full.reachable(spoken, max_states)
    return LineAutomaton(tuple(numbers), _pruned(full, kept, len(lines)), len(lines))


def alone(lines: Sequence[str], stop: int, at_most: int) -> int:
    """How far down the file the run from line `stop - 1` on must go to be the only one of its kind.

    Returns:
        0-based, behind its last line; `stop` itself where `at_most` lines more do not suffice.
    """
    if stop == 0:
        return 0
    others = [i + 1 for i, line in enumerate(lines) if line == lines[stop - 1] and i != stop - 1]
    for end in range(stop, min(len(lines), stop + at_most)):
        if not others:
            return end
        shift = end - stop
        others = [i for i in others if i + shift < len(lines) and lines[i + shift] == lines[end]]
    return stop if others and stop + at_most < len(lines) else min(len(lines), stop + at_most)


class _SuffixAutomaton:
    """The automaton of the whole sequence, as parallel lists over states; built line by line."""

    def __init__(self, sequence: Sequence[int]) -> None:
        self.next: list[dict[int, int]] = [{}]
        self.length = [0]  # of a state's longest run
        self._link = [-1]  # the state of the longest suffix that ends at more places
        self._prefixes = [ROOT]  # state of each beginning of the sequence
        for line in sequence:
            self._append(line)
        n = len(sequence)
        self.count = [0] * len(self.length)  # places where a state's runs end
        self.last_end = [0] * len(self.length)
        for end, state in enumerate(self._prefixes[1:], 1):
            self.count[state], self.last_end[state] = 1, end
        # Longer runs first, so that a state is complete before it is added to the one that it links to.
        self.by_length = sorted(range(1, len(self.length)), key=self.length.__getitem__, reverse=True)
        for state in self.by_length:
            above = self._link[state]
            self.count[above] += self.count[state]
            self.last_end[above] = max(self.last_end[above], self.last_end[state])
        self.at_end = {state for state in range(len(self.length)) if self.last_end[state] == n}

    def _append(self, line: int) -> None:
        last = self._prefixes[-1]
        new = self._state({}, self.length[last] + 1, ROOT)
        self._prefixes.append(new)
        state = last
        while state >= 0 and line not in self.next[state]:
            self.next[state][line] = new
            state = self._link[state]
        if state < 0:
            return
        target = self.next[state][line]
        if self.length[target] == self.length[state] + 1:
            self._link[new] = target
            return
        # The runs of `target` no longer end all at the same places: the shorter ones get a state of their own.
        short = self._state(dict(self.next[target]), self.length[state] + 1, self._link[target])
        self._link[target] = self._link[new] = short
        while state >= 0 and self.next[state].get(line) == target:
            self.next[state][line] = short
            state = self._link[state]

    def _state(self, following: dict[int, int], length: int, link: int) -> int:
        self.next.append(following)
        self.length.append(length)
        self._link.append(link)
        return len(self.length) - 1

    def reachable(self, spoken: Iterable[int], max_states: int) -> dict[int, dict[int, int]]:
        """States that runs of spoken lines lead to, shortest runs first, and their transitions."""
        speakable = [False] * len(self.length)
        for line in spoken:
            speakable[self._prefixes[line + 1]] = True
        for state in self.by_length:
            if speakable[state]:
                speakable[self._link[state]] = True
        found = {ROOT: 0}
        for state in (queue := [ROOT]):
            for target in self.next[state].values():
                if speakable[target] and target not in found and len(found) < max_states:
                    found[target] = len(found)
                    queue.append(target)
        return {
            state: {line: target for line, target in self.next[state].items() if target in found}
            for state in found
        }


def _pruned(full: _SuffixAutomaton, kept: Mapping[int, Mapping[int, int]], n_lines: int) -> tuple[State, ...]:
    """The kept states from which a place can be named, numbered in the order of `kept`."""
    latest: dict[int, int] = {}
    for state in sorted(
        kept, key=full.length.__getitem__, reverse=True
    ):  # a transition leads to a longer run
        is_place = state != ROOT or n_lines == 0
        ends = [latest[target] - 1 for target in kept[state].values() if target in latest]
        if is_place and full.count[state] == 1:
            ends.append(full.last_end[state])
        if is_place and state in full.at_end:
            ends.append(n_lines)
        if ends:
            latest[state] = max(ends)
    if ROOT not in latest:
        return ()
    number = {state: i for i, state in enumerate(state for state in kept if state in latest)}
    return tuple(
        State(
            next={line: number[target] for line, target in kept[state].items() if target in number},
            end=_end(full, state, n_lines),
            at_end=state in full.at_end and (state != ROOT or n_lines == 0),
            latest_end=latest[state],
        )
        for state in number
    )


def _end(full: _SuffixAutomaton, state: int, n_lines: int) -> int | None:
    if state == ROOT:
        return 0 if n_lines == 0 else None
    return full.last_end[state] if full.count[state] == 1 else None
