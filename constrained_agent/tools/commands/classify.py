"""A command line to its verdict.

Covered: quotes, escapes, braces, variables and functions of the line, substitutions, here-documents, text that a shell,
`eval`, `xargs`, `find` or another wrapper runs, files that the line itself writes, program text by its words.
Not covered: this is no sandbox. What a program does (`python x.py`, `make`, a script of the repository) is its own; a
variable that is set elsewhere, a settings file and a program under a false name are taken as they are named.
"""

from __future__ import annotations

import os
import tempfile
from collections.abc import Mapping
from pathlib import Path

from constrained_agent.tools.commands.quoting import MARKS
from constrained_agent.tools.commands.reader import Reader
from constrained_agent.tools.commands.scene import (
    MAX_TEXT_CHARS,
    OUTSIDE,
    UNKNOWN,
    Place,
    Record,
    Scene,
    TooMuchError,
)
from constrained_agent.tools.commands.verdict import Risk, Simple, Verdict, shortened
from constrained_agent.tools.rules import home_file


def classify(command: str, root: Path | None = None, environment: Mapping[str, str] | None = None) -> Verdict:
    """Class a command line by what it may do, whatever the text.

    Cost: less than a millisecond; seconds for a hostile line of 20,000 characters.

    Args:
        root: of the repository, where the command runs; None for one that is nowhere, so that no link is followed.
        environment: the variables that the command will get.

    Returns:
        The heaviest class of its parts, with the part that decides and the reason.
    """
    if len(command) > MAX_TEXT_CHARS:
        return refused(command, f"is longer than {MAX_TEXT_CHARS:,} characters")
    if UNKNOWN in command:
        return refused(command, "holds a NUL, which no command can")
    variables = environment or {}
    home = variables.get("HOME") or os.path.expanduser("~")
    own_rules = str(home_file(variables).parent)
    place = Place(
        root=OUTSIDE if root is None else os.path.realpath(root),
        home=home.rstrip("/") or "/",
        temporary=tuple({"/tmp", "/var/tmp", "/private/tmp", os.path.realpath(tempfile.gettempdir())}),
        rules=(own_rules, os.path.realpath(own_rules)),
        real=root is not None,
    )
    reader = Reader()
    record = Record(reader, place, command, environment)
    scene = Scene(record, frozenset([place.root]))
    try:
        reader.line(MARKS.sub("?", command), scene)
        _read_uncalled(record, scene)
    except (TooMuchError, RecursionError):
        return refused(command, "is too long or too nested to be read to its end")
    return _verdict(command, record.found)


def _read_uncalled(record: Record, scene: Scene) -> None:
    """Functions that the line makes but does not call, with unknown words."""
    scene.positional = (UNKNOWN,) * 9
    while record.uncalled:
        name, body = record.uncalled.popitem()
        scene.called = (name,)
        record.engine.statement(body, scene, None)


def refused(command: str, reason: str) -> Verdict:
    """The verdict on a line that was not read: dangerous."""
    part = shortened(command[:1_000])
    return Verdict(Risk.DANGEROUS, part, reason, (Simple(part, Risk.DANGEROUS, reason, part, certain=False),))


def _verdict(command: str, found: list[Simple]) -> Verdict:
    heaviest = max(found, key=lambda one: one.risk, default=None)
    if heaviest is None:
        return Verdict(Risk.READ_ONLY, shortened(command), "does nothing")
    return Verdict(heaviest.risk, heaviest.part, heaviest.reason, tuple(found))
