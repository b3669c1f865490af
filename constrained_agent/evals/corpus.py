"""A corpus of real edits: files that changed between consecutive releases of packages, chosen by a rule.

Which releases, with their hashes, stands in `corpus.toml`; nothing of them is committed. Of two consecutive releases
a file is a candidate if

- it has the same path in both, its ending is one of `LANGUAGES`, no folder in its path is one of `_FOREIGN`, and
  neither text says in its first lines that it is generated;
- both texts are UTF-8, and the old one has `MIN_LINES` to `MAX_LINES` lines;
- it changes by more than the release's own number;
- one update section says the change (`patch.derive`), and at most `MAX_CHANGED` lines are added and removed.

Of the candidates that one pair of releases has in one language, `_MAX_DRAWN` are drawn: those whose name (package,
release, path) has the smallest sha256. So nobody chooses, and no package or language drowns the others.
"""

from __future__ import annotations

import hashlib
import tomllib
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass
from itertools import islice, pairwise
from pathlib import Path, PurePosixPath

from constrained_agent.errors import PatchError
from constrained_agent.evals.releases import Progress, Release, fetch, read_files
from constrained_agent.patch import Patch, UpdateFile, derive
from constrained_agent.patch.textfile import count_lines

LANGUAGES = {
    ".py": "Python",
    ".pyi": "Python",
    ".md": "Markdown",
    ".rst": "RST",
    ".toml": "TOML",
    ".c": "C",
    ".h": "C",
    ".rs": "Rust",
}
MIN_LINES, MAX_LINES = 40, 3_000
MAX_CHANGED = 60
"""Lines added and removed: what a person, or a model in one answer, edits in a file."""

_MAX_DRAWN = 2
_FOREIGN = {"vendor", "vendored", "_vendor", "third_party", "deps"}
_N_HEAD_BYTES = 400
_PINS = Path(__file__).resolve().with_name("corpus.toml")


@dataclass(frozen=True, slots=True)
class Edit:
    """One file of one package, before and after a release.

    Attributes:
        before, after: the two versions of the package.
        path: within the source distribution.
        old, new: the file's bytes.
        patch: from one to the other, without `@@` headers; one update section.
        n_changed: lines that it adds and removes.
    """

    package: str
    before: str
    after: str
    path: str
    language: str
    old: bytes
    new: bytes
    patch: Patch
    n_changed: int

    def __str__(self) -> str:
        return f"{self.package} {self.after} {self.path}"

    @property
    def n_lines(self) -> int:
        """Lines of the old file."""
        return count_lines(self.old)


def pinned() -> list[list[Release]]:
    """The corpus's releases, those of one package together, oldest first."""
    packages: dict[str, dict[str, str]] = tomllib.loads(_PINS.read_text(encoding="utf-8"))
    return [
        [Release(package, version, sha256) for version, sha256 in versions.items()]
        for package, versions in packages.items()
    ]


def load(*, progress: Progress | None = None) -> list[Edit]:
    """The edits of the corpus; fetches the releases that are not cached.

    Raises:
        UserError: a release cannot be fetched or is not what was pinned; names it.

    Cost: 2 seconds from the cache.
    """
    return [edit for releases in pinned() for edit in _of_package(releases, progress)]


def _of_package(releases: Iterable[Release], progress: Progress | None) -> Iterator[Edit]:
    trees = ((release, read_files(fetch(release, progress=progress), _is_wanted)) for release in releases)
    for (before, old), (after, new) in pairwise(trees):
        yield from choose(before, after, old, new)


def choose(before: Release, after: Release, old: Mapping[str, bytes], new: Mapping[str, bytes]) -> list[Edit]:
    """The edits that the rule draws from two consecutive releases.

    Args:
        old, new: path to bytes.
    """
    drawn: list[Edit] = []
    paths = sorted((path for path in old if path in new), key=lambda path: _rank(after, path))
    for language in dict.fromkeys(LANGUAGES.values()):
        edits = (
            edit
            for path in paths
            if _language(path) == language and (edit := _edit(before, after, path, old[path], new[path]))
        )
        drawn += islice(edits, _MAX_DRAWN)
    return drawn


def _edit(before: Release, after: Release, path: str, old: bytes, new: bytes) -> Edit | None:
    """The edit, if it is a candidate."""
    if not _is_wanted(path) or not MIN_LINES <= count_lines(old) <= MAX_LINES:
        return None
    if old.replace(before.version.encode(), after.version.encode()) == new or old == new:
        return None
    if any(b"generated" in data[:_N_HEAD_BYTES].lower() or not _is_text(data) for data in (old, new)):
        return None
    try:
        patch = derive({path: old}, {path: new}, headers=False)
    except PatchError:  # what no patch can say
        return None
    if len(patch.sections) > 1 or not 0 < (n_changed := _count_changed(patch)) <= MAX_CHANGED:
        return None
    return Edit(
        before.package,
        before.version,
        after.version,
        path,
        LANGUAGES[_suffix(path)],
        old,
        new,
        patch,
        n_changed,
    )


def _count_changed(patch: Patch) -> int:
    (section,) = patch.sections
    assert isinstance(section, UpdateFile), "a path in both trees is an update"
    return sum(line.op != " " for hunk in section.hunks for line in hunk.lines)


def _rank(after: Release, path: str) -> str:
    return hashlib.sha256(f"{after} {path}".encode("utf-8", "surrogateescape")).hexdigest()


def _is_wanted(path: str) -> bool:
    return _language(path) is not None and _FOREIGN.isdisjoint(PurePosixPath(path).parts)


def _language(path: str) -> str | None:
    return LANGUAGES.get(_suffix(path))


def _suffix(path: str) -> str:
    return PurePosixPath(path).suffix.lower()


def _is_text(data: bytes) -> bool:
    try:
        return "\0" not in data.decode("utf-8")
    except UnicodeDecodeError:
        return False
