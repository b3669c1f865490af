"""Finds `grammars/` and `models/`: beside the package in a checkout, inside it in a wheel."""

from __future__ import annotations

from pathlib import Path

_PACKAGE = Path(__file__).resolve().parent


def directory(kind: str) -> Path:
    """The folder that holds resources of one kind.

    Args:
        kind: `grammars` or `models`.

    Raises:
        FileNotFoundError: the installation lacks the folder.
    """
    for candidate in (_PACKAGE / "_resources" / kind, _PACKAGE.parent / kind):
        if candidate.is_dir():
            return candidate
    raise FileNotFoundError(f"{kind}/ is missing beside {_PACKAGE}: reinstall constrained-agent")


def names(kind: str, suffix: str) -> list[str]:
    """Sorted names, without suffix, of the resources of one kind."""
    return sorted(path.stem for path in directory(kind).glob(f"*{suffix}"))


def path(kind: str, name: str, suffix: str) -> Path | None:
    """The file of a named resource, or None if there is none of that name."""
    found = directory(kind) / f"{name}{suffix}"
    return found if found.is_file() else None
