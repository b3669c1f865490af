"""`check --root` as people and programs run it: what is said of patches that do not fit the files of a folder."""

from __future__ import annotations

import json
import os
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest

from constrained_agent.cli.check_root import Root
from constrained_agent.errors import UserError
from constrained_agent.grammar.located import prefix as located_prefix
from constrained_agent.grammar.located.offer import MAX_ADDED_LINES, MAX_FILES, MAX_LINES, MAX_NEW_FILES
from constrained_agent.grammar.prefix import Report

KEYS = {"status", "valid_bytes", "valid_chars", "line", "column", "found", "expected", "forced", "completion"}
BEGIN, END = "*** Begin Patch\n", "*** End Patch\n"
AREA = "def area(w, h):\n    if w < 0:\n        raise ValueError(w)\n    return w + h\n"
LIMITS = "[cpu]\nmax = 10\n[mem]\nmax = 10\n[net]\n"
FILES = {
    "src/area.py": AREA,
    "limits.ini": LIMITS,
    "src/ü b/文 1.txt": "eins\nzwei\n",
    "empty.txt": "",
    "crlf.txt": "one\r\ntwo\r\nthree",
    "bom.txt": "\ufefffirst\nsecond\n",
    "same.txt": "x\nx\n",
}


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    for name, text in FILES.items():
        (tmp_path / name).parent.mkdir(parents=True, exist_ok=True)
        (tmp_path / name).write_bytes(text.encode())
    (tmp_path / "logo.png").write_bytes(b"\x89PNG\0")
    return tmp_path


def run(folder: Path, text: str | bytes, *args: str) -> subprocess.CompletedProcess[bytes]:
    return subprocess.run(
        [sys.executable, "-W", "error", "-m", "constrained_agent", "check", "--root", str(folder), *args],
        input=text.encode() if isinstance(text, str) else text,
        capture_output=True,
        check=False,
        timeout=120,
    )


def report(folder: Path, text: str | bytes, max_expected: int | None = 20) -> Report:
    """The same without a process."""
    data = text.encode() if isinstance(text, str) else text
    return located_prefix.check(data, Root(str(folder)).tree(data), max_expected=max_expected)


def words(folder: Path, text: str | bytes) -> tuple[str, ...]:
    return tuple(entry.text for entry in report(folder, text).expected)


def update(path: str, *lines: str) -> str:
    return "\n".join([BEGIN + f"*** Update File: {path}", *lines, END])


# --- through the command line ---


@pytest.mark.parametrize(
    ("text", "code", "said"),
    [
        (update("src/area.py", "@@", "-    return w + h", "+    return w * h"), 0, ["complete"]),
        (update("src/area.py", "@@", "-    return w + h")[:-20], 3, ["prefix", "completion:"]),
        (
            update("area.py", "@@", "-x"),
            1,
            ["invalid at line 2, column 18", "a file that stands under", ": src/area.py"],
        ),
        (
            update("src/area.py", "@@", " def area(w, h):", "-    if w > 0:"),
            1,
            ["invalid at line 5, column 11", 'a line of src/area.py that follows line 1: "    if w < 0:"'],
        ),
        (
            update("limits.ini", "@@", "-max = 10", "+max = 20"),
            1,
            [
                "invalid at line 6, column 1",
                "another line: the old lines stand at lines 2, 4 so far",
                '" " or "-" and a line of limits.ini that follows line 2: "[mem]"',
                'completion: " [mem]\\n*** End Patch"',
            ],
        ),
    ],
)
def test_what_a_person_sees(folder: Path, text: str, code: int, said: list[str]) -> None:
    made = run(folder, text)

    assert (made.returncode, made.stderr) == (code, b"")
    shown = made.stdout.decode()
    assert all(part in shown for part in said), shown


def test_the_json_line(folder: Path) -> None:
    made = run(folder, update("limits.ini", "@@", "-max = 10", "+max = 20"), "--json")

    line: dict[str, Any] = json.loads(made.stdout.splitlines()[-1])
    assert line.keys() >= KEYS
    assert (line["status"], line["valid_bytes"], line["line"], line["column"]) == ("invalid", 67, 6, 1)
    assert line["completion"] == " [mem]\n*** End Patch"
    assert [entry["kind"] for entry in line["expected_detail"]] == ["rule", "line", "line", "literal"]
    assert line["expected_detail"][1]["example"] == " [mem]\n"


@pytest.mark.parametrize(
    ("args", "said"),
    [
        (["--grammar", "apply_patch"], "--root does not go with --grammar"),
        (["--json-schema", "x.json"], "--root does not go with --json-schema"),
        (["--regex", ""], "--root does not go with --regex"),
        (["--tools", "x.json"], "--root does not go with --tools"),
        (["--lint"], "--root does not go with --lint"),
        (["--compact"], "--compact goes with --json-schema"),
    ],
)
def test_flags_that_do_not_go_together(folder: Path, args: list[str], said: str) -> None:
    made = run(folder, "", *args)

    assert (made.returncode, made.stdout) == (2, b"")
    assert said in made.stderr.decode()


@pytest.mark.parametrize("root", ["nosuch", "limits.ini"])
def test_a_root_that_is_no_folder(folder: Path, root: str) -> None:
    made = run(folder / root, "")

    assert (made.returncode, made.stdout) == (2, b"")
    assert f"{root} is not a folder" in made.stderr.decode()


def test_the_other_views(folder: Path, tmp_path: Path) -> None:
    page = tmp_path / "page.html"
    twice = BEGIN + "*** Add File: a\n*** Add File: a\n" + END

    made = run(folder, twice, "--trace", "--cross-check", "--html", str(page))

    assert (made.returncode, made.stderr) == (1, b"")
    shown = made.stdout.decode()
    assert shown.count("REFUSED") == 1
    assert "invalid at line 3, column 16" in shown
    assert "lark:       has no opinion" in shown
    assert "Refused at line 3, column 16" in page.read_text(encoding="utf-8")


def test_this_folder_and_a_file_of_text(folder: Path) -> None:
    (folder / "p.patch").write_text(update("area.py"))

    made = subprocess.run(
        [sys.executable, "-m", "constrained_agent", "check", "p.patch", "--root", "."],
        cwd=folder,
        env={**os.environ, "PYTHONPATH": str(Path(__file__).parents[2])},
        capture_output=True,
        check=False,
    )

    assert b"a file that stands in this folder: src/area.py" in made.stdout


# --- old lines ---


def test_a_hunk_that_may_end(folder: Path) -> None:
    text = BEGIN + "*** Update File: src/area.py\n@@\n     if w < 0:\n-        raise ValueError(w)\n"

    assert words(folder, text) == (
        '"@@" or "***": the old lines fix one place (lines 2 to 3)',
        '" " or "-" and a line of src/area.py that follows line 3: "    return w + h"',
        "+",
    )
    assert words(folder, text + "-    return w + h\n") == (
        '"***": the old lines fix one place (lines 2 to 4)',
        "+",
    )


def test_a_hunk_without_a_change(folder: Path) -> None:
    made = report(folder, update("src/area.py", "@@", "     if w < 0:"))

    assert (made.status, made.line, made.column) == ("invalid", 5, 1)
    assert made.expected[0].text == "a change: a hunk needs a + or - line"


def test_a_hunk_of_new_lines_alone(folder: Path) -> None:
    made = report(folder, update("src/area.py", "@@", "+x"))

    assert made.expected[0].text == "an old line: nothing says yet where in src/area.py the new lines go"
    assert made.expected[1].text == '" " or "-" and a line of src/area.py: "def area(w, h):" (line 1)'


def test_an_update_without_a_hunk(folder: Path) -> None:
    made = report(folder, update("src/area.py"))

    assert (made.line, made.column) == (3, 5)
    assert words(folder, update("src/area.py")) == ("Move to: ",)
    assert made.hint == "the update of src/area.py does nothing yet: it needs a hunk or a *** Move to: line"


def test_lines_that_are_only_the_last_ones(folder: Path) -> None:
    text = update("same.txt", "@@", "-x", "+y")
    made = report(folder, text)

    assert [entry.text for entry in made.expected] == ["of File\n"]
    assert made.hint.startswith("the old lines stand at lines 1, 2 so far: more of them make the place clear")
    assert report(folder, text.replace(END, "*** End of File\n" + END)).status == "complete"


def test_the_nearest_lines_come_first_and_few(folder: Path) -> None:
    lines = [f"    value_{i} = {i}" for i in range(50)]
    (folder / "many.py").write_text("\n".join(lines))
    text = update("many.py", "@@", "-    valeu_33 = 33")

    made = report(folder, text)

    assert made.expected[0].text == 'a line of many.py: "    value_33 = 33" (line 34)'
    assert (len(made.expected), made.n_more) == (5, 45)
    assert len(report(folder, text, max_expected=None).expected) == 50


@pytest.mark.parametrize(
    ("lines", "hint"),
    [
        (["@@ def area(w, h):"], "nothing follows @@ here: the old lines of a located hunk say where it is"),
        (
            ["     if w < 0:", "-    return w + h"],
            "that is line 4 of src/area.py, which does not follow: give all lines in between, or begin another "
            "hunk with @@",
        ),
        (
            ["-    if w < 0:", "@@", "-def area(w, h):"],
            "that is line 1 of src/area.py, but the hunk before ends at line 2: hunks stand in the order of the "
            "file",
        ),
        (["-        return w + h"], 'line 4 of src/area.py differs, in blanks alone: "    return w + h"'),
        (["-def  area(w, h):"], ""),
        (["-    return w + h", "@@"], "src/area.py has no line for another hunk below this one"),
        (["-    if w < 0:", ""], 'an empty line, too, is written with its " ", "-" or "+" in front'),
        (
            ["-def area(w, h):", "if w < 0:"],
            'an old line has " " or "-" in front, and then all blanks that it has in the file',
        ),
    ],
)
def test_likely_causes_in_hunks(folder: Path, lines: list[str], hint: str) -> None:
    made = report(folder, update("src/area.py", *lines))

    assert (made.status, made.hint) == ("invalid", hint)


def test_many_places(folder: Path) -> None:
    (folder / "many.txt").write_text("x\ny\n" * 40 + "z\n")

    assert words(folder, update("many.txt", "-x", "+q"))[:2] == (
        "another line: the old lines stand at lines 1, 3, 5, 7, 9 and 35 more so far",
        '" " or "-" and a line of many.txt that follows lines 1, 3, 5, 7, 9 and 35 more: "y"',
    )


# --- paths ---


@pytest.mark.parametrize(
    ("path", "said", "hint"),
    [
        ("limit.ini", ": limits.ini", ""),
        ("src/ü b/文 2.txt", ": src/ü b/文 1.txt", ""),
        ("logo.png", "", "logo.png: byte 4 of the file is NUL: it is not a text file"),
        ("src", ": src/area.py, src/ü b/文 1.txt", "src: this is a folder; name a file"),
        ("./limits.ini", ": limits.ini", "the name of that file is limits.ini"),
        ("../x", "", "paths are relative to"),
        (".git/config", "", "what is in .git is changed by git only"),
        ("link.py", ": src/area.py", "the name of that file is src/area.py"),
        ("x" * 5_000, "", ""),
    ],
)
def test_files_that_cannot_be_updated(folder: Path, path: str, said: str, hint: str) -> None:
    (folder / "link.py").symlink_to("src/area.py")

    made = report(folder, update(path, "-x"))

    assert (made.status, made.line) == ("invalid", 2)
    assert made.column > len("*** Update File:")
    (entry,) = made.expected
    assert entry.text.startswith(f"a file that stands under {folder}: ")
    assert entry.text.endswith(said)
    assert hint in made.hint if hint else made.hint == ""


def test_a_file_that_is_named_twice(folder: Path) -> None:
    made = report(folder, BEGIN + "*** Delete File: limits.ini\n*** Update File: limits.ini\n")

    assert made.line == 3
    assert made.expected[0].text == (
        "another file: limits.ini is named above, and a patch names each file once"
    )
    assert "limits.ini" not in made.expected[1].text


def test_a_folder_without_another_file(tmp_path: Path) -> None:
    (tmp_path / "a").write_text("x\n")
    twice = BEGIN + "*** Delete File: a\n*** Delete File: a\n"
    none = report(tmp_path / "a/..", twice)

    assert (none.line, none.column) == (3, 5)
    assert none.hint == "a is named above, and a patch names each file once"
    (tmp_path / "a").unlink()
    assert report(tmp_path, BEGIN + "*** Update File: b\n").hint.startswith("no other file under")
    assert words(tmp_path, BEGIN) == ("*** Add File: ",)


@pytest.mark.parametrize("key", ["*** Add File: ", "*** Update File: src/area.py\n*** Move to: "])
@pytest.mark.parametrize(
    ("path", "said", "hint"),
    [
        ("limits.ini", "limits.ini exists", "to change limits.ini, write *** Update File: limits.ini"),
        ("src", "src is a folder", ""),
        ("limits.ini/x", "limits.ini exists", "nothing new goes below limits.ini: it is no folder"),
        ("../x", "", "new paths are relative to the root"),
        (".git/x", "", "a part is not ., .. or .git"),
        ("a//b", "", "new paths are relative to the root"),
    ],
)
def test_new_paths_that_are_not_free(folder: Path, key: str, path: str, said: str, hint: str) -> None:
    made = report(folder, BEGIN + key + path + "\n")

    assert (made.status, made.line) == ("invalid", 2 + key.count("\n"))
    assert [entry.text for entry in made.expected] == [
        f"a path at which nothing stands{': ' if said else ''}{said}"
    ]
    assert hint in made.hint if hint else made.hint == ""


@pytest.mark.parametrize(
    ("first", "second", "column", "said"),
    [
        ("new", "new", 18, "this patch makes new already"),
        ("new", "new/x", 18, "this patch makes new already"),
        ("new/x", "new", 18, "this patch makes new/x, so new is a folder"),
    ],
)
def test_a_new_path_that_is_named_twice(
    folder: Path, first: str, second: str, column: int, said: str
) -> None:
    text = f"{BEGIN}*** Add File: {first}\n+x\n*** Add File: {second}\n"
    made = report(folder, text)

    assert (made.status, made.line, made.column) == ("invalid", 4, column)
    assert made.expected[0].text == f"a path at which nothing stands: {said}"
    completed = text.encode()[: made.valid_bytes] + (made.completion or "").encode()
    assert report(folder, completed).status == "complete"


# --- files of all kinds ---


@pytest.mark.parametrize(
    ("path", "lines"),
    [
        ("crlf.txt", ["@@", " one", "-two", "+2"]),
        ("crlf.txt", ["-three", "+3", "*** End of File"]),
        ("bom.txt", ["-first", "+1st"]),
        ("empty.txt", ["+new"]),
        ("empty.txt", ["@@", "+new", "*** End of File"]),
        ("src/ü b/文 1.txt", ["*** Move to: src/ü b/文 3.txt", "-eins", "+uno", "@@", "-zwei"]),
        ("limits.ini", [" [mem]", "-max = 10", "+max = 20"]),
    ],
)
def test_beginnings_of_patches(folder: Path, path: str, lines: list[str]) -> None:
    data = update(path, *lines).encode()
    for cut in range(0, len(data) + 1, 3):
        made = report(folder, data[:cut])

        assert made.valid_bytes == cut
        assert made.status == ("complete" if cut >= len(data) - 1 else "prefix")
        completion = (made.completion or "").encode("utf-8", "surrogateescape")
        assert report(folder, data[:cut] + completion).status == "complete"
    assert report(folder, data).status == "complete"
    assert report(folder, data + b"\n").status == "invalid"


def test_a_patch_with_crlf(folder: Path) -> None:
    made = report(folder, update("crlf.txt", "-two").replace("\n", "\r\n"))

    assert "CRLF" in made.hint


def test_a_file_of_10_000_lines(folder: Path) -> None:
    lines = [["}", "", f"    call({i})"][i * i % 7 % 3] for i in range(10_000)]
    at = next(i for i in range(7_000, 10_000) if "call" in lines[i])
    (folder / "big.py").write_text("\n".join(lines) + "\n")
    good = update("big.py", f" {lines[at]}", f"-{lines[at + 1]}", "+x", "@@", "-" + lines[at + 7], "+y")
    unclear = update("big.py", "-}", "+x")

    assert report(folder, update("big.py", f"-{lines[at]}", "+x")).status == "complete"
    assert report(folder, good).status == "complete"
    assert report(folder, good.split("@@")[0] + "@@\n").status == "prefix"
    assert words(folder, update("big.py", f"-{lines[at]}", f"-    call({at})"))[0] == (
        f'a line of big.py that follows line {at + 1}: "{lines[at + 1]}"'
    )
    assert words(folder, update("big.py", f"-    call({at}("))[0] == (
        f'a line of big.py: "    call({at})" (line {at + 1})'
    )
    first = [str(i + 1) for i, line in enumerate(lines) if line == "}"]
    assert words(folder, unclear)[0].startswith(
        f"another line: the old lines stand at lines {', '.join(first[:5])} and {len(first) - 5:,} more"
    )


def test_more_lines_than_a_grammar_holds(folder: Path) -> None:
    lines = [f"line {i}" for i in range(MAX_LINES + 100)]
    (folder / "big.txt").write_text("\n".join(lines))

    with pytest.raises(UserError, match="check fewer of its hunks at once"):
        report(folder, update("big.txt", *("-" + line for line in lines)))


def test_more_files_than_a_grammar_holds(folder: Path) -> None:
    names = [f"many/{i:02}" for i in range(MAX_FILES + 1)]
    (folder / "many").mkdir()
    for name in names:
        (folder / name).write_text("x\n")
    deletes = [f"*** Delete File: {name}\n" for name in names]

    assert report(folder, BEGIN + "".join(deletes[:-1]) + END).status == "complete"
    made = report(folder, BEGIN + "".join(deletes) + END)
    assert (made.status, made.line) == ("invalid", MAX_FILES + 2)
    assert made.hint == f"a located patch names at most {MAX_FILES} files"


def test_more_new_files_than_a_patch_adds(folder: Path) -> None:
    adds = "".join(f"*** Add File: new/{i}\n+x\n" for i in range(MAX_NEW_FILES))

    assert report(folder, BEGIN + adds + END).status == "complete"
    assert "*** Add File: " not in words(folder, BEGIN + adds)
    made = report(folder, BEGIN + adds + "*** Add File: new/more\n")
    assert (made.status, made.line, made.column) == ("invalid", 2 + 2 * MAX_NEW_FILES, 5)
    assert made.hint == f"a located patch adds at most {MAX_NEW_FILES} files"


def test_more_new_lines_than_a_grammar_counts(folder: Path) -> None:
    head = BEGIN + "*** Add File: new\n"

    assert report(folder, head + "+\n" * MAX_ADDED_LINES + END).status == "complete"
    made = report(folder, head + "+\n" * (MAX_ADDED_LINES + 1) + END)
    assert made.hint == f"a new file has at most {MAX_ADDED_LINES:,} lines in a located patch"
    assert "+" not in [entry.text for entry in made.expected]


def test_checking_writes_nothing(folder: Path) -> None:
    before = sorted(folder.rglob("*"))

    assert run(folder, update("src/area.py", "-    return w + h")).returncode == 0
    assert sorted(folder.rglob("*")) == before


def test_many_hunks_of_a_large_file(tmp_path: Path) -> None:
    """Each hunk brings its own lines on offer, however many there are."""
    (tmp_path / "h.txt").write_text("".join(f"line {i}\n" for i in range(20_000)))
    hunks = "".join(f"@@\n-line {i * 50}\n+x\n" for i in range(200))
    data = f"*** Begin Patch\n*** Update File: h.txt\n{hunks}*** End Patch\n".encode()
    tree = Root(str(tmp_path)).tree(data)
    assert located_prefix.check(data, tree, max_expected=5).status == "complete"
