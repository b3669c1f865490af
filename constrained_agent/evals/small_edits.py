"""The small edits that ship with the package: one file, one sentence, and the file as it should be afterwards."""

from __future__ import annotations

import tomllib
from dataclasses import dataclass
from pathlib import Path

_EDITS = Path(__file__).resolve().with_name("small_edits.toml")


@dataclass(frozen=True, slots=True)
class SmallEdit:
    """One edit.

    Attributes:
        path: the file's name.
        instruction: what the model is asked.
        content: the file.
        wanted: the file afterwards.
    """

    name: str
    path: str
    instruction: str
    content: str
    wanted: str


def load() -> list[SmallEdit]:
    """All of them, in file order."""
    found = []
    for edit in tomllib.loads(_EDITS.read_text(encoding="utf-8"))["task"]:
        content, old, new = edit["content"], edit["old"], edit["new"]
        assert content.count(old) == 1, f"{edit['name']}: `old` must stand once in the file"
        facts = {key: edit[key] for key in ("name", "path", "instruction", "content")}
        found.append(SmallEdit(**facts, wanted=content.replace(old, new)))
    return found
