"""Where a path of a command leads: into the repository, out of it, to a device, to credentials."""

from __future__ import annotations

import contextlib
import os
import re
from collections.abc import Iterator
from enum import IntEnum
from fnmatch import fnmatchcase
from itertools import islice

from constrained_agent.tools.commands import tables
from constrained_agent.tools.commands.scene import UNKNOWN, Place, Scene
from constrained_agent.tools.commands.verdict import Judgement, danger, reads, writes

RULES_NAME = ".constrained-agent.toml"
MADE_HERE = "/tmp/tmp.made-by-this-line"
"""What `mktemp` prints, as far as a line is read: it stands for a new name."""

MAX_EXPANDED = 500
"""Names of a folder that are looked at, and names that a pattern stands for, in search of links that lead out. Where
there are more, one is taken to lead out."""

_SINKS = re.compile(r"/dev/(?:null|zero|full|u?random|stdin|stdout|stderr|tty|fd/\w+)|/proc/self/fd/\d+")
_BUILD, _LITTER = tables.names("files", "build"), tables.names("files", "litter")
_SECRET_FILES = frozenset(tables.names("files", "secret_files"))
_SECRET_FOLDERS = frozenset(tables.names("files", "secret_folders"))
_SECRET_PLACES = re.compile(
    r"/etc/(?:g?shadow|sudoers|master\.passwd|ssl/private)\b|/proc/[^/]*/(?:environ|mem)\b|^/dev/k?mem\b"
    r"|/\.docker/config\.json|/\.config/(?:gh|gcloud|hub|op|rclone|doctl)(?:/|$)|/\.cargo/credentials"
    r"|/\.(?:cache/)?huggingface/(?:token|stored_tokens)|/\.gem/credentials|/\.terraform\.d/credentials"
)
_SAMPLES = (
    ".env",
    ".ssh",
    ".aws",
    ".netrc",
    ".gnupg",
    ".git-credentials",
    ".npmrc",
    ".pypirc",
    ".kube",
    "id_rsa",
)
_HARMLESS_ENV = re.compile(r"\.env(?:rc)?\.(?:example|sample|template|dist|defaults?|schema)|.*\.pub")
_PATTERN = re.compile(r"[*?\[]")


class Zone(IntEnum):
    """Where a path leads, the least delicate first."""

    SINK = 0
    INSIDE = 1
    TEMPORARY = 2
    OUTSIDE = 3
    UNKNOWN = 4
    PROTECTED = 5
    DEVICE = 6


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
        return [_flat(path)]
    return [UNKNOWN if cwd == UNKNOWN else _flat(f"{cwd}/{path}") for cwd in scene.cwds]


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
    folded = full.casefold()
    if _SINKS.fullmatch(full):
        return Zone.SINK
    if within(folded, f"{place.home}/.config/constrained-agent".casefold()):
        return Zone.PROTECTED
    if within(full, place.root):
        inner = folded[len(place.root) :]
        if ".git" in inner.split("/") or inner == f"/{RULES_NAME}":
            return Zone.PROTECTED
        return Zone.OUTSIDE if place.real and _leads_out(full, place) else Zone.INSIDE
    if any(within(full, folder) and full != folder for folder in (*place.temporary, "/dev/shm")):
        return Zone.TEMPORARY
    return Zone.DEVICE if within(folded, "/dev") else Zone.OUTSIDE


def _leads_out(full: str, place: Place) -> bool:
    """Whether a link takes it out of the root. Cost: some system calls; a listing for a pattern."""
    names = [full]
    for part in full[len(place.root) :].split("/") if _PATTERN.search(full) else ():
        names = [place.root] if names == [full] else names
        names = [new for name in names for new in _expanded(name, part)]
        if len(names) > MAX_EXPANDED:
            return True
    return any(not within(os.path.realpath(name), place.root) for name in names)


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
            candidates.append(os.path.realpath(full))
        for one in candidates:
            inner = one[len(scene.place.root) :] if within(one, scene.place.root) else one
            if _names_secret(inner.casefold()):
                return True
    return False


def _names_secret(path: str) -> bool:
    if _SECRET_PLACES.search(path):
        return True
    parts = [part.replace(UNKNOWN, "*") for part in path.split("/") if part]
    if parts and _HARMLESS_ENV.fullmatch(parts[-1]):
        return False
    for part in parts:
        if part in _SECRET_FILES or part in _SECRET_FOLDERS or part.startswith(".env."):
            return True
        if _PATTERN.search(part) and part[0] in ".i" and any(fnmatchcase(name, part) for name in _SAMPLES):
            return True
    return len(parts) > 1 and parts[0] == "etc" and any(fnmatchcase("shadow", part) for part in parts[1:])


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
    if where in (Zone.SINK, Zone.INSIDE):
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
    if where is Zone.PROTECTED:
        return danger(f"writes {shown(path)}, which git or the rules of permission live on")
    return danger(f"writes {shown(path)}, which is outside the repository")


def shown(path: str) -> str:
    return path.replace(UNKNOWN, "…")[:80]
