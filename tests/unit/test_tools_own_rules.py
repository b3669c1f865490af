"""No patch writes the rules of what may run unasked, and no look into credentials goes without a person's yes."""

from __future__ import annotations

import os
from collections.abc import Mapping
from pathlib import Path
from typing import Any

import pytest

from constrained_agent.errors import PatchError, UserError
from constrained_agent.messages import ToolCall, ToolResult, ToolSpec
from constrained_agent.tools import credentials
from constrained_agent.tools.commands import Verdict
from constrained_agent.tools.permissions import Policy
from constrained_agent.tools.registry import Tools
from constrained_agent.tools.rules import REPOSITORY_NAME, Rules
from constrained_agent.tools.workspace import Workspace

RULES = '[permissions]\nallow = ["ls"]\n'


@pytest.fixture
def home(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """A home with rules in it, and nothing that says they lie elsewhere."""
    folder = tmp_path / "home"
    (folder / ".config" / "constrained-agent").mkdir(parents=True)
    (folder / ".config" / "constrained-agent" / "config.toml").write_text(RULES)
    monkeypatch.setenv("HOME", str(folder))
    monkeypatch.delenv("XDG_CONFIG_HOME", raising=False)
    monkeypatch.setenv("XDG_STATE_HOME", str(tmp_path / "state"))
    return folder


def _run(tools: Tools, name: str, **arguments: Any) -> ToolResult:
    return tools.run(ToolCall("1", name, arguments))


def _patched(root: Path, *lines: str) -> ToolResult:
    patch = "\n".join(["*** Begin Patch", *lines, "*** End Patch", ""])
    return _run(Tools(Workspace(root), Policy(yes=True)), "apply_patch", patch=patch)


def _tree(root: Path) -> dict[str, bytes]:
    return {str(path): path.read_bytes() for path in sorted(root.rglob("*")) if path.is_file()}


@pytest.mark.usefixtures("home")
class TestRulesOfTheRepository:
    @pytest.fixture
    def root(self, tmp_path: Path) -> Path:
        root = tmp_path / "repo"
        (root / "sub").mkdir(parents=True)
        for path in (REPOSITORY_NAME, f"sub/{REPOSITORY_NAME}", "f"):
            (root / path).write_text(RULES)
        (root / "link").symlink_to(REPOSITORY_NAME)
        (root / "here").symlink_to(".")
        os.link(root / REPOSITORY_NAME, root / "twin")
        return root

    @pytest.mark.parametrize(
        "path",
        [
            REPOSITORY_NAME,
            f"./{REPOSITORY_NAME}",
            f"sub//./{REPOSITORY_NAME}",
            f"sub/{REPOSITORY_NAME}",
            f"here/{REPOSITORY_NAME}",
            "link",
            "here/link",
            "twin",
        ],
    )
    @pytest.mark.parametrize(
        "lines",
        [
            ["*** Update File: {}", "@@", '-allow = ["ls"]', '+allow = ["*"]'],
            ["*** Update File: {}", "@@", "-no such line", "+x"],
            ["*** Delete File: {}"],
            ["*** Update File: {}", "*** Move to: g", "@@", " [permissions]", "+x"],
        ],
    )
    def test_are_not_changed(self, root: Path, path: str, lines: list[str]) -> None:
        before = _tree(root)
        result = _patched(root, *(line.replace("{}", path) for line in lines))
        assert result.error_kind == "outside_root"
        assert "only a person changes it, by hand" in result.text
        assert _tree(root) == before

    @pytest.mark.parametrize(
        "name", [REPOSITORY_NAME, ".Constrained-Agent.TOML", ".constrained-\u200bagent.toml"]
    )
    @pytest.mark.parametrize("folder", ["", "sub/", "new/", "here/"])
    def test_are_not_made(self, root: Path, name: str, folder: str) -> None:
        for path in (REPOSITORY_NAME, f"sub/{REPOSITORY_NAME}", "twin", "link"):
            (root / path).unlink()
        before = _tree(root)
        for lines in (
            [f"*** Add File: {folder}{name}", "+x"],
            [f"*** Add File: {folder}{name}/x", "+x"],
            ["*** Update File: f", f"*** Move to: {folder}{name}", "@@", " [permissions]", "+x"],
        ):
            result = _patched(root, *lines)
            assert result.error_kind == "outside_root", result.text
        assert _tree(root) == before

    def test_are_not_written_where_they_really_lie(self, root: Path) -> None:
        """The name may be a link to a file that is called otherwise."""
        (root / REPOSITORY_NAME).unlink()
        (root / "real.toml").write_text(RULES)
        (root / REPOSITORY_NAME).symlink_to("real.toml")
        assert _patched(root, "*** Delete File: real.toml").error_kind == "outside_root"
        assert _patched(root, "*** Delete File: f").ok

    def test_may_be_read_but_do_not_count_as_editable(self, root: Path) -> None:
        tools = Tools(Workspace(root), Policy())
        for path in (REPOSITORY_NAME, "link", "twin", "f"):
            assert "│[permissions]" in _run(tools, "read_file", path=path).text
        assert [reading.path for reading in tools.readings()] == ["f"]

    def test_a_patch_is_not_taken_back_onto_them(self, root: Path) -> None:
        with pytest.raises(PatchError, match="only a person changes it"):
            Workspace(root)._places.check_own(REPOSITORY_NAME)

    def test_other_names_are_free(self, root: Path) -> None:
        for name in ("constrained-agent.toml", ".constrained-agent.toml.md", "sub/.constrained-agent.tom"):
            assert _patched(root, f"*** Add File: {name}", "+x").ok


class TestRulesOfThePerson:
    FILE = ".config/constrained-agent/config.toml"

    def test_are_not_changed_nor_made_where_the_home_is_the_root(self, home: Path) -> None:
        (home / "f").write_text("x\n")
        (home / "dotfiles").symlink_to(".config/constrained-agent")
        before = _tree(home)
        for lines in (
            [f"*** Update File: {self.FILE}", "@@", "-[permissions]", "+x"],
            [f"*** Delete File: {self.FILE}"],
            ["*** Delete File: dotfiles/config.toml"],
            ["*** Add File: .config/Constrained-Agent/new", "+x"],
            ["*** Add File: .config/constrained-agent/new", "+x"],
            ["*** Update File: f", "*** Move to: .config/constrained-agent/f", "@@", "-x", "+y"],
        ):
            result = _patched(home, *lines)
            assert result.error_kind == "outside_root", result.text
        assert _tree(home) == before
        tools = Tools(Workspace(home), Policy())
        assert _run(tools, "read_file", path=self.FILE).ok
        assert tools.readings() == []
        assert ".config/constrained-agent" in tools.taken().files
        assert ".config/constrained-agent" not in tools.taken().folders
        assert _patched(home, "*** Add File: .config/other/new", "+x").ok

    def test_are_known_where_a_link_leads_to_them(self, home: Path, tmp_path: Path) -> None:
        """Kept with other settings in a repository of their own."""
        folder = tmp_path / "dotfiles"
        (home / ".config" / "constrained-agent").rename(folder)
        (home / ".config" / "constrained-agent").symlink_to(folder)
        assert _patched(folder, "*** Delete File: config.toml").error_kind == "outside_root"
        assert Tools(Workspace(folder), Policy()).taken().files == (".", "config.toml")

    def test_are_where_the_environment_says(self, home: Path, tmp_path: Path, monkeypatch: Any) -> None:
        monkeypatch.setenv("XDG_CONFIG_HOME", str(tmp_path / "repo"))
        (tmp_path / "repo").mkdir()
        added = _patched(tmp_path / "repo", "*** Add File: constrained-agent/config.toml", "+x")
        assert added.error_kind == "outside_root"
        assert _patched(home, "*** Delete File: .config/constrained-agent/config.toml").ok


class Person:
    """Answers every question alike, and remembers what it was asked."""

    def __init__(self, answer: bool) -> None:
        self.answer = answer
        self.asked: list[tuple[str, str]] = []

    def __call__(self, spec: ToolSpec, arguments: Mapping[str, Any], verdict: Verdict) -> bool:
        self.asked.append((spec.name, str(verdict.risk)))
        return self.answer


@pytest.mark.usefixtures("home")
class TestCredentials:
    @pytest.fixture
    def root(self, tmp_path: Path) -> Path:
        root = tmp_path / "repo"
        (root / ".aws").mkdir(parents=True)
        for path in (".env", ".env.local", ".aws/config", ".npmrc", "f", ".env.example"):
            (root / path).write_text("TOKEN=abc\nx=1\n")
        (root / "settings").symlink_to(".env")
        return root

    LOOKS = (
        ("read_file", {"path": ".env"}),
        ("read_file", {"path": "./.env", "offset": 2}),
        ("read_file", {"path": "settings"}),
        ("read_file", {"path": ".aws/config"}),
        ("read_file", {"path": ".npmrc"}),
        ("search_text", {"path": ".env", "pattern": "TOKEN"}),
        ("search_text", {"path": ".aws", "pattern": "TOKEN"}),
        ("exec_command", {"command": "cat .env"}),
        ("exec_command", {"command": "cat settings"}),
        ("exec_command", {"command": "grep -r TOKEN .aws"}),
    )

    @pytest.mark.parametrize(("name", "arguments"), LOOKS)
    @pytest.mark.parametrize("yes", [False, True])
    def test_a_tool_and_a_command_are_judged_alike(
        self, root: Path, name: str, arguments: dict[str, Any], yes: bool
    ) -> None:
        person = Person(True)
        result = _run(Tools(Workspace(root), Policy(yes=yes, ask=person)), name, **arguments)
        assert result.ok, result.text
        assert "x=1" in result.text or "TOKEN" in result.text
        assert person.asked == [(name, "dangerous")]
        refused = _run(Tools(Workspace(root), Policy(yes=yes, ask=Person(False))), name, **arguments)
        assert f"the person refused this {name} call" in refused.text
        alone = _run(Tools(Workspace(root), Policy(yes=True)), name, **arguments)
        assert not alone.ok
        assert "reads credentials" in alone.text
        assert "there is no terminal to ask on" in alone.text
        assert "abc" not in refused.text + alone.text

    @pytest.mark.parametrize(
        ("name", "arguments"),
        [
            ("read_file", {"path": "f"}),
            ("read_file", {"path": ".env.example"}),
            ("list_dir", {"path": ".aws"}),
            ("list_dir", {"path": "."}),
            ("search_text", {"path": "f", "pattern": "x"}),
        ],
    )
    def test_nobody_is_asked_about_anything_else(
        self, root: Path, name: str, arguments: dict[str, Any]
    ) -> None:
        assert _run(Tools(Workspace(root), Policy(rules=Rules(deny=("*",)))), name, **arguments).ok

    @pytest.mark.parametrize(
        ("path", "kind"),
        [(".env.gone", "file_not_found"), ("../.env", "outside_root"), (".git/.env", "outside_root")],
    )
    def test_nobody_is_asked_about_what_cannot_be_read(self, root: Path, path: str, kind: str) -> None:
        person = Person(True)
        assert _run(Tools(Workspace(root), Policy(ask=person)), "read_file", path=path).error_kind == kind
        assert person.asked == []

    def test_rules_speak_of_the_tool_or_of_the_command(self, root: Path) -> None:
        person = Person(True)
        for pattern in ("read_file .env", "cat .env*", "*.env"):
            tools = Tools(Workspace(root), Policy(ask=person, rules=Rules(deny=(pattern,))))
            assert f"denies {pattern!r}" in _run(tools, "read_file", path=".env").text
        assert person.asked == []
        tools = Tools(Workspace(root), Policy(yes=True, rules=Rules(allow=("*",))))
        assert not _run(tools, "read_file", path=".env").ok  # no rule allows what is dangerous

    def test_the_person_may_put_them_before_the_model(self, root: Path) -> None:
        assert "TOKEN=abc" in Tools(Workspace(root), Policy()).show(".env")
        with pytest.raises(UserError):
            Tools(Workspace(root), Policy()).show(".env.gone")

    def test_a_patch_that_does_not_fit_tells_nothing_of_them(self, root: Path) -> None:
        patch = "*** Begin Patch\n*** Update File: {}\n@@\n TOKEN=ab\n-x=1\n+x=2\n*** End Patch\n"
        tools = Tools(Workspace(root), Policy(ask=Person(True)))
        result = _run(tools, "apply_patch", patch=patch.format(".env"))
        assert (result.error_kind, result.data["path"], result.data["lines"]) == (
            "context_not_found",
            ".env",
            [],
        )
        assert "read it first: a person is asked" in result.text
        assert "abc" not in result.text
        assert "abc" in _run(tools, "apply_patch", patch=patch.format("f")).text
        _run(tools, "read_file", path=".env")
        assert "abc" in _run(tools, "apply_patch", patch=patch.format(".env")).text

    def test_the_question_cannot_redraw_the_terminal(self, root: Path) -> None:
        (root / ".env.\x1b[2K").write_text("x\n")
        seen: list[str] = []

        def ask(spec: ToolSpec, arguments: Mapping[str, Any], verdict: Verdict) -> bool:
            seen.append(f"{verdict.part!r} {verdict.reason}")
            return True

        assert _run(Tools(Workspace(root), Policy(ask=ask)), "read_file", path=".env.\x1b[2K").ok
        assert seen[0].isprintable()


@pytest.mark.parametrize(
    ("path", "expected"),
    [
        *(
            (path, True)
            for path in (".env", "a/.ENV", ".env.local", ".envrc", "/home/me/.ssh/config", ".aws/x", "id_rsa")
        ),
        *(
            (path, True)
            for path in ("/etc/shadow", "/proc/1/environ", "a/.docker/config.json", ".e*", "a/i?_rsa")
        ),
        *(
            (path, False)
            for path in (".env.example", ".ENV.Sample", "id_rsa.pub", "env", "environment.py", ".environ")
        ),
        *((path, False) for path in ("", ".", "src/credentials.py", "*", "a*", ".github/x", ".envs/x")),
    ],
)
def test_names_of_credentials(path: str, expected: bool) -> None:
    assert credentials.named(path) is expected
