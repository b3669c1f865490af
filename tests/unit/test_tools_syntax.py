"""Syntax errors that an edit brings: found, told apart from old ones, told to the model, or refused."""

from __future__ import annotations

import os
import sys
from pathlib import Path

import pytest

from constrained_agent.messages import ToolCall, ToolResult
from constrained_agent.tools import syntax, syntax_worker
from constrained_agent.tools.languages import language
from constrained_agent.tools.permissions import Policy
from constrained_agent.tools.registry import Tools
from constrained_agent.tools.syntax import MAX_BYTES, MAX_SHOWN, SyntaxProblem, new_errors
from constrained_agent.tools.workspace import Workspace

RIGHT = {
    "a.py": "def f(x):\n    return [x,\n            1]\n",
    "a.json": '{"a": [1, 2],\n "b": null}\n',
    "a.toml": '[a]\nb = ["c",\n  "d"]\n',
    "a.yaml": "a:\n  - b: 1\n  - {c: d}\n",
    "a.js": "export const f = (x) => {\n  return `${x}`;\n};\n",
    "a.jsx": "const a = () => <div>{b}</div>;\n",
    "a.mjs": 'import a from "a";\n',
    "a.ts": "interface A<T> { a: T }\nconst x: A<number> = { a: 1 };\n",
    "a.tsx": "const a = (x: number) => <p>{x}</p>;\n",
    "a.go": "package a\n\nfunc f(x int) int {\n\treturn x\n}\n",
    "a.rs": "fn f<'a>(x: &'a str) -> &'a str {\n    x\n}\n",
    "A.java": "class A {\n  int f(int x) { return x; }\n}\n",
    "a.c": "int f(int x) {\n  return x;\n}\n",
    "a.h": "#ifndef A\n#define A\nint f(int x);\n#endif\n",
    "a.cpp": "template <class T> T f(T x) {\n  return x;\n}\n",
    "a.sh": "if true; then\n  echo a\nfi\n",
    "run": "#!/usr/bin/env bash\nfor x in a b; do\n  echo $x\ndone\n",
}

WRONG = [
    ("a.py", "def f(x):\n    return [x,\n            1\n", 2, 12, "'[' was never closed", "    return [x,"),
    (
        "a.py",
        "def f(x):\nreturn x\n",
        2,
        1,
        "expected an indented block after function definition on line 1",
        "return x",
    ),
    ("a.py", "x = 1\nreturn x\n", 2, 1, "'return' outside function", "return x"),
    ("a.py", "é = 'a\n", 1, 5, "unterminated string literal (detected at line 1)", "é = 'a"),
    ("a.json", '{"a": 1\n "b": 2}\n', 2, 2, "Expecting ',' delimiter", ' "b": 2}'),
    ("a.json", '{"a": [1}\n', 1, 9, "Expecting ',' delimiter", '{"a": [1}'),
    ("a.toml", "[a]\nb = \n", 2, 5, "Invalid value", "b = "),
    ("a.yaml", "a: b: c\n", 1, 5, "mapping values are not allowed in this context", "a: b: c"),
    ("a.js", "let x = ;\n", 1, 7, 'syntax error at "="', "let x = ;"),
    ("a.js", "f(1;\n", 1, 4, 'missing ")"', "f(1;"),
    ("a.ts", "let é: string = f(1;\n", 1, 20, 'missing ")"', "let é: string = f(1;"),
    ("a.go", "package a\n\nfunc f( {\n}\n", 3, 8, 'missing ")"', "func f( {"),
    ("a.rs", "fn f() {\n    g(1;\n}\n", 2, 8, 'missing ")"', "    g(1;"),
    ("A.java", "class A {\n  int f() { return 1; }\n", 2, 24, 'missing "}"', "  int f() { return 1; }"),
    ("a.c", "int f(void) {\n  return g(1;\n}\n", 2, 13, 'missing ")"', "  return g(1;"),
    ("a.sh", "if true; then\n  echo a\n", 2, 9, 'missing "fi"', "  echo a"),
]


@pytest.mark.parametrize("path", RIGHT)
def test_right_texts(path: str) -> None:
    assert new_errors(path, None, RIGHT[path].encode()) == ()
    assert new_errors(path, None, b"\xef\xbb\xbf" + RIGHT[path].encode()) == ()
    assert new_errors(path, None, RIGHT[path].replace("\n", "\r\n").encode()) == () or path in ("a.sh", "run")
    assert new_errors(path, None, b"") == () or path == "a.json"


@pytest.mark.parametrize(("path", "text", "line", "column", "message", "shown"), WRONG)
def test_wrong_texts(path: str, text: str, line: int, column: int, message: str, shown: str) -> None:
    expected = (SyntaxProblem(line, column, message, shown),)
    assert new_errors(path, None, text.encode()) == expected
    assert new_errors(path, RIGHT[path].encode(), text.encode()) == expected
    assert new_errors(path, RIGHT[path].encode(), b"\xef\xbb\xbf" + text.encode()) == expected
    assert new_errors(path, text.encode(), text.encode()) == ()
    assert new_errors("a.txt", None, text.encode()) == ()


# What is new


def errors(path: str, old: str, new: str) -> list[tuple[int, str]]:
    return [(problem.line, problem.message) for problem in new_errors(path, old.encode(), new.encode())]


def test_an_error_that_moved_is_old() -> None:
    assert errors("a.py", "x = 1\nprint 1\n", "x = 1\ny = 2\nz = 3\nprint 1\n") == []
    assert errors("a.py", "def f():\n    (\n", "x\ndef f():\n    (\n") == []
    assert errors("a.js", "let x = ;\nf();\n", "g();\n  let x = ;\nf();\n") == []


def test_a_message_that_names_a_line_is_the_same_message() -> None:
    assert errors("a.py", "if x:\ny\n", "z = 1\nif x:\ny\n") == []


def test_a_new_one_above_an_old_one() -> None:
    assert errors("a.py", "x = 1\nprint 1\n", "x = (1\nprint 1\n") == [(1, "'(' was never closed")]


def test_an_old_error_that_was_exchanged_for_another_one() -> None:
    assert errors("a.py", "x\nprint 1\ny\n", "x\nprint(1\ny\n") == [(2, "'(' was never closed")]


def test_what_an_old_error_hid_is_not_new() -> None:
    """Python stops at the first error: mending that one must not look like breaking the file."""
    assert errors("a.py", "print 1\nx\nprint 2\n", "print(1)\nx\nprint 2\n") == []
    assert errors("a.py", "print 1\nx\nprint 2\n", "print(1)\nx\ny = (\nprint 2\n") == [
        (3, "'(' was never closed")
    ]


def test_a_second_error_of_the_same_kind_is_new() -> None:
    old = "f();\n}\ng();\n"
    assert errors("a.js", old, "}\nf();\n}\ng();\n") == [(1, 'syntax error at "}"')]
    assert errors("a.js", old, "f();\n}\ng();\n}\n") == [(4, 'syntax error at "}"')]


def test_a_taken_away_line_that_was_needed() -> None:
    old = "if a:\n    f()\ng()\n"
    assert errors("a.py", old, "if a:\ng()\n") == [
        (2, "expected an indented block after 'if' statement on line 1")
    ]
    old = "function f() {\n  g();\n}\nlet y = 2;\n"
    assert errors("a.js", old, old.replace("}\n", "")) == [(3, 'missing "}"')]
    old = "FOREACH(a) {\n}\nint f(void) {\n  g();\n}\nint y;\n"
    assert errors("a.c", old, old.replace("();\n}\n", "();\n")) == [(5, 'missing "}"')]


def test_a_mended_file() -> None:
    assert errors("a.py", "x = (\n", "x = ()\n") == []


# What grammars do not know


def test_macros_and_new_words_are_no_errors() -> None:
    assert errors("a.c", "int a;\n", "int a;\nFOREACH(x, list) {\n  f(x);\n}\nDEFINE(y)\nint b;\n") == []
    assert errors("a.c", "int a;\n", "int a;\nFOREACH(x, list) {\n  f(x;\n}\n") != []
    assert errors("a.ts", "let a;\n", "interface A<in out T> { a: T }\n") == []
    assert new_errors("a.ts", None, b"interface A<in out T> { a: T \n") != ()


def test_what_bash_takes_is_right() -> None:
    script = b"#!/bin/sh\nfor file do\n  echo $file\ndone\n"
    assert syntax_worker._faulty  # the grammar alone is wrong about it:
    assert list(syntax_worker._by_grammar("bash", script))
    assert new_errors("a.sh", None, script) == ()
    assert new_errors("a.sh", None, b"shopt -s extglob\ncase a in !(b)) echo;; esac\n") == ()


def test_a_script_is_read_and_not_run(tmp_path: Path) -> None:
    script = f"touch {tmp_path}/ran\n$(touch {tmp_path}/ran)\nif true; then\n"
    assert new_errors("a.sh", None, script.encode()) != ()
    code = f"open({str(tmp_path / 'ran')!r}, 'w')\n"
    assert new_errors("a.py", None, code.encode()) == ()
    assert list(tmp_path.iterdir()) == []


@pytest.mark.parametrize(
    ("path", "text"),
    [
        ("tsconfig.json", '{"a": 1,}'),
        ("tsconfig.base.json", '{"a": 1,}'),
        (".vscode/settings.json", '{"a": 1,}'),
        ("settings.jsonc", '{"a": 1,}'),
        ("a.json", '{\n  // why\n  "a": 1,\n}'),
        ("a.jsonl", "{}\n{}\n"),
        ("chart/templates/a.yaml", "a: {{ .Values.a }}\n{{- if b }}\nb: 1\n{{- end }}\n"),
        ("a.d.ts", "export default function (): {"),
        ("a.md", "("),
        ("README", "("),
        ("a.zsh", "if"),
    ],
)
def test_what_is_not_checked(path: str, text: str) -> None:
    assert new_errors(path, None, text.encode()) == ()


@pytest.mark.parametrize(
    ("head", "name"),
    [
        (b"#!/bin/sh\n", "bash"),
        (b"#!/usr/bin/env python3\n", "python"),
        (b"#!/usr/bin/python3.11", "python"),
        (b"#!/usr/bin/env -S node\n", "javascript"),
        (b"#!/usr/bin/perl\n", None),
        (b"#!/bin/zsh\n", None),
        (b"", None),
    ],
)
def test_a_file_without_an_ending_says_itself_what_it_is(head: bytes, name: str | None) -> None:
    assert language("bin/tool", head) == name
    assert language("bin/tool.txt", head) is None


# Hostile texts


@pytest.mark.parametrize(
    "path", ["a.py", "a.json", "a.toml", "a.yaml", "a.js", "a.ts", "a.go", "a.rs", "a.c", "a.sh"]
)
@pytest.mark.parametrize(
    "text",
    [
        b"(" * 50_000,
        b"[" * 50_000,
        b"{" * 50_000,
        b"-" * 50_000,
        b"a." * 20_000,
        b"\xff\xfe\n" * 1_000,
        b"a\0b\n",
    ],
    ids=["round", "square", "curly", "minus", "dots", "bytes", "nul"],
)
def test_no_text_breaks_the_check(path: str, text: bytes) -> None:
    for problem in new_errors(path, b"", text):
        assert problem.line >= 1
        problem.message.encode()


def test_a_large_file_is_not_checked() -> None:
    text = b"(" + b" " * MAX_BYTES
    assert new_errors("a.py", None, text) == ()
    assert new_errors("a.py", text, b"(") == ()
    assert new_errors("a.py", b"", text[:-1]) != ()


@pytest.mark.parametrize(
    "program", ["import os, signal; os.kill(os.getpid(), signal.SIGSEGV)", "print('[')", ""]
)
def test_a_parser_that_crashes_fails_no_edit(
    tmp_path: Path, program: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    tmp_path.joinpath("worker.py").write_text(program)
    monkeypatch.setattr(syntax_worker, "__file__", str(tmp_path / "worker.py"))
    assert new_errors("a.py", None, b"(") == ()


def test_a_parser_that_hangs_fails_no_edit(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    tmp_path.joinpath("worker.py").write_text("while True: pass")
    monkeypatch.setattr(syntax_worker, "__file__", str(tmp_path / "worker.py"))
    monkeypatch.setattr(syntax, "TIME_LIMIT_S", 0.2)
    assert new_errors("a.py", None, b"(") == ()


def test_modules_of_the_repository_are_not_imported(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    for name in ("json", "tree_sitter", "tree_sitter_go", "yaml"):
        tmp_path.joinpath(f"{name}.py").write_text(f"open({str(tmp_path / 'ran')!r}, 'w')")
    monkeypatch.chdir(tmp_path)
    assert new_errors("a.go", None, b"package a\nfunc f( {\n}\n") != ()
    assert new_errors("a.yaml", None, b"a: b: c\n") != ()
    assert not tmp_path.joinpath("ran").exists()


# The tool


@pytest.fixture
def root(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    monkeypatch.setenv("XDG_STATE_HOME", str(tmp_path / "state"))
    (tmp_path / "root").mkdir()
    (tmp_path / "root" / "area.py").write_text(
        "def area(w, h):\n    if w < 0:\n        raise ValueError(w)\n    return w + h\n"
    )
    return tmp_path / "root"


def patch(root: Path, *sections: str, refuse_broken: bool = False) -> ToolResult:
    text = "\n".join(["*** Begin Patch", *sections, "*** End Patch", ""])
    tools = Tools(Workspace(root), Policy(), refuse_broken=refuse_broken)
    return tools.run(ToolCall("c", "apply_patch", {"patch": text}))


BREAKS = "*** Update File: area.py\n@@\n-    return w + h\n+    return (w * h"
NOTE = "(read as Python {}.{}; what is meant for another version may be right)".format(*sys.version_info)


def test_new_errors_stand_below_what_landed(root: Path) -> None:
    result = patch(root, BREAKS)
    assert result.ok
    assert result.text.split("\n") == [
        "the patch is applied:",
        "update area.py (+1 -1)",
        "3│        raise ValueError(w)",
        "4│    return (w * h",
        "area.py now has a syntax error that it did not have before: line 4: '(' was never closed",
        "4│    return (w * h",
        " │           ^",
        NOTE,
    ]
    assert result.data["syntax_errors"] == [
        {"path": "area.py", "line": 4, "column": 12, "message": "'(' was never closed"}
    ]


def test_a_right_patch_says_nothing_of_syntax(root: Path) -> None:
    result = patch(root, BREAKS.replace("(w * h", "w * h"))
    assert "syntax" not in result.text
    assert result.data["syntax_errors"] == []


def test_the_next_patch_says_nothing_of_the_old_error(root: Path) -> None:
    patch(root, BREAKS)
    result = patch(root, "*** Update File: area.py\n@@\n+# Area.\n def area(w, h):")
    assert result.ok
    assert "syntax" not in result.text


def test_a_cause_elsewhere_is_pointed_at(root: Path) -> None:
    result = patch(root, "*** Update File: area.py\n@@\n-    if w < 0:\n+    if w < 0: pass")
    assert "line 3: unexpected indent" in result.text
    assert "the patch changed line 2: look for the cause there" in result.text
    (root / "f.js").write_text("function f() {\n  if (a) {\n    b();\n  }\n}\n\nfunction g() {\n}\n")
    result = patch(root, "*** Update File: f.js\n@@\n-  if (a) {\n-    b();\n-  }\n+  if (a) {\n+    b();")
    assert "the patch changed lines 2-3: look for the cause there" in result.text


def test_a_new_file_and_several_errors(root: Path) -> None:
    result = patch(root, "*** Add File: b.js\n+f();\n+let x = ;\n+\tlet y = ;", "*** Add File: c.toml\n+[a")
    lines = result.text.split("\n")
    assert lines[3:] == [
        "b.js has 2 syntax errors:",
        'line 2: syntax error at "="',
        "2│let x = ;",
        " │      ^",
        'line 3: syntax error at "="',
        "3│\tlet y = ;",
        " │\t      ^",
        "c.toml has a syntax error: line 1: Expected ']' at the end of a table declaration",
        "1│[a",
        " │  ^",
    ]


def test_many_errors_are_cut(root: Path) -> None:
    body = "\n".join(["+let x = ;"] * 30)
    result = patch(root, f"*** Add File: b.js\n{body}", f"*** Add File: c.js\n{body}")
    assert result.text.count("let x = ;") == MAX_SHOWN
    assert "b.js has 30 syntax errors:" in result.text
    assert "[25 more]" in result.text
    assert "c.js has 30 syntax errors" in result.text
    assert len(result.data["syntax_errors"]) == MAX_SHOWN


def test_a_file_that_moved_is_looked_at_under_its_new_name(root: Path) -> None:
    (root / "a.txt").write_text("x\n")
    result = patch(root, "*** Update File: a.txt\n*** Move to: a.py\n@@\n-x\n+x = (")
    assert "a.py now has a syntax error" in result.text


@pytest.mark.parametrize("others", [[], ["*** Add File: x/y\n+x", "*** Delete File: gone"]])
def test_refused_before_anything_is_written(root: Path, others: list[str]) -> None:
    (root / "gone").touch()
    before = {path: path.read_bytes() for path in root.iterdir()}
    result = patch(root, *others, BREAKS, refuse_broken=True)
    assert (result.ok, result.error_kind) == (False, "write_failed")
    assert result.text.split("\n") == [
        "write_failed: area.py: nothing was written: with this patch it would have a syntax error "
        "that it does not have now: line 4: '(' was never closed",
        "4│    return (w * h",
        " │           ^",
        NOTE,
        "write the whole patch anew, without the error",
    ]
    assert (result.data["path"], result.data["lines"]) == ("area.py", [4])
    assert {path: path.read_bytes() for path in root.iterdir()} == before


def test_all_broken_files_are_named(root: Path) -> None:
    result = patch(root, "*** Add File: b.toml\n+[a", BREAKS, refuse_broken=True)
    assert "b.toml: nothing was written: with this patch it would have a syntax error: line 1" in result.text
    assert "area.py would be broken, too: line 4" in result.text
    assert os.listdir(root) == ["area.py"]


def test_what_is_right_or_was_broken_before_is_not_refused(root: Path) -> None:
    assert patch(root, BREAKS.replace("(w * h", "w * h"), refuse_broken=True).ok
    (root / "old.py").write_text("print 1\nx\nprint 2\n")
    assert patch(root, "*** Update File: old.py\n@@\n-print 1\n+print(1)", refuse_broken=True).ok
    assert patch(root, "*** Update File: old.py\n@@\n-x\n+y", refuse_broken=True).ok


def test_a_refused_patch_cannot_be_taken_back(root: Path) -> None:
    tools = Tools(Workspace(root), Policy(), refuse_broken=True)
    text = f"*** Begin Patch\n{BREAKS}\n*** End Patch\n"
    assert not tools.run(ToolCall("c", "apply_patch", {"patch": text})).ok
    assert tools.undo().text == "there is no patch to take back"
    assert tools.changes().paths == ()
