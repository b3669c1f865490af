"""Laws of the prefix checker for located patches, over random files and random walks through their patches.

What is said of a text, by the few files and lines that it speaks of, is what the language of all files says: every
beginning of a patch is one, its completion completes it, whatever is expected may be appended, and a changed
character is found at the first byte that no patch goes on with.
"""

from __future__ import annotations

import os
import random
from collections.abc import Collection
from pathlib import Path

import pytest

from constrained_agent.cli.check_root import Root
from constrained_agent.grammar.located import prefix as located_prefix
from constrained_agent.grammar.located import quoting, ways
from constrained_agent.grammar.located.newpaths import NewPaths
from constrained_agent.grammar.located.offer import (
    MAX_ADDED_LINES,
    Editable,
    LocatedPatches,
    OfferedFile,
    locate,
)
from constrained_agent.grammar.located.progress import Progress
from constrained_agent.grammar.located.rules import grammar
from constrained_agent.grammar.matcher import Matcher, byte_tokenizer
from constrained_agent.grammar.prefix import Report
from constrained_agent.patch.textfile import decode

N_WALKS = int(os.environ.get("LOCATED_PREFIX_WALKS", "25"))
N_CUTS = 6
TOKENS = byte_tokenizer()
NASTY = [
    "",
    " ",
    "\t",
    "x",
    "  x",
    "\\",
    "é",
    "e\u0301",
    "a\rb",
    "\u2028",
    "*** End Patch",
    "@@",
    "+x",
    "😀",
    "\x7f",
]
NAMES = ["a.py", "a.pyx", "src/b.c", "src/ü x.md", "src/deep/b.c", "z"]


class Tree:
    """Some files on the disk, and the language of all of them."""

    def __init__(self, rng: random.Random, folder: Path) -> None:
        self.folder = folder
        offered = []
        for name in rng.sample(NAMES, rng.randint(0, 4)):
            lines = [
                rng.choice(rng.choice(["ab", "abcdefgh", NASTY]))
                for _ in range(rng.choice([0, 1, 5, 30, 150]))
            ]
            ending = rng.choice(["\n", "\r\n"])
            data = rng.choice(["", "\ufeff"]) + ending.join(lines) + rng.choice(["", ending])
            (folder / name).parent.mkdir(parents=True, exist_ok=True)
            (folder / name).write_bytes(data.encode())
            offered.append(OfferedFile(name, tuple(decode(data.encode(), name).texts)))
        (folder / "binary").write_bytes(b"a\0b")
        paths = {file.path for file in offered} | {"binary"}
        above = {path[:at] for path in paths for at, char in enumerate(path) if char == "/"}
        self.located: LocatedPatches = locate(
            Editable(offered, NewPaths(frozenset(paths), frozenset(above))), max_added_lines=MAX_ADDED_LINES
        )
        self.matcher = Matcher(TOKENS, grammar(self.located))

    def report(self, data: bytes) -> Report:
        return located_prefix.check(data, Root(str(self.folder)).tree(data), max_expected=None)

    def n_valid(self, data: bytes) -> int:
        """Bytes that some patch begins with: the engine's answer, and no path twice."""
        n_valid = self.matcher.fresh().accepted_prefix(list(data))
        progress = Progress(self.located)
        for i in range(n_valid):
            progress = progress.advanced(data[i : i + 1])
            if ways.shortest(progress) is None:
                return i
        return n_valid

    def walk(self, rng: random.Random) -> bytes:
        """A patch, written byte by byte: now at random, now towards an end."""
        progress, text, matcher = Progress(self.located), b"", self.matcher.fresh()
        while not matcher.accepting:
            bits = int.from_bytes(matcher.bitmask().tobytes(), "little")
            allowed = [byte for byte in range(256) if bits >> byte & 1]
            way = ways.shortest(progress)
            assert way
            step = way[:1]
            if len(text) < 300 and rng.random() < 0.6:
                step = bytes([rng.choice([byte for byte in allowed if byte in b"\n -+*@"] or allowed)])
            ahead = progress.advanced(step)
            if ways.shortest(ahead) is not None:
                matcher.consume(list(step))
                progress, text = ahead, text + step
        return text


def check_beginning(tree: Tree, whole: bytes, cut: int) -> None:
    data = whole[:cut]
    report = tree.report(data)
    assert report.status == ("complete" if cut == len(whole) else "prefix"), (data, report)
    assert report.valid_bytes == cut
    assert whole[cut:].startswith(report.forced.encode("utf-8", "surrogateescape"))
    assert report.completion is not None
    completed = data + report.completion.encode("utf-8", "surrogateescape")
    assert tree.report(completed).status == "complete", completed
    for entry in report.expected[:8]:
        longer = tree.report(data + entry.example)
        assert longer.status in ("prefix", "complete"), (data, entry)
    matcher = tree.matcher.fresh()
    matcher.consume(list(data))
    bits = int.from_bytes(matcher.bitmask().tobytes(), "little")
    if report.expected[0].kind != "end" and data[-1:] == b"\n":
        said = {entry.example[0] for entry in report.expected}
        said |= set(b" -") if b" "[0] in said else set()
        said |= set(b"*") if any(entry.text.startswith('"@@" or') for entry in report.expected) else set()
        assert said == {byte for byte in range(256) if bits >> byte & 1}, (data, report.expected)


@pytest.fixture(params=["whole files", "only what the text speaks of"])
def narrow(request: pytest.FixtureRequest, monkeypatch: pytest.MonkeyPatch) -> None:
    """The second makes all files count as too large."""
    if request.param != "whole files":
        original = quoting.located

        def narrowed(editable: Editable, whole: Collection[str]) -> LocatedPatches:
            return original(editable, ())

        monkeypatch.setattr(quoting, "located", narrowed)


@pytest.mark.usefixtures("narrow")
@pytest.mark.parametrize("seed", range(N_WALKS))
def test_beginnings_of_patches(seed: int, tmp_path: Path) -> None:
    rng = random.Random(seed)
    tree = Tree(rng, tmp_path)
    whole = tree.walk(rng)
    for cut in (len(whole), *rng.sample(range(len(whole)), N_CUTS)):
        check_beginning(tree, whole, cut)


@pytest.mark.usefixtures("narrow")
@pytest.mark.parametrize("seed", range(N_WALKS))
def test_changed_characters(seed: int, tmp_path: Path) -> None:
    rng = random.Random(1_000_000 + seed)
    tree = Tree(rng, tmp_path)
    text = tree.walk(rng).decode()
    for _ in range(N_CUTS):
        at = rng.randrange(len(text))
        other = rng.choice([*text, *'x\né文*\0 9"\r{}]<', "", "\n@@\n", "\n*** End Patch"])
        data = (text[:at] + other + text[at + 1 :]).encode()
        report = tree.report(data)
        n_valid = tree.n_valid(data)
        if n_valid < len(data) and not (n_valid == len(data) - 1 and data.endswith(b"*** End Patch\n")):
            assert (report.status, report.valid_bytes) == ("invalid", n_valid), data
        else:
            assert report.status in ("complete", "prefix"), data
