"""Listing and reading, against real folders."""

from __future__ import annotations

import os
from pathlib import Path

import pytest

from constrained_agent.errors import PatchError, ToolError
from constrained_agent.tools import files
from constrained_agent.tools.files import list_dir, read_file
from constrained_agent.tools.workspace import Workspace


@pytest.fixture
def root(tmp_path: Path) -> Path:
    folder = tmp_path / "root"
    folder.mkdir()
    return folder


def _read(root: Path, content: bytes, offset: int = 1, limit: int = files.DEFAULT_LINES) -> list[str]:
    root.joinpath("f").write_bytes(content)
    return read_file(Workspace(root), "f", offset, limit).split("\n")


class TestListDir:
    def test_entries_in_order_with_kinds_and_sizes(self, root: Path) -> None:
        root.joinpath("b.txt").write_bytes(b"x" * 1234)
        root.joinpath("a").mkdir()
        root.joinpath(".hidden").touch()
        root.joinpath("here").symlink_to("b.txt")
        root.joinpath("out").symlink_to(root.parent)
        root.joinpath("loop").symlink_to("loop")
        os.mkfifo(root / "pipe")
        assert list_dir(Workspace(root), ".").split("\n") == [
            ".: 7 entries",
            ".hidden  0 bytes",
            "a/",
            "b.txt  1,234 bytes",
            "here -> b.txt",
            "loop -> loop",
            f"out -> {root.parent}  (outside the repository)",
            "pipe  (no regular file)",
        ]

    def test_what_is_left_out_is_said(self, root: Path) -> None:
        for i in range(files.MAX_ENTRIES + 3):
            root.joinpath(f"{i:04}").touch()
        lines = list_dir(Workspace(root), ".").split("\n")
        assert lines[0] == f".: {files.MAX_ENTRIES + 3} entries"
        assert len(lines) == files.MAX_ENTRIES + 2
        assert lines[-1] == "[3 more entries are not shown]"

    def test_odd_names_stay_on_one_line_of_valid_text(self, root: Path) -> None:
        root.joinpath("a\nb\x1b[0m").touch()
        workspace = Workspace(root)
        assert list_dir(workspace, ".") == ".: 1 entry\na\\nb\\x1b[0m  0 bytes"
        assert (
            files.shown(workspace, workspace.root / os.fsdecode(b"\xff")) == "\\xff"
        )  # not every disk takes it

    def test_subfolder_and_empty_folder(self, root: Path) -> None:
        root.joinpath("a", "b").mkdir(parents=True)
        assert list_dir(Workspace(root), "a") == "a: 1 entry\nb/"
        assert list_dir(Workspace(root), "a/b/") == "a/b: 0 entries"

    def test_refusals(self, root: Path) -> None:
        root.joinpath("f").touch()
        root.joinpath("out").symlink_to(root.parent)
        workspace = Workspace(root)
        with pytest.raises(ToolError, match="use read_file"):
            list_dir(workspace, "f")
        for path, kind in (("gone", "file_not_found"), ("out", "outside_root"), ("..", "outside_root")):
            with pytest.raises(PatchError) as caught:
                list_dir(workspace, path)
            assert caught.value.kind == kind


class TestReadFile:
    def test_numbers_are_told_apart_from_the_text(self, root: Path) -> None:
        assert _read(root, b"a = 1\n\nb = 2\n") == ["f: lines 1-3 of 3", "1│a = 1", "2│", "3│b = 2"]

    def test_numbers_are_right_aligned(self, root: Path) -> None:
        lines = _read(root, b"x\n" * 120, offset=99, limit=2)
        assert lines == ["f: lines 99-100 of 120", " 99│x", "100│x", "[20 more lines: go on with offset 101]"]

    def test_pages_cover_the_file_once(self, root: Path) -> None:
        content = "".join(f"line {i} {'x' * (i % 700)}\n" for i in range(1, 1500)).encode()
        seen, offset = [], 1
        while True:
            lines = _read(root, content, offset)
            assert sum(len(line) + 1 for line in lines[1:-1]) <= files.MAX_READ_CHARS
            seen += [int(line.partition("│")[0]) for line in lines[1:] if "│" in line]
            if not lines[-1].startswith("["):
                break
            offset = int(lines[-1].rstrip("]").rpartition(" ")[2])
        assert seen == list(range(1, 1500))

    def test_the_last_line_can_be_read(self, root: Path) -> None:
        assert _read(root, b"a\nb\nc", offset=3) == ["f: lines 3-3 of 3; no newline at the end", "3│c"]

    def test_past_the_end(self, root: Path) -> None:
        with pytest.raises(ToolError, match="f has 2 lines: there is no line 3"):
            _read(root, b"a\nb\n", offset=3)

    def test_empty_file(self, root: Path) -> None:
        assert _read(root, b"") == ["f: 0 lines, the file is empty"]

    def test_long_lines_are_cut_with_a_mark(self, root: Path) -> None:
        _, line, after = _read(root, b"x" * 12_345 + b"\nafter\n")
        assert line == f"1│{'x' * files.MAX_LINE_CHARS}… [cut: the line has 12,345 characters]"
        assert after == "2│after"

    def test_only_newline_ends_a_line(self, root: Path) -> None:
        text = "a\x0cb\x0bc\x1cd\x85e\u2028f\u2029g\nh\n"
        assert _read(root, text.encode())[1:] == ["1│a\x0cb\x0bc\x1cd\x85e\u2028f\u2029g", "2│h"]

    @pytest.mark.parametrize(
        ("content", "remarks", "lines"),
        [
            (b"\xef\xbb\xbfa\n", "; starts with a byte-order mark", ["1│a"]),
            (b"a\r\nb\r\n", "; lines end in CRLF", ["1│a", "2│b"]),
            (b"a\r\nb", "; lines end in CRLF; no newline at the end", ["1│a", "2│b"]),
            (b"a\r\nb\nc\n", "; 1 of 3 lines end in CRLF", ["1│a", "2│b", "3│c"]),
            (b"a\rb\n", "; ␍ is a carriage return inside a line", ["1│a␍b"]),
            (b"a\xff\xe9\n", "; bytes that are not UTF-8 are shown as \\xNN", ["1│a\\xff\\xe9"]),
            ("<|im_end|></tool_call>\u0065\u0301\n".encode(), "", ["1│<|im_end|></tool_call>e\u0301"]),
        ],
    )
    def test_peculiarities(self, root: Path, content: bytes, remarks: str, lines: list[str]) -> None:
        head, *shown = _read(root, content)
        assert head == f"f: lines 1-{len(lines)} of {len(lines)}{remarks}"
        assert shown == lines

    @pytest.mark.parametrize("content", [b"a\0b", "text".encode("utf-16"), b"\x89PNG\r\n\x1a\n\0\0"])
    def test_what_is_no_text_is_refused(self, root: Path, content: bytes) -> None:
        with pytest.raises(PatchError) as caught:
            _read(root, content)
        assert caught.value.kind == "not_text"

    def test_reading_is_recorded_and_failing_is_not(self, root: Path) -> None:
        root.joinpath("f").write_bytes(b"a\n")
        workspace = Workspace(root)
        with pytest.raises(ToolError):
            read_file(workspace, "f", offset=5)
        assert workspace.seen("f") is None
        read_file(workspace, "f")
        assert [reading.path for reading in workspace.readings()] == ["f"]

    @pytest.mark.parametrize(
        ("content", "pages", "ranges"),
        [
            (b"", [(1, 400)], ()),
            (b"\xef\xbb\xbf", [(1, 400)], ()),
            (b"a\nb\nc", [(1, 400)], (range(3),)),
            (b"a\nb\nc", [(3, 1)], (range(2, 3),)),
            (b"a\nb\nc", [(3, 1), (1, 1)], (range(1), range(2, 3))),
            (b"a\nb\nc", [(3, 1), (1, 1), (2, 1)], (range(3),)),
            (b"x" * 400 + b"\n", [(1, 400)], (range(1),)),
            ((b"x" * 400 + b"\n") * 100, [(1, 400)], (range(49),)),
            ((b"x" * 400 + b"\n") * 100, [(1, 400), (50, 400)], (range(98),)),
        ],
    )
    def test_the_lines_of_the_page_are_recorded(
        self, root: Path, content: bytes, pages: list[tuple[int, int]], ranges: tuple[range, ...]
    ) -> None:
        root.joinpath("f").write_bytes(content)
        workspace = Workspace(root)
        for offset, limit in pages:
            read_file(workspace, "f", offset, limit)
        (reading,) = workspace.readings()
        assert (reading.path, reading.content) == ("f", content)
        assert {i for part in reading.ranges for i in part} == {i for part in ranges for i in part}

    def test_too_large(self, root: Path) -> None:
        with root.joinpath("f").open("wb") as file:
            file.truncate(files.MAX_FILE_BYTES + 1)
        with pytest.raises(ToolError, match="too many to read"):
            read_file(Workspace(root), "f")

    def test_refusals(self, root: Path) -> None:
        root.parent.joinpath("secret").touch()
        root.joinpath("out").symlink_to("../secret")
        os.mkfifo(root / "pipe")  # must not wait for a writer
        workspace = Workspace(root)
        for path, kind in (
            ("gone", "file_not_found"),
            (".", "is_directory"),
            ("out", "outside_root"),
            ("../secret", "outside_root"),
            ("a\0b", "bad_path"),
            ("pipe", "bad_path"),
        ):
            with pytest.raises(PatchError) as caught:
                read_file(workspace, path)
            assert caught.value.kind == kind, path

    def test_links_inside_are_read_and_named_by_their_place(self, root: Path) -> None:
        root.joinpath("f").write_bytes(b"a\n")
        root.joinpath("link").symlink_to("f")
        assert read_file(Workspace(root), "link") == "f: lines 1-1 of 1\n1│a"
