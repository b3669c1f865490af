"""Calls in, results out: arguments, permissions, errors, patches."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from constrained_agent.errors import PATCH_ERROR_KINDS
from constrained_agent.evals import tasks
from constrained_agent.messages import ToolCall, ToolResult, ToolSpec
from constrained_agent.tools import files
from constrained_agent.tools.permissions import Policy
from constrained_agent.tools.registry import MAX_ERROR_CHARS, MAX_SHOWN_LINES, Tools
from constrained_agent.tools.workspace import Workspace

ALL = ["list_dir", "read_file", "search_text", "exec_command", "apply_patch"]


@pytest.fixture
def tools(tmp_path: Path) -> Tools:
    tmp_path.joinpath("f.txt").write_text("one\ntwo\n", encoding="utf-8")
    return Tools(Workspace(tmp_path), Policy(yes=True))


def _run(tools: Tools, name: str, **arguments: Any) -> ToolResult:
    result = tools.run(ToolCall("call-7", name, arguments))
    assert result.call_id == "call-7"
    assert result.ok == (result.error_kind == "")
    assert result.error_kind in ("", "tool_error", "schema_violated", "unknown_tool", *PATCH_ERROR_KINDS)
    result.text.encode()
    return result


def _update(*lines: str, path: str = "f.txt") -> str:
    return "\n".join(["*** Begin Patch", f"*** Update File: {path}", "@@", *lines, "*** End Patch", ""])


def _objects(schema: Any) -> Iterator[dict[str, Any]]:
    if isinstance(schema, dict):
        if schema.get("type") == "object":
            yield schema
        for part in schema.values():
            yield from _objects(part)


class TestSpecs:
    def test_names(self, tools: Tools) -> None:
        assert [spec.name for spec in tools.specs] == ALL
        assert [spec.name for spec in tools.specs if spec.freeform] == ["apply_patch"]

    @pytest.mark.parametrize(
        ("policy", "left_out"),
        [
            (Policy(read_only=True), {"exec_command", "apply_patch"}),
            (Policy(no_exec=True), {"exec_command"}),
            (Policy(), {"exec_command"}),
            (Policy(yes=True), set()),
        ],
    )
    def test_forbidden_tools_are_not_on_offer(
        self, tmp_path: Path, policy: Policy, left_out: set[str]
    ) -> None:
        specs = Tools(Workspace(tmp_path), policy).specs
        assert [spec.name for spec in specs] == [name for name in ALL if name not in left_out]

    def test_schemas_are_closed_and_small(self, tools: Tools) -> None:
        for spec in tools.specs:
            for schema in _objects(spec.parameters):
                assert schema["additionalProperties"] is False
                assert set(schema["required"]) <= set(schema["properties"])
                assert len(schema["properties"]) <= 3
            assert len(spec.description) < 400

    def test_limits_and_defaults_are_told(self, tools: Tools) -> None:
        def spec(name: str) -> ToolSpec:
            return next(spec for spec in tools.specs if spec.name == name)

        assert "30 if left out, at most 600" in spec("exec_command").description
        assert spec("exec_command").parameters["properties"]["timeout_s"]["maximum"] == 600
        assert "400 if left out, at most 1000" in spec("read_file").description

    def test_the_decoders_engine_takes_every_schema(self, tools: Tools) -> None:
        from llguidance import LLMatcher

        for spec in tools.specs:
            grammar = LLMatcher.grammar_from_json_schema(dict(spec.parameters))
            assert LLMatcher.validate_grammar(grammar) == ""


class TestArguments:
    @pytest.mark.parametrize(
        ("name", "arguments", "says"),
        [
            ("read_file", {}, "'path' is a required property"),
            ("read_file", {"path": "f.txt", "line": 1}, "'line' was unexpected"),
            ("read_file", {"path": "f.txt", "offset": 0}, "$.offset: 0 is less than the minimum of 1"),
            ("read_file", {"path": "f.txt", "offset": True}, "$.offset: True is not of type 'integer'"),
            ("read_file", {"path": ["f.txt"]}, "$.path: ['f.txt'] is not of type 'string'"),
            ("exec_command", {"command": "true", "timeout_s": 601}, "greater than the maximum of 600"),
            ("apply_patch", {"input": "x"}, "its arguments are: patch"),
        ],
    )
    def test_wrong_ones_are_named(
        self, tools: Tools, name: str, arguments: dict[str, Any], says: str
    ) -> None:
        result = _run(tools, name, **arguments)
        assert result.error_kind == "schema_violated"
        assert says in result.text

    def test_a_huge_wrong_value_does_not_fill_the_context(self, tools: Tools) -> None:
        assert len(_run(tools, "read_file", path="f.txt", offset="x" * 100_000).text) < 1000
        assert len(_run(tools, "list_dir", path="x" * 100_000).text) <= MAX_ERROR_CHARS + 1

    def test_whole_numbers_may_come_as_floats(self, tools: Tools) -> None:
        assert "2│two" in _run(tools, "read_file", path="f.txt", offset=2.0, limit=1.0).text

    def test_an_unknown_tool_names_the_known_ones(self, tools: Tools) -> None:
        result = _run(tools, "shell", command="ls")
        assert result.error_kind == "unknown_tool"
        assert "no tool 'shell'; the tools are: " + ", ".join(ALL) in result.text

    @pytest.mark.parametrize("path", ["a\0b", chr(0xD83D), chr(0xDCFF), "", " ", "x" * 5000, "a/" * 3000])
    def test_impossible_paths_are_plain_errors(self, tools: Tools, path: str) -> None:
        for name, more in (("list_dir", {}), ("read_file", {}), ("search_text", {"pattern": "x"})):
            assert not _run(tools, name, path=path, **more).ok
        if "\0" not in path:
            assert not _run(tools, "apply_patch", patch=_update("-one", "+1", path=path)).ok


class TestPermissions:
    def test_a_forbidden_call_is_refused_though_it_was_not_on_offer(self, tmp_path: Path) -> None:
        tools = Tools(Workspace(tmp_path), Policy(read_only=True, yes=True))
        add = "*** Begin Patch\n*** Add File: new\n+x\n*** End Patch\n"
        for result in (
            _run(tools, "exec_command", command="touch new"),
            _run(tools, "apply_patch", patch=add),
        ):
            assert result.error_kind == "tool_error"
            assert "read-only" in result.text
        assert list(tmp_path.iterdir()) == []

    def test_without_a_terminal_patches_go_and_commands_do_not(self, tmp_path: Path) -> None:
        tools = Tools(Workspace(tmp_path), Policy())
        assert "--yes" in _run(tools, "exec_command", command="touch new").text
        assert _run(tools, "apply_patch", patch="*** Begin Patch\n*** Add File: f\n+x\n*** End Patch\n").ok
        assert [path.name for path in tmp_path.iterdir()] == ["f"]

    def test_nobody_is_asked_about_a_call_that_cannot_run(self, tmp_path: Path) -> None:
        def ask(*_: object) -> bool:
            raise AssertionError

        assert "required property" in _run(Tools(Workspace(tmp_path), Policy(ask=ask)), "exec_command").text


class TestCommands:
    def test_a_failing_command_is_an_answer(self, tools: Tools) -> None:
        result = _run(tools, "exec_command", command="cat f.txt; exit 4")
        assert result.ok
        assert result.text.startswith("exit code 4 after")
        assert result.data["exit_code"] == 4
        assert result.data["stdout"] == "one\ntwo\n"

    def test_a_timeout_is_an_error_with_the_output_so_far(self, tools: Tools) -> None:
        result = _run(tools, "exec_command", command="echo begun; sleep 1000", timeout_s=1)
        assert result.error_kind == "tool_error"
        assert result.text.startswith("timed out")
        assert "begun" in result.text
        assert result.data["timed_out"] is True


class TestReadings:
    def test_shown_read_and_patched_files_count_and_found_ones_do_not(
        self, tools: Tools, tmp_path: Path
    ) -> None:
        for name in ("shown", "read", "found", "listed", "printed"):
            tmp_path.joinpath(name).write_text("word\n" * 3, encoding="utf-8")
        _run(tools, "search_text", pattern="word", path="found")
        _run(tools, "list_dir", path=".")
        _run(tools, "exec_command", command="cat printed")
        _run(tools, "read_file", path="read", offset=3)
        tools.show("shown")
        _run(tools, "apply_patch", patch="*** Begin Patch\n*** Add File: new\n+x\n*** End Patch\n")
        found = [(reading.path, reading.ranges) for reading in tools.readings()]
        assert found == [("read", (range(2, 3),)), ("shown", (range(3),)), ("new", (range(1),))]
        _run(tools, "exec_command", command="echo more >> shown")
        assert [reading.path for reading in tools.readings()] == ["read", "new"]

    def test_taken(self, tools: Tools, tmp_path: Path) -> None:
        tmp_path.joinpath("folder").mkdir()
        assert (tools.taken().files, tools.taken().folders) == (("f.txt",), ("folder",))


class TestPatches:
    def test_what_landed_is_shown(self, tmp_path: Path) -> None:
        task = tasks.load("dateparse")
        task.copy_to(tmp_path)
        result = _run(Tools(Workspace(tmp_path), Policy()), "apply_patch", patch=task.reference)
        assert result.text.split("\n") == [
            "the patch is applied:",
            "update dateparse.py (+2 -2)",
            "34│    if match:",
            "35│        day, month, year = map(int, match.groups())",
            "36│        return datetime.date(year, month, day)",
            "40│        day, name, year = match.groups()",
            "41│        month = MONTHS.index(name.lower()) + 1",
            "42│        return datetime.date(int(year), month, int(day))",
        ]
        assert result.data["files"] == [
            {"path": "dateparse.py", "action": "update", "new_path": None, "added": 2, "removed": 2}
        ]
        assert "+        month = MONTHS.index(name.lower()) + 1\n" in result.data["diff"]

    def test_every_action(self, tools: Tools, tmp_path: Path) -> None:
        tmp_path.joinpath("old").write_text("x\n", encoding="utf-8")
        tmp_path.joinpath("gone").write_text("x\ny\n", encoding="utf-8")
        patch = (
            "*** Begin Patch\n*** Add File: new\n+a\n+b\n*** Delete File: gone\n"
            "*** Update File: old\n*** Move to: moved\n@@\n-x\n+z\n*** Update File: f.txt\n@@\n one\n-two\n"
            "*** End Patch\n"
        )
        result = _run(tools, "apply_patch", patch=patch)
        assert result.text.split("\n")[1:] == [
            "add new (+2 -0)",
            "delete gone (+0 -2)",
            "move old to moved (+1 -1)",
            "1│z",
            "update f.txt (+0 -1)",
            "1│one",
        ]
        assert {file["action"] for file in result.data["files"]} == {"add", "delete", "move", "update"}

    def test_a_large_change_is_shown_in_part(self, tools: Tools) -> None:
        result = _run(tools, "apply_patch", patch=_update("-one", *(f"+{i}" for i in range(500))))
        lines = result.text.split("\n")
        assert lines[1] == "update f.txt (+500 -1)"
        assert len(lines) == MAX_SHOWN_LINES + 3
        assert lines[-1] == "[the rest is not shown]"

    def test_errors_keep_their_kind_and_place(self, tools: Tools, tmp_path: Path) -> None:
        result = _run(tools, "apply_patch", patch=_update("-three", "+3"))
        assert result.error_kind == "context_not_found"
        assert (result.data["path"], result.data["hunk"]) == ("f.txt", 1)
        assert _run(tools, "apply_patch", patch="no patch").error_kind == "bad_envelope"
        assert tmp_path.joinpath("f.txt").read_text(encoding="utf-8") == "one\ntwo\n"

    def test_the_same_patch_again_says_that_it_is_done(self, tools: Tools) -> None:
        assert _run(tools, "apply_patch", patch=_update("-one", "+1")).ok
        result = _run(tools, "apply_patch", patch=_update("-one", "+1"))
        assert result.error_kind == "already_applied"
        assert "already there" in result.text

    def test_a_file_changed_since_it_was_read(self, tools: Tools, tmp_path: Path) -> None:
        _run(tools, "read_file", path="f.txt")
        tmp_path.joinpath("f.txt").write_text("one\ntwo\nthree\n", encoding="utf-8")
        result = _run(tools, "apply_patch", patch=_update("-one", "+1"))
        assert result.error_kind == "changed_on_disk"
        assert "changed since it was read" in result.text

    def test_bytes_that_are_not_utf8_do_not_break_the_result(self, tools: Tools, tmp_path: Path) -> None:
        tmp_path.joinpath("f.txt").write_bytes(b"caf\xe9\nx\n")
        result = _run(tools, "apply_patch", patch=_update("-x", "+y"))
        assert "1│caf\\xe9" in result.text
        result.data["diff"].encode()
        assert tmp_path.joinpath("f.txt").read_bytes() == b"caf\xe9\ny\n"

    def test_leniencies_are_counted(self, tools: Tools) -> None:
        assert _run(tools, "apply_patch", patch=_update("-one", "+1")).data["leniencies"] == {}
        assert _run(tools, "apply_patch", patch=_update("-two", "+2") + "\n\n").data["leniencies"]


def test_a_bug_is_raised(tools: Tools, monkeypatch: pytest.MonkeyPatch) -> None:
    def broken(*_: object) -> str:
        raise KeyError("bug")

    monkeypatch.setattr(files, "list_dir", broken)
    with pytest.raises(KeyError):
        _run(tools, "list_dir", path=".")


def test_a_disk_that_refuses_is_a_tool_error(tools: Tools, monkeypatch: pytest.MonkeyPatch) -> None:
    def refusing(*_: object) -> str:
        raise PermissionError(13, "Permission denied", "folder")

    monkeypatch.setattr(files, "list_dir", refusing)
    assert "Permission denied" in _run(tools, "list_dir", path=".").text
