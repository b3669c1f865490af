"""What may come next at a place of a located patch: lines of the file, paths, and conditions, in words."""

from __future__ import annotations

from collections.abc import Iterator, Sequence

from constrained_agent.grammar.expected import Expected
from constrained_agent.grammar.located import ways
from constrained_agent.grammar.located.likeness import nearest
from constrained_agent.grammar.located.offer import MAX_NEW_FILES
from constrained_agent.grammar.located.place import ADD, MOVE, NAMING, Here, Spot, numbers, shown
from constrained_agent.grammar.located.progress import Adding, Between, Header, InHunk

_END, _END_OF_FILE = "*** End Patch", "*** End of File\n"
_MAX_NAMES = 5


def expected_here(here: Here) -> list[Expected]:
    """Everything that may come next, conditions first, then lines and paths, then literals.

    Not for the first line, added lines and the end, where nothing depends on files. Costs up to 0.1 s.
    """
    line, spot = here.line, here.spot
    if key := next((key for key in NAMING if line.startswith(key)), None):
        return list(_files(here, key))
    if key := next((key for key in (ADD, MOVE) if line.startswith(key)), None):
        return [_new_path(here, key)]
    if spot is not None and line.startswith((" ", "-")):
        return list(_old_lines(here, spot, here.progress.line[1:]))
    entries: list[Expected] = []
    if spot is not None and not line:
        entries += [*_conditions(here, spot), *_old_lines(here, spot, b"")]
    if not line and (spot is not None or isinstance(here.progress.place, Adding)):
        entries.append(Expected("literal", "+", 1, b"+"))
    if line or not here.fixed:  # else they stand among the conditions
        entries += [
            _rest_of(text, line) for text in _controls(here) if text.startswith(line) and text != line
        ]
    return entries


def _rest_of(text: str, begun: str) -> Expected:
    return Expected("literal", text[len(begun) :], 1, text[len(begun) :].encode())


def _conditions(here: Here, spot: Spot) -> Iterator[Expected]:
    """That the hunk can end, or what it lacks for that."""
    state = here.progress.state_of(spot.hunk)
    if here.fixed:
        both, example = ('"@@" or "***"', b"@@") if here.has_next_hunk else ('"***"', b"***")
        why = f"the old lines fix one place ({_span(spot)})" if spot.n_old else f"{spot.path} is empty"
        yield Expected("rule", f"{both}: {why}", 2, example)
    if not spot.hunk.changed and spot.n_old:
        yield Expected("rule", "a change: a hunk needs a + or - line", 2, b"+")
    if state.end is None and state.next and spot.hunk.changed:
        if spot.n_old:
            text = f"another line: the old lines stand at {numbers(spot.starts)} so far"
        else:
            text = f"an old line: nothing says yet where in {spot.path} the new lines go"
        yield Expected("rule", text, 2, b" ")


def _span(spot: Spot) -> str:
    """The lines of the one place."""
    first, last = spot.starts[0], spot.ends[0]
    return f"line {first}" if first == last else f"lines {first} to {last}"


def _old_lines(here: Here, spot: Spot, begun: bytes) -> Iterator[Expected]:
    """The lines of the file that may follow; if another one was found, those most like it first."""
    file = here.progress.located.files[spot.hunk.file]
    places: dict[str, list[int]] = {}
    for number, target in here.progress.state_of(spot.hunk).next.items():
        text = file.automaton.texts[number]
        if spot.hunk.behind < file.automaton.states[target].latest_end and text.encode().startswith(begun):
            places[text] = []
    for number, text in spot.next_lines:
        if text in places:
            places[text].append(number - 1)
    ordered = sorted(places, key=lambda text: places[text][:1])
    wrong = _wrong_line(here)
    for text in ordered if wrong is None else nearest(ordered, wrong):
        words = _line_in_words(spot, text, places[text])
        rest = text.encode()[len(begun) :] + b"\n"
        if here.line:
            yield Expected("line", words, 1, rest)
        else:
            yield Expected("line", f'" " or "-" and {words}', 2, b" " + rest)


def _wrong_line(here: Here) -> str | None:
    """The old line that was found, or was probably meant; None if the text ends or wants the hunk to end."""
    if here.found is None or here.found.startswith(("@", "*")):
        return None
    return here.found[1:] if here.line else here.found


def _line_in_words(spot: Spot, text: str, ends: Sequence[int]) -> str:
    """One line of the file: after which line it stands, or which it is."""
    if spot.n_old:
        return (
            f"a line of {spot.path} that follows {numbers(ends) if ends else 'the old lines'}: {shown(text)}"
        )
    below = f" below line {spot.hunk.start}" if spot.hunk.start else ""
    which = f" ({numbers([end + 1 for end in ends])})" if ends else ""
    return f"a line of {spot.path}{below}: {shown(text)}{which}"


def _controls(here: Here) -> Iterator[str]:
    """The lines that may steer the patch from here on, up to where a path begins."""
    place, spot = here.progress.place, here.spot
    if isinstance(place, Header):
        if not place.moved:
            yield MOVE
        if spot is not None:
            yield "@@\n"
        if not place.moved:
            return
    if isinstance(place, InHunk):
        if place.changed and here.has_next_hunk:
            yield "@@\n"
        if place.changed and here.progress.state_of(place).at_end:
            yield _END_OF_FILE
        if not here.fixed:
            return
    if here.n_new < MAX_NEW_FILES:
        yield ADD
    if here.folder.beginning(b"", here.named):
        yield from NAMING
    if not (isinstance(place, Between) and place.first):
        yield _END


def _files(here: Here, key: str) -> Iterator[Expected]:
    """What may stand where a file is named that exists."""
    begun, found, named = here.progress.line[len(key) :], here.path_found(key), here.named
    offered = [file.path.encode() for file in here.progress.located.files if file.path not in named]
    rests = [path[len(begun) :] + b"\n" for path in offered if path.startswith(begun)]
    example = min(rests, default=b"\n")
    if found in named:
        text = f"another file: {found} is named above, and a patch names each file once"
        yield Expected("rule", text, 2, example)
    near = [path for path in here.folder.near(found) if path not in named] if found else []
    names = near or here.folder.beginning(begun, named)
    more = ", …" if len(names) > _MAX_NAMES else ""
    text = f"a file that stands {here.folder.where}: {', '.join(names[:_MAX_NAMES])}{more}"
    yield Expected("path", text, max(2, len(names)), example)


def _new_path(here: Here, key: str) -> Expected:
    """What may stand where a new file is named."""
    example = (ways.shortest(here.progress) or b"").split(b"\n")[0] or b"\n"
    why = "" if here.found is None else here.taken(here.line[len(key) :])
    return Expected("path", f"a path at which nothing stands{': ' if why else ''}{why}", 2, example)
