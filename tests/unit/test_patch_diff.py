"""The unified diff: exact text, and git reads it to the same result."""

from __future__ import annotations

import random
import subprocess
from pathlib import Path

from constrained_agent.patch import Plan, parse, plan


def planned(files: dict[str, bytes], body: str) -> Plan:
    return plan(parse(f"*** Begin Patch\n{body}*** End Patch\n").patch, files.get)


def test_text() -> None:
    old = "".join(f"{i}\n" for i in range(1, 31)).encode()
    done = planned(
        {"f": old, "g": b"x", "h": b"a\n", "b b": b"\0"},
        "*** Update File: f\n@@\n-3\n+three\n@@\n 9\n+9a\n@@\n-25\n"
        "*** Delete File: h\n*** Add File: n\n+new\n*** Update File: g\n*** Move to: m\n+w\n x\n"
        "*** Update File: b b\n*** Move to: c\n",
    )
    assert done.diff() == (
        "diff --git a/f b/f\n--- a/f\n+++ b/f\n"
        "@@ -1,12 +1,13 @@\n 1\n 2\n-3\n+three\n 4\n 5\n 6\n 7\n 8\n 9\n+9a\n 10\n 11\n 12\n"
        "@@ -22,7 +23,6 @@\n 22\n 23\n 24\n-25\n 26\n 27\n 28\n"
        "diff --git a/h b/h\ndeleted file mode 100644\n--- a/h\n+++ /dev/null\n@@ -1 +0,0 @@\n-a\n"
        "diff --git a/n b/n\nnew file mode 100644\n--- /dev/null\n+++ b/n\n@@ -0,0 +1 @@\n+new\n"
        "diff --git a/g b/m\nrename from g\nrename to m\n--- a/g\n+++ b/m\n"
        "@@ -1 +1,2 @@\n+w\n x\n\\ No newline at end of file\n"
        "diff --git a/b b b/c\nrename from b b\nrename to c\n"
    )


def test_git_reads_it(tmp_path: Path) -> None:
    """Random edits of random files: `git apply` of the diff gives what the plan says."""
    rng = random.Random(3)
    for n in range(25):
        root = tmp_path / str(n)
        root.mkdir()
        lines = [f"{i} {rng.choice(['a', 'b', ' c', ''])}" for i in range(rng.randint(1, 40))]
        old = "".join(line + rng.choice(["\n", "\n", "\r\n"]) for line in lines)
        old = old if rng.random() < 0.6 else old.rstrip("\r\n")
        chosen = sorted(rng.sample(range(len(lines)), k=min(len(lines), rng.randint(1, 6))))
        hunks = "".join(
            f"@@\n-{lines[i]}\n" if rng.random() < 0.3 else f"@@\n {lines[i]}\n+{i} new\n+\n" for i in chosen
        )
        move = rng.choice(["", "*** Move to: sub/g\n"])
        done = planned({"f": old.encode()}, f"*** Update File: f\n{move}{hunks}*** Add File: n\n+x\n")
        (root / "f").write_bytes(old.encode())
        diff = done.diff().encode()
        subprocess.run(["git", "apply", "--whitespace=nowarn", "-"], cwd=root, input=diff, check=True)
        for file in done.files:
            assert (root / (file.new_path or file.path)).read_bytes() == file.new
            assert (root / file.path).exists() == (file.new_path is None)
