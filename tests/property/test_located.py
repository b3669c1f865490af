"""Laws of located patches over random files and random walks through their grammar.

Every finished text is a strict patch that applies at the place the automaton meant; every correct edit is let
through; no point is a dead end; a hunk can end where its old lines fix one place, and only there.
"""

from __future__ import annotations

import json
import os
import random

import pytest

from constrained_agent.errors import PatchError
from constrained_agent.grammar import sources
from constrained_agent.grammar.carriers import FREEFORM, JSON, Carrier
from constrained_agent.grammar.located import offer as located_module
from constrained_agent.grammar.located import ways
from constrained_agent.grammar.located.newpaths import NewPaths
from constrained_agent.grammar.located.offer import Editable, LocatedPatches, OfferedFile, locate
from constrained_agent.grammar.located.progress import Progress
from constrained_agent.grammar.located.rules import grammar
from constrained_agent.grammar.matcher import Matcher, byte_tokenizer
from constrained_agent.patch import format as patch_format
from constrained_agent.patch.derive import derive
from constrained_agent.patch.plan import Plan, plan
from constrained_agent.patch.textfile import TextFile, decode, encode
from tests.located_trees import NASTY, landed, spans

N_WALKS = int(os.environ.get("LOCATED_WALKS", "40"))
TOKENS = byte_tokenizer(["<|im_end|>", "</tool_call>"])
STRICT = Matcher(TOKENS, sources.load("apply_patch_strict"))

CARRIED = pytest.mark.parametrize("carrier", [FREEFORM, JSON], ids=lambda carrier: carrier.name)

ENDINGS = ["\n", "\n", "\n", "\r\n"]


def random_lines(rng: random.Random) -> list[str]:
    """Few different lines, so that most stand in many places; or nasty ones; or a period."""
    n = rng.choice([0, 1, 2, 3, 5, 8, 13, 21])
    kind = rng.randrange(5)
    if kind == 0:
        return ["x"] * n
    if kind == 1:
        period = [rng.choice("abc") for _ in range(rng.randint(1, 3))]
        return [period[i % len(period)] for i in range(n)]
    pool = rng.sample(NASTY, 8) if kind == 2 else list("abcdefgh")[: rng.randint(2, 8)]
    return [rng.choice(pool) for _ in range(n)]


def as_bytes(rng: random.Random, lines: list[str]) -> bytes:
    ending = rng.choice(ENDINGS)
    endings = [ending] * len(lines)
    if lines and lines[-1] and rng.random() < 0.2:
        endings[-1] = ""
    return encode(TextFile(lines, endings, bom=bool(lines) and rng.random() < 0.1))


class Tree:
    """Files, their located language and a matcher of it."""

    def __init__(self, rng: random.Random, max_added_lines: int = 5, carrier: Carrier = FREEFORM) -> None:
        names = ["a.py", "src/b.c", "ü x.md", 'a"b', "a", "c\\n"]
        names = names[:3] if rng.random() < 0.7 else names[3:]
        del names[rng.randint(0, 3) :]
        self.files = {name: as_bytes(rng, random_lines(rng)) for name in names}
        offered = [OfferedFile(name, tuple(decode(data, name).texts)) for name, data in self.files.items()]
        self.located: LocatedPatches = locate(
            Editable(
                offered, NewPaths(frozenset(self.files), frozenset(["src"])), renames=rng.random() < 0.7
            ),
            max_added_lines=max_added_lines,
            carrier=carrier,
        )
        self.matcher = Matcher(TOKENS, grammar(self.located))

    def plan(self, text: str) -> Plan:
        return plan(patch_format.parse(text, lenient=False).patch, self.files.get)


def accepts(matcher: Matcher, data: bytes) -> bool:
    matcher = matcher.fresh()
    if matcher.accepted_prefix(list(data)) < len(data):
        return False
    matcher.consume(list(data))
    return matcher.accepting


def walk(rng: random.Random, matcher: Matcher, located: LocatedPatches) -> tuple[bytes, Progress]:
    """Write a patch byte by byte: now at random, now towards an end, as long as it stays consistent.

    Returns:
        It as it is carried.
    """
    progress = Progress(located)
    text = b""
    matcher = matcher.fresh()
    while not matcher.accepting:
        ahead = progress.advanced(b"")
        bits = matcher.bitmask()
        allowed = [b for b in range(256) if bits[b // 32] >> (b % 32) & 1]
        assert allowed, f"dead end after {text!r}"
        preferred = [b for b in allowed if b in b"\n\\ -+*@" or rng.random() < 0.02] or allowed
        if len(text) > 400 or (len(progress.line) > 12 and rng.random() < 0.5):
            way = ways.shortest(progress)
            assert way, text
            step = way[:1]
        else:
            step = bytes([rng.choice(preferred if rng.random() < 0.8 else allowed)])
        ahead = progress.advanced(step)
        if ways.shortest(ahead) is None:  # a new path for the second time, or below another one
            name = ahead.line.partition(b": ")[2].decode().lower()
            made = tuple(path.lower() for path in ahead.made)
            assert not ahead.consistent or name.startswith(made), (text, step)
            continue
        matcher.consume(list(step))
        progress, text = ahead, text + step
    return text, progress


@CARRIED
@pytest.mark.parametrize("seed", range(N_WALKS))
def test_what_is_finished_applies_where_it_was_meant(seed: int, carrier: Carrier) -> None:
    rng = random.Random(seed)
    tree = Tree(rng, carrier=carrier)
    data, progress = walk(rng, tree.matcher, tree.located)
    text = json.loads(b'"%b"' % data) if carrier is JSON else data.decode()
    strict = STRICT.fresh()
    assert strict.accepted_prefix(list(text.encode())) == len(text.encode())
    try:
        planned = tree.plan(text)
    except PatchError as error:
        if error.kind == "no_change":  # which no grammar can see
            return
        raise
    assert landed(planned, text, tree.files) == list(progress.landed())


@CARRIED
@pytest.mark.parametrize("seed", range(N_WALKS))
def test_every_point_has_a_way_to_the_end(seed: int, carrier: Carrier) -> None:
    rng = random.Random(10_000 + seed)
    tree = Tree(rng, carrier=carrier)
    data, _ = walk(rng, tree.matcher, tree.located)
    matcher, progress = tree.matcher.fresh(), Progress(tree.located)
    for byte in data:
        way = ways.shortest(progress)
        assert way is not None
        there = matcher.copy()
        assert there.accepted_prefix(list(way)) == len(way), (data, progress.line, way)
        there.consume(list(way))
        assert there.accepting
        assert progress.advanced(way).done
        matcher.consume([byte])
        progress = progress.advanced(bytes([byte]))
    assert progress.done


@pytest.mark.parametrize("seed", range(N_WALKS))
def test_a_hunk_ends_where_its_old_lines_fix_one_place_and_only_there(seed: int) -> None:
    rng = random.Random(20_000 + seed)
    lines = random_lines(rng)
    located = locate(Editable((OfferedFile("a", tuple(lines)),)))
    matcher = Matcher(TOKENS, grammar(located))
    for _ in range(20):
        start = rng.randint(0, len(lines))
        run = lines[start : start + rng.randint(0, 5)]
        if rng.random() < 0.2:
            run = [rng.choice(lines or ["q"]) for _ in range(3)]
        places = [i for i in range(len(lines) - len(run) + 1) if lines[i : i + len(run)] == run]
        at_end = lines[len(lines) - len(run) :] == run and (run or not lines)
        body = "".join(f"{rng.choice(' -')}{line}\n" for line in run) + "+new\n"
        for tail, right in (
            ("", len(places) == 1 and (bool(run) or not lines)),
            ("*** End of File\n", bool(at_end)),
        ):
            data = f"*** Begin Patch\n*** Update File: a\n@@\n{body}{tail}*** End Patch".encode()
            assert (matcher.accepted_prefix(list(data)) == len(data)) == right, (lines, body, tail)


@pytest.mark.parametrize("seed", range(N_WALKS))
def test_every_correct_edit_is_let_through(seed: int) -> None:
    rng = random.Random(30_000 + seed)
    tree = Tree(rng, max_added_lines=50)
    new = dict(tree.files)
    for name, data in tree.files.items():
        file = decode(data, name)
        texts = list(file.texts)
        for _ in range(rng.randint(0, 3)):
            at = rng.randint(0, len(texts))
            texts[at : at + rng.choice([0, 1, 1, 2])] = rng.sample(NASTY, rng.randint(0, 2))
        ending = next(iter(file.endings), "\n") or "\n"
        new[name] = encode(TextFile(texts, [ending] * len(texts), file.bom))
    if rng.random() < 0.3:
        new["src/new.py"] = b"x\n"
    if new and rng.random() < 0.2:
        del new[rng.choice(list(new))]
    try:
        patch = derive(tree.files, new, headers=False)
    except PatchError:
        return  # not to be said in a patch
    paths = [section.path for section in patch.sections]
    if not paths or len(paths) > len(set(paths)):
        return  # nothing to do, or changes of line endings that take two steps
    text = patch_format.render(patch).removesuffix("\n").encode()
    taken = tree.matcher.accepted_prefix(list(text))
    assert taken == len(text), (text[:taken], text[taken:])


@pytest.mark.parametrize("seed", range(N_WALKS))
def test_windows_of_large_files_name_places_of_the_whole_file(
    seed: int, monkeypatch: pytest.MonkeyPatch
) -> None:
    rng = random.Random(40_000 + seed)
    monkeypatch.setattr(located_module, "MAX_LINES", 12)
    monkeypatch.setattr(located_module, "MAX_STATES", rng.choice([6, 40]))
    monkeypatch.setattr(located_module, "_MARGIN", 1)
    monkeypatch.setattr(located_module, "_MAX_ONWARD", rng.choice([0, 4, 50]))
    tree = Tree(rng)
    lines = [line for _ in range(6) for line in random_lines(rng)]
    tree.files = {"big.py": as_bytes(rng, lines)}
    lines = list(decode(tree.files["big.py"], "").texts)
    start = rng.randrange(len(lines) + 1)
    offered = OfferedFile("big.py", tuple(lines), (range(start, min(len(lines), start + 5)),))
    tree.located = locate(Editable((offered,), NewPaths(frozenset(tree.files))))
    matcher = Matcher(TOKENS, grammar(tree.located))
    for _ in range(3):
        data, progress = walk(rng, matcher, tree.located)
        try:
            tree.plan(data.decode())
        except PatchError as error:
            if error.kind != "no_change":
                raise
            continue
        assert spans("big.py", data.decode(), tree.files) == list(progress.landed())


@pytest.mark.parametrize("seed", range(N_WALKS))
def test_a_patch_in_json_is_located_exactly_if_the_raw_one_is(seed: int) -> None:
    rng = random.Random(50_000 + seed)
    tree = Tree(rng)
    offered = [OfferedFile(name, tuple(decode(data, name).texts)) for name, data in tree.files.items()]
    new_paths, renames = tree.located.new_paths, tree.located.renames
    located = locate(Editable(offered, new_paths, renames), max_added_lines=5, carrier=JSON)
    in_json = Matcher(TOKENS, grammar(located))
    for _ in range(3):
        data, progress = walk(rng, tree.matcher, tree.located)
        text = data.decode()
        for _ in range(10):
            assert accepts(in_json, JSON.carried(text)) == accepts(tree.matcher, text.encode()), text
            lines = text.split("\n")
            at, other = rng.randrange(len(lines)), rng.randrange(len(lines))
            lines[at] = rng.choice(
                [lines[other], lines[at] + rng.choice('\\"\t\rnu'), lines[at][1:], f"-{rng.choice(NASTY)}"]
            )
            text = "\n".join(lines)
        whole = Progress(located).advanced(JSON.carried(data.decode()))
        assert whole.done
        assert whole.landed() == progress.landed()
