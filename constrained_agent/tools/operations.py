"""A planned file as operations on places: what brings it about, and what must be kept to take it back."""

from __future__ import annotations

import contextlib
import os
import stat
from dataclasses import replace

from constrained_agent.patch.diff import FilePlan
from constrained_agent.tools import wayback
from constrained_agent.tools.places import Places
from constrained_agent.tools.reads import Route, Seen
from constrained_agent.tools.steps import Step
from constrained_agent.tools.wayback import FileBack


def steps(file: FilePlan, places: Places) -> list[Step]:
    """What is done for one file; the journal has an order of its own."""
    if file.action == "add":
        return [Step("create", places.of_name(file.path), file.new)]
    place, real = places.of_name(file.path), places.relative(places.resolve(file.path))
    if file.action == "update":
        return [Step("replace", real, file.new, file.old)]
    is_link = (places.root / place).is_symlink()
    # A link is removed as itself; what it leads to stays.
    remove = Step("remove", place, None, None if is_link else file.old)
    if file.new_path is None:
        return [remove]
    same = file.new == file.old and not is_link
    return [remove, Step("create", places.of_name(file.new_path), file.new, None, like=real, same=same)]


def route(file: FilePlan, places: Places) -> Route:
    """Under which paths a file is remembered, before the patch and after it."""
    real = places.resolve(file.path)
    if file.action == "update":
        return Route(real, real, real)
    place = places.root / places.of_name(file.path)
    return Route(real, place, places.root / places.of_name(file.new_path) if file.new_path else place)


def way_back(file: FilePlan, places: Places, seen: Seen | None) -> FileBack:
    """What takes a file back, as long as nothing of it has been done yet.

    Args:
        seen: what the model knows of the file.
    """
    place = places.of_name(file.path)
    if file.action == "update":
        place = places.relative(places.resolve(file.path))
    new_place = places.of_name(file.new_path) if file.new_path else None
    where = places.root / place
    back = wayback.file_back(file, place, new_place, seen)
    with contextlib.suppress(
        OSError
    ):  # another program takes the file away right now: the journal will say so
        if file.action == "delete":
            back = replace(back, mode=stat.S_IMODE(where.lstat().st_mode))
        if file.action in ("delete", "move") and where.is_symlink():
            back = replace(back, link=os.readlink(where))
    return back
