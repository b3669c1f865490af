"""`patch` on the command line: what it prints, its exit codes, and what it loads."""

from __future__ import annotations

import json
import os
import subprocess
import sys
from pathlib import Path

import pytest

PATCH = "*** Begin Patch\n*** Update File: a b.txt\n@@\n-1\n+2\n*** Add File: n\n+x\n*** End Patch\n"


@pytest.fixture
def root(tmp_path: Path) -> Path:
    (tmp_path / "root").mkdir()
    (tmp_path / "root" / "a b.txt").write_text("1\nrest\n")
    return tmp_path / "root"


def run(root: Path, *args: str | Path, text: str | bytes = b"") -> subprocess.CompletedProcess[bytes]:
    data = text.encode() if isinstance(text, str) else text
    command = [sys.executable, "-m", "constrained_agent", "patch", *args]
    environment = {**os.environ, "XDG_STATE_HOME": str(root.parent / "state")}
    done = subprocess.run(command, cwd=root, input=data, capture_output=True, check=False, env=environment)
    assert b"Traceback" not in done.stderr
    return done


def test_it_applies_from_stdin_in_this_folder(root: Path) -> None:
    done = run(root, text=PATCH)
    assert done.returncode == 0
    assert done.stdout.decode() == (
        "M a b.txt +1 -1\nA n +1 -0\n\n"
        "diff --git a/a b.txt b/a b.txt\n--- a/a b.txt\t\n+++ b/a b.txt\t\n@@ -1,2 +1,2 @@\n-1\n+2\n rest\n"
        "diff --git a/n b/n\nnew file mode 100644\n--- /dev/null\n+++ b/n\n@@ -0,0 +1 @@\n+x\n"
    )
    assert done.stderr == b""
    assert (root / "a b.txt").read_text() == "2\nrest\n"


def test_json_from_a_file(root: Path, tmp_path: Path) -> None:
    (tmp_path / "p").write_text(PATCH.replace("n\n+x", "n\n+x\n"))
    done = run(tmp_path, tmp_path / "p", "--root", "root", "--json")
    answer = json.loads(done.stdout.splitlines()[-1])
    assert done.returncode == 0
    assert answer["ok"] is True
    assert answer["files"] == [
        {"path": "a b.txt", "action": "update", "new_path": None, "added": 1, "removed": 1},
        {"path": "n", "action": "add", "new_path": None, "added": 1, "removed": 0},
    ]
    assert answer["diff"].startswith("diff --git")
    assert answer["leniencies"] == {"blank_before_marker": 1}
    assert b"blank_before_marker 1" in done.stderr


def test_dry_run_writes_nothing(root: Path) -> None:
    done = run(root, "--dry-run", "--json", text=PATCH)
    assert done.returncode == 0
    assert json.loads(done.stdout)["dry_run"] is True
    assert [path.name for path in root.iterdir()] == ["a b.txt"]
    assert not (root.parent / "state").exists()


def test_a_refused_patch(root: Path) -> None:
    text = PATCH.replace("-1", "-9")
    done = run(root, text=text)
    assert done.returncode == 1
    assert done.stdout == b""
    assert b"context_not_found" in done.stderr
    done = run(root, "--json", text=text)
    error = json.loads(done.stdout)["error"]
    assert done.returncode == 1
    assert (error["kind"], error["path"], error["hunk"]) == ("context_not_found", "a b.txt", 1)
    assert isinstance(error["lines"], list)
    assert "a b.txt, hunk 1" in error["message"]
    assert (root / "a b.txt").read_text() == "1\nrest\n"


@pytest.mark.parametrize(
    ("args", "says"),
    [
        (["absent.patch"], b"absent.patch"),
        (["."], b"directory"),
        (["-", "--root", "absent"], b"absent"),
        (["-", "--no-such-flag"], b"No such option"),
        (["-", "second"], b"unexpected extra argument"),
    ],
)
def test_a_wrong_call(root: Path, args: list[str], says: bytes) -> None:
    done = run(root, *args, text=PATCH)
    assert done.returncode == 2
    assert says.lower() in done.stderr.lower()
    assert (root / "a b.txt").read_text() == "1\nrest\n"


@pytest.mark.parametrize(
    ("data", "says", "lines"),
    [
        (PATCH.encode("utf-16"), "UTF-16", [1]),
        (PATCH.encode().replace(b"+2", b"+\xe9"), "byte 48", [5]),
        (b"", "empty", [1]),
        (b"\0", "other text", [1]),
    ],
)
def test_input_that_is_no_patch(root: Path, data: bytes, says: str, lines: list[int]) -> None:
    done = run(root, "--json", text=data)
    error = json.loads(done.stdout)["error"]
    assert done.returncode == 1
    assert error["kind"] == "bad_envelope"
    assert says in error["message"]
    assert error["lines"] == lines


def test_bytes_that_are_not_utf8_come_out_as_they_are(root: Path) -> None:
    (root / "l").write_bytes(b"caf\xe9\nport=1\n")
    text = "*** Begin Patch\n*** Update File: l\n@@\n-port=1\n+port=2\n*** End Patch\n"
    done = run(root, "--dry-run", text=text)
    assert b" caf\xe9\n-port=1\n+port=2\n" in done.stdout
    done = run(root, "--dry-run", "--json", text=text)
    assert "caf\udce9" in json.loads(done.stdout)["diff"]


def test_a_large_patch_through_stdin(root: Path) -> None:
    body = "".join(f"+line {i} of a rather large new file\n" for i in range(50_000))
    done = run(root, "--json", text=f"*** Begin Patch\n*** Add File: big\n{body}*** End Patch\n")
    assert json.loads(done.stdout)["files"][0]["added"] == 50_000


def test_it_loads_no_model_code(root: Path) -> None:
    program = (
        "import sys\n"
        "from constrained_agent.cli.app import run\n"
        "code = run(['patch', '--dry-run'])\n"
        "heavy = {'mlx', 'mlx_lm', 'numpy', 'transformers', 'llguidance'} & set(sys.modules)\n"
        "sys.exit(f'loaded: {heavy}' if heavy else code)"
    )
    done = subprocess.run(
        [sys.executable, "-c", program], cwd=root, input=PATCH.encode(), capture_output=True, check=False
    )
    assert done.returncode == 0, done.stderr
