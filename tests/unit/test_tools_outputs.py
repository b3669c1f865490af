"""Output that is too long to be shown: what is kept of it, how it is paged, that nobody can edit it."""

from __future__ import annotations

import io
import os
import re
import stat
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from constrained_agent.errors import ToolError
from constrained_agent.messages import ToolCall, ToolResult
from constrained_agent.tools import outputs, rows, shell, spill
from constrained_agent.tools.outputs import Outputs
from constrained_agent.tools.permissions import Policy
from constrained_agent.tools.registry import Tools
from constrained_agent.tools.shell import STDOUT_LIMIT, exec_command
from constrained_agent.tools.spill import Spill
from constrained_agent.tools.workspace import Workspace

CALL = re.compile(r'read_file \{"path": "(?P<path>[^"]+)", "offset": (?P<offset>\d+)\}')


@pytest.fixture(autouse=True)
def state(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    monkeypatch.setenv("XDG_STATE_HOME", str(tmp_path / "state"))
    return tmp_path / "state" / "constrained-agent" / "outputs"


@pytest.fixture
def root(tmp_path: Path) -> Path:
    folder = tmp_path / "repo"
    folder.mkdir()
    return folder


@pytest.fixture
def kept(root: Path) -> Outputs:
    return Outputs(root)


@pytest.fixture
def tools(root: Path) -> Tools:
    return Tools(Workspace(root), Policy(yes=True))


def _run(tools: Tools, name: str, **arguments: Any) -> ToolResult:
    return tools.run(ToolCall("1", name, arguments))


def _printing(root: Path, data: bytes) -> str:
    """A command that prints these bytes."""
    (root.parent / "data").write_bytes(data)
    return "cat ../data"


def _paged(kept: Outputs, name: str, limit: int = 400) -> list[str]:
    """All rows of an output, as pages show them."""
    found: list[str] = []
    while True:
        _, *lines = kept.read(name, len(found) + 1, limit, 20_000).split("\n")
        more = lines[-1].startswith("[") and lines.pop()
        found += [re.split("[│↪]", line, maxsplit=1)[1] for line in lines]
        if not more:
            return found
        assert f"offset {len(found) + 1}]" in more


class TestACut:
    def test_names_what_shows_all_of_it(self, root: Path, kept: Outputs) -> None:
        result = exec_command(root, "echo head; seq 20000; echo tail; seq 9000 >&2", outputs=kept)
        assert (result.stdout_whole, result.stderr_whole) == ("output:1/stdout", "output:1/stderr")
        assert _paged(kept, "output:1/stdout") == ["head", *map(str, range(1, 20_001)), "tail"]
        assert _paged(kept, "output:1/stderr", 1000) == [*map(str, range(1, 9001))]
        for text in (result.stdout, result.stderr):
            before, mark, _ = re.split(r"\n(\[\.\.\. cut: .* \.\.\.\])\n", text)
            found = CALL.search(mark)
            assert found is not None
            page = kept.read(found["path"], int(found["offset"]), 400, 20_000).split("\n")
            first, last = (re.split("[│]", page[n])[1] for n in (1, -2))
            # It goes on where the text was cut, give or take a few rows that are shown twice.
            shown = [line for line in before.split("\n")[:-1] if line.isdecimal()]
            assert int(shown[0]) < int(first) <= int(shown[-1]) < int(last)

    def test_is_told_before_anything_else(self, tools: Tools) -> None:
        lines = _run(tools, "exec_command", command="seq 100000").text.split("\n")
        assert lines[1] == "note: stdout is cut below; read_file shows all of it as output:1/stdout"
        assert lines[2] == "--- stdout"

    def test_is_made_for_the_persons_commands_too(self, tools: Tools) -> None:
        result = tools.run_tests("seq 100000; exit 1")
        assert "output:1/stdout" in result.text
        assert "99999│99999" in _run(tools, "read_file", path="output:1/stdout", offset=99_999).text

    def test_of_a_little_is_kept_too(self, root: Path, kept: Outputs) -> None:
        """Less than what is held in memory, but more than is shown."""
        data = b"x" * 99 + b"\n"
        result = exec_command(root, _printing(root, data * 201), outputs=kept)
        assert len(result.stdout) <= STDOUT_LIMIT
        assert _paged(kept, "output:1/stdout") == ["x" * 99] * 201

    def test_that_is_none_keeps_nothing(self, root: Path, kept: Outputs, state: Path) -> None:
        result = exec_command(root, "seq 3000; seq 900 >&2", outputs=kept)
        assert (result.stdout_whole, result.stderr_whole) == (None, None)
        assert not state.exists()

    def test_after_a_time_limit(self, root: Path, kept: Outputs) -> None:
        result = exec_command(root, "seq 50000; sleep 1000", 1, outputs=kept)
        assert result.timed_out
        assert _paged(kept, "output:1/stdout", 1000)[-1] == "50000"

    def test_comes_earlier_where_a_model_has_less_room(self, tools: Tools) -> None:
        tools.limit_outputs(2_500)
        text = _run(tools, "exec_command", command="seq 1000; seq 1000 >&2").text
        assert len(text) < 3_000
        assert {found["path"] for found in CALL.finditer(text)} == {"output:1/stdout", "output:1/stderr"}
        tools.limit_outputs(10)
        assert len(CALL.findall(_run(tools, "exec_command", command="seq 1000").text)) == 1

    def test_says_so_where_the_disk_refuses(
        self, root: Path, kept: Outputs, monkeypatch: pytest.MonkeyPatch
    ) -> None:
        monkeypatch.setattr(spill, "MIN_FREE_BYTES", 1 << 62)
        result = exec_command(root, "seq 100000", outputs=kept)
        assert result.stdout_whole is None
        assert re.search(
            r"cut: .*, and could not be kept: the disk has only [\d,]+ bytes left", result.stdout
        )

    def test_leaves_no_file_open(self, root: Path, kept: Outputs) -> None:
        exec_command(root, "seq 100000", outputs=kept)
        before = len(os.listdir("/dev/fd"))
        exec_command(root, "seq 100000; seq 100000 >&2", outputs=kept)
        assert len(os.listdir("/dev/fd")) == before


class TestPages:
    def test_long_lines_can_be_read_to_their_end(self, root: Path, kept: Outputs) -> None:
        data = b"".join(b"%d," % number for number in range(20_000))
        exec_command(root, _printing(root, data), outputs=kept)
        text = kept.read("output:1/stdout", 1, 400, 20_000)
        assert text.split("\n")[0].endswith("it cannot be edited; ↪ goes on with a long line")
        assert "\n  2↪" in f"\n{text}" or "\n 2↪" in f"\n{text}"
        assert "".join(_paged(kept, "output:1/stdout")) == data.decode()

    def test_bytes_that_are_no_text_come_through(self, root: Path, kept: Outputs) -> None:
        exec_command(
            root, "head -c 300000 /dev/zero; printf '\\377\\n\\033[1mred\\033[0m\\r\\n'", outputs=kept
        )
        found = _paged(kept, "output:1/stdout")
        assert "".join(found) == r"\x00" * 300_000 + r"\xffred"
        assert found[-1] == "red"

    def test_a_page_is_bounded(self, root: Path, kept: Outputs) -> None:
        exec_command(root, "seq 100000000 100100000; head -c 9000 /dev/zero", outputs=kept)
        assert len(kept.read("output:1/stdout", 1, 1000, 20_000)) < 20_000
        assert len(kept.read("output:1/stdout", 100_002, 1000, 20_000)) < 32_000

    @pytest.mark.parametrize(
        ("path", "says"),
        [
            ("output:1/stdout", "it was shown whole"),
            ("output:2/stderr", "it was shown whole"),
            ("output:3/stdout", "no such command was run"),
            ("output:2", "is like output:3/stdout"),
            ("output: 2/stdout", "is like output:3/stdout"),
            ("output:2/stdin", "is like output:3/stdout"),
        ],
    )
    def test_a_wrong_name_is_answered_with_the_right_ones(self, tools: Tools, path: str, says: str) -> None:
        assert "there are: none" in _run(tools, "read_file", path="output:1/stdout").text
        _run(tools, "exec_command", command="echo short")
        _run(tools, "exec_command", command="seq 100000")
        result = _run(tools, "read_file", path=path)
        assert not result.ok
        assert says in result.text
        assert result.text.endswith("there are: output:2/stdout")

    def test_past_the_end(self, tools: Tools) -> None:
        _run(tools, "exec_command", command="seq 100000")
        result = _run(tools, "read_file", path="output:1/stdout", offset=100_001)
        assert result.text == "output:1/stdout has 100,000 lines: there is no line 100001"

    def test_a_file_of_the_repository_with_such_a_name(self, tools: Tools, root: Path) -> None:
        (root / "output:1").mkdir()
        (root / "output:1" / "stdout").write_text("mine\n")
        _run(tools, "exec_command", command="seq 100000")
        assert "1│1" in _run(tools, "read_file", path="output:1/stdout").text
        assert "1│mine" in _run(tools, "read_file", path="./output:1/stdout").text
        assert [reading.path for reading in tools.readings()] == ["output:1/stdout"]


class TestNobodyEditsIt:
    def test_it_does_not_count_as_read(self, tools: Tools) -> None:
        _run(tools, "exec_command", command="seq 100000")
        assert _run(tools, "read_file", path="output:1/stdout").ok
        assert tools.readings() == []

    @pytest.mark.parametrize(
        "body",
        [
            "*** Update File: output:1/stdout\n@@\n-1\n+x",
            "*** Delete File: output:1/stdout",
            "*** Add File: output:1/stdout\n+x",
            "*** Add File: output:9/new\n+x",
            "*** Update File: f\n*** Move to: output:1/stderr\n@@\n-1\n+x",
        ],
    )
    def test_a_patch_is_told_what_it_is(self, tools: Tools, root: Path, body: str) -> None:
        (root / "f").write_text("1\n")
        _run(tools, "exec_command", command="seq 100000")
        result = _run(tools, "apply_patch", patch=f"*** Begin Patch\n{body}\n*** End Patch\n")
        assert result.error_kind == "bad_path"
        assert "what a command printed, not a file" in result.text
        assert [path.name for path in root.iterdir()] == ["f"]

    def test_other_tools_are_told_too(self, tools: Tools) -> None:
        _run(tools, "exec_command", command="seq 100000")
        for name, more in (("list_dir", {}), ("search_text", {"pattern": "x"})):
            assert "read_file shows it" in _run(tools, name, path="output:1/stdout", **more).text


class TestOnTheDisk:
    @pytest.fixture
    def small(self, monkeypatch: pytest.MonkeyPatch) -> None:
        monkeypatch.setattr(spill, "HEAD_BYTES", 1000)
        monkeypatch.setattr(spill, "TAIL_BYTES", 300)

    @given(st.lists(st.binary(max_size=700).map(lambda part: part * 3), max_size=12))
    def test_beginning_and_end_stay(
        self, tmp_path_factory: pytest.TempPathFactory, parts: list[bytes]
    ) -> None:
        path, data = tmp_path_factory.mktemp("spill") / "f", b"".join(parts)
        with pytest.MonkeyPatch.context() as patched:
            patched.setattr(spill, "HEAD_BYTES", 1000)
            patched.setattr(spill, "TAIL_BYTES", 300)
            one = Spill("name", lambda: path)
            for part in parts:
                one.add(part)
            one.close()
        if len(data) <= 1300:
            assert (path.read_bytes() if data else b"", one.loss) == (data, "")
            return
        mark = f"\n[... {len(data) - 1300:,} bytes were not kept ...]\n".encode()
        assert path.read_bytes() == data[:1000] + mark + data[-300:]
        assert one.loss == "of it all, the first 1,000 and the last 300 bytes were kept"
        assert [file.name for file in path.parent.iterdir()] == ["f"]

    @pytest.mark.usefixtures("small")
    def test_what_was_not_kept_is_told(self, root: Path, kept: Outputs) -> None:
        result = exec_command(root, "seq 100000", outputs=kept)
        assert "; of it all, the first 1,000 and the last 300 bytes were kept ...]" in result.stdout
        found = _paged(kept, "output:1/stdout")
        assert (found[0], found[-1]) == ("1", "100000")
        assert sum("bytes were not kept" in line for line in found) == 1

    def test_a_write_that_fails_keeps_what_there_is(self, tmp_path: Path) -> None:
        (tmp_path / "here").touch()
        for place, kept in (
            (tmp_path / "here", False),
            (tmp_path / "gone" / "f", False),
            (tmp_path / "f", True),
        ):
            one = Spill("name", lambda place=place: place)
            one.add(b"a")
            one.add(b"b")
            one.close()
            assert (one.kept, bool(one.loss)) == (kept, not kept)
        assert (tmp_path / "here").read_bytes() == b""

    def test_it_is_the_users_own_and_outside_the_repository(
        self, root: Path, kept: Outputs, state: Path, monkeypatch: pytest.MonkeyPatch
    ) -> None:
        exec_command(root, "seq 100000", outputs=kept)
        (run,) = state.iterdir()
        for folder in (state, run, run / "1"):
            assert stat.S_IMODE(folder.stat().st_mode) == 0o700
        assert list(root.iterdir()) == []
        monkeypatch.setenv("XDG_STATE_HOME", str(root / "state"))
        monkeypatch.setattr("tempfile.tempdir", str(root.parent / "tmp"))
        (root.parent / "tmp").mkdir()
        elsewhere = Outputs(root)
        assert exec_command(root, "seq 100000", outputs=elsewhere).stdout_whole == "output:1/stdout"
        assert list(root.iterdir()) == []

    def test_old_runs_go(self, root: Path, state: Path, monkeypatch: pytest.MonkeyPatch) -> None:
        monkeypatch.setattr(outputs, "MAX_RUNS", 3)
        (state / "20200101-000000-old").mkdir(parents=True)
        (state / "notes").mkdir()
        runs = [Outputs(root) for _ in range(5)]
        for run in runs:
            exec_command(root, "seq 100000", outputs=run)
        assert len(list(state.iterdir())) == 4
        assert (state / "notes").exists()
        monkeypatch.setattr(outputs, "MAX_BYTES", 1000)
        exec_command(root, "seq 100000", outputs=Outputs(root))
        assert len(list(state.iterdir())) == 2

    def test_old_outputs_of_a_long_run_go(
        self, root: Path, kept: Outputs, monkeypatch: pytest.MonkeyPatch
    ) -> None:
        monkeypatch.setattr(outputs, "MAX_RUN_BYTES", 300_000)
        for _ in range(5):
            exec_command(root, "seq 20000", outputs=kept)
        with pytest.raises(
            ToolError, match=r"not kept any more.*there are: output:3/stdout, output:4/stdout"
        ):
            kept.read("output:2/stdout", 1, 1, 100)
        assert len(_paged(kept, "output:5/stdout", 1000)) == 20_000


class TestRows:
    @given(
        st.lists(
            st.sampled_from(
                [b"\n", b"\r", b"\r\n", b"a", "é".encode(), "🙂".encode() * 140, b"x" * 499, b"\xff"]
            )
        ),
        st.integers(1, 9),
        st.integers(1, 5),
        st.sampled_from([1, 7, 499, 100_000]),
    )
    def test_pages_are_parts_of_one_list(
        self, parts: list[bytes], offset: int, limit: int, block: int
    ) -> None:
        data = b"".join(parts)
        with pytest.MonkeyPatch.context() as patched:
            patched.setattr(rows, "_BLOCK_BYTES", block)
            page = rows.page(io.BytesIO(data), offset, limit, 1 << 30)
            whole = rows.page(io.BytesIO(data), 1, 1 << 30, 1 << 30)
        assert (page.rows, page.total) == (whole.rows[offset - 1 : offset - 1 + limit], len(whole.rows))
        text = "".join(row if goes_on else f"\n{row}" for row, goes_on in whole.rows)
        assert text[1:] == rows.plain(data).removesuffix("\n")
        assert all(len(row.encode()) <= 4 * (rows.ROW_BYTES + 2) for row, _ in whole.rows)

    @given(st.text(st.sampled_from("ab\né"), max_size=40), st.integers(0, 60))
    def test_the_row_of_a_character(self, text: str, at: int) -> None:
        expected = text[:at].count("\n") + 1
        last = max(1, len(text.splitlines()))
        assert rows.row_of(text.encode(), at) == min(expected, last)


def test_the_limits_fit_what_the_model_is_told() -> None:
    """A mark of the cut with everything in it leaves room for some of the output."""
    longest = "x" * 100
    mark = f'[... cut: the middle of {10**15:,} bytes is left out; to see it: read_file {{"path": "output:999/stdout", '
    mark += f'"offset": {10**9}}}; of it all, the first {10**9:,} and the last {10**9:,} bytes were kept ...]'
    assert len(mark) + len(longest) < shell.MIN_LIMIT
