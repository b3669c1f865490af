"""Laws of transcripts: a replay gives the tree of the run, and what is masked once stays as it is."""

from __future__ import annotations

import random
import shutil
from pathlib import Path
from typing import TYPE_CHECKING

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from constrained_agent.agent import records
from constrained_agent.agent.cut import cut
from constrained_agent.agent.replay import replay
from constrained_agent.agent.secrets import Masker
from constrained_agent.errors import PatchError
from constrained_agent.patch import derive, render
from tests.agents import ScriptedAgent, call, patch_call

if TYPE_CHECKING:
    from constrained_agent.agent.runtime import Runtime

Tree = dict[str, bytes]

WORDS = ["a", "b", "  c", "def f():", "", "}", "é", '"quoted"', "*** End Patch", "\\n", "x "]
PATHS = ["a.txt", "b.txt", "d/c.txt", "d/e/f.txt", "new file.md"]


def files(root: Path) -> Tree:
    return {p.relative_to(root).as_posix(): p.read_bytes() for p in sorted(root.rglob("*")) if p.is_file()}


def text(rng: random.Random) -> bytes:
    ending = rng.choice(["\n", "\n", "\r\n"])
    return "".join(rng.choice(WORDS) + ending for _ in range(rng.randrange(1, 9))).encode()


def edited(rng: random.Random, old: Tree) -> Tree:
    """Another tree: files come, go, move, and change."""
    new = dict(old)
    for path in rng.sample(PATHS, 2):
        if path not in new:
            new[path] = text(rng).replace(b"\r", b"")
        elif rng.random() < 0.3 and len(new) > 1:
            del new[path]
        else:
            lines = new[path].split(b"\n")
            lines.insert(
                rng.randrange(len(lines)), rng.choice(WORDS).encode() + b"!" + lines[0][-1:].strip(b"x")
            )
            new[path] = b"\n".join(lines)
    return new


def patches(rng: random.Random, start: Tree) -> list[str]:
    """Answers that change the tree step by step; what the patch language cannot say is left out."""
    answers, tree = [], start
    for _ in range(rng.randrange(2, 6)):
        if rng.random() < 0.3:
            answers.append(
                call("exec_command", command=f"echo {rng.random()} >> log{rng.randrange(2)}; cat *")
            )
        new = edited(rng, tree)
        try:
            body = render(derive(tree, new))
        except PatchError:
            continue
        if new != tree:
            answers.append(patch_call(body.split("\n", 1)[1].rpartition("*** End Patch")[0]))
            tree = new
    return answers


@pytest.mark.parametrize("seed", range(12))
def test_a_replay_gives_the_tree_of_the_run(tiny_runtime: Runtime, tmp_path: Path, seed: int) -> None:
    rng = random.Random(seed)
    root, start = tmp_path / "repo", tmp_path / "start"
    for path in rng.sample(PATHS, 3):
        (root / path).parent.mkdir(parents=True, exist_ok=True)
        (root / path).write_bytes(text(rng))
    shutil.copytree(root, start)
    answers = patches(rng, files(root))
    agent = ScriptedAgent(tiny_runtime, root, [*answers, "Done."], level="off", max_turns=20)
    agent.run()
    (run,) = records.read(agent._log)
    assert cut(run, start, tmp_path / "half", len(answers) // 2).replayed.difference is None
    replayed = replay(run, start)
    assert replayed.difference is None
    assert files(start) == files(root)
    landed = sum(event["event"] == "result" and "files" in event["data"] for event in agent.events)
    assert 0 < replayed.patches == landed


KEY_LINE = "MIIEpAIBAAKCAQEA75hB0tYzLqgT3v7y8Kk1l2m3n4o5p6q7r8s9t0u1v2w3x4y5"
PIECES = [
    "x9K2mQ7vL4pR8sT1",
    "password=",
    "token: ",
    "ghp_",
    "sk-",
    "a1B2" * 9,
    KEY_LINE,
    "://u:",
    "@",
    "eyJ",
    ".",
]
PIECES += ["-----BEGIN PRIVATE KEY-----", "-----END PRIVATE KEY-----", "\n", " ", '"', "***", "Bearer "]


@settings(deadline=None, database=None, max_examples=300)
@given(st.lists(st.sampled_from(PIECES), max_size=12).map("".join))
def test_what_is_masked_stays_as_it_is(text: str) -> None:
    once = Masker().text(text)
    assert Masker().text(once) == once
