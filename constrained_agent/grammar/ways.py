"""The shortest way from any point of a located patch to its end.

No search in the grammar is needed: the automata say which lines may follow and where a hunk may end, so it is a
shortest path over the states of one file (E. W. Dijkstra, 1959).
"""

from __future__ import annotations

import heapq
from collections.abc import Iterator
from dataclasses import replace
from itertools import count, islice, product
from typing import NamedTuple

from constrained_agent.grammar.progress import END, Begin, Between, Header, InHunk, Progress

_BEGIN = b"*** Begin Patch\n"
_ADD, _MOVE = b"*** Add File: ", b"*** Move to: "
_END_OF_FILE = b"*** End of File\n"
_LETTERS = "abcdefghijklmnopqrstuvwxyz"
_MAX_SUFFIXES = 60


def shortest(progress: Progress) -> bytes | None:
    """The fewest bytes that bring a patch to its end; empty if it is whole; None if a path in it can not stand.

    Cost: 0.01 to 0.3 ms; more where lines repeat so much that many must be quoted.
    """
    if progress.done:
        return b""
    if not progress.consistent:
        return None
    ways = (way for way in _ways(progress) if way is not None)
    return min(ways, key=len, default=None)


def _ways(progress: Progress) -> Iterator[bytes | None]:
    """Ways to the end, among them the shortest of each kind of line that the text may be in."""
    line, place = progress.line, progress.place
    if isinstance(place, Begin):
        yield _rest(_BEGIN, line, _from_start(replace(progress, place=Between(first=True), line=b"")))
        return
    if not line:
        yield _from_start(progress)
        return
    if line.startswith(b"+"):
        yield _after_added(progress)
    elif line.startswith((b" ", b"-")):
        yield _old_line(progress)
    elif line.startswith(b"@"):
        yield _rest(b"@@\n", line, _from_start(progress.advanced(b"@@\n"[len(line) :])))
    else:
        yield from _controls(progress)


def _rest(whole: bytes, begun: bytes, after: bytes | None) -> bytes | None:
    return None if after is None else whole[len(begun) :] + after


def _from_start(progress: Progress) -> bytes | None:
    """The way from the start of a line."""
    place = progress.place
    if isinstance(place, InHunk):
        return _through_hunk(progress, place)
    if isinstance(place, Header) and not place.moved:
        moved = _MOVE + _free_name(progress).encode() + b"\n" + END if progress.located.renames else None
        states = progress.located.files[place.file].automaton.states
        hunk = _through_hunk(progress, InHunk(place.file)) if states else None
        return min((way for way in (moved, hunk) if way is not None), key=len, default=None)
    if isinstance(place, Between) and place.first:
        return _ADD + _free_name(progress).encode() + b"\n" + END
    return END


def _after_added(progress: Progress) -> bytes | None:
    ending = missing_bytes(progress.line) + b"\n"
    after = _from_start(progress.advanced(ending))
    return None if after is None else ending + after


def _old_line(progress: Progress) -> bytes | None:
    """Through one of the file's lines that go on as the text does."""
    place = progress.place
    if isinstance(place, Header):
        place = InHunk(place.file)
    assert isinstance(place, InHunk)
    file = progress.located.files[place.file]
    begun = progress.line[1:]
    removed = place.removed or progress.line.startswith(b"-")
    steps = []
    for number, target in progress.state_of(place).next.items():
        text = file.automaton.texts[number].encode()
        if text.startswith(begun) and place.behind < file.automaton.states[target].room:
            steps.append(_Step(len(text), target, place.behind + 1, text[len(begun) :] + b"\n", None))
    return _through_hunk(progress, replace(place, removed=removed), steps)


class _Step(NamedTuple):
    """One more line on the way through a hunk.

    Attributes:
        n_bytes: of all lines up to this one.
        state: after the line.
        behind: lines of the file that are behind then.
        line: its bytes, with the newline; without what stands in front.
        before: the step before; None for the first, whose front is written already.
    """

    n_bytes: int
    state: int
    behind: int
    line: bytes
    before: _Step | None


def _through_hunk(progress: Progress, hunk: InHunk, steps: list[_Step] | None = None) -> bytes | None:
    """The way through old lines to a place that can be named.

    Args:
        steps: the lines that the text may be in; None at the start of a line.
    """
    file = progress.located.files[hunk.file]
    texts, states = file.automaton.texts, file.automaton.states
    order = count()
    here = _Step(0, hunk.state, hunk.behind, b"", None)
    heap = [(step.n_bytes, next(order), step) for step in ([here] if steps is None else steps)]
    heapq.heapify(heap)
    seen: set[tuple[int, int]] = set()
    while heap:
        n_bytes, _, step = heapq.heappop(heap)
        state = states[step.state]
        if state.end is not None or state.at_end:
            return _spelled(step, hunk) + (b"" if state.end is not None else _END_OF_FILE) + END
        if (step.state, step.behind) in seen:
            continue
        seen.add((step.state, step.behind))
        for number, target in state.next.items():
            if step.behind < states[target].room:
                longer = n_bytes + file.n_bytes[number] + 2
                onward = _Step(longer, target, step.behind + 1, texts[number].encode() + b"\n", step)
                heapq.heappush(heap, (longer, next(order), onward))
    return None


def _spelled(last: _Step, hunk: InHunk) -> bytes:
    """The lines of a way. A hunk must change something: where it has not yet, its first line goes."""
    lines: list[bytes] = []
    step: _Step | None = last
    while step is not None:
        lines.append(step.line)
        step = step.before
    first, *others = reversed(lines)
    changed = hunk.changed
    spelled = first
    for line in others:
        spelled += (b" " if changed else b"-") + line
        changed = True
    return spelled if changed else spelled + b"+\n"


def _controls(progress: Progress) -> Iterator[bytes | None]:
    """Through a line that begins with stars."""
    line, place = progress.line, progress.place
    if isinstance(place, Header) and not place.moved:
        yield from _new_path(progress, _MOVE)
        return
    ends = not (isinstance(place, Between) and place.first)
    if isinstance(place, InHunk):
        state = progress.state_of(place)
        if state.at_end and _END_OF_FILE.startswith(line):
            yield _END_OF_FILE[len(line) :] + END
        ends = state.end is not None
    if ends and END.startswith(line):
        yield END[len(line) :]
        return
    yield from _new_path(progress, _ADD)
    for number, file in enumerate(progress.located.files):
        if number in progress.named:
            continue
        for key in ("Delete", "Update"):
            whole = f"*** {key} File: {file.path}\n".encode()
            if whole.startswith(line):
                yield _rest(whole, line, _from_start(progress.advanced(whole[len(line) :])))


def _new_path(progress: Progress, key: bytes) -> Iterator[bytes]:
    """Through the name of a new file: as it stands if it can, else longer."""
    line = progress.line
    if key.startswith(line):
        yield key[len(line) :] + _free_name(progress).encode() + b"\n" + END
    elif line.startswith(key):
        ending = missing_bytes(line)
        begun = (line + ending)[len(key) :].decode()
        for suffix in islice(_names(), _MAX_SUFFIXES):
            if progress.located.new_paths.allows(begun + suffix, progress.made):
                yield ending + suffix.encode() + b"\n" + END
                return


def _free_name(progress: Progress) -> str:
    """A short name at which nothing stands."""
    return next(name for name in _names() if name and progress.located.new_paths.allows(name, progress.made))


def _names() -> Iterator[str]:
    for length in count():
        for letters in product(_LETTERS, repeat=length):
            yield "".join(letters)


def missing_bytes(data: bytes) -> bytes:
    """The fewest bytes that make the last character of UTF-8 text whole."""
    for length in range(1, min(4, len(data) + 1)):
        lead = data[-length]
        if lead < 0x80:
            return b""
        if lead >= 0xC0:
            wanted = 2 + (lead >= 0xE0) + (lead >= 0xF0)
            # Behind two of the leads the first byte that may follow is higher than elsewhere.
            lowest = {0xE0: 0xA0, 0xF0: 0x90}.get(lead, 0x80) if length == 1 else 0x80
            return bytes([lowest, 0x80, 0x80])[: wanted - length]
    return b""
