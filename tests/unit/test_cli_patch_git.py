"""`patch --from-git` and `--reverse` on real repositories, and the colours of a terminal."""

from __future__ import annotations

import json
import os
import pty
import subprocess
import sys
from pathlib import Path

import pytest

from constrained_agent.errors import UserError
from constrained_agent.tools import revisions

ENVIRONMENT = {
    "GIT_CONFIG_GLOBAL": os.devnull,
    "GIT_CONFIG_SYSTEM": os.devnull,
    **{f"GIT_{who}_{what}": "t@example.org" for who in ("AUTHOR", "COMMITTER") for what in ("NAME", "EMAIL")},
}


@pytest.fixture(autouse=True)
def environment(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("XDG_STATE_HOME", str(tmp_path / "state"))
    for name, value in ENVIRONMENT.items():
        monkeypatch.setenv(name, value)


def git(root: Path, *args: str) -> None:
    subprocess.run(["git", *args], cwd=root, check=True, capture_output=True)


@pytest.fixture
def root(tmp_path: Path) -> Path:
    """A repository with one commit and changes of every kind since."""
    root = tmp_path / "root"
    (root / "sub").mkdir(parents=True)
    (root / "f").write_bytes(b"a\r\nb\r\nc\r\n")
    (root / "sub" / "é g").write_text("x\ny\nz\n")
    (root / "gone").write_bytes(b"\0\xff")
    (root / "link").symlink_to("f")
    git(root, "init", "-q")
    git(root, "add", ".")
    git(root, "commit", "-qm", "1")
    (root / "f").write_bytes(b"a\r\nB\r\nc\r\n")
    git(root, "mv", "sub/é g", "sub/h")
    (root / "sub" / "h").write_text("x\ny\nZ\n")
    (root / "sub" / "n").write_text("n\n")
    git(root, "add", "sub/n")
    (root / "gone").unlink()
    (root / "untracked").write_text("u\n")
    return root


def run(root: Path, *args: str | Path, text: bytes = b"") -> subprocess.CompletedProcess[bytes]:
    command = [sys.executable, "-m", "constrained_agent", "patch", *args]
    done = subprocess.run(command, cwd=root, input=text, capture_output=True, check=False)
    assert b"Traceback" not in done.stderr
    return done


def tree(root: Path) -> dict[str, bytes]:
    return {
        str(path.relative_to(root)): path.read_bytes()
        for path in root.rglob("*")
        if path.is_file() and ".git" not in path.parts
    }


CHANGES = (
    "*** Begin Patch\n*** Update File: f\n@@\n-b\n+B\n*** Delete File: gone\n"
    "*** Add File: sub/n\n+n\n*** Update File: sub/é g\n*** Move to: sub/h\n@@\n-z\n+Z\n*** End Patch\n"
)


def test_the_working_tree_against_a_commit(root: Path, tmp_path: Path) -> None:
    done = run(root, "--from-git", "HEAD")
    assert (done.returncode, done.stdout.decode(), done.stderr) == (0, CHANGES, b"")
    git(root, "clone", "-q", ".", str(tmp_path / "other"))
    assert run(tmp_path / "other", text=done.stdout).returncode == 0
    now = tree(root)
    del now["untracked"]
    assert tree(tmp_path / "other") == now


def test_as_json(root: Path) -> None:
    answer = json.loads(run(root, "--from-git", "HEAD", "--json").stdout)
    assert answer["ok"] is True
    assert answer["patch"] == CHANGES
    assert answer["notes"] == []
    assert [(file["path"], file["action"], file["added"]) for file in answer["files"]] == [
        ("f", "update", 1),
        ("gone", "delete", 0),
        ("sub/n", "add", 1),
        ("sub/é g", "move", 1),
    ]


def test_two_commits_and_a_folder(root: Path) -> None:
    git(root, "commit", "-qam", "2")
    assert run(root, "--from-git", "HEAD~1..HEAD").stdout.decode() == CHANGES
    assert run(root, "--from-git", "HEAD").stdout == b""
    inside = run(root, "--root", "sub", "--from-git", "HEAD~").stdout.decode()
    assert inside == (
        "*** Begin Patch\n*** Add File: n\n+n\n*** Update File: é g\n*** Move to: h\n@@\n-z\n+Z\n*** End Patch\n"
    )


def test_the_way_back(root: Path) -> None:
    (root / "gone").write_bytes(b"\0\xff")
    back = run(root, "--from-git", "HEAD", "--reverse")
    assert back.stdout.decode().startswith(
        "*** Begin Patch\n*** Update File: f\n@@\n-B\n+b\n*** Update File: sub/h\n"
    )
    assert run(root, text=back.stdout).returncode == 0
    git(root, "reset", "-q")
    left = subprocess.run(["git", "status", "--porcelain"], cwd=root, capture_output=True, check=True).stdout
    assert left == b"?? untracked\n"


def test_what_it_cannot_say(root: Path) -> None:
    (root / "sub" / "h").chmod(0o755)
    (root / "sub" / "n").chmod(0o755)
    git(root, "add", ".")
    done = run(root, "--from-git", "HEAD")
    assert done.returncode == 0
    notes = done.stderr.decode().splitlines()
    assert notes == [f"note: sub/{name} becomes executable, which a patch cannot say" for name in "hn"]
    git(root, "commit", "-qm", "2")
    git(root, "mv", "sub/h", "h")  # a move takes the mode along
    (root / "sub" / "n").chmod(0o644)
    done = run(root, "--from-git", "HEAD", "--json")
    assert json.loads(done.stdout)["notes"] == ["sub/n is executable no more, which a patch cannot say"]
    git(root, "reset", "-q", "--hard", "HEAD~")
    (root / "gone").unlink()
    back = run(root, "--from-git", "HEAD", "--reverse")
    assert (back.returncode, back.stdout) == (1, b"")
    assert b"not_text: gone: " in back.stderr


@pytest.mark.parametrize(
    ("spoil", "kind", "path"),
    [
        (lambda root: (root / "f").write_bytes(b"a\r\nb\r\nc"), "bad_line", "f"),
        (lambda root: (root / "f").write_bytes(b"caf\xe9\r\n"), "not_text", "f"),
        (lambda root: ((root / "link").unlink(), (root / "link").symlink_to("sub")), "bad_path", "link"),
        (lambda root: ((root / "link").unlink(), (root / "link").write_text("f")), "bad_path", "link"),
    ],
)
def test_refused_changes_name_the_file(root: Path, spoil, kind: str, path: str) -> None:
    spoil(root)
    done = run(root, "--from-git", "HEAD", "--json")
    answer = json.loads(done.stdout)
    assert (done.returncode, answer["ok"]) == (1, False)
    assert (answer["error"]["kind"], answer["error"]["path"]) == (kind, path)


@pytest.mark.parametrize(
    ("args", "says"),
    [
        (["--from-git", "HEAD", "-"], "neither FILE nor --dry-run"),
        (["--from-git", "HEAD", "--dry-run"], "neither FILE nor --dry-run"),
        (["--from-git", "nowhere"], "bad revision 'nowhere'"),
        (["--from-git", "--output=x"], "no revision"),
        (["--from-git", "HEAD:f"], "git diff HEAD:f: "),
        (["--from-git", "HEAD", "--root", "absent"], "absent is not a folder"),
        (["--from-git", "HEAD", "--root", ".."], "Not a git repository"),
        (["--from-git"], "requires an argument"),
    ],
)
def test_wrong_calls(root: Path, args: list[str], says: str) -> None:
    before = tree(root)
    done = run(root, *args)
    assert (done.returncode, done.stdout) == (2, b"")
    assert says in done.stderr.decode()
    assert len(done.stderr.splitlines()) < 6
    assert tree(root) == before


def test_too_much_to_compare(root: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    (root / "f").write_text("a line\n" * 100)
    for limit in (10, 100):  # what git has, what stands on the disk
        monkeypatch.setattr(revisions, "MAX_BYTES", limit)
        with pytest.raises(UserError, match=f"up to {limit} are compared"):
            revisions.trees(root, "HEAD")


def test_without_git(root: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("PATH", "")
    with pytest.raises(UserError, match="git could not be run"):
        revisions.trees(root, "HEAD")


# A patch taken back


def test_reverse_takes_a_patch_back(root: Path) -> None:
    text = CHANGES.replace("*** Delete File: gone\n", "").encode()
    before = tree(root)
    done = run(root, "--reverse", "--dry-run", "--json", text=text)
    assert json.loads(done.stdout)["ok"] is True
    assert tree(root) == before
    assert run(root, "--reverse", text=text).returncode == 0
    assert (root / "f").read_bytes() == b"a\r\nb\r\nc\r\n"
    assert (root / "sub" / "é g").read_text() == "x\ny\nz\n"
    assert not (root / "sub" / "n").exists()
    again = run(root, "--reverse", "--json", text=text)
    error = json.loads(again.stdout)["error"]
    assert again.returncode == 1
    assert error["kind"] == "file_not_found"
    assert "in reverse" in error["message"]
    assert run(root, text=text).returncode == 0
    assert tree(root) == before


# Colour


def on_a_terminal(root: Path, *args: str, **environment: str) -> bytes:
    ours, theirs = pty.openpty()
    command = [sys.executable, "-m", "constrained_agent", "patch", *args]
    with subprocess.Popen(
        command, cwd=root, stdout=theirs, stdin=subprocess.DEVNULL, env={**os.environ, **environment}
    ) as process:
        os.close(theirs)
        shown = b""
        while True:
            try:
                chunk = os.read(ours, 65536)
            except OSError:  # how Linux says that the other side is closed
                break
            if not chunk:
                break
            shown += chunk
    os.close(ours)
    assert process.returncode == 0
    return shown.replace(b"\r\n", b"\n")


def test_colours_on_a_terminal_only(root: Path, tmp_path: Path) -> None:
    (root / "f").write_bytes(b"-- a\nb\x1b[31m\n")
    patch = tmp_path / "p"
    patch.write_text("*** Begin Patch\n*** Update File: f\n@@\n--- a\n+++ a\n*** End Patch\n")
    plain = run(root, str(patch), "--dry-run").stdout
    assert b"\n--- a\n+++ a\n b\x1b[31m\n" in plain
    shown = on_a_terminal(root, str(patch), "--dry-run", TERM="xterm", NO_COLOR="")
    assert b"\n\x1b[1m--- a/f\x1b[0m\n" in shown
    assert b"\n\x1b[31m--- a\x1b[0m\n\x1b[32m+++ a\x1b[0m\n b\\x1b[31m\n" in shown, (
        "a file does not steer a terminal"
    )
    assert b"\n\x1b[36m@@ -1,2 +1,2 @@\x1b[0m\n" in shown
    for environment in ({"NO_COLOR": "1", "TERM": "xterm"}, {"NO_COLOR": "", "TERM": "dumb"}):
        assert b"\x1b" not in on_a_terminal(root, str(patch), "--dry-run", **environment)
    git(root, "checkout", "-q", "f")
    assert b"\x1b[1m*** Begin Patch" in on_a_terminal(root, "--from-git", "HEAD", TERM="xterm", NO_COLOR="")
