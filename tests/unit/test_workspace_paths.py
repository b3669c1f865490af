"""No path trick writes outside the root, nor into `.git`, nor to what is no file."""

from __future__ import annotations

import os
import random
import shutil
import socket
import stat
import threading
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import pytest

from constrained_agent.errors import PatchError
from constrained_agent.patch import (
    AddFile,
    DeleteFile,
    Hunk,
    HunkLine,
    Patch,
    Section,
    UpdateFile,
    parse,
    plan,
)
from constrained_agent.tools.workspace import Workspace

CALLS = ("open", "rename", "link", "unlink", "mkdir", "rmdir", "fsync", "stat")


@pytest.fixture(autouse=True)
def state(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("XDG_STATE_HOME", str(tmp_path / "state"))


@pytest.fixture
def root(tmp_path: Path) -> Path:
    """A root with files and links in it, beside a folder that has the same files and must stay as it is."""
    for side in ("root", "outside"):
        lay_out(tmp_path / side)
    root = tmp_path / "root"
    (root / ".git" / "hooks").mkdir(parents=True)
    (root / "sub" / ".git").write_text("gitdir: ../.git\n")
    (root / "up").symlink_to("..")
    (root / "over").symlink_to("../outside")
    (root / "far").symlink_to(tmp_path / "outside" / "sub")
    (root / "file").symlink_to("../outside/a")
    (root / "in").symlink_to("sub")
    (root / "git").symlink_to(".git")
    (root / "chain").symlink_to("in/hop")
    (root / "sub" / "hop").symlink_to("../up/outside/a")
    (root / "gone").symlink_to("../outside/nothing")
    return root


def lay_out(folder: Path) -> None:
    (folder / "sub" / "deep").mkdir(parents=True)
    for name in ("a", "b", "sub/a", "sub/deep/a"):
        (folder / name).write_text("1\n")


def tree(folder: Path) -> dict[str, tuple[int, int, bytes]]:
    """Kind, mode, inode and content of everything, without following links."""
    found = {}
    for path in sorted(folder.rglob("*")):
        facts = path.lstat()
        content = path.read_bytes() if stat.S_ISREG(facts.st_mode) else b""
        found[str(path.relative_to(folder))] = (facts.st_mode, facts.st_ino, content)
    return found


def guarded(root: Path) -> tuple[dict[str, Any], ...]:
    beside = sorted(path.name for path in root.parent.iterdir() if path.name not in ("root", "state"))
    return tree(root.parent / "outside"), tree(root / ".git"), dict.fromkeys(beside, ())


def attempts(path: str) -> Iterator[tuple[Section, ...]]:
    """Every way to write to a path."""
    change = (Hunk((), (HunkLine("-", "1"), HunkLine("+", "2"))),)
    yield (AddFile(path, ("x",)),)
    yield (DeleteFile(path),)
    yield (UpdateFile(path, None, change),)
    yield (UpdateFile("b", path, change),)
    yield (UpdateFile("b", path, ()),)
    yield (UpdateFile(path, "new/name", ()),)
    yield UpdateFile("b", "c", ()), AddFile(path, ())


def tried(root: Path, sections: tuple[Section, ...]) -> str:
    """The error's kind, or `done`."""
    try:
        Workspace(root).apply(Patch(sections))
    except PatchError as error:
        return error.kind
    return "done"


OUTSIDE = (
    *("/etc/passwd", "/tmp/x", "..", "../x", "../outside/a", "sub/../../outside/a", "./../outside/a", "a/.."),
    *("up/outside/a", "up/x", "over/a", "over/new", "over/sub/deep/a", "far/a", "far/deep/new", "file"),
    *(
        "in/../../outside/a",
        "chain",
        "sub/hop",
        "in/hop",
        "up",
        "~/x",
        "~root/../../outside/a",
        "C:/x",
        "C:\\x",
    ),
)
GIT = (
    *(".git", ".git/config", ".git/hooks/pre-commit", ".GIT/config", ".Git/hooks/x", ".gIt", "sub/.git"),
    *("sub/.git/config", "sub/deep/.git/x", "in/.GIT/x", "git/config", "git/hooks/x", "a/.git/b"),
    *(".g\u200cit/config", ".git\u200d/x", "\ufeff.git/x", "sub/.G\u2060IT/x", ".ｇｉｔ/../.git/x"),
)


@pytest.mark.parametrize("path", [*OUTSIDE, *GIT])
def test_no_way_in(root: Path, path: str) -> None:
    before = guarded(root)
    for sections in attempts(path):
        assert tried(root, sections) != "done", sections
        assert guarded(root) == before, sections


def test_names_that_only_look_like_git_are_files(root: Path) -> None:
    for path in (".gitignore", ".github/x", "git.d/.gitkeep", "sub/x.git", ".git2/x"):
        assert tried(root, (AddFile(path, ("x",)),)) == "done"
        assert (root / path).read_text() == "x\n"


@pytest.mark.parametrize("kind", ["fifo", "socket", "device", "folder"])
def test_what_is_no_file_is_not_written_to(root: Path, kind: str, monkeypatch: pytest.MonkeyPatch) -> None:
    """Nor opened: a pipe that nobody reads would hang."""
    place = root / "odd"
    if kind == "fifo":
        os.mkfifo(place)
    elif kind == "socket":
        monkeypatch.chdir(root)  # the name of a socket has little room
        with socket.socket(socket.AF_UNIX) as listening:
            listening.bind("odd")
    elif kind == "device":
        # Without the right to make one, the link to one still stands for the try.
        try:
            os.mknod(place, stat.S_IFCHR | 0o666, os.makedev(1, 3))
        except PermissionError:
            place.symlink_to("/dev/null")
    else:
        place.mkdir()
    before = tree(root)
    for sections in attempts("odd"):
        assert tried(root, sections) in ("bad_path", "is_directory", "outside_root", "exists")
        assert tree(root) == before


def test_any_spelling_of_links_and_dots(root: Path) -> None:
    """Random walks over folders, links and dots, with every kind of section."""
    rng = random.Random(5)
    parts = [
        "..",
        ".",
        "",
        "sub",
        "deep",
        "in",
        "up",
        "over",
        "far",
        "root",
        "outside",
        "a",
        "new",
        ".git",
        "git",
    ]
    before = guarded(root)
    outcomes = set()
    for _ in range(400):
        path = "/".join(rng.choice(parts) for _ in range(rng.randint(1, 6)))
        sections = rng.choice(list(attempts(path)))
        outcomes.add(tried(root, sections))
        assert guarded(root) == before, sections
    assert {"done", "outside_root"} <= outcomes


# Disks that ignore case: the planner is told which names are one file


def on_such_a_disk(body: str, files: dict[str, bytes]) -> list[str]:
    folded = {name.casefold(): data for name, data in files.items()}
    done = plan(
        parse(f"*** Begin Patch\n{body}*** End Patch\n").patch,
        lambda path: folded.get(path.casefold()),
        identity=str.casefold,
    )
    return [f"{file.action} {file.path} {file.new_path}" for file in done.files]


@pytest.mark.parametrize(
    ("body", "kind"),
    [
        ("*** Add File: readme\n+x\n", "exists"),
        ("*** Add File: N\n*** Add File: n\n", "duplicate_path"),
        ("*** Update File: b\n*** Move to: ReadMe\n", "exists"),
        ("*** Update File: README\n@@\n-1\n+2\n*** Delete File: readme\n", "duplicate_path"),
        ("*** Delete File: README\n*** Add File: readme\n+x\n", "duplicate_path"),
    ],
)
def test_twins_are_one_file(body: str, kind: str) -> None:
    with pytest.raises(PatchError) as caught:
        on_such_a_disk(body, {"README": b"1\n", "b": b"1\n"})
    assert caught.value.kind == kind


def test_a_change_of_case_is_a_move() -> None:
    files = {"README": b"1\n"}
    assert on_such_a_disk("*** Update File: README\n*** Move to: readme\n", files) == ["move README readme"]
    twice = "*** Update File: README\n@@\n-1\n+2\n*** Update File: ReadMe\n@@\n-2\n+3\n"
    assert on_such_a_disk(twice, files) == ["update README None"]


# Swapped in between


def busy_patch() -> Patch:
    """Writes below `sub` in every way: in place, by rename, new, moved and removed."""
    change = (Hunk((), (HunkLine("-", "1"), HunkLine("+", "2"))),)
    return Patch(
        (
            UpdateFile("sub/a", None, change),
            UpdateFile("sub/deep/a", "sub/deep/b", change),
            AddFile("sub/deep/new/n", ("x",)),
            DeleteFile("b"),
            UpdateFile("a", "sub/moved", ()),
        )
    )


def swap(root: Path) -> None:
    (root / "sub").rename(root / "was")
    (root / "sub").symlink_to("../outside/sub")


@contextmanager
def at_call(number: int, act: Callable[[], None]) -> Iterator[list[int]]:
    """Do something just before the n-th system call; yields the count so far, as a list of one."""
    n_calls = [0]

    def wrapped(real: Callable[..., Any]) -> Callable[..., Any]:
        def call(*args: Any, **kwargs: Any) -> Any:
            n_calls[0] += 1
            if n_calls[0] == number:
                act()
            return None if real is os.fsync else real(*args, **kwargs)

        return call

    with pytest.MonkeyPatch.context() as monkeypatch:
        for name in CALLS:
            monkeypatch.setattr(os, name, wrapped(getattr(os, name)))
        yield n_calls


def test_a_folder_swapped_for_a_link_at_any_moment(tmp_path: Path) -> None:
    """Before each single system call in turn, `sub` becomes a link to a folder outside with the same files."""
    number, outcomes = 0, set()
    while True:
        number += 1
        base = tmp_path / str(number)
        for side in ("root", "outside"):
            lay_out(base / side)
        if number % 2:
            os.link(base / "root" / "sub" / "a", base / "root" / "twin")  # written in place
        root = base / "root"
        before = tree(base / "outside")
        workspace = Workspace(root)
        with at_call(number, lambda root=root: swap(root)) as n_calls:  # type: ignore[misc]
            try:
                workspace.apply(busy_patch())
                outcomes.add("done")
            except PatchError as error:
                outcomes.add(error.kind)
        assert tree(base / "outside") == before, f"call {number}"
        if n_calls[0] < number:
            break
        if (root / "sub").is_symlink():
            (root / "sub").unlink()
            (root / "was").rename(root / "sub")
        workspace.recover()
        now = {name: content for name, (_, _, content) in tree(root).items() if "twin" not in name}
        assert ("b" in now) == (now["sub/a"] == b"1\n") == ("sub/moved" not in now), f"call {number}: {now}"
    assert "done" in outcomes
    assert len(outcomes) > 1
    assert number > 100


def test_a_folder_that_keeps_being_swapped(tmp_path: Path) -> None:
    """The same as a race: another thread swaps the folder and the link as fast as it can."""
    for side in ("root", "outside"):
        lay_out(tmp_path / side)
    root = tmp_path / "root"
    (root / "link").symlink_to("../outside/sub")
    before = tree(tmp_path / "outside")
    over = threading.Event()

    def keep_swapping() -> None:
        while not over.is_set():
            try:
                for first, second in (("sub", "was"), ("link", "sub"), ("sub", "link"), ("was", "sub")):
                    os.rename(root / first, root / second)
            except OSError:  # a patch came and made `sub` anew
                for name in ("sub", "was", "link"):
                    (root / name).unlink() if (root / name).is_symlink() else shutil.rmtree(root / name, True)
                (root / "sub").mkdir(exist_ok=True)
                (root / "link").symlink_to("../outside/sub")

    swapping = threading.Thread(target=keep_swapping)
    swapping.start()
    outcomes = set()
    try:
        for n in range(150):
            outcomes.add(tried(root, (AddFile(f"sub/n{n}", ("x",)), AddFile(f"sub/deep/m{n}", ("x",)))))
            assert tree(tmp_path / "outside") == before
    finally:
        over.set()
        swapping.join()
    assert outcomes - {"done"}
