"""Items of the Berkeley Function Calling Leaderboard, version 4, out of the wheel of its Python package.

The files (Apache-2.0) are fetched when they are first asked for, and lie in the user's cache from then on.
"""

from __future__ import annotations

import hashlib
import json
from collections.abc import Callable, Mapping, Sequence
from pathlib import Path
from typing import Any

from constrained_agent.errors import UserError
from constrained_agent.evals.calls.items import CallItem, expected_calls
from constrained_agent.messages import ToolSpec
from constrained_agent.model import packages
from constrained_agent.model.fetch import cache_directory

Progress = Callable[[str], None]

_VERSION = "2026.3.23"
_REQUIREMENT = f"bfcl-eval=={_VERSION}"

# sha256 of the questions and of the answers.
_HASHES = {
    "simple_python": (
        "82dd63ba502eb2520c6b5d1d9a5c4b590e03ff261565175561f6228a367d1991",
        "90cd5bc653690ee8e459b5b3f3fc9458606f7f3fcbf795bb51b7dc581f8c86dc",
    ),
    "multiple": (
        "aef168155ebd74b7ac2401198b201343bc7d16d7a3d7e0d4e6d8ee82c6969b2a",
        "244e00ce9395df948bcafc7bee64e8f9c87ef70887587d83cae45b13699f3047",
    ),
    "parallel": (
        "19f51a82eff42e5d62541aa500115a056eb78f437c2ba1f10415fd7c8e5dda84",
        "8a6aa19c1adddc6a5a2f7e40f9dbf30cc7e95815e7b830c90589ab318229e0f0",
    ),
}

SETS = tuple(_HASHES)
"""One tool and one call (400 items); a choice of tools and one call (200); several calls (200)."""

# The leaderboard's words for types, where JSON schema has others. It offers `any` as a string to models that
# call tools, and judges it as one.
_TYPES = {"dict": "object", "float": "number", "tuple": "array", "any": "string"}
_KEPT = ("description", "enum", "default", "format", "maximum", "required")


def load(
    sets: Sequence[str] = SETS, n: int | None = None, seed: int = 0, *, progress: Progress | None = None
) -> list[CallItem]:
    """Items of some sets, in the order of the sets and, within one, of its file.

    Args:
        sets: out of `SETS`.
        n: how many, spread over the sets in proportion to their sizes; all of them if left out.
        seed: which ones. More items of the same sets and seed include the fewer.
        progress: told in words when something is fetched (1.9 MB).

    Raises:
        UserError: an unknown set, more items than there are, or files that are neither here nor to be had.
    """
    if unknown := [name for name in sets if name not in SETS]:
        raise UserError(
            f"no set {unknown[0]!r} of the function calling leaderboard; there are: {', '.join(SETS)}"
        )
    folder = _fetched(progress)
    found = {name: _read(folder, name) for name in dict.fromkeys(sets)}
    total = sum(map(len, found.values()))
    if n is not None and not 0 <= n <= total:
        raise UserError(f"{n} items of {', '.join(found)}: there are {total}; ask for at most {total}")
    counts = _shares({name: len(items) for name, items in found.items()}, total if n is None else n)
    return [item for name, items in found.items() for item in _chosen(items, counts[name], seed)]


def is_here() -> bool:
    """Whether `load` need not fetch anything."""
    return all(_intact(_folder() / packed.name, packed.sha256) for packed in _files())


def json_schema(described: Mapping[str, Any]) -> dict[str, Any]:
    """The JSON schema of a type in the leaderboard's words.

    Objects are closed, except those whose keys it does not tell. `optional`, which is no word of JSON schema and
    says what `required` says already, goes.
    """
    schema: dict[str, Any] = {"type": _TYPES.get(described["type"], described["type"])}
    if "properties" in described:
        schema["properties"] = {name: json_schema(inner) for name, inner in described["properties"].items()}
    if "items" in described:
        schema["items"] = json_schema(described["items"])
    schema |= {key: described[key] for key in _KEPT if key in described}
    if schema["type"] == "object":
        schema["additionalProperties"] = "properties" not in schema
    return schema


def _shares(sizes: Mapping[str, int], n: int) -> dict[str, int]:
    """How many of n go to each set: one after the other to the set that is furthest below its share."""
    counts = dict.fromkeys(sizes, 0)
    for _ in range(n):
        counts[max(sizes, key=lambda name: sizes[name] / (2 * counts[name] + 1))] += 1
    return counts


def _chosen(items: Sequence[CallItem], n: int, seed: int) -> list[CallItem]:
    # By hash rather than by a generator: no release of Python will choose others.
    ranked = sorted(items, key=lambda item: hashlib.sha256(f"{seed}/{item.id}".encode()).digest())
    chosen = {item.id for item in ranked[:n]}
    return [item for item in items if item.id in chosen]


def _fetched(progress: Progress | None) -> Path:
    """The folder of the unpacked files; fetched if one is missing or is not what it was."""
    folder = _folder()
    if not is_here():
        if progress:
            progress(f"fetching items of the function calling leaderboard (1.9 MB) from {_REQUIREMENT}")
        packages.unpack(_REQUIREMENT, _files(), folder, again="this is not the package that was published")
    return folder


def _folder() -> Path:
    return cache_directory() / "bfcl" / _VERSION


def _files() -> list[packages.PackedFile]:
    return [packed for name in SETS for packed in _packed(name)]


def _packed(name: str) -> tuple[packages.PackedFile, packages.PackedFile]:
    file = f"BFCL_v4_{name}.json"
    questions, answers = _HASHES[name]
    return (
        packages.PackedFile(f"bfcl_eval/data/{file}", questions, f"{name}.questions.jsonl"),
        packages.PackedFile(f"bfcl_eval/data/possible_answer/{file}", answers, f"{name}.answers.jsonl"),
    )


def _intact(path: Path, sha256: str) -> bool:
    try:
        return hashlib.sha256(path.read_bytes()).hexdigest() == sha256
    except FileNotFoundError:
        return False


def _read(folder: Path, name: str) -> list[CallItem]:
    questions, answers = (_json_lines(folder / packed.name) for packed in _packed(name))
    expected = {answer["id"]: expected_calls(answer["ground_truth"]) for answer in answers}
    return [
        CallItem(
            id=question["id"],
            set=name,
            prompt=question["question"][0][0]["content"],
            tools=tuple(_tool(function) for function in question["function"]),
            expected=expected[question["id"]],
            parallel=name == "parallel",
        )
        for question in questions
    ]


def _tool(function: Mapping[str, Any]) -> ToolSpec:
    return ToolSpec(function["name"], function["description"], json_schema(function["parameters"]), "read")


def _json_lines(path: Path) -> list[dict[str, Any]]:
    return [json.loads(line) for line in path.read_text(encoding="utf-8").split("\n") if line]
