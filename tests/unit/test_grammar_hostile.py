"""Grammars made to crash or hang: each ends in an answer or in one clear line, in a process of its own."""

from __future__ import annotations

import json
import subprocess
import sys
import time
from pathlib import Path
from typing import Any

import pytest

from constrained_agent.errors import UserError
from constrained_agent.grammar import sources, walk

# The limits as they are, but for a shorter wait.
_RUN = (
    "import sys\n"
    "from constrained_agent.grammar import walk\n"
    "walk._LIMIT_S = 1.0\n"
    "from constrained_agent.cli.app import run\n"
    "sys.exit(run(sys.argv[1:]))\n"
)


def nested(depth: int, make: Any) -> Any:
    inner: Any = {}
    for _ in range(depth):
        inner = make(inner)
    return inner


LARK = {
    "nested brackets": "start: " + "(" * 100_000 + '"a"' + ")" * 100_000,
    "100,000 rules": "start: r0\n"
    + "".join(f'r{i}: "a" r{i + 1}\n' for i in range(100_000))
    + 'r100000: "b"',
    "chain of 30,000 rules": "start: r0\n"
    + "".join(f"r{i}: r{i + 1}\n" for i in range(30_000))
    + 'r30000: "b"',
    "doubling terminals": "start: T0\n"
    + "".join(f"T{i}: T{i + 1} T{i + 1}\n" for i in range(60))
    + 'T60: "b"',
    "doubling rules": "start: r0\n" + "".join(f"r{i}: r{i + 1}? r{i + 1}?\n" for i in range(60)) + 'r60: "b"',
    "ambiguous": 'start: s\ns: s s | s s s | "a" | ""',
    "left recursion": "start: a\na: b\nb: a",
    "counted": 'start: r{0,100000000}\nr: ("a"{1000}){1000} | "b" r',
    "regex tower": "start: /((((a{1000}){1000}){1000}){1000})/",
    "exponential regex": "start: /(a|b)*a(a|b){30}/ /(.*a.{20}b.*)/",
    "long literal": f'start: "{"a" * 1_000_000}"',
    "20,000 alternatives": "start: " + " | ".join(f'"w{i}"' for i in range(20_000)),
    "NUL": 'start: "a\0b"',
    "a file as import": "%import /etc/passwd.X\nstart: X",
    "nested grammars": "start: " + "%lark { start: " * 300 + '"a"' + "}" * 300,
}
REGEX = {
    "nested": "(" * 5_000 + "a" + ")" * 5_000,
    "tower": "((((a{1000}){1000}){1000}){1000})",
    "counted": "a{4294967295}",
    "backtracking": "(a*)*b",
    "not UTF-8": "\udcff",
    "look-around": "(?<!a)b",
}
SCHEMAS = {
    "huge enum": {"enum": [f"v{i}" for i in range(50_000)]},
    "refers to itself": {"$ref": "#"},
    "never ends": {
        "$ref": "#/$defs/a",
        "$defs": {"a": {"required": ["n"], "properties": {"n": {"$ref": "#/$defs/a"}}}},
    },
    "refers in a circle": {
        "$ref": "#/$defs/a",
        "$defs": {"a": {"$ref": "#/$defs/b"}, "b": {"$ref": "#/$defs/a"}},
    },
    "refers to the network": {"$ref": "http://example.com/schema"},
    "many choices": {"allOf": [{"anyOf": [{"required": [f"p{i}{j}"]} for j in range(4)]} for i in range(12)]},
    "many properties": {"properties": {f"p{i}": {} for i in range(20_000)}},
    "nested": nested(400, lambda inner: {"properties": {"a": inner}}),
    "nested too deep for Python": nested(900, lambda inner: {"not": inner}),
    "long minimum": {"type": "string", "minLength": 100_000},
    "costly multiple": {"type": "integer", "multipleOf": 1_234_567},
    "costly multiples": {
        "type": "integer",
        "allOf": [{"multipleOf": p} for p in (2, 3, 5, 7, 11, 13, 17, 19, 23)],
    },
    "wide range": {"type": "integer", "minimum": -(10**300), "maximum": 10**300},
    "lone surrogate": {"const": "\ud800"},
    "not a number": {"minimum": float("nan")},
}


def check(*args: str, text: bytes = b"aab") -> subprocess.CompletedProcess[bytes]:
    return subprocess.run(
        [sys.executable, "-c", _RUN, "check", *args],
        input=text,
        capture_output=True,
        check=False,
        timeout=120,
    )


def assert_survived(run: subprocess.CompletedProcess[bytes]) -> None:
    """An answer, or exit code 2 with one line."""
    assert run.returncode in (0, 1, 2, 3), run
    assert b"Traceback" not in run.stderr
    assert b"panicked" not in run.stderr
    if run.returncode == 2:
        assert run.stdout == b""
        assert run.stderr.startswith(b"error: ")
        assert run.stderr.count(b"\n") == 1
        assert len(run.stderr) < 1_200


@pytest.mark.parametrize("name", LARK)
def test_lark(name: str, tmp_path: Path) -> None:
    (tmp_path / "g.lark").write_text(LARK[name])

    assert_survived(check("--grammar", str(tmp_path / "g.lark")))


@pytest.mark.parametrize("name", REGEX)
def test_regex(name: str) -> None:
    assert_survived(check("--regex", REGEX[name]))


@pytest.mark.parametrize("name", SCHEMAS)
def test_schemas(name: str, tmp_path: Path) -> None:
    (tmp_path / "s.json").write_text(json.dumps(SCHEMAS[name]))

    assert_survived(check("--json-schema", str(tmp_path / "s.json"), text=b'{"a"'))


@pytest.mark.parametrize(
    "name", ["nested", "nested too deep for Python", "refers to itself", "lone surrogate"]
)
def test_tools(name: str, tmp_path: Path) -> None:
    (tmp_path / "t.json").write_text(json.dumps([{"name": "x", "parameters": SCHEMAS[name]}]))

    assert_survived(check("--tools", str(tmp_path / "t.json")))


@pytest.mark.parametrize(
    "name", ["doubling terminals", "nested brackets", "chain of 30,000 rules", "ambiguous"]
)
def test_lint_of_hostile_grammars(name: str, tmp_path: Path) -> None:
    (tmp_path / "g.lark").write_text(LARK[name])

    assert_survived(check("--lint", "--grammar", str(tmp_path / "g.lark")))


def test_what_takes_too_long_says_so(tmp_path: Path) -> None:
    (tmp_path / "g.lark").write_text(LARK["doubling terminals"])

    run = check("--grammar", str(tmp_path / "g.lark"))

    assert run.returncode == 2
    assert b"too costly" in run.stderr
    assert b"no answer within 1 s" in run.stderr


def test_memory_is_bounded_too(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(walk, "_LIMIT_BYTES", -1)

    with pytest.raises(UserError, match="too costly"):
        walk.guarded(lambda: time.sleep(1), sources.from_regex("a"))


def test_the_jobs_own_errors_come_through() -> None:
    def late() -> None:
        raise TimeoutError("its own")

    with pytest.raises(TimeoutError, match="its own"):
        walk.guarded(late, sources.from_regex("a"))
    assert walk.guarded(lambda: 7, sources.from_regex("a")) == 7
