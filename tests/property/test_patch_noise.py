"""Noise: whatever bytes come, they are a patch or refused by kind; nothing hangs, nothing is written on a dry run."""

from __future__ import annotations

import json
import os
import random
import stat
from collections import Counter
from collections.abc import Iterator
from pathlib import Path

import pytest

from constrained_agent.errors import PATCH_ERROR_KINDS, PatchError
from constrained_agent.patch import parse
from constrained_agent.tools.workspace import Workspace

CASES = json.loads(
    (Path(__file__).parent.parent / "conformance" / "cases" / "patch_apply.json").read_text(encoding="utf-8")
)
PIECES = [
    *(
        "\n",
        "\n\n",
        "*** ",
        "@@ ",
        "@@\n",
        "+",
        "-",
        " ",
        "\r\n",
        "\r",
        "../",
        "\0",
        "/",
        "\ud800",
        "\udce9",
        "é",
    ),
    *(
        "*** End of File\n",
        "*** Update File: a.txt\n",
        "*** Move to: ",
        "\t",
        "\u2028",
        "\ufeff",
        "*** End Patch\n",
    ),
    *(
        "*** Begin Patch\n",
        "*** Add File: n\n",
        "*** Delete File: a.txt\n",
        "@@ -1,2 +1,2 @@\n",
        "**",
        "\x1b[31m",
    ),
]
MAX_MESSAGE_LINES = 12


def noise(seed: int, n: int) -> Iterator[str]:
    """Patches with pieces cut out, doubled, exchanged or put in; every tenth text is random bytes."""
    rng = random.Random(seed)
    patches = [case["patch"] for case in CASES if len(case["patch"]) < 2000]
    for i in range(n):
        if i % 10 == 0:
            data = bytes(rng.randrange(256) for _ in range(rng.randrange(200)))
            yield data.decode("utf-8", rng.choice(["surrogateescape", "replace"]))
            continue
        text = rng.choice(patches)
        for _ in range(rng.randint(0, 5)):
            start = rng.randrange(len(text) + 1)
            end = min(len(text), start + rng.choice([0, 1, 3, 20]))
            cut = rng.choice(patches)[rng.randrange(20) :][:30]
            text = text[:start] + rng.choice([rng.choice(PIECES), "", cut, text[start:end] * 2]) + text[end:]
        yield text


def lay_out(root: Path) -> None:
    """The files of all cases, where they do not stand in each other's way."""
    root.mkdir()
    for case in CASES:
        for name, spec in case["files"].items():
            place = root / name
            if isinstance(spec, str) and not place.exists():
                place.parent.mkdir(parents=True, exist_ok=True)
                place.write_text(spec)


def tree(folder: Path) -> dict[str, tuple[int, int, bytes]]:
    found = {}
    for path in sorted(folder.rglob("*")):
        facts = path.lstat()
        content = path.read_bytes() if stat.S_ISREG(facts.st_mode) else b""
        found[str(path.relative_to(folder))] = (facts.st_mode, facts.st_mtime_ns, content)
    return found


def test_noise_is_read_or_refused(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """How much of it, the environment variable NOISE says, and with which seed, NOISE_SEED."""
    monkeypatch.setenv("XDG_STATE_HOME", str(tmp_path / "state"))
    lay_out(tmp_path / "root")
    before = tree(tmp_path)
    workspace = Workspace(tmp_path / "root")
    outcomes: Counter[str] = Counter()
    for text in noise(int(os.environ.get("NOISE_SEED", "5")), int(os.environ.get("NOISE", "4000"))):
        try:
            workspace.apply(parse(text).patch, dry_run=True)
            outcomes["applies"] += 1
        except PatchError as error:
            outcomes[error.kind] += 1
            str(error).encode()
            if str(error).count("\n") > MAX_MESSAGE_LINES:
                pytest.fail(f"a long message: {error}")
    print(dict(outcomes.most_common()))
    assert tree(tmp_path) == before
    assert outcomes["applies"] > 10
    assert set(outcomes) <= {"applies", *PATCH_ERROR_KINDS}
    assert len(outcomes) > 10
