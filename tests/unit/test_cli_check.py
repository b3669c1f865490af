"""The `check` command as people and programs run it: real processes, exit codes, both outputs."""

from __future__ import annotations

import json
import os
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest

from constrained_agent.cli.check_view import View
from constrained_agent.grammar import prefix, sources
from constrained_agent.model import cards, weights

BEGIN = "*** Begin Patch\n"
GOOD = BEGIN + "*** Delete File: a\n*** End Patch\n"
KEYS = {"status", "valid_bytes", "valid_chars", "line", "column", "found", "expected", "forced", "completion"}


def check(
    *args: str, text: bytes | str = b"", env: dict[str, str] | None = None
) -> subprocess.CompletedProcess[bytes]:
    return subprocess.run(
        [sys.executable, "-W", "error", "-m", "constrained_agent", "check", *args],
        input=text.encode() if isinstance(text, str) else text,
        capture_output=True,
        check=False,
        timeout=60,
        env={**os.environ, **(env or {})},
    )


def last_line(run: subprocess.CompletedProcess[bytes]) -> dict[str, Any]:
    made: dict[str, Any] = json.loads(run.stdout.splitlines()[-1])
    return made


@pytest.mark.parametrize(
    ("text", "code", "status"),
    [
        (GOOD, 0, "complete"),
        (GOOD[:-1], 0, "complete"),
        (GOOD[:20], 3, "prefix"),
        (b"", 3, "prefix"),
        (GOOD + "x", 1, "invalid"),
        (b"\xff\xfe*\x00", 1, "invalid"),
        (GOOD.replace("\n", "\r\n"), 1, "invalid"),
    ],
)
def test_exit_codes_and_the_json_line(text: bytes | str, code: int, status: str) -> None:
    run = check("--json", text=text)

    assert (run.returncode, run.stderr) == (code, b"")
    made = last_line(run)
    assert made.keys() >= KEYS
    assert made["status"] == status
    assert isinstance(made["expected"], list)
    assert run.stdout.decode().startswith(status)


def test_what_a_person_sees() -> None:
    run = check(text=BEGIN + "*** Add File: 文件\tx\n+a\n*x")

    assert run.returncode == 1
    assert run.stdout.decode().splitlines() == [
        "invalid at line 4, column 2 (byte 43)",
        "",
        "    4 | *x",
        "         ^",
        "",
        'found:      "x"',
        'expected:   "** Add File: "',
        '            "** Delete File: "',
        '            "** End Patch"',
        '            "** Update File: "',
        'completion: "** End Patch"',
    ]


def test_files_standard_input_and_grammars(tmp_path: Path) -> None:
    text, grammar, schema = tmp_path / "t.txt", tmp_path / "g.lark", tmp_path / "s.json"
    text.write_bytes(b'{"a": 1}')
    grammar.write_text("start: /[^\\n]+/\n")
    schema.write_text('{"type": "object", "properties": {"a": {"type": "integer"}}}')

    assert check(str(text)).returncode == 1
    assert check(str(text), "--grammar", str(grammar)).returncode == 0
    assert check(str(text), "--json-schema", str(schema)).returncode == 0
    assert check(str(text), "--json-schema", str(schema), "--compact").returncode == 0
    assert check("--json-schema", str(schema), text='{"a":1}').returncode == 0
    assert check("-", "--json-schema", str(schema), "--compact", text='{"a":1}').returncode == 1
    assert check("-", "--regex", "(ab)+", text="aba").returncode == 3
    assert (
        check(
            "--grammar", "apply_patch_strict", text=BEGIN + "*** Delete File: ../a\n*** End Patch"
        ).returncode
        == 1
    )


@pytest.mark.parametrize(
    ("args", "words"),
    [
        (["nosuch.txt"], "nosuch.txt: cannot be read: No such file"),
        (["."], "cannot be read: Is a directory"),
        (["--grammar", "nosuch"], "apply_patch, apply_patch_strict"),
        (["--json-schema", "nosuch.json"], "nosuch.json: cannot be read"),
        (["--regex", "("], "does not compile: invalid regex"),
        (["--regex", "a", "--grammar", "apply_patch"], "--grammar and --regex contradict each other"),
        (["--compact"], "--compact goes with --json-schema"),
        (["--tools", "nosuch.json"], "nosuch.json: cannot be read"),
        (["--tool-choice", "auto"], "--tool-choice goes with --tools"),
        (["--markers", "text"], "--markers goes with --tools"),
        (["--think"], "--think goes with --tools"),
        (["--model", "smollm2-135m"], "--model goes with --tokens"),
        (["--tokens", "--model", "no/such/folder"], "no/such/folder"),
        (["--lint", "--trace"], "--lint looks at the grammar alone"),
        (["--lint", "a"], "--lint looks at the grammar alone"),
        (["--regex", "a", "--html", "no/such/folder/x.html"], "x.html: cannot be written"),
        (["a", "b"], "unexpected extra argument"),
        (["--nosuch"], "No such option"),
    ],
)
def test_wrong_calls(args: list[str], words: str) -> None:
    run = check(*args)

    assert run.returncode == 2
    assert run.stdout == b""
    assert words in run.stderr.decode()
    assert b"Traceback" not in run.stderr


@pytest.mark.parametrize(
    ("content", "words"),
    [
        (b"start: nothing\n", "g.lark:1:8: does not compile: unknown name"),
        (b'start: <tool_call> "x"\n', "tool_call"),
        (b"start: \xff", "not UTF-8"),
        (b'\xef\xbb\xbfstart: "a"', "does not compile"),
        (b'start: "a\x00"', "does not compile"),
        (b"start: " + b"(" * 20_000 + b'"a"' + b")" * 20_000, "too deeply nested"),
    ],
)
def test_grammars_that_do_not_compile(tmp_path: Path, content: bytes, words: str) -> None:
    (tmp_path / "g.lark").write_bytes(content)

    run = check("--grammar", str(tmp_path / "g.lark"), "--json", text="a")

    assert run.returncode == 2
    assert json.loads(run.stdout)["ok"] is False
    assert words in run.stderr.decode()
    assert b"Traceback" not in run.stderr


def test_a_long_chain_of_rules_ends_no_process(tmp_path: Path) -> None:
    rules = "".join(f'r{i}: "a" r{i + 1}\n' for i in range(10_000))
    (tmp_path / "g.lark").write_text(f'start: r0\n{rules}r10000: "b"\n')

    run = check("--grammar", str(tmp_path / "g.lark"), "--trace", text="aaa")

    assert (run.returncode, run.stderr) == (3, b"")


def test_a_terminal_that_lacks_the_characters() -> None:
    run = check("--regex", "[α-ω]文", text="x", env={"PYTHONIOENCODING": "ascii"})

    assert (run.returncode, run.stderr) == (1, b"")
    assert b"\\u03b1" in run.stdout


def test_everything_that_is_expected_on_demand(tmp_path: Path) -> None:
    words = " | ".join(f'"{chr(97 + i)}{i}-" /[xyz]/' for i in range(25))
    (tmp_path / "g.lark").write_text(f"start: {words}")

    short = check("--grammar", str(tmp_path / "g.lark"), "--json")
    assert len(last_line(short)["expected"]) == 20
    assert last_line(short)["expected_left_out"] == 5
    assert b"and 5 more" in short.stdout
    assert len(last_line(check("--grammar", str(tmp_path / "g.lark"), "--json", "--all"))["expected"]) == 25


def test_trace() -> None:
    run = check("--trace", "--json", "--regex", "a[b-d]x", text="acz")

    rows = run.stdout.decode().splitlines()
    assert rows[1].split() == ["0", "1:1", '"a"', "1", "forced"]
    assert rows[2].split() == ["1", "1:2", '"c"', "3"]
    assert rows[3].split() == ["2", "1:3", '"z"', "1", "REFUSED"]
    assert [step["text"] for step in last_line(run)["trace"]] == ["a", "c", "z"]


def test_cross_check(tmp_path: Path) -> None:
    agreed = check("--cross-check", "--json", text=GOOD)
    assert agreed.returncode == 0
    assert last_line(agreed)["cross_check"] == {
        "parser": "lalr",
        "accepts": True,
        "reason": "",
        "contradicts": False,
    }

    (tmp_path / "g.lark").write_text('start: A "c"\nA: /a|ab/\n')
    contradicted = check("--cross-check", "--grammar", str(tmp_path / "g.lark"), text="abc")
    assert contradicted.returncode == 1
    assert b"DISAGREES" in contradicted.stdout

    silent = check("--cross-check", "--regex", "a", text="a")
    assert silent.returncode == 0
    assert b"has no opinion" in silent.stdout


TOOLS = [
    {"name": "read_file", "parameters": {"type": "object", "properties": {"path": {"type": "string"}}}},
    {"name": "apply_patch", "freeform": True, "parameters": {"properties": {"patch": {"type": "string"}}}},
]
CALL = '<tool_call>\n{"name": "read_file", "arguments": {"path": "</tool_call>"}}\n</tool_call>'


@pytest.fixture
def tools_file(tmp_path: Path) -> str:
    (tmp_path / "tools.json").write_text(json.dumps([{"type": "function", "function": TOOLS[0]}, TOOLS[1]]))
    return str(tmp_path / "tools.json")


@pytest.mark.parametrize("markers", ["token", "text"])
@pytest.mark.parametrize(
    ("text", "code"),
    [
        (CALL, 0),
        ("Hi\n" + CALL, 0),
        (f'<tool_call>\n{{"name": "apply_patch"}}\n{GOOD}</tool_call>', 0),
        (CALL[:-12], 3),
        (CALL.replace("read_file", "write_file"), 1),
    ],
)
def test_a_whole_answer(tools_file: str, markers: str, text: str, code: int) -> None:
    assert check("--tools", tools_file, "--markers", markers, text=text).returncode == code


def test_flags_of_a_whole_answer(tools_file: str) -> None:
    thinking = "<think>\nhm, <tool_call>\n</think>\n\n"
    assert check("--tools", tools_file, "--think", text=thinking + CALL).returncode == 0
    assert check("--tools", tools_file, "--think", text=CALL).returncode == 1
    assert check("--tools", tools_file, "--tool-choice", "required", text="Hi").returncode == 1
    assert check("--tools", tools_file, "--tool-choice", "nosuch").returncode == 2
    assert check("--tools", tools_file, "--think", "--markers", "text").returncode == 2

    made = last_line(check("--tools", tools_file, "--trace", "--json", text="Hi <tool_call>"))
    assert made["expected"] == ["\n"]
    assert made["forced"] == '\n{"name": "'
    assert made["trace"][-1]["text"] == "<tool_call>"
    assert made["completion"].endswith("</tool_call>")


@pytest.mark.parametrize(
    ("content", "words"),
    [
        ("[]", "at least one tool"),
        ("{", "not JSON"),
        ('[{"name": 1}]', "entry 0 is not a tool"),
        ('[{"name": "a b"}]', "tool name 'a b'"),
        ('[{"name": "a"}, {"name": "a"}]', "a second tool named 'a'"),
        ('[{"name": "a", "parameters": []}, {"name": "b", "parameters": [1]}]', "entry 1"),
        ('[{"name": "a", "freeform": true}]', "needs exactly one property"),
        (
            '[{"name": "a"}, {"name": "b", "parameters": {"properties": {"x": {"not": {}}}}}]',
            'parameters of tool b: does not compile: unsupported keyword "not" at #/properties/x',
        ),
    ],
)
def test_tools_files_that_are_wrong(tmp_path: Path, content: str, words: str) -> None:
    (tmp_path / "t.json").write_text(content)

    run = check("--tools", str(tmp_path / "t.json"))

    assert (run.returncode, run.stdout) == (2, b"")
    assert words in run.stderr.decode()
    assert b"Traceback" not in run.stderr


def test_lint(tmp_path: Path, tools_file: str) -> None:
    (tmp_path / "g.lark").write_text('start: ("list" | "listen") "ed"')

    clean = check("--lint", "--tools", tools_file, "--json")
    assert (clean.returncode, last_line(clean)) == (0, {"ok": True, "findings": []})

    run = check("--lint", "--grammar", str(tmp_path / "g.lark"), "--json")
    assert run.returncode == 1
    assert "g.lark:1:9: prefix_terminals: " in run.stdout.decode()
    assert "    mended: " in run.stdout.decode()
    (found,) = last_line(run)["findings"]
    assert found.keys() == {"code", "line", "column", "message", "example"}


def test_tokens_of_a_model(tiny_qwen3_dir: Path, tools_file: str) -> None:
    run = check("--tokens", "--json", "--model", str(tiny_qwen3_dir), "--tools", tools_file, text=CALL)

    assert run.returncode == 0
    steps = last_line(run)["tokens"]
    assert "".join(step["text"] for step in steps) == CALL
    assert [step["text"] for step in (steps[0], steps[-1])] == ["<tool_call>", "</tool_call>"]
    assert all(step["n_allowed"] >= 1 and step["taken"] for step in steps)
    assert [step["text"] for step in steps if step["forced"]][:3] == ["\n", '{"', "name"]
    assert f"{len(steps)} tokens, " in run.stdout.decode()


def test_tokenizers_load_without_weights(tiny_qwen3_dir: Path) -> None:
    card, tokenizer = weights.load_tokenizer(cards.resolve(str(tiny_qwen3_dir)))

    assert (card.markers, tokenizer.vocab_size) == ("token", 151_669)


def test_page(tmp_path: Path) -> None:
    run = check("--html", str(tmp_path / "out.html"), text=BEGIN + "x")

    assert run.returncode == 1
    assert "Refused at line 2, column 1" in (tmp_path / "out.html").read_text(encoding="utf-8")


def test_check_loads_no_model_code() -> None:
    code = (
        "import io, sys\n"
        "sys.stdin = io.TextIOWrapper(io.BytesIO(b'x'))\n"
        "from constrained_agent.cli.app import run\n"
        "code = run(['check', '--json'])\n"
        "loaded = {name.split('.')[0] for name in sys.modules}\n"
        "heavy = loaded & {'mlx', 'mlx_lm', 'transformers', 'tokenizers', 'lark'}\n"
        "assert not heavy, heavy\n"
        "sys.exit(code)"
    )
    run = subprocess.run([sys.executable, "-c", code], capture_output=True, check=False)

    assert (run.returncode, run.stderr) == (1, b"")


def rows_of(text: bytes, grammar: sources.Grammar) -> list[str]:
    return View(prefix.check(text, grammar), text).as_text().splitlines()


def test_the_caret_stands_below_wide_characters_and_tabs() -> None:
    rows = rows_of("文e\u0301\tb".encode(), sources.from_regex("文e\u0301\ta"))

    assert rows[2:4] == ["    1 | 文e\u0301  b", "        " + "  " + " " + "  " + "^"]


def test_long_lines_are_cut_around_the_place() -> None:
    text = f"{BEGIN}*** Add File: a\n+{'y' * 5_000}\x00".encode() + b"\xff" + b"z" * 5_000

    rows = rows_of(text, sources.load("apply_patch"))

    assert max(map(len, rows)) < 130
    assert rows[2][rows[3].index("^") :].startswith("\\xff")
    assert "…" in rows[2]


def test_long_completions_are_cut_in_the_middle() -> None:
    grammar = sources.Grammar("long", "lark", f'start: "{"ab" * 2_000}"')
    report = prefix.check(b"a", grammar)

    text = View(report, b"a").as_text()

    assert "more …" in text
    assert len(text) < 2_000
