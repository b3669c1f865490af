"""Patches as texts, and what stands below a folder, for tests of what patches do there."""

from __future__ import annotations

import os
import stat
from pathlib import Path


def text(*sections: str) -> str:
    """A whole patch."""
    return "\n".join(["*** Begin Patch", *sections, "*** End Patch", ""])


def update(path: str, old: str, new: str, move_to: str | None = None) -> str:
    """A section that changes one line."""
    move = f"*** Move to: {move_to}\n" if move_to else ""
    return f"*** Update File: {path}\n{move}@@\n-{old}\n+{new}"


def tree(root: Path) -> dict[str, tuple[int, bytes]]:
    """Everything below a folder, empty folders too: mode, and bytes or what a link leads to."""
    found = {}
    for path in root.rglob("*"):
        facts = path.lstat()
        content = os.fsencode(os.readlink(path)) if path.is_symlink() else b""
        if stat.S_ISREG(facts.st_mode):
            content = path.read_bytes()
        found[str(path.relative_to(root))] = (facts.st_mode, content)
    return found
