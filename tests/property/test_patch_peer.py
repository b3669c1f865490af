"""Beside `codex-apply-patch` (Codex's own applier of 2025): the same result, except where it loses bytes or guesses.

Each row of the table in `tests/README.md` is a case here, by its number.
"""

from __future__ import annotations

import random
import re
from collections.abc import Mapping
from dataclasses import replace

import pytest

from constrained_agent.errors import PatchError
from constrained_agent.patch import Hunk, HunkLine, Patch, UpdateFile, derive, parse, plan, render

# It has no wheels for Python 3.14 on macOS.
peer = pytest.importorskip("codex_apply_patch")

REFUSED = None


def by_codex(text: str, files: Mapping[str, str]) -> dict[str, str] | None:
    try:
        touched = dict(peer.apply_patch_in_memory(text, dict(files)).files)
    except RuntimeError:
        return REFUSED
    named = re.findall(r"^\*\*\* (?:Update|Delete) File: (.*)$", text, re.MULTILINE)
    return {name: old for name, old in files.items() if name not in named} | touched


def by_us(text: str, files: Mapping[str, str]) -> dict[str, str] | None:
    try:
        planned = plan(parse(text).patch, lambda path: files[path].encode() if path in files else None)
    except PatchError:
        return REFUSED
    result = dict(files)
    for file in planned.files:
        result.pop(file.path, None)
        if file.new is not None:
            result[file.new_path or file.path] = file.new.decode()
    return result


def random_text(rng: random.Random, words: list[str]) -> list[str]:
    """Lines as in code: indented blocks, repeated lines, some blank ones, but none at the end."""
    lines = []
    for _ in range(rng.randint(2, 40)):
        lines.append("    " * rng.randrange(3) + rng.choice(words))
        if rng.random() < 0.15:
            lines.append("")
    return lines if lines[-1] else lines[:-1]


def edited(rng: random.Random, lines: list[str], words: list[str]) -> list[str]:
    result = list(lines)
    for _ in range(rng.randint(1, 5)):
        start = rng.randrange(len(result) + 1)
        end = min(len(result), start + rng.choice([0, 0, 1, 1, 2, 4]))
        result[start:end] = [f"    {rng.choice(words)}" for _ in range(rng.choice([0, 1, 1, 2]))]
    while result and not result[-1]:
        result.pop()
    return result or ["pass"]


def with_more_context(rng: random.Random, patch: Patch, old: Mapping[str, str]) -> Patch:
    """Hunks as people and models write them: with a few lines around that would not be needed."""
    sections = []
    for section in patch.sections:
        if isinstance(section, UpdateFile) and len(section.hunks) == 1 and not section.hunks[0].headers:
            (hunk,) = section.hunks
            lines = old[section.path].split("\n")[:-1]
            needle = hunk.old()
            starts = [i for i in range(len(lines) - len(needle) + 1) if lines[i : i + len(needle)] == needle]
            start = starts[-1] if hunk.end_of_file else starts[0]
            end = start + len(needle)
            above = [HunkLine(" ", text) for text in lines[max(0, start - rng.randrange(4)) : start]]
            below = [HunkLine(" ", text) for text in lines[end : end + rng.randrange(4)]]
            section = replace(section, hunks=(replace(hunk, lines=(*above, *hunk.lines, *below)),))
        sections.append(section)
    return Patch(tuple(sections))


def test_the_same_result_on_unique_patches() -> None:
    """500 random patches: several files, hunks, headers, bound ends, moves, new and deleted files."""
    rng = random.Random(11)
    n_hunks = n_bound = n_moved = 0
    n_patches = 0
    while n_patches < 500:
        words = [f"word{i}" for i in range(rng.choice([2, 3, 8, 30]))]
        texts = {f"d{i}/f": random_text(rng, words) for i in range(rng.randint(1, 3))}
        new_texts = {name: edited(rng, lines, words) for name, lines in texts.items()}
        if rng.random() < 0.3:
            new_texts["moved/f"] = new_texts.pop("d0/f")
        if rng.random() < 0.3:
            new_texts["new"] = random_text(rng, words)
        old, new = (
            {name: "\n".join([*text, ""]) for name, text in side.items()} for side in (texts, new_texts)
        )
        patch = derive(*({name: text.encode() for name, text in side.items()} for side in (old, new)))
        if not patch.sections or any(getattr(section, "hunks", True) == () for section in patch.sections):
            continue  # nothing to do, or a plain move, which it cannot read
        n_patches += 1
        if n_patches % 2:
            patch = with_more_context(rng, patch, old)
        text = render(patch)
        assert by_us(text, old) == new, text
        assert by_codex(text, old) == new, text
        hunks = [hunk for section in patch.sections for hunk in getattr(section, "hunks", ())]
        n_hunks += len(hunks)
        n_bound += sum(hunk.end_of_file or bool(hunk.headers) for hunk in hunks)
        n_moved += sum(bool(getattr(section, "move_to", None)) for section in patch.sections)
    assert n_hunks > 1000
    assert n_bound > 10
    assert n_moved > 30


UPDATE = "*** Update File: f\n"
A_TO_B = f"{UPDATE}@@\n-a\n+b\n"

DIFFERENCES = [
    (1, A_TO_B, {"f": "a\r\nx\r\n"}, {"f": "b\r\nx\r\n"}, {"f": "b\nx\r\n"}),
    (2, A_TO_B, {"f": "a\nx"}, {"f": "b\nx"}, {"f": "b\nx\n"}),
    (3, A_TO_B, {"f": "a\nx\n\n"}, {"f": "b\nx\n\n"}, {"f": "b\nx\n"}),
    (4, A_TO_B, {"f": "\ufeffa\n"}, {"f": "\ufeffb\n"}, REFUSED),
    (5, f"{UPDATE}@@\n a\n-x\n+y\n", {"f": "a  \nx\n"}, {"f": "a  \ny\n"}, {"f": "a\ny\n"}),
    (
        6,
        f"{UPDATE}@@\n if a:\n-b\n+c\n",
        {"f": "  if a:\n  b\n"},
        {"f": "  if a:\n  c\n"},
        {"f": "if a:\nc\n"},
    ),
    (7, f"{UPDATE}@@\n ’q’\n-x\n+y\n", {"f": "'q'\nx\n"}, {"f": "'q'\ny\n"}, {"f": "’q’\ny\n"}),
    (8, f"{UPDATE}@@\n-’q’\n+y\n", {"f": "'q'\n"}, REFUSED, {"f": "y\n"}),
    (9, A_TO_B, {"f": "a\nx\na\n"}, REFUSED, {"f": "b\nx\na\n"}),
    (10, f"{UPDATE}@@ a\n+b\n", {"f": "a\nx\n"}, {"f": "a\nb\nx\n"}, {"f": "a\nx\nb\n"}),
    (11, f"{UPDATE}@@\n-x\n+y\n@@\n-a\n+b\n", {"f": "a\nx\n"}, {"f": "b\ny\n"}, REFUSED),
    (12, f"{UPDATE}@@ A\n@@  f\n-x\n+y\n", {"f": "A\n f\n  x\n"}, {"f": "A\n f\n  y\n"}, REFUSED),
    (13, f"{UPDATE}@@ def f\n-x\n+y\n", {"f": "def f(a):\nx\n"}, {"f": "def f(a):\ny\n"}, REFUSED),
    (14, f"{UPDATE}@@ -1 +1 @@\n-a\n+b\n", {"f": "a\n"}, {"f": "b\n"}, REFUSED),
    (15, f"{UPDATE}*** Move to: g\n", {"f": "a\n"}, {"g": "a\n"}, REFUSED),
    (16, f"{A_TO_B}{UPDATE}@@\n-b\n+c\n", {"f": "a\n"}, {"f": "c\n"}, REFUSED),
    (17, f"{UPDATE}@@\n a\n", {"f": "a\n"}, REFUSED, {"f": "a\n"}),
    (18, "*** Add File: f\n+b\n", {"f": "a\n"}, REFUSED, {"f": "b\n"}),
    (19, f"{UPDATE}*** Move to: g\n@@\n-a\n+b\n", {"f": "a\n", "g": "g\n"}, REFUSED, {"g": "b\n"}),
    (20, "*** Add File: ../g\n+x\n", {}, REFUSED, {"../g": "x\n"}),
]


@pytest.mark.parametrize(
    ("body", "files", "ours", "theirs"),
    [row[1:] for row in DIFFERENCES],
    ids=[str(row[0]) for row in DIFFERENCES],
)
def test_where_we_differ(
    body: str, files: dict[str, str], ours: dict[str, str] | None, theirs: dict[str, str] | None
) -> None:
    text = f"*** Begin Patch\n{body}*** End Patch\n"
    assert by_us(text, files) == ours
    assert by_codex(text, files) == theirs


def test_their_many_hunks_are_found_from_the_top_down() -> None:
    """Why `derive` gives hunks in file order, and no header above the hunk before."""
    lines = [f"        self.x{i} = {i}" for i in range(9)]
    block = ["class C:", "    def f(self):", *lines, "        return 0", *lines, "        return 0"]
    old = {"f": "\n".join([*(line.replace("C", "A") for line in block), *block, *block[1:], ""])}
    new = {"f": old["f"].replace("return 0", "return 1").replace("return 1", "return 0", 1)}
    patch = derive({"f": old["f"].encode()}, {"f": new["f"].encode()})
    assert isinstance(patch.sections[0], UpdateFile)
    assert all(isinstance(hunk, Hunk) for hunk in patch.sections[0].hunks)
    assert by_us(render(patch), old) == by_codex(render(patch), old) == new
