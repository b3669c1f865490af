"""Where a path of a command leads: into the repository, out of it, to a device, to credentials."""

from __future__ import annotations

import contextlib
import os
import re
from collections.abc import Iterator
from enum import IntEnum
from fnmatch import fnmatchcase
from itertools import islice

from constrained_agent.tools import credentials
from constrained_agent.tools.commands import tables
from constrained_agent.tools.commands.scene import UNKNOWN, Place, Scene
from constrained_agent.tools.commands.verdict import Judgement, danger, reads, writes
from constrained_agent.tools.names import as_seen
from constrained_agent.tools.rules import REPOSITORY_NAME

MADE_HERE = "/tmp/tmp.made-by-this-line"
"""What `mktemp` prints, as far as a line is read: it stands for a new name."""

MAX_EXPANDED = 500
"""Names of a folder that are looked at, and names that a pattern stands for, in search of links that lead out. Where
there are more, one is taken to lead out."""

_SINKS = re.compile(r"/dev/(?:null|zero|full|u?random|stdin|stdout|stderr|tty|fd/\w+)|/proc/self/fd/\d+")
_BUILD, _LITTER = tables.names("files", "build"), tables.names("files", "litter")
_PATTERN = re.compile(r"[*?\[]")


class Zone(IntEnum):
    """Where a path leads, the least delicate first."""

    SINK = 0
    INSIDE = 1
    TEMPORARY = 2
    OUTSIDE = 3
    UNKNOWN = 4
    RULES = 5
    PROTECTED = 6
    DEVICE = 7


def absolute(path: str, scene: Scene) -> list[str]:
    """The absolute paths that it may mean, one for each folder that the shell may be in, without `..`."""
    path = path.removeprefix("file://")
    if path.startswith("~"):
        head, _, rest = path.partition("/")
        home = scene.value("HOME") if head == "~" else scene.value("PWD") if head == "~+" else f"/{head}"
        path = f"{home}/{rest}"
    if path.startswith(UNKNOWN):
        return [UNKNOWN]
    if path.startswith("/"):
        return _linked([_flat(path)], path, scene)
    spelled = [UNKNOWN if cwd == UNKNOWN else _flat(f"{cwd}/{path}") for cwd in scene.cwds]
    return _linked(spelled, path, scene)


def _linked(spelled: list[str], path: str, scene: Scene) -> list[str]:
    """With what the links that this line made lead to; they may be there, or not."""
    found, parts = list(spelled), path.split("/")
    for link, target in scene.links:
        scene.record.step()
        more = [full for full in found if within(full, link)]
        found += [UNKNOWN if target == UNKNOWN else _flat(target + full[len(link) :]) for full in more]
        if ".." in parts and link.rpartition("/")[2] in parts:
            found.append(UNKNOWN)  # what is above a link is above what it leads to
        if len(found) > MAX_EXPANDED:
            return [UNKNOWN]
    return list(dict.fromkeys(found))


def _flat(path: str) -> str:
    return "/" + os.path.normpath(path).lstrip("/")


def within(path: str, folder: str) -> bool:
    return path == folder or path.startswith(folder.rstrip("/") + "/")


def zone(path: str, scene: Scene) -> Zone:
    """The most delicate place that a path may lead to; links of a real repository are followed."""
    return max((_zone(full, scene.place) for full in absolute(path, scene)), default=Zone.UNKNOWN)


def _zone(full: str, place: Place) -> Zone:
    if full == UNKNOWN:
        return Zone.UNKNOWN
    folded = as_seen(full)
    if _SINKS.fullmatch(full):
        return Zone.SINK
    if any(within(folded, as_seen(folder)) for folder in place.rules):
        return Zone.PROTECTED
    if within(full, place.root):
        return _zone_inside(full, place)
    if _is_temporary(full, place):
        # Anybody may have put a link there.
        real = _real(full) if place.real else full
        return Zone.TEMPORARY if _is_temporary(real, place) or within(real, place.root) else Zone.OUTSIDE
    return Zone.DEVICE if within(folded, "/dev") else Zone.OUTSIDE


def _is_temporary(full: str, place: Place) -> bool:
    """Whether it lies in a folder for temporary files.

    Not what lies around a repository, or in a home, that does so itself: neither is thrown away.
    """
    folders = (*place.temporary, "/dev/shm")
    for kept in (os.path.dirname(place.root), place.home):
        if within(full, kept) and any(within(kept, folder) and kept != folder for folder in folders):
            return False
    return any(within(full, folder) and full != folder for folder in folders)


def _zone_inside(full: str, place: Place) -> Zone:
    """The zone of a path that is spelled as one below the root."""
    found = _zone_of_names(full[len(place.root) :])
    known = _known(full)
    spelled = _zone_of_names(known[len(place.root) :])
    names = _names(known, place) if place.real else []
    if names is None:
        return Zone.OUTSIDE
    for name in names:
        real = os.path.realpath(name)
        if not within(real, place.root):
            return Zone.OUTSIDE
        # No `*` finds what begins with a dot.
        if _zone_of_names(name[len(place.root) :]) is spelled:
            found = max(found, _zone_of_names(real[len(place.root) :]))
    return found


def _known(full: str) -> str:
    """The path up to the first part that holds something only known when it runs: no link can be looked for there."""
    head, unknown, _ = full.partition(UNKNOWN)
    return head.rpartition("/")[0] if unknown else full


def _real(full: str) -> str:
    """The path without links, as far as it is known."""
    known = _known(full)
    return os.path.realpath(known or "/") + full[len(known) :]


def _zone_of_names(inner: str) -> Zone:
    """The zone of a path below the root by its names alone; a pattern may find what fits it."""
    parts = as_seen(inner).split("/")
    if any(_fits(".git", part) for part in parts):
        return Zone.PROTECTED
    return Zone.RULES if any(_fits(REPOSITORY_NAME, part) for part in parts) else Zone.INSIDE


def _fits(name: str, part: str) -> bool:
    part = part.replace(UNKNOWN, "*")
    return name == part or (part.startswith(".") and bool(_PATTERN.search(part)) and fnmatchcase(name, part))


def _names(full: str, place: Place) -> list[str] | None:
    """What its patterns stand for; None for too much. Cost: a listing for each."""
    names = [full]
    for part in full[len(place.root) :].split("/") if _PATTERN.search(full) else ():
        names = [place.root] if names == [full] else names
        names = [new for name in names for new in _expanded(name, part)]
        if len(names) > MAX_EXPANDED:
            return None
    return names


def _expanded(folder: str, part: str) -> Iterator[str]:
    """The names in a folder that fit one part of a pattern."""
    if not _PATTERN.search(part):
        yield f"{folder}/{part}" if part else folder
        return
    with contextlib.suppress(OSError), os.scandir(folder) as entries:
        for entry in islice(entries, MAX_EXPANDED + 1):
            if fnmatchcase(entry.name, part):
                yield entry.path


def is_root(path: str, scene: Scene) -> bool:
    """Whether it may mean the root itself or a folder above it."""
    return any(within(scene.place.root, full) for full in absolute(path, scene))


def is_build(path: str, scene: Scene) -> bool:
    """Whether it surely lies in, or is, a folder of the repository that a build makes anew."""
    return all(_is_build(full, scene.place) for full in absolute(path, scene))


def _is_build(full: str, place: Place) -> bool:
    if UNKNOWN in full or _zone(full, place) is not Zone.INSIDE:
        return False
    parts = full[len(place.root) :].casefold().strip("/").split("/")
    return any(is_build_name(part) for part in parts)


def is_build_name(name: str) -> bool:
    """Whether a build or a package manager makes folders of this name (or pattern) anew."""
    name = name.casefold()
    return any(name == one or fnmatchcase(name, one) for one in _BUILD)


def is_litter(name: str) -> bool:
    """Whether files of this name (or pattern) are leftovers of builds and editors."""
    return any(name.casefold() == one or fnmatchcase(name.casefold(), one) for one in _LITTER)


def secret(text: str, scene: Scene) -> bool:
    """Whether an argument names a file of credentials: a path, or one after `=`, `:`, `@` or `,`."""
    scene.record.step(len(text) // 200)
    pieces = {text, *re.split(r"[=:@,;\s'\"()<>]+", text)}
    return any(_secret(piece, scene) for piece in pieces if piece)


def _secret(path: str, scene: Scene) -> bool:
    for full in absolute(path, scene):
        candidates = [full if full != UNKNOWN else path]
        if scene.place.real and within(full, scene.place.root):
            candidates.append(_real(full))
        for one in candidates:
            inner = one[len(scene.place.root) :] if within(one, scene.place.root) else one
            if credentials.named(inner.replace(UNKNOWN, "*")):
                return True
    return False


def holds_home(path: str, scene: Scene) -> bool:
    """Whether it is the person's home or a folder around it, where credentials lie."""
    return any(within(scene.place.home, full) for full in absolute(path, scene))


def reading(path: str, scene: Scene) -> Judgement:
    """What reading a file means."""
    if secret(path, scene):
        return danger(f"reads credentials ({shown(path)})")
    where = zone(path, scene)
    if where is Zone.UNKNOWN or UNKNOWN in path:
        return writes("reads a file that is only known when it runs")
    if where in (Zone.SINK, Zone.INSIDE, Zone.RULES):
        return reads()
    return writes(f"reads {shown(path)}, which is outside the repository")


def writing(path: str, scene: Scene) -> Judgement:
    """What writing to a file means."""
    where = zone(path, scene)
    if where is Zone.SINK:
        return reads("writes nothing")
    if where in (Zone.INSIDE, Zone.TEMPORARY):
        return writes(f"writes {shown(path)}")
    if where is Zone.UNKNOWN:
        return danger("writes to a file that is only known when it runs")
    if where is Zone.DEVICE:
        return danger(f"writes to a device ({shown(path)})")
    if where in (Zone.RULES, Zone.PROTECTED):
        return danger(f"writes {shown(path)}, which git or the rules of permission live on")
    return danger(f"writes {shown(path)}, which is outside the repository")


def shown(path: str) -> str:
    return path.replace(UNKNOWN, "…")[:80]
