"""Rules from TOML files: what they say, and what they must not say."""

from __future__ import annotations

from pathlib import Path

import pytest

from constrained_agent.errors import UserError
from constrained_agent.tools import rules
from constrained_agent.tools.rules import Rules


@pytest.fixture
def root(tmp_path: Path) -> Path:
    root = tmp_path / "repo"
    root.mkdir()
    return root


@pytest.fixture
def variables(tmp_path: Path) -> dict[str, str]:
    return {"HOME": str(tmp_path / "home"), "XDG_CONFIG_HOME": ""}


def _write(path: Path, text: str) -> Path:
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_text(text, encoding="utf-8")
    return path


def test_no_file_is_no_rule(root: Path, variables: dict[str, str]) -> None:
    assert rules.load(root, variables) == Rules()


def test_both_files_are_read_and_kept_apart(root: Path, variables: dict[str, str]) -> None:
    _write(root / ".constrained-agent.toml", '[permissions]\nallow = ["make*"]\nask = ["a"]\ndeny = ["b"]\n')
    _write(
        rules.home_file(variables),
        '[permissions]\nallow = ["git push*"]\nask = ["c"]\ndeny = ["d"]\n[environment]\npass = ["NPM_TOKEN"]\n',
    )
    assert rules.load(root, variables) == Rules(
        allow=("git push*",),
        repository_allow=("make*",),
        ask=("c", "a"),
        deny=("d", "b"),
        passed=("NPM_TOKEN",),
    )


def test_where_the_persons_own_file_lies(tmp_path: Path) -> None:
    home = str(tmp_path)
    assert rules.home_file({"HOME": home}) == tmp_path / ".config/constrained-agent/config.toml"
    assert rules.home_file({"HOME": home, "XDG_CONFIG_HOME": "/etc/x"}) == Path(
        "/etc/x/constrained-agent/config.toml"
    )
    assert rules.home_file({"HOME": home, "XDG_CONFIG_HOME": "not/absolute"}).is_relative_to(tmp_path)


@pytest.mark.parametrize(
    ("text", "says"),
    [
        ("[permissions\n", ":1: no TOML: "),
        ("\n\n[permissions]\nallow = [", ":4: no TOML: "),
        (
            "[permissions]\nask = ['a']\nalow = ['b']\n",
            ":3: permissions.alow is not known; there are allow, ask, deny",
        ),
        ("x = 1\n[permissions]\n", ":1: [x] is not known here; there is [permissions]"),
        ("[other]\n", ":1: [other] is not known here"),
        (
            "[permissions]\n[environment]\npass = ['A']\n",
            ":2: [environment] is not known here (only the file in the home",
        ),
        ("permissions = 3\n", ":1: permissions: a table is needed"),
        ("[permissions]\nallow = 'pytest'\n", ":2: allow: a list of patterns is needed"),
        ("[permissions]\n\nallow = ['a', 3]\n", ":3: allow: a text that is not empty is needed, not 3"),
        ("[permissions]\ndeny = ['']\n", ":2: deny: a text that is not empty is needed"),
        ("[permissions]\ndeny = [" + "'x'," * 50_000 + "]", "larger than 100,000 bytes"),
    ],
)
def test_mistakes_are_told_with_file_and_line(
    root: Path, variables: dict[str, str], text: str, says: str
) -> None:
    path = _write(root / ".constrained-agent.toml", text)
    with pytest.raises(UserError) as caught:
        rules.load(root, variables)
    assert str(caught.value).startswith(f"{path}:")
    assert says in str(caught.value)


def test_a_file_that_is_no_text_is_told(root: Path, variables: dict[str, str]) -> None:
    (root / ".constrained-agent.toml").write_bytes(b"\xff\xfe")
    with pytest.raises(UserError, match="cannot be read"):
        rules.load(root, variables)
    (root / ".constrained-agent.toml").unlink()
    (root / ".constrained-agent.toml").mkdir()
    with pytest.raises(UserError, match="cannot be read"):
        rules.load(root, variables)


@pytest.mark.parametrize(
    ("pattern", "text", "fits"),
    [
        ("pytest*", "pytest -q", True),
        ("pytest*", "pytest", True),
        ("pytest", "pytest -q", False),
        ("pytest -?", "pytest -q", True),
        ("git push origin *", "git push  origin   main", True),
        ("*/x", "a/x", True),
        ("[ab] x", "b x", True),
        ("GIT push", "git push", False),
    ],
)
def test_patterns(pattern: str, text: str, fits: bool) -> None:
    assert (rules.fits((pattern,), (text,)) is not None) is fits
