"""What a workspace does about interrupted patches, other processes, attributes and odd names."""

from __future__ import annotations

import errno
import os
import signal
import subprocess
import sys
import threading
import unicodedata
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from constrained_agent.cli import doctor
from constrained_agent.errors import PatchError
from constrained_agent.patch import Patch, parse
from constrained_agent.tools import journal
from constrained_agent.tools.state import LOCK_WAIT_S, lock
from constrained_agent.tools.workspace import Workspace


@pytest.fixture(autouse=True)
def state(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    monkeypatch.setenv("XDG_STATE_HOME", str(tmp_path / "state"))
    return tmp_path / "state"


@pytest.fixture
def root(tmp_path: Path) -> Path:
    (tmp_path / "root").mkdir()
    for name in "ab":
        (tmp_path / "root" / name).write_text("1\n")
    return tmp_path / "root"


def update(*names: str, old: str = "1", new: str = "2") -> Patch:
    sections = "".join(f"*** Update File: {name}\n@@\n-{old}\n+{new}\n" for name in names)
    return parse(f"*** Begin Patch\n{sections}*** End Patch\n").patch


def interrupt(root: Path) -> None:
    """Leave a patch of both files half done, as a process that was killed does."""
    program = (
        "import os, signal, sys\n"
        "from constrained_agent.patch import parse\n"
        "from constrained_agent.tools.rooted import Rooted\n"
        "from constrained_agent.tools.workspace import Workspace\n"
        "real, seen = Rooted.rename, []\n"
        "def rename(self, old, new):\n"
        "    real(self, old, new)\n"
        "    os.kill(os.getpid(), signal.SIGKILL)\n"
        "Rooted.rename = rename\n"
        "Workspace(sys.argv[1]).apply(parse(sys.argv[2]).patch)\n"
    )
    text = "*** Begin Patch\n*** Update File: a\n@@\n-1\n+2\n*** Update File: b\n@@\n-1\n+2\n*** End Patch\n"
    done = subprocess.run([sys.executable, "-c", program, root, text], check=False)
    assert done.returncode == -signal.SIGKILL
    assert (root / "a").read_text() != (root / "b").read_text()


# Interrupted patches


def test_a_write_recovers_first(root: Path) -> None:
    interrupt(root)
    applied = Workspace(root).apply(update("b"))
    assert applied.recovered
    assert [(root / name).read_text() for name in "ab"] == ["1\n", "2\n"]
    assert not Workspace(root).apply(update("a")).recovered


def test_a_dry_run_recovers_first_but_only_then_touches_anything(root: Path, state: Path) -> None:
    assert not Workspace(root).apply(update("a"), dry_run=True).recovered
    assert not state.exists()
    interrupt(root)
    told = Workspace(root).apply(update("a", "b"), dry_run=True)
    assert told.recovered
    assert [file.action for file in told.files] == ["update", "update"]
    assert [(root / name).read_text() for name in "ab"] == ["1\n", "1\n"]


def test_doctor_recovers_first(root: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(root)
    (check,) = doctor._interrupted()
    assert (check.status, check.value) == ("ok", "none here")
    interrupt(root)
    (check,) = doctor._interrupted()
    assert (check.status, check.value) == ("ok", "one was undone here, or its rest removed")
    assert (root / "a").read_text() == "1\n"
    (check,) = doctor._interrupted()
    assert check.value == "none here"


def test_doctor_says_that_no_journal_can_be_kept(
    root: Path, state: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(root)
    state.write_text("not a folder")
    monkeypatch.setattr("tempfile.tempdir", str(state))
    (check,) = doctor._interrupted()
    assert (check.status, check.mend) == ("broken", "export XDG_STATE_HOME=FOLDER")


# Other processes


def test_a_root_that_stays_locked(root: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """It waits for a time, then names the process that holds the root, and changes nothing."""
    holder = subprocess.Popen(
        [
            *(sys.executable, "-c"),
            "import sys\nfrom pathlib import Path\nfrom constrained_agent.tools.journal import Journal\n"
            "with Journal(Path(sys.argv[1])).locked():\n    print('held', flush=True)\n    sys.stdin.read()\n",
            root,
        ],
        stdin=subprocess.PIPE,
        stdout=subprocess.PIPE,
    )
    assert 1 < LOCK_WAIT_S < 60
    monkeypatch.setattr(journal, "lock", lambda path: lock(path, wait_s=0.1))
    with holder:
        assert holder.stdout is not None
        assert holder.stdout.readline() == b"held\n"
        with pytest.raises(PatchError, match=rf"process {holder.pid} \(.*since 2.* is applying") as caught:
            Workspace(root).apply(update("a"))
        assert caught.value.kind == "write_failed"
        assert (root / "a").read_text() == "1\n"
        holder.kill()
    Workspace(root).apply(update("a"))
    assert (root / "a").read_text() == "2\n"


def test_threads_take_turns(root: Path) -> None:
    """Each patch is planned while its own thread holds the root: none is lost, none overwritten."""
    (root / "a").write_text("")
    outcomes: list[str] = []

    def work(n: int) -> None:
        text = f"*** Begin Patch\n*** Update File: a\n@@\n+{n}\n*** End Patch\n"
        outcomes.append(Workspace(root).apply(parse(text).patch).files[0].action)

    threads = [threading.Thread(target=work, args=(n,)) for n in range(8)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert outcomes == ["update"] * 8
    assert sorted((root / "a").read_text().split()) == sorted(map(str, range(8)))


# Attributes


class Attributes:
    """Extended attributes kept in memory, by inode: not every disk has them."""

    def __init__(self, monkeypatch: pytest.MonkeyPatch) -> None:
        self.kept: dict[int, dict[str, bytes]] = {}
        self.refused: dict[str, int] = {}
        monkeypatch.setattr(os, "listxattr", lambda file: list(self.of(file)), raising=False)
        monkeypatch.setattr(os, "getxattr", lambda file, name: self.of(file)[name], raising=False)
        monkeypatch.setattr(os, "setxattr", self._set, raising=False)

    def of(self, file: Any) -> dict[str, bytes]:
        return self.kept.setdefault(os.stat(file).st_ino, {})

    def _set(self, file: Any, name: str, value: bytes) -> None:
        if name in self.refused:
            raise OSError(self.refused[name], os.strerror(self.refused[name]))
        self.of(file)[name] = value


def test_extended_attributes_stay(root: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    attributes = Attributes(monkeypatch)
    attributes.of(root / "a").update({"user.note": b"x", "security.label": b"y"})
    attributes.refused = {"security.label": errno.EPERM}
    text = "*** Begin Patch\n*** Update File: a\n*** Move to: c\n@@\n-2\n+3\n*** End Patch\n"
    first = (root / "a").stat().st_ino
    Workspace(root).apply(update("a"))
    assert attributes.of(root / "a") == {"user.note": b"x"}
    del attributes.kept[first]  # the disk may give this inode away again
    Workspace(root).apply(parse(text).patch)
    assert attributes.of(root / "c") == {"user.note": b"x"}
    attributes.refused = {"user.note": errno.ENOSPC}
    with pytest.raises(PatchError, match="No space"):
        Workspace(root).apply(update("c", old="3", new="4"))
    assert (root / "c").read_text() == "3\n"


@pytest.mark.parametrize("listing", ["absent", errno.ENOTSUP])
def test_a_system_or_disk_without_attributes(
    root: Path, listing: str | int, monkeypatch: pytest.MonkeyPatch
) -> None:
    def refuse(file: Any) -> list[str]:
        raise OSError(listing, "not supported")

    if listing == "absent":
        monkeypatch.delattr(os, "listxattr", raising=False)
    else:
        monkeypatch.setattr(os, "listxattr", refuse, raising=False)
    Workspace(root).apply(update("a"))
    assert (root / "a").read_text() == "2\n"


# Names


@pytest.mark.parametrize(
    ("disk", "says"), [("NFD", "with the combining U+0301"), ("NFC", "without combining")]
)
def test_a_name_that_is_composed_otherwise_is_proposed(root: Path, disk: Any, says: str) -> None:
    """On a disk that keeps the two apart; one that does not finds the file."""
    name = unicodedata.normalize(disk, "é")
    (root / name).write_text("1\n")
    other = unicodedata.normalize("NFC" if disk == "NFD" else "NFD", name)
    if (root / other).exists():
        Workspace(root).apply(update(other))
        return
    with pytest.raises(PatchError) as caught:
        Workspace(root).apply(update(other))
    assert caught.value.kind == "file_not_found"
    assert f"did you mean {name}?" in str(caught.value)
    assert says in str(caught.value)


def test_a_stamp_that_cannot_be_refreshed_is_no_failed_patch(
    root: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Another program changes the folders just after the write: the patch has landed, and says so."""
    (root / "sub").mkdir()
    (root / "sub" / "f").write_text("1\n")
    workspace = Workspace(root)
    workspace.record_read("sub/f", b"1\n")
    commit: Callable[..., None] = workspace._journal.commit

    def commit_then_swap(steps: Any) -> None:
        commit(steps)
        (root / "sub").rename(root / "was")
        (root / "sub").symlink_to("..")

    monkeypatch.setattr(workspace._journal, "commit", commit_then_swap)
    assert workspace.apply(update("sub/f")).files[0].action == "update"
    assert (root / "was" / "f").read_text() == "2\n"
