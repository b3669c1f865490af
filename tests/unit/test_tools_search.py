"""Searching, through the real search program."""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path

import pytest

from constrained_agent.errors import PatchError, ToolError
from constrained_agent.tools import search, search_worker
from constrained_agent.tools.search import LIMITS, search_text
from constrained_agent.tools.workspace import Workspace


def _search(root: Path, pattern: str, path: str = ".") -> list[str]:
    return search_text(Workspace(root), pattern, path).split("\n")


@pytest.fixture
def root(tmp_path: Path) -> Path:
    folder = tmp_path / "root with blank's"
    for name in ("a.py", "b/c.py", "b/d/e.py"):
        folder.joinpath(name).parent.mkdir(parents=True, exist_ok=True)
        folder.joinpath(name).write_text(
            f"import re\n\ndef in_{Path(name).stem}():\n    pass\n", encoding="utf-8"
        )
    return folder


def test_hits_folder_by_folder(root: Path) -> None:
    assert _search(root, r"^def \w+\(") == [
        "a.py:3: def in_a():",
        "b/c.py:3: def in_c():",
        "b/d/e.py:3: def in_e():",
    ]


def test_below_a_folder_and_in_a_file(root: Path) -> None:
    assert _search(root, "def|pass", "b/d") == ["b/d/e.py:3: def in_e():", "b/d/e.py:4:     pass"]
    assert _search(root, "import", "b/c.py") == ["b/c.py:1: import re"]


def test_no_hit(root: Path) -> None:
    assert _search(root, "nowhere") == ["no line matches 'nowhere'"]


@pytest.mark.parametrize("pattern", ["a(", "*", "[", "(?<=a+)b", "(" * 3000])
def test_a_bad_pattern_is_a_clear_error(root: Path, pattern: str) -> None:
    with pytest.raises(ToolError, match=r"is not a regular expression.*backslash"):
        _search(root, pattern)


def test_an_empty_pattern_is_refused(root: Path) -> None:
    with pytest.raises(ToolError, match="empty"):
        _search(root, "")


def test_quotes_and_odd_characters_in_the_pattern(root: Path) -> None:
    root.joinpath("f").write_text('it\'s "$HOME" `x` é\n', encoding="utf-8")
    assert _search(root, 'it\'s "\\$HOME" `x` é') == ['f:1: it\'s "$HOME" `x` é']


def test_what_is_passed_over_is_said(root: Path) -> None:
    for folder in (".git", "node_modules"):
        root.joinpath(folder).mkdir()
        root.joinpath(folder, "f").write_text("needle\n", encoding="utf-8")
    root.joinpath("binary").write_bytes(b"needle\0")
    root.joinpath("wide").write_bytes("needle".encode("utf-16"))
    with root.joinpath("large").open("wb") as file:
        file.write(b"needle\n" + b"\n" * LIMITS.file_bytes)
    os.mkfifo(root / "pipe")
    root.joinpath("text").write_bytes(b"\xef\xbb\xbfneedle\r\n")
    assert _search(root, "^needle$") == [
        "text:1: needle",
        "[not searched: binary files (2); files over 2,000,000 bytes (1); folders named node_modules]",
    ]
    assert _search(root, "needle", "node_modules") == ["node_modules/f:1: needle"]


def test_links_are_not_followed(root: Path) -> None:
    root.parent.joinpath("secret").write_text("needle\n", encoding="utf-8")
    root.joinpath("out").symlink_to("../secret")
    root.joinpath("up").symlink_to("..")
    assert _search(root, "needle") == ["no line matches 'needle'"]


def test_paths_outside_and_missing(root: Path) -> None:
    root.joinpath("up").symlink_to("..")
    for path, kind in (("up", "outside_root"), ("..", "outside_root"), ("gone", "file_not_found")):
        with pytest.raises(PatchError) as caught:
            _search(root, "x", path)
        assert caught.value.kind == kind


def test_hits_are_bounded(root: Path) -> None:
    root.joinpath("many").write_text("needle\n" * (LIMITS.hits + 1), encoding="utf-8")
    lines = _search(root, "needle")
    assert lines[LIMITS.hits - 1] == f"many:{LIMITS.hits}: needle"
    assert lines[LIMITS.hits :] == [f"[stopped at {LIMITS.hits} lines: use a narrower pattern or path]"]
    root.joinpath("many").write_text("needle\n" * LIMITS.hits, encoding="utf-8")
    assert len(_search(root, "needle")) == LIMITS.hits


def test_a_long_line_is_shown_where_the_hit_is(root: Path) -> None:
    root.joinpath("long").write_text("x" * 1000 + "needle" + "y" * 1000 + "\n", encoding="utf-8")
    (line,) = _search(root, "needle")
    assert len(line) < 230
    assert line.startswith("long:1: …xxx")
    assert "xneedley" in line
    assert line.endswith("y…")


def test_bytes_that_are_not_utf8(root: Path) -> None:
    root.joinpath("latin").write_bytes(b"caf\xe9 needle\n")
    assert _search(root, "needle") == ["latin:1: caf\\xe9 needle"]


def test_a_pattern_of_exponential_time_is_ended(root: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(search, "TIME_LIMIT_S", 1)
    root.joinpath("b", "c.py").write_text("a" * 64 + "b\n", encoding="utf-8")
    assert _search(root, "(a+)+$|in_a") == [
        "a.py:3: def in_a():",  # found before
        "[stopped after 1 s: use a simpler pattern or a narrower path]",
    ]


def test_modules_of_the_repository_are_not_imported(root: Path) -> None:
    for name in ("json.py", "re.py", "sitecustomize.py"):
        root.joinpath(name).write_text("raise SystemExit('imported')\n", encoding="utf-8")
    assert _search(root, "in_a") == ["a.py:3: def in_a():"]


def test_the_search_program_needs_only_the_standard_library() -> None:
    done = subprocess.run(
        [sys.executable, "-I", "-S", "-X", "importtime", search_worker.__file__, '{"pattern": "("}'],
        capture_output=True,
        text=True,
        check=False,
    )
    assert done.returncode == search_worker.BAD_PATTERN
    assert "constrained_agent" not in done.stderr


def test_credentials_are_searched_only_by_name(root: Path) -> None:
    for name in (".env", ".aws/config", "b/id_rsa", ".env.example"):
        root.joinpath(name).parent.mkdir(exist_ok=True)
        root.joinpath(name).write_text("TOKEN=x\n", encoding="utf-8")
    assert _search(root, "TOKEN") == [
        ".env.example:1: TOKEN=x",
        "[not searched: files and folders of credentials, to be searched by naming them as path (3)]",
    ]
    assert _search(root, "TOKEN", ".env") == [".env:1: TOKEN=x"]
    assert _search(root, "TOKEN", ".aws") == [".aws/config:1: TOKEN=x"]
