"""A process that is killed at any moment leaves, after recovery, the tree as before or as after."""

from __future__ import annotations

import json
import os
import subprocess
import sys
import textwrap
from pathlib import Path

import pytest

# Forks once for each kill point, so that hundreds of them cost a second and not a minute.
PROGRAM = textwrap.dedent(
    '''
    import json, os, random, shutil, signal, stat, sys
    from pathlib import Path
    from constrained_agent.errors import PatchError
    from constrained_agent.patch import parse
    from constrained_agent.tools.workspace import Workspace

    base, n_files, points = Path(sys.argv[1]), int(sys.argv[2]), sys.argv[3]
    CALLS = ("open", "rename", "link", "unlink", "mkdir", "rmdir", "fsync", "ftruncate", "fchmod", "close")
    real = {name: getattr(os, name) for name in CALLS}
    real["fsync"] = os.fsync = lambda handle: None   # a killed process loses nothing of what it wrote

    def lay_out():
        root = base / "root"
        shutil.rmtree(base, ignore_errors=True)
        (root / "sub").mkdir(parents=True)
        for i in range(n_files):
            (root / f"f{i}").write_text(f"{i}\\n")
        for name in ("gone", "moved", "plain", "linked", "sub/target"):
            (root / name).write_text(name + "\\n")
        os.link(root / "linked", root / "twin")
        (root / "link").symlink_to("sub/target")
        (root / "f0").chmod(0o755)
        os.environ["XDG_STATE_HOME"] = str(base / "state")
        return root

    def tree(root):
        found = {}
        for path in sorted(root.rglob("*")):
            facts = path.lstat()
            content = path.read_bytes() if stat.S_ISREG(facts.st_mode) else b""
            found[str(path.relative_to(root))] = (facts.st_mode, content)
        return found

    sections = [f"*** Update File: f{i}\\n@@\\n-{i}\\n+new {i}\\n" for i in range(n_files)]
    sections += [
        "*** Add File: new/er/n\\n+n\\n",
        "*** Delete File: gone\\n",
        "*** Update File: moved\\n*** Move to: other/m\\n@@\\n-moved\\n+M\\n",
        "*** Update File: plain\\n*** Move to: p\\n",
        "*** Add File: plain\\n+shim\\n",
        "*** Update File: linked\\n@@\\n-linked\\n+a longer line than before\\n",
        "*** Update File: link\\n@@\\n-sub/target\\n+T\\n",
    ]
    patch = parse("*** Begin Patch\\n" + "".join(sections) + "*** End Patch\\n").patch

    def run(kill_at, recovering=False):
        """In a child: do the work, and die at the given call. Returns how many calls were made, None if killed."""
        out, into = os.pipe()
        child = os.fork()
        if child == 0:
            made = 0
            def counted(name):
                def call(*args, **kwargs):
                    nonlocal made
                    made += 1
                    if made == kill_at:
                        os.kill(os.getpid(), signal.SIGKILL)
                    return real[name](*args, **kwargs)
                return call
            for name in CALLS:
                setattr(os, name, counted(name))
            workspace = Workspace(base / "root")
            if recovering:
                workspace.recover()
            else:
                workspace.apply(patch)
            for name in CALLS:
                setattr(os, name, real[name])
            os.write(into, str(made).encode())
            os._exit(0)
        os.close(into)
        answer = os.read(out, 20)
        os.close(out)
        os.waitpid(child, 0)
        return int(answer) if answer else None

    root = lay_out()
    before = tree(root)
    n_calls = run(0)
    after = tree(root)
    assert n_calls and before != after
    chosen = range(1, n_calls + 1)
    if points != "all":
        chosen = sorted(random.Random(7).sample(chosen, int(points)))
    counts = {"before": 0, "after": 0, "mixed": []}
    for kill_at in chosen:
        root = lay_out()
        run(kill_at)
        if kill_at % 3 == 0:
            run(kill_at % 17 + 1, recovering=True)   # killed again while it recovers
        Workspace(root).recover()
        now = tree(root)
        if now == before:
            counts["before"] += 1
        elif now == after:
            counts["after"] += 1
        else:
            counts["mixed"].append(kill_at)
        left = [p.name for p in (base / "state").rglob("*") if p.is_file() and p.name not in ("lock", "next.json")]
        if [name for name in left if not name.startswith("old-")]:
            counts["mixed"].append((kill_at, left))
    print(json.dumps(counts))
    '''
)


@pytest.mark.parametrize(("n_files", "points"), [(2, "150"), (20, "40")])
def test_killed_anywhere(tmp_path: Path, n_files: int, points: str) -> None:
    done = subprocess.run(
        [sys.executable, "-c", PROGRAM, tmp_path / "base", str(n_files), points],
        capture_output=True,
        text=True,
        check=False,
    )
    assert done.returncode == 0, done.stderr
    counts = json.loads(done.stdout)
    assert counts["mixed"] == []
    assert counts["before"] > 2
    assert counts["after"] > 2


# A patch over 20 files, applied and taken back without end by a child that is then killed from outside.
RANDOMLY = textwrap.dedent(
    '''
    import hashlib, json, os, random, signal, sys, time
    from collections import Counter
    from pathlib import Path
    from constrained_agent.patch import parse
    from constrained_agent.tools.workspace import Workspace

    root, n_kills = Path(sys.argv[1]), int(sys.argv[2])
    os.fsync = lambda handle: None   # a killed process loses nothing of what it wrote

    def whole_tree():
        """One hash over names, modes and bytes."""
        found = hashlib.sha256()
        for path in sorted(root.rglob("*")):
            content = path.read_bytes() if path.is_file() else b""
            found.update(repr((str(path.relative_to(root)), path.lstat().st_mode, content)).encode())
        return found.hexdigest()

    (root / "sub").mkdir(parents=True)
    sections = []
    for i in range(18):
        name = f"{'sub/' if i % 3 == 0 else ''}f{i}"
        (root / name).write_text(f"{i}\\n" * 50 + f"last {i}\\n")
        (root / name).chmod(0o755 if i % 2 else 0o600)
        move = f"*** Move to: moved/f{i}\\n" if i % 6 == 5 else ""
        sections.append(f"*** Update File: {name}\\n{move}@@\\n-last {i}\\n+one\\n+two {i}\\n")
    os.link(root / "f1", root / "twin")
    sections += ["*** Add File: new/a\\n+a\\n", "*** Add File: new/er/b\\n+b\\n"]
    patch = parse("*** Begin Patch\\n" + "".join(sections) + "*** End Patch\\n").patch

    workspace = Workspace(root)
    workspace.apply(patch)
    workspace.apply(patch, reverse=True)
    before = whole_tree()   # with the folders that the patch made, which the way back leaves
    started = time.monotonic()
    workspace.apply(patch)
    taken = time.monotonic() - started
    after = whole_tree()

    counts = {"before": 0, "after": 0, "mixed": 0, "interrupted": 0}
    for _ in range(n_kills):
        is_there = whole_tree() == after
        child = os.fork()
        if child == 0:
            while True:
                workspace.apply(patch, reverse=is_there)
                is_there = not is_there
        time.sleep(random.uniform(0, 3 * taken))
        os.kill(child, signal.SIGKILL)
        os.waitpid(child, 0)
        counts["interrupted"] += Workspace(root).recover()
        counts[{before: "before", after: "after"}.get(whole_tree(), "mixed")] += 1
    print(json.dumps(counts))
    '''
)


def test_killed_at_random_moments(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """How often, the environment variable KILLS says."""
    monkeypatch.setenv("XDG_STATE_HOME", str(tmp_path / "state"))
    done = subprocess.run(
        [sys.executable, "-c", RANDOMLY, tmp_path / "root", os.environ.get("KILLS", "150")],
        capture_output=True,
        text=True,
        check=False,
    )
    assert done.returncode == 0, done.stderr
    print(done.stdout)
    counts = json.loads(done.stdout)
    assert counts["mixed"] == 0
    assert counts["interrupted"] > 10
