"""The change of indentation between a patch and the file that it was matched to."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence

from constrained_agent.patch.match import fold

Shift = Callable[[str], str | None]
"""An added line as it must stand in the file; None if its indentation does not say where that is."""

_UNITS = range(1, 17)


def indent_of(text: str) -> str:
    """Leading whitespace."""
    return text[: len(text) - len(text.lstrip())]


def find_shift(pairs: Iterable[tuple[str, str]]) -> Shift | None:
    """The one shift that explains every old line.

    Either the same whitespace is added to, or removed from, every indented line, or one tab stands for one
    unit of spaces. Blank lines, and lines without indentation on both sides, say nothing.

    Args:
        pairs: an old line as the patch has it, and as the file has it.

    Returns:
        The shift for added lines, or None if no single one fits.
    """
    solid = [(indent_of(ours), indent_of(theirs)) for ours, theirs in pairs if ours.strip()]
    indented = [(ours, theirs) for ours, theirs in solid if ours or theirs]
    if all(ours == theirs or _spaces(ours) == _spaces(theirs) for ours, theirs in indented):
        return lambda text: text
    # The file's unindented lines stay where they are, so unindented added lines do, too.
    keeps_margin = len(indented) < len(solid)
    if keeps_margin and any(not ours for ours, _ in indented):
        return None
    shift = _prefix_shift(indented) or _tab_shift(indented)
    if shift is None:
        return None
    mixed = any(" " in theirs and "\t" in theirs for _, theirs in indented)
    return _guarded(shift, keeps_margin, mixed)


def _spaces(indent: str) -> str:
    """Indentation with every look-alike of a blank as a blank; tabs stay."""
    return "".join(char if char in " \t" else fold(f"|{char}|")[1:-1] for char in indent)


def _guarded(shift: Shift, keeps_margin: bool, mixed: bool) -> Shift:
    def apply(text: str) -> str | None:
        if not text.strip() or (keeps_margin and not indent_of(text)):
            return text
        moved = shift(text)
        # Tabs and blanks in one indentation only where the file itself does that in these lines.
        if moved is not None and not mixed and {" ", "\t"} <= set(indent_of(moved)):
            return None
        return moved

    return apply


def _prefix_shift(indented: Sequence[tuple[str, str]]) -> Shift | None:
    ours, theirs = indented[0]
    if theirs.endswith(ours):
        more = theirs.removesuffix(ours)
        if all(theirs == more + ours for ours, theirs in indented):
            return lambda text: more + text
    elif ours.endswith(theirs):
        less = ours.removesuffix(theirs)
        if all(ours == less + theirs for ours, theirs in indented):
            return lambda text: text.removeprefix(less) if text.startswith(less) else None
    return None


def _tab_shift(indented: Sequence[tuple[str, str]]) -> Shift | None:
    for unit in _UNITS:
        for old, new in ((" " * unit, "\t"), ("\t", " " * unit)):
            if all(ours.replace(old, new) == theirs for ours, theirs in indented):
                return _replacing(old, new)
    return None


def _replacing(old: str, new: str) -> Shift:
    return lambda text: indent_of(text).replace(old, new) + text.lstrip()
