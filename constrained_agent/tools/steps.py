"""What the journal does and keeps: operations on single paths, as values."""

from __future__ import annotations

import os
from dataclasses import dataclass
from typing import Literal

from constrained_agent.tools.rooted import digest


@dataclass(frozen=True, slots=True)
class Step:
    """One operation on one path (relative to the root, without links).

    Attributes:
        kind: `create` a file that does not exist, `replace` the content of one, `remove` one.
        data: the new bytes.
        old: the bytes that must still be there; None to skip the check.
        like: for `create`, the file whose mode and owner it takes.
        same: for `create`, it is `like` itself under a new name.
        mode: for `create`, the permission bits it gets.
        link: for `create`, a symbolic link to this instead of a file.
    """

    kind: Literal["create", "replace", "remove"]
    path: str
    data: bytes | None = None
    old: bytes | None = None
    like: str | None = None
    same: bool = False
    mode: int | None = None
    link: str | None = None


@dataclass(frozen=True, slots=True)
class Entry:
    """A step as the journal keeps it: where its new and old files wait, and what it writes.

    `replace` works by rename, `rewrite` in place: that is for a file with several hard links. `old` and `new` are
    SHA-256, or what `content_of_link` says.
    """

    kind: Literal["create", "replace", "rewrite", "remove"]
    path: str
    temp: str
    backup: str
    old: str | None
    new: str | None


@dataclass(frozen=True, slots=True)
class Record:
    """What a commit does; `folders` it makes, outer ones first, `emptied` may be removed, inner ones first."""

    folders: list[str]
    entries: list[Entry]
    emptied: list[str]


def content_of_link(target: str) -> str:
    """What an `Entry` has for a symbolic link instead of the SHA-256 of a file."""
    return f"link {digest(os.fsencode(target))}"
