"""Located patches under noise: whatever a model prefers, what comes out fits its files, each hunk at one place.

The tiny Qwen3 is drowned in noise, as in `test_noise.py`, over files that are hard to speak of: as a text that is a raw
patch, and as a call that carries one in JSON. Long version (half an hour each):
`LOCATED_NOISE=2000 pytest -s tests/property/test_located_noise.py`.
"""

from __future__ import annotations

import os
import random
from collections import Counter
from collections.abc import Iterator, Mapping
from typing import NamedTuple

import pytest

from constrained_agent.decode.generate import generate
from constrained_agent.decode.sampling import Sampling
from constrained_agent.errors import PatchError
from constrained_agent.grammar.carriers import FREEFORM, JSON, Carrier
from constrained_agent.grammar.located.newpaths import NewPaths
from constrained_agent.grammar.located.offer import Editable, LocatedPatches, OfferedFile, locate
from constrained_agent.grammar.located.progress import Progress
from constrained_agent.messages import ToolSpec
from constrained_agent.patch import parse, plan
from constrained_agent.patch.textfile import decode
from tests.fakes import NoisyModel
from tests.located_trees import NASTY, landed

N_FINISHED = {name: int(os.environ.get("LOCATED_NOISE", n)) for name, n in (("freeform", 20), ("json", 50))}
SHORTEST, LONGEST = 60, 400
MAX_ADDED_LINES = 20

CODE = """\
import sys


def area(width, height):
    if width < 0:
        raise ValueError(width)
    return width * height


def volume(width, height, depth):
    if width < 0:
        raise ValueError(width)
    return area(width, height) * depth


if __name__ == "__main__":
    print(volume(*map(int, sys.argv[1:])))
"""
TOML = "".join(f'[server.{name}]\nhost = "10.0.0.1"\nport = 8080\n\n' for name in ("one", "two", "three"))
UNICODE = [
    "größe = 1",
    "e\u0301te\u0301",
    "é té",
    "文字列 = 「値」",
    "😀😀",
    "\u2028",
    "a\u200bb",
    "größe = 2",
]
_RANDOM = random.Random(20)


def lines(*texts: str, ending: str = "\n") -> bytes:
    return "".join(text + ending for text in texts).encode()


FILES: Mapping[str, bytes] = {
    "area.py": CODE.encode(),
    "crlf/area.py": CODE.replace("\n", "\r\n").encode(),
    "limits.toml": TOML.encode(),
    "bom.toml": b"\xef\xbb\xbf" + TOML.encode(),
    "bom-crlf.txt": b"\xef\xbb\xbf" + lines("a", "b", "a", ending="\r\n"),
    "cut.toml": TOML.rstrip("\n").encode(),
    "mixed.txt": b"one\r\ntwo\nthree\r\ntwo\nfour",
    "empty": b"",
    "bom-only": b"\xef\xbb\xbf",
    "one.txt": b"the only line\n",
    "one-cut.txt": b"the only line",
    "blank.txt": b"\n",
    "blanks.txt": b"\n" * 9,
    "same.txt": lines(*["x"] * 12),
    "period.txt": lines(*["tick", "tock", "tick"] * 9),
    "few.txt": lines(*_RANDOM.choices("ab", k=40)),
    "nasty.txt": lines(*NASTY),
    "nastier/ü x.md": lines(*_RANDOM.choices(NASTY, k=60)),
    "unicode.txt": lines(*UNICODE, *UNICODE[:4]),
    "long.txt": lines(*(f"{i % 30} " + "word " * (i % 7) for i in range(300))),
}


# What moves a patch on; out of nothing but noise come names and added lines without end.
STRUCTURE = ["Update", "@@", " ", "-", "+", "\n", "+x\n", "***"]
TOOL = ToolSpec(
    "apply_patch",
    "",
    {"type": "object", "properties": {"patch": {"type": "string"}}, "required": ["patch"]},
    "write",
    freeform=True,
)


class Case(NamedTuple):
    """Files on offer, the language of their patches, and the constraint that was compiled from it."""

    files: Mapping[str, bytes]
    located: LocatedPatches
    constraint: object

    def patch(self, runtime, tokens: list[int]) -> str:
        """The raw patch that was written."""
        if self.located.carrier is FREEFORM:
            return runtime.tokenizer.decode(tokens)
        answer = runtime.reader([TOOL]).read_ids(tokens, runtime.tokenizer.decode, runtime.tokenizer.special)
        assert not answer.faults
        (call,) = answer.calls
        return call.arguments["patch"]


@pytest.fixture(scope="module", params=[FREEFORM, JSON], ids=lambda carrier: carrier.name)
def cases(request, tiny_runtime) -> list[Case]:
    """One for each file: it alone, or beside another one."""
    return [case(tiny_runtime, i, request.param) for i in range(len(FILES))]


def case(runtime, i: int, carrier: Carrier) -> Case:
    names = list(FILES)
    chosen = [names[i]] if i % 2 else [names[(i + 7) % len(names)], names[i]]
    offered = tuple(OfferedFile(name, tuple(decode(FILES[name], name).texts)) for name in chosen)
    editable = Editable(
        offered, NewPaths(frozenset(FILES), frozenset(["crlf", "nastier"])), renames=i % 3 > 0
    )
    can_spell = runtime.tokenizer.can_spell
    located = locate(editable, max_added_lines=MAX_ADDED_LINES, can_spell=can_spell, carrier=carrier)
    if carrier is FREEFORM:
        constraint = runtime.patch_constraint(editable, MAX_ADDED_LINES).result()
    else:
        constraint = runtime.turn_constraint(
            "located",
            [TOOL],
            "apply_patch",
            thinking=False,
            max_added_lines=MAX_ADDED_LINES,
            editable=editable,
            carrier=carrier,
        ).result()
    return Case({name: FILES[name] for name in chosen}, located, constraint)


def generated(runtime, cases: list[Case]) -> Iterator[tuple[Case, str, str]]:
    """Patches with why they ended, for each case in turn; every one is whole and keeps to its limit."""
    tokenizer = runtime.tokenizer
    carrier = cases[0].located.carrier
    structure = {token for text in STRUCTURE for token in tokenizer.encode_plain(carrier.spell(text))}
    prompt = [*runtime.dialect.user("work"), *runtime.dialect.open_answer(thinking=False)]
    rng = random.Random(6)
    for seed in range(N_FINISHED[carrier.name]):
        case = cases[seed % len(cases)]
        limit = min(rng.randint(SHORTEST, LONGEST) for _ in range(2))
        model = NoisyModel(runtime.session, structure, seed, share=rng.choice([0.5, 0.8, 0.95]))
        done = generate(
            model,
            case.constraint,
            prompt,
            sampling=Sampling(1.0, seed=seed),
            max_tokens=limit,
            blank_ids=tokenizer.blank_ids,
        )
        assert done.complete, (seed, done.stop_reason, tokenizer.decode(done.tokens))
        assert len(done.tokens) <= limit, (seed, tokenizer.decode(done.tokens))
        yield case, case.patch(runtime, done.tokens), done.stop_reason


def test_finished_patches_fit_their_files_where_they_were_meant(tiny_runtime, cases):
    counts, n_finished = Counter(), N_FINISHED[cases[0].located.carrier.name]
    for case, text, stop_reason in generated(tiny_runtime, cases):
        counts[stop_reason] += 1
        patch = parse(text, lenient=False).patch
        progress = Progress(case.located).advanced(case.located.carrier.carried(text))
        assert progress.done, text
        try:
            planned = plan(patch, case.files.get)
        except PatchError as error:
            if error.kind != "no_change":  # which no grammar can see
                raise AssertionError(text) from error
            counts["changes nothing"] += 1
            continue
        places = list(progress.landed())
        assert landed(planned, text, case.files) == places, text
        counts["applies"] += 1
        counts["has hunks"] += bool(places)
        counts["hunks"] += len(places)
    print(dict(counts))
    assert counts["applies"] + counts["changes nothing"] == n_finished
    assert counts["changes nothing"] <= 0.1 * n_finished
    assert counts["has hunks"] >= 0.6 * n_finished
    assert counts["hunks"] >= n_finished
    assert counts["complete"] >= 0.2 * n_finished
    assert counts["closed_by_budget"] >= 0.1 * n_finished
