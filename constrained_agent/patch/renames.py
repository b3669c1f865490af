"""Which new file is an old one under another name."""

from __future__ import annotations

from collections import Counter
from collections.abc import Mapping
from pathlib import PurePosixPath

_LEAST_LIKENESS = 0.5
_MAX_PAIRS = 10_000  # compared line by line; of a larger change only files with equal bytes are paired


def renames(gone: Mapping[str, bytes], come: Mapping[str, bytes]) -> dict[str, str]:
    """Old paths to new ones: files with the same bytes, then those that share at least half of their lines.

    Each file is paired once, the most alike first, then those that keep their name. Empty files are alike to
    nothing.

    Cost: linear in the files, plus a look at up to `_MAX_PAIRS` pairs.
    """
    rated: list[tuple[float, bool, str, str]] = []
    by_content: dict[bytes, list[str]] = {}
    for path, data in gone.items():
        by_content.setdefault(data, []).append(path)
    for path, data in come.items():
        rated += [(-1.0, _renamed(old, path), old, path) for old in by_content.get(data, ()) if data]
    if len(gone) * len(come) <= _MAX_PAIRS:
        old_lines = {path: Counter(data.split(b"\n")) for path, data in gone.items() if data}
        new_lines = {path: Counter(data.split(b"\n")) for path, data in come.items() if data}
        for old, a in old_lines.items():
            for new, b in new_lines.items():
                likeness = 2 * (a & b).total() / (a.total() + b.total())
                if likeness >= _LEAST_LIKENESS:
                    rated.append((-likeness, _renamed(old, new), old, new))
    pairs: dict[str, str] = {}
    taken: set[str] = set()
    for _, _, old, new in sorted(rated):
        if old not in pairs and new not in taken:
            pairs[old] = new
            taken.add(new)
    return pairs


def _renamed(old: str, new: str) -> bool:
    """False if only the folder differs."""
    return PurePosixPath(old).name != PurePosixPath(new).name
