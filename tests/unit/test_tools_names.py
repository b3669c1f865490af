"""The names below a root that a new file must not have. (`test_workspace.py` holds them against applying.)"""

from __future__ import annotations

import os
from pathlib import Path

import pytest

from constrained_agent.patch.strict import parse_strict
from constrained_agent.tools import names
from constrained_agent.tools.names import Taken, taken


def make(root: Path, *paths: str) -> None:
    """Empty files; a path that ends in / is a folder."""
    for path in paths:
        place = root / path
        (place if path.endswith("/") else place.parent).mkdir(parents=True, exist_ok=True)
        if not path.endswith("/"):
            place.touch()


def test_an_empty_root(tmp_path: Path) -> None:
    assert taken(tmp_path) == Taken((), (), False)


def test_links_are_names_wherever_they_lead(tmp_path: Path) -> None:
    root = tmp_path / "root"
    make(root, "a/f", "a/b/")
    make(tmp_path, "outside/f")
    for name, target in (
        ("in", "a"),
        ("out", "../outside"),
        ("gone", "nowhere"),
        ("loop", "loop"),
        ("up", ".."),
    ):
        (root / "a" / name).symlink_to(target)
    assert taken(root) == Taken(("a/f", "a/gone", "a/in", "a/loop", "a/out", "a/up"), ("a", "a/b"), False)


def test_folders_of_other_programs_are_closed_at_any_depth(tmp_path: Path) -> None:
    make(
        tmp_path, ".git/config", "a/.git", "b/.GIT/x", "b/.g\u200cit/x", "b/.github/x", "b/__pycache__/x.pyc"
    )
    make(tmp_path, ".venv/bin/python", "b/c/node_modules/x/y", "venv/x")
    found = taken(tmp_path)
    closed = (".git", ".venv", "b/.GIT", "b/.g\u200cit", "b/__pycache__", "b/c/node_modules")
    assert found.files == tuple(sorted([*closed, "a/.git", "b/.github/x", "venv/x"]))
    assert found.folders == ("a", "b", "b/.github", "b/c", "venv")


def test_names_that_no_patch_can_spell_are_left_out_with_all_below(tmp_path: Path) -> None:
    make(tmp_path, "a\nb", "tab\t/x", " a/x", "a ", "del\x7f", "a b", "é", "…/\u2028", "...", "\\")
    assert taken(tmp_path) == Taken(("...", "\\", "a b", "é", "…/\u2028"), ("…",), False)
    assert not names.is_spelled_in_patches(os.fsdecode(b"\xff"))  # not every disk takes it


@pytest.mark.parametrize(
    "path",
    [
        "a",
        " a",
        "a ",
        "a/b",
        "a /b",
        "a/ b",
        "a b",
        "a\x1fb",
        "a\x7f",
        "\n",
        "a\n",
        "..x",
        ". x",
        "...",
        "\x85",
        " ",
    ],
)
def test_the_grammar_spells_the_same_names(path: str) -> None:
    patch = parse_strict(f"*** Begin Patch\n*** Delete File: {path}\n*** End Patch\n")
    assert (patch is not None) == names.is_spelled_in_patches(path)


def test_a_folder_that_cannot_be_listed_is_closed(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    make(tmp_path, "a/x", "b/x", "c/x")
    scandir = os.scandir

    def refusing(folder: Path) -> object:
        if folder.name in ("a", "c"):
            raise PermissionError(13, "Permission denied")
        return scandir(folder)

    monkeypatch.setattr(os, "scandir", refusing)  # root may list everything, so permissions would not do
    assert taken(tmp_path) == Taken(("a", "b/x", "c"), ("b",), False)


def test_a_root_that_is_gone(tmp_path: Path) -> None:
    assert taken(tmp_path / "gone") == Taken((".",), (), False)


class TestTooMany:
    @pytest.fixture(autouse=True)
    def few(self, monkeypatch: pytest.MonkeyPatch) -> None:
        monkeypatch.setattr(names, "MAX_NAMES", 6)

    def test_just_not(self, tmp_path: Path) -> None:
        make(tmp_path, "a/x", "a/y", "b/c/")
        make(tmp_path, "f")
        assert taken(tmp_path) == Taken(("a/x", "a/y", "f"), ("a", "b", "b/c"), False)
        make(tmp_path, "b/c/d")
        assert taken(tmp_path) == Taken(("a/x", "a/y", "b/c", "f"), ("a", "b"), True)

    def test_a_large_folder_does_not_close_the_others(self, tmp_path: Path) -> None:
        make(tmp_path, *(f"data/{i}" for i in range(9)), "src/a", "src/b")
        assert taken(tmp_path) == Taken(("data", "src/a", "src/b"), ("src",), True)

    def test_a_large_root(self, tmp_path: Path) -> None:
        make(tmp_path, *map(str, range(7)))
        assert taken(tmp_path) == Taken((".",), (), True)

    def test_many_large_folders(self, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
        monkeypatch.setattr(names, "MAX_NAMES", 12)
        make(tmp_path, *(f"{folder}/{i}" for folder in "abcdefgh" for i in range(13)), "z/x")
        looked_at = []
        scandir = os.scandir
        monkeypatch.setattr(os, "scandir", lambda folder: looked_at.append(folder) or scandir(folder))
        assert taken(tmp_path) == Taken((*"abcdefgh", "z"), (), True)
        assert len(looked_at) == 1 + names._MAX_LARGE
