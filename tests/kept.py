"""Records of a comparison that nobody ran, for what is counted and shown of them."""

from __future__ import annotations

import random
from dataclasses import replace

from constrained_agent.evals.compare import arms
from constrained_agent.evals.compare.outcomes import OUTCOMES, Judgement
from constrained_agent.evals.compare.records import Folder, Record, Written
from constrained_agent.grammar.spans import Marker

ODD = [
    "",
    "\0 \x1b[31m \x7f \ufeff \u2028 \u2029 \x85 \r\n \r \v \f",
    "half \ud83d of a pair, and \udc80 a byte",
    "\\ud83d \\ \" ' \\\\\ud800\\",
    "e\u0301 \U0001f600 \U0010ffff 漢",
    "<tool_call> </tool_call> <|im_end|> <think>",
    '{"marker": "<tool_call>"}',
    "</pre><script>alert(1)</script>",
]

FACTS = {
    "model": "tiny",
    "markers": {"are_tokens": True, "thinks": True},
    "sampling": {"temperature": 0.0, "top_p": 1.0, "top_k": 0},
    "max_tokens": 300,
    "drafts": False,
    "samples": 1,
    "seed": 0,
    "shard": None,
    "fingerprint": "0",
    "n_items": 1,
    "n_all_items": 1,
    "circumstances": {
        "command": "constrained-agent compare --out '<b>'",
        "date": "2026-11-30",
        "commit": "abc",
        "dirty": True,
        "versions": {"mlx": "0.32.4"},
        "python": "3.11.7",
        "machine": "Linux <i>",
        "device": "CPU, 100 GFLOP/s",
        "load": 0.5,
    },
}


def record(
    name="dateparse",
    arm="off",
    sample=0,
    *,
    kind="patch",
    outcome="no_call",
    pieces=("text",),
    of_set="",
    **judged,
):
    landed = outcome in ("passed", "tests_failed")
    judgement = Judgement(outcome, judged.pop("parses", landed), landed, **judged)
    written = Written(tuple(pieces), "end_token", True, (), 100, 10, 5, 7, 0.5, 0.25, {})
    return Record(
        f"{kind}/{name}/{arm}/{sample}", kind, name, arm, sample, 7, written, judgement, 0.1, of_set
    )


def folder_of(path, records, **facts):
    folder = Folder(path)
    folder.begin({**FACTS, **facts})
    for one in records:
        folder.add(one)
    return folder


def random_records(n, seed=0):
    """Patches and calls of all arms, with outcomes by chance."""
    rng = random.Random(seed)
    found = {}
    for _ in range(n):
        kind = rng.choice(["patch", "call"])
        arm = rng.choice(["off", "grammar"] if kind == "call" else [arm.name for arm in arms.ARMS])
        one = record(
            rng.choice("abcdefgh"),
            arm,
            rng.randrange(3),
            kind=kind,
            outcome=rng.choice(OUTCOMES),
            pieces=[rng.choice(ODD), Marker("<tool_call>"), rng.choice(ODD)],
            at=rng.choice([None, 0, 3]),
        )
        masks = {key: rng.random() * 100 for key in ("p50", "p99", "max")} if arm != "off" else {}
        written = replace(one.written, tokens=rng.randrange(99), decode_s=rng.random(), mask_us=masks)
        found[one.id] = replace(one, written=written)
    return list(found.values())
