"""Old bytes and a patch to new bytes: every rule, in the ways that files and patches come."""

from __future__ import annotations

import pytest

from constrained_agent.errors import PatchError
from constrained_agent.patch import FilePlan, Landing, Plan, parse, plan

F = "*** Update File: f\n"


def planned(files: dict[str, bytes | str], body: str) -> Plan:
    data = {name: text.encode() if isinstance(text, str) else text for name, text in files.items()}
    return plan(parse(f"*** Begin Patch\n{body}*** End Patch\n").patch, data.get)


def only(files: dict[str, bytes | str], body: str) -> FilePlan:
    (file,) = planned(files, body).files
    return file


def new(old: bytes | str, hunks: str) -> bytes | None:
    return only({"f": old}, F + hunks).new


def refused(files: dict[str, bytes | str], body: str) -> PatchError:
    with pytest.raises(PatchError) as caught:
        planned(files, body)
    return caught.value


# Endings, final newline, byte-order mark


@pytest.mark.parametrize(
    ("old", "hunks", "expected"),
    [
        # a replaced line gives its ending to the new one
        (b"a\r\nb\n", "-a\n+A\n", b"A\r\nb\n"),
        (b"a\nb\r\n", "-a\n-b\n+A\n+B\n", b"A\nB\r\n"),
        (b"a\nb\r\nc\n", "-a\n-b\n+A\n+B\n+C\n", b"A\nB\r\nC\r\nc\n"),
        (b"a\r\nb\n", "-a\n-b\n+A\n", b"A\r\n"),
        # an inserted one takes that of the line before, at the top that of the first line
        (b"a\r\nb\n", " a\n+x\n b\n", b"a\r\nx\r\nb\n"),
        (b"a\nb\r\n", "+x\n a\n", b"x\na\nb\r\n"),
        (b"a\r\nb\r\n", "+x\n a\n", b"x\r\na\r\nb\r\n"),
        (b"a\r\nb\n", "@@\n+x\n", b"a\r\nb\nx\n"),
        (b"a\nb\r\n", "@@ b\n+x\n", b"a\nb\r\nx\r\n"),
        # a missing final newline stays missing, and no two lines are joined
        (b"a\nb", "-a\n+A\n", b"A\nb"),
        (b"a\nb", "-b\n+B\n", b"a\nB"),
        (b"a\nb", "-b\n+B\n+C\n", b"a\nB\nC"),
        (b"a\nb", " b\n+c\n+d\n", b"a\nb\nc\nd"),
        (b"a\nb", "@@\n+c\n", b"a\nb\nc"),
        (b"a\nb", "+c\n b\n", b"a\nc\nb"),
        (b"a\r\nb", " b\n+c\n", b"a\r\nb\r\nc"),
        (b"b", " b\n+c\n", b"b\nc"),
        (b"b", "-b\n+c\n+d\n", b"c\nd"),
        (b"a\nb", " a\n-b\n", b"a\n"),
        (b"a\nb", "-a\n-b\n+c\n", b"c"),
        (b"a\nb", "-a\n-b\n", b""),
        (b"a\nb", "@@\n-a\n+c\n@@\n-b\n", b"c"),
        (b"a\nb", " b\n+\n", b"a\nb\n\n"),
        (b"a\nb", "-b\n+\n", b"a\n\n"),
        (b"a\r\nb", "-b\n+c\n+\n", b"a\r\nc\r\n\r\n"),
        (b"a\nb", "@@\n+c\n*** End of File\n", b"a\nb\nc"),
        # final blank lines
        (b"a\n\n\n", "-a\n+A\n", b"A\n\n\n"),
        (b"a\n\n", "@@\n+b\n", b"a\n\nb\n"),
        (b"\n", "-\n+a\n", b"a\n"),
        # byte-order mark
        (b"\xef\xbb\xbfa\nb\n", "-a\n+A\n", b"\xef\xbb\xbfA\nb\n"),
        (b"\xef\xbb\xbfa\n", "+x\n a\n", b"\xef\xbb\xbfx\na\n"),
        (b"\xef\xbb\xbfa\n", "-a\n", b"\xef\xbb\xbf"),
        (b"\xef\xbb\xbf", "+a\n", b"\xef\xbb\xbfa\n"),
        (b"\xef\xbb\xbfh:\n  a\n", "@@ h:\n-  a\n+  b\n", b"\xef\xbb\xbfh:\n  b\n"),
        # an empty file
        (b"", "+a\n", b"a\n"),
        (b"", "@@\n+a\n+b\n*** End of File\n", b"a\nb\n"),
        # bytes that are not UTF-8
        (b"\xe9\na\n\xff\xfe", "-a\n+b\n", b"\xe9\nb\n\xff\xfe"),
        (b"\x80\r\na\r\n", "-a\n+b\n", b"\x80\r\nb\r\n"),
        # only \n ends a line
        ("a\x0cb\u2028c\x85\nd\n", "-d\n+e\n", "a\x0cb\u2028c\x85\ne\n".encode()),
        (b"a\rb\nc\n", "-c\n+d\n", b"a\rb\nd\n"),
        (b"a\rb\nc\n", "-a\rb\n+x\ry\n", b"x\ry\nc\n"),
    ],
)
def test_bytes(old: bytes | str, hunks: str, expected: bytes) -> None:
    assert new(old, hunks) == expected


@pytest.mark.parametrize(
    ("old", "hunks", "expected"),
    [
        (b"a\r\nb\r\n", " a\r\n-b\r\n+c\r\n", b"a\r\nc\r\n"),
        (b"a\nb\n", " a\r\n-b\r\n+c\r\n", b"a\nc\n"),
        (b"a\r\nb\r\n", " a\n-b\n+c\r\n", b"a\r\nc\r\n"),
        (b"a\nb\n", "@@\n+c\r\n", b"a\nb\nc\n"),
        (b"a\r\r\nb\r\n", "-a\r\n+c\r\n", b"c\r\r\nb\r\n"),
    ],
)
def test_carriage_returns_of_the_patch_are_endings(old: bytes, hunks: str, expected: bytes) -> None:
    """Lines of a patch with CR, in a file with or without: never a doubled ending, never a mixed one."""
    assert new(old, hunks) == expected


def test_a_crlf_patch_means_the_same() -> None:
    text = f"*** Begin Patch\n{F}@@\n a\n-b\n+c\n*** End Patch\n".replace("\n", "\r\n")
    for old, expected in ((b"a\nb\n", b"a\nc\n"), (b"a\r\nb\r\n", b"a\r\nc\r\n")):
        (file,) = plan(parse(text).patch, {"f": old}.get).files
        assert file.new == expected


def test_new_files_hold_what_the_patch_says() -> None:
    assert only({}, "*** Add File: f\n+a\n+\n+ b \n").new == b"a\n\n b \n"
    assert only({}, "*** Add File: f\n").new == b""
    assert only({}, "*** Add File: f\n+a\r\n").new == b"a\r\n"


# Context keeps its bytes; indentation


@pytest.mark.parametrize(
    ("old", "hunks", "expected"),
    [
        ("a  \nb\t\nc\n", " a\n-b\n+B\n c\n", "a  \nB\nc\n"),
        ("    a\n    b\n", " a\n-b\n+c\n", "    a\n    c\n"),
        ("  a\n    b\n", " a\n-  b\n+  c\n+    d\n", "  a\n    c\n      d\n"),
        ("a\n  b\n", "   a\n-    b\n+    c\n+  d\n", "a\n  c\nd\n"),
        ("def f():\n    a\n    b\n", " def f():\n   a\n-  b\n+  c\n+\n+x\n", "def f():\n    a\n    c\n\nx\n"),
        ("x:\n\ta\n\t\tb\n", " x:\n   a\n-    b\n+    c\n+      d\n", "x:\n\ta\n\t\tc\n\t\t\td\n"),
        ("x:\n    a\n", " x:\n-\ta\n+\tb\n+\t\tc\n", "x:\n    b\n        c\n"),
        ("\tif a:\n\t\tb\n", " if a:\n-\tb\n+\tc\n", "\tif a:\n\t\tc\n"),
        ("\t  a\n", "-  a\n+  b\n", "\t  b\n"),
        ("  a\n\n  b\n", " a\n\n-b\n+c\n", "  a\n\n  c\n"),
        ("  a\n", "-a\n+b\n+   \n+\n", "  b\n   \n\n"),
        ("“a”\n  b\n", ' "a"\n-  b\n+  c\n', "“a”\n  c\n"),
        ("  “a”\n  b\n", ' "a"\n-b\n+c\n', "  “a”\n  c\n"),
        ("\u00a0\u00a0a…\nb\n", "   a...\n-b\n+c\n", "\u00a0\u00a0a…\nc\n"),
        ("cafe\u0301\nb\n", " caf\u00e9\n-b\n+c\n", "cafe\u0301\nc\n"),
    ],
)
def test_what_is_kept_and_shifted(old: str, hunks: str, expected: str) -> None:
    result = new(old, hunks)
    assert result is not None
    assert result.decode() == expected


@pytest.mark.parametrize(
    ("old", "hunks", "lines"),
    [
        ("if a:\n    if b:\n        c\n", " if a:\n   if b:\n-    c\n+    d\n", (2, 3)),
        ("a\n    b\n", " a\n-b\n+c\n", (2,)),
        ("  a\n\tb\n", " a\n-b\n+c\n", (1, 2)),
        ("\ta\n\tb\n", " a\n-b\n+    c\n", (1, 2)),
        ("x:\n\ta\n", " x:\n-    a\n+      b\n", (1, 2)),
        ("a\nb\n", "     a\n-    b\n+  c\n", (1, 2)),
    ],
)
def test_no_single_shift_is_refused(old: str, hunks: str, lines: tuple[int, ...]) -> None:
    error = refused({"f": old}, F + hunks)
    assert (error.kind, error.lines) == ("indent_mismatch", lines)


@pytest.mark.parametrize(
    ("old", "hunks", "lines"),
    [
        ("a – b\n", "-a - b\n+x\n", (1,)),
        ("k\na\u00a0b\nc…\n", " k\n-a b\n-c...\n+x\n", (2, 3)),
        ("cafe\u0301\n", "-caf\u00e9\n", (1,)),
    ],
)
def test_a_removed_line_must_be_exact(old: str, hunks: str, lines: tuple[int, ...]) -> None:
    error = refused({"f": old}, F + hunks)
    assert (error.kind, error.lines) == ("inexact_removal", lines)


# Several hunks, several sections


def test_hunks_in_any_order() -> None:
    old = "".join(f"{i}\n" for i in range(9))
    assert new(old, "@@\n-7\n+x\n@@\n-1\n@@\n+y\n 4\n") == b"0\n2\n3\ny\n4\n5\n6\nx\n8\n"


def test_insertions_at_one_line_keep_their_order() -> None:
    assert new("a\nb\n", "@@\n a\n+1\n@@\n+2\n b\n") == b"a\n1\n2\nb\n"
    assert new("a\nb\n", "@@\n+2\n b\n@@\n a\n+1\n") == b"a\n1\n2\nb\n"
    assert new("a\nb\n", "@@\n a\n+1\n@@ a\n+2\n@@\n-b\n+3\n") == b"a\n1\n2\n3\n"
    assert new("a\n", "@@\n+1\n@@\n+2\n") == b"a\n1\n2\n"


@pytest.mark.parametrize(
    ("hunks", "hunk", "lines"),
    [
        ("@@\n-1\n-2\n+x\n@@\n-2\n-3\n+y\n", 2, (3,)),
        ("@@\n-2\n-3\n+y\n@@\n-1\n-2\n+x\n", 2, (3,)),
        ("@@\n 1\n-2\n+x\n 3\n@@\n 3\n-4\n+y\n", 2, (4,)),
        ("@@\n 1\n-2\n 3\n 4\n@@\n-3\n+x\n", 2, (4,)),
        ("@@\n-1\n+x\n@@\n-1\n+y\n", 2, (2,)),
        ("@@\n 1\n-2\n 3\n@@ 1\n+x\n", 2, (3,)),
        ("@@\n 1\n 2\n 3\n-4\n@@\n-2\n@@\n-3\n", 2, (3,)),
    ],
)
def test_overlaps(hunks: str, hunk: int, lines: tuple[int, ...]) -> None:
    error = refused({"f": "0\n1\n2\n3\n4\n"}, F + hunks)
    assert (error.kind, error.hunk, error.lines) == ("overlap", hunk, lines)


def test_two_sections_of_one_file_apply_in_order() -> None:
    file = only({"f": "a\nb\nc"}, f"{F}-a\n+b\n{F}@@\n b\n-b\n+x\n{F}@@\n+y\n")
    assert file.new == b"b\nx\nc\ny"
    assert (file.added, file.removed) == (4, 3)
    assert [landing.hunk for landing in file.landings] == [1, 2, 3]


def test_where_hunks_landed() -> None:
    file = only({"f": "a\n  b\nc\n"}, F + "@@\n-c\n+d\n@@\n a\n-  b\n@@\n+e\n")
    assert file.landings == (
        Landing(1, 3, 1, "exact"),
        Landing(2, 1, 2, "exact"),
        Landing(3, 4, 0, "exact"),
    )
    assert only({"f": "  a \n"}, F + "-a\n+b\n").landings == (Landing(1, 1, 1, "trimmed"),)


def test_moves() -> None:
    file = only({"f": b"\0"}, F + "*** Move to: g/h\n")
    assert (file.action, file.new_path, file.new, file.added, file.removed) == ("move", "g/h", b"\0", 0, 0)
    file = only({"f": "a\nb\n"}, F + "*** Move to: g\n-a\n+A\n*** Update File: g\n*** Move to: h\n-b\n")
    assert (file.path, file.new_path, file.new) == ("f", "h", b"A\n")
    file = only({"f": "a\n"}, F + "*** Move to: f\n-a\n+b\n")
    assert (file.action, file.new_path) == ("update", None)
    file = only({"f": "a\n"}, F + "*** Move to: g\n-a\n+b\n*** Update File: g\n*** Move to: f\n")
    assert (file.action, file.path, file.new) == ("update", "f", b"b\n")
    files = planned(
        {"a": "1\n", "b": "2\n"}, "*** Update File: a\n*** Move to: t\n*** Update File: b\n*** Move to: a\n"
    ).files
    assert [(file.path, file.new_path, file.new) for file in files] == [
        ("a", "t", b"1\n"),
        ("b", "a", b"2\n"),
    ]


def test_adding_then_changing() -> None:
    file = only({}, f"*** Add File: f\n+a\n+b\n{F}-a\n+c\n")
    assert (file.action, file.old, file.new, file.added, file.removed) == ("add", None, b"c\nb\n", 2, 0)


def test_one_file_under_two_names() -> None:
    body = "*** Update File: link\n-a\n+A\n*** Update File: f\n-b\n+B\n"
    patch = parse(f"*** Begin Patch\n{body}*** End Patch\n").patch
    (file,) = plan(patch, lambda _: b"a\nb\n", identity=lambda _: 1).files
    assert file.new == b"A\nB\n"


def test_counts() -> None:
    assert (only({"f": "a\nb"}, "*** Delete File: f\n").removed) == 2
    assert (only({}, "*** Add File: f\n+a\n+b\n").added) == 2
    file = only({"f": "a\nb\nc\n"}, F + " a\n-b\n+x\n+y\n c\n")
    assert (file.added, file.removed) == (2, 1)


@pytest.mark.parametrize(
    ("kind", "body"),
    [
        ("file_not_found", "*** Update File: no\n-a\n+b\n"),
        ("file_not_found", "*** Delete File: no\n"),
        ("file_not_found", F + "*** Move to: g\n*** Delete File: f\n"),
        ("file_not_found", F + "*** Move to: g\n" + F + "-a\n+b\n"),
        ("exists", "*** Add File: f\n"),
        ("exists", F + "*** Move to: e\n"),
        ("exists", F + "-a\n+b\n*** Add File: f\n+x\n"),
        ("duplicate_path", "*** Delete File: f\n*** Add File: f\n"),
        ("duplicate_path", "*** Add File: n\n*** Add File: n\n"),
        ("duplicate_path", "*** Add File: n\n*** Delete File: n\n"),
        ("duplicate_path", F + "-a\n+b\n*** Delete File: f\n"),
        ("duplicate_path", "*** Delete File: f\n" + F + "-a\n+b\n"),
        ("duplicate_path", "*** Delete File: f\n*** Delete File: f\n"),
        ("duplicate_path", "*** Delete File: e\n" + F + "*** Move to: e\n"),
        ("duplicate_path", "*** Add File: n\n" + F + "*** Move to: n\n"),
        ("bad_path", "*** Add File: n\n*** Add File: n/m\n"),
        ("bad_path", "*** Add File: n/m/o\n" + F + "*** Move to: n\n"),
        ("no_change", F + "-a\n+a\n"),
        ("no_change", F + "@@\n-a\n+b\n@@\n c\n-d\n+d\n"),
        ("no_change", F + "*** Move to: f\n"),
        ("no_change", F + "-a\n+x\n" + F + "-x\n+a\n"),
        ("anchor_not_found", F + "@@ x\n-a\n+b\n"),
        ("context_not_found", F + "-x\n+b\n"),
        ("ambiguous", F + "-r\n+b\n"),
        ("eof_mismatch", F + "@@\n-a\n+b\n*** End of File\n"),
        ("not_text", "*** Update File: bin\n-a\n+b\n"),
        ("not_text", "*** Update File: u16\n-a\n+b\n"),
        ("not_text", "*** Add File: n\n+\0\n"),
        ("not_text", F + "-a\n+\0\n"),
    ],
)
def test_refusals(kind: str, body: str) -> None:
    files: dict[str, bytes | str] = {
        "f": "a\nc\nd\nr\nr\n",
        "e": "",
        "bin": b"a\n\0",
        "u16": "a\n".encode("utf-16"),
    }
    assert refused(files, body).kind == kind


# Replays


@pytest.mark.parametrize(
    ("old", "hunks"),
    [
        ("one\ntwo\n", "-one\n+1\n"),
        ("a\nb\nc\n", " a\n-b\n c\n"),
        ("a\nb\nc\n", " a\n-b\n+z\n c\n"),
        ("b\nc\n", " b\n-c\n"),
        ("a\nb\n", " a\n+x\n b\n"),
        ("  a\n", "-  a\n+  if x:\n+    a\n"),
        ("a\nb\nc\n", "@@ a\n-b\n+B\n"),
        ("a\r\nb\r\n", "-a\n+x\n"),
        ("  a\nb\n", "-a\n+x\n"),
    ],
)
def test_a_replay_is_named(old: str, hunks: str) -> None:
    """After a patch has landed, the same one again says so and changes nothing."""
    once = new(old, hunks)
    assert once is not None
    error = refused({"f": once}, F + hunks)
    assert error.kind in ("already_applied", "context_not_found")
    # The last patch was written without the file's indentation: its new side is nowhere as such.
    assert (error.kind == "already_applied") == (not old.startswith("  a\nb"))
    assert ("the new text is already there" in str(error)) == (error.kind == "already_applied")


def test_no_replay() -> None:
    assert refused({"f": "a\nb\n"}, F + " a\n-bbbb b\n").kind == "already_applied"
    assert refused({"f": "a\nbbbb c\n"}, F + " a\n-bbbb b\n").kind == "context_not_found"
    assert refused({"f": "bbbb c\na\n"}, F + "-bbbb b\n a\n").kind == "context_not_found"
    assert refused({"f": "1\n1\n"}, F + "-one\n+1\n").kind == "context_not_found"
    assert refused({"f": "a\n\nb\n"}, F + "-one\n+\n").kind == "context_not_found"
    assert new("  a\nb\n", "-a\n+b\n") == b"  b\nb\n"
