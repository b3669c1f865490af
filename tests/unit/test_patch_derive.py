"""Patches made from two trees: their exact text, and what is refused."""

from __future__ import annotations

import itertools

import pytest

from constrained_agent.errors import PatchError
from constrained_agent.patch import derive, parse, plan, render


def made(old: bytes | dict[str, bytes], new: bytes | dict[str, bytes]) -> str:
    """The text between the markers (and below the header of the file "f"), applied once to be sure."""
    a = old if isinstance(old, dict) else {"f": old}
    b = new if isinstance(new, dict) else {"f": new}
    text = render(derive(a, b))
    for file in plan(parse(text, lenient=False).patch, a.get).files:
        assert file.new == b.get(file.new_path or file.path)
    body = text.removeprefix("*** Begin Patch\n").removesuffix("*** End Patch\n")
    return body if isinstance(old, dict) else body.removeprefix("*** Update File: f\n")


def lines(*texts: object) -> bytes:
    return "".join(f"{text}\n" for text in texts).encode()


# How much context


@pytest.mark.parametrize(
    ("old", "new", "text"),
    [
        pytest.param(lines(*"abc"), lines(*"aBc"), "@@\n-b\n+B\n", id="a unique line needs none"),
        pytest.param(lines(*"abcb"), lines(*"aBcb"), "@@\n a\n-b\n+B\n", id="above rather than below"),
        pytest.param(lines(*"bab"), lines(*"bacb"), "@@\n a\n+c\n", id="an insertion names a line"),
        pytest.param(lines(*"abba"), lines(*"abbaX"), "@@\n b\n a\n+X\n", id="also at the end"),
        pytest.param(lines(*"xaaa"), lines(*"xaaA"), "@@\n-a\n+A\n*** End of File\n", id="bound to the end"),
        pytest.param(
            lines(*"aaaa"), lines(*"aaba"), "@@\n-a\n+b\n a\n*** End of File\n", id="one line repeated"
        ),
        pytest.param(lines(*"aaaa"), lines(*"bcaa"), "@@\n-a\n-a\n+b\n+c\n a\n a\n", id="the whole file"),
        pytest.param(lines(*"abcde"), lines(*"AbcdE"), "@@\n-a\n+A\n@@\n-e\n+E\n", id="two hunks"),
        pytest.param(
            lines(*"abc"), lines(*"AbC"), "@@\n-a\n+A\n b\n-c\n+C\n", id="one is no longer than two"
        ),
        pytest.param(b"", lines(*"ab"), "@@\n+a\n+b\n", id="into an empty file"),
        pytest.param(lines(*"ab"), b"", "@@\n-a\n-b\n", id="down to an empty file"),
        pytest.param(
            b"\xef\xbb\xbfa\r\nb\r\n", b"\xef\xbb\xbfA\r\nb\r\n", "@@\n-a\n+A\n", id="mark and CRLF"
        ),
        pytest.param(b"a\nb", b"a\nB", "@@\n-b\n+B\n", id="no final newline"),
        pytest.param(b"a\nb", b"a\nb\nc", "@@\n b\n+c\n", id="its last line stays"),
        pytest.param(b"a\n", b"\xef\xbb\xbfa\n", "@@\n-a\n+\ufeffa\n", id="a mark is added"),
        pytest.param(b"a\r\n", b"a\r\nb\r\r\n", "@@\n a\n+b\r\r\n", id="a CR in a line is written twice"),
        pytest.param(b"c\r\r\n", b"c\r\r\nb\r\r\n", "@@\n c\r\n+b\r\n", id="but once below another one"),
        pytest.param(
            b"\xe9\nx\nb\n\nx\n", b"\xe9\ny\nb\n\nx\n", "@@\n-x\n+y\n b\n", id="context that is UTF-8"
        ),
    ],
)
def test_one_file(old: bytes, new: bytes, text: str) -> None:
    assert made(old, new) == text


def test_a_header_saves_much_context() -> None:
    body = [f"        self.x{i} = {i}" for i in range(9)]
    both = [[f"class C{i}:", "    def f(self):", *body, "        return 0", *body] for i in range(4)]
    old = lines(*itertools.chain.from_iterable(both))
    for changed in both[1:3]:
        changed[11] = "        return 1"
    new = lines(*itertools.chain.from_iterable(both))
    assert made(old, new) == (
        "@@ class C1:\n-        return 0\n+        return 1\n@@ class C2:\n-        return 0\n+        return 1\n"
    )


def test_without_headers_context_does_it() -> None:
    body = [f"    x{i} = {i}" for i in range(9)]
    old = lines("def f():", *body, "    return 0", *body, "def g():", *body, "    return 0", *body)
    new = old[::-1].replace(b"0 nruter", b"1 nruter", 1)[::-1]
    assert render(derive({"f": old}, {"f": new})).startswith(
        "*** Begin Patch\n*** Update File: f\n@@ def g():\n"
    )
    patch = derive({"f": old}, {"f": new}, headers=False)
    # The nearest line that only one of the two places has, with all between.
    expected = ["@@", " def g():", *(f" {line}" for line in body), "-    return 0", "+    return 1"]
    assert render(patch).splitlines()[2:-1] == expected
    (file,) = plan(patch, {"f": old}.get).files
    assert file.new == new


def test_without_headers_also_in_a_renamed_file() -> None:
    body = [f"    x{i} = {i}" for i in range(9)]
    old = lines("def f():", *body, "    return 0", *body, "def g():", *body, "    return 0", *body)
    new = old[::-1].replace(b"0 nruter", b"1 nruter", 1)[::-1]
    assert "\n@@ def g" in render(derive({"a": old}, {"b": new}))
    assert "\n@@\n def g" in render(derive({"a": old}, {"b": new}, headers=False))


def test_a_header_that_would_not_be_read_as_one() -> None:
    """`@@ @@` narrows nothing: the hunk keeps its context."""
    old = lines("a", *"12345678", "x", *"12345678", "@@", *("  " + c for c in "12345678"), "  x", *"12345678")
    old += lines(*("  " + c for c in "12345678"), "  x", *"12345678")
    text = made(old, old.replace(b"\n  x\n", b"\n  y\n", 1))
    assert text.startswith("@@\n @@\n   1\n   2\n")
    assert "-  x\n+  y\n" in text


# Endings and the final newline, in steps


@pytest.mark.parametrize(
    ("old", "new", "n_sections"),
    [
        pytest.param(b"a\nb\nc", b"a\nb\nc\n", 2, id="a final newline is added"),
        pytest.param(b"a", b"a\n", 2, id="to the only line"),
        pytest.param(b"a\nb", b"a\n", 1, id="it comes with the line above"),
        pytest.param(b"a\nb", b"a\nb\n\n", 1, id="a blank line brings it"),
        pytest.param(b"a\r\nb\r\n", b"a\nb\n", 2, id="CRLF becomes LF"),
        pytest.param(b"a\nb\r\n", b"a\nX\r\nb\r\n", 1, id="the line below gives its ending"),
        pytest.param(b"a\nb\r\n", b"x\ny\nu\r\nv\r\n", 2, id="each line gives its own"),
        pytest.param(b"a\r\nb\nc", b"A\r\nx\r\nc", 2, id="above a last line without newline"),
    ],
)
def test_what_takes_several_sections(old: bytes, new: bytes, n_sections: int) -> None:
    text = made(old, new)
    assert text.count("*** Update File: f\n") == n_sections - 1


@pytest.mark.parametrize(
    ("old", "new", "says", "line"),
    [
        (b"a\nb\n", b"a\nb", "line 2 has no newline at its end", 2),
        (b"", b"a", "line 1 has no newline", 1),
        (b"\xef\xbb\xbfa\n", b"a\n", "byte-order mark", 1),
        (b"a\nb\n", b"a\nb\r\n", "line 2 ends in CRLF", 2),
        (b"", b"a\r\n", "line 1 ends in CRLF", 1),
        (b"a\nb\r\n", b"x\r\ny\n", "line 2 ends in LF alone", 2),
    ],
)
def test_what_no_update_can_say(old: bytes, new: bytes, says: str, line: int) -> None:
    with pytest.raises(PatchError, match=says) as caught:
        derive({"d/f": old, "g": b"1\n"}, {"d/f": new, "g": b"2\n"})
    assert (caught.value.kind, caught.value.path, caught.value.lines) == ("bad_line", "d/f", (line,))


# Trees


def test_sections_come_in_the_order_of_their_paths() -> None:
    old = {"b": b"1\n", "c": b"old\n", "same": b"x\n", "bin": b"\0"}
    new = {"b": b"2\n", "a/n": b"\xef\xbb\xbfx\r\n\n", "e": b"", "same": b"x\n"}
    assert made(old, new) == (
        "*** Add File: a/n\n+\ufeffx\r\n+\n*** Update File: b\n@@\n-1\n+2\n*** Delete File: bin\n"
        "*** Delete File: c\n*** Add File: e\n"
    )


def test_renames() -> None:
    poem = lines(*"abcdefgh")
    assert made({"a": poem}, {"d/a": poem}) == "*** Update File: a\n*** Move to: d/a\n"
    assert made({"a": b"\0"}, {"b": b"\0"}) == "*** Update File: a\n*** Move to: b\n", "also a binary file"
    changed = poem.replace(b"c\n", b"C\n")
    assert made({"a": poem}, {"b": changed}) == "*** Update File: a\n*** Move to: b\n@@\n-c\n+C\n"
    twins = made({"a": poem, "x/b": poem}, {"y/b": poem, "c": poem})
    assert twins == "*** Update File: a\n*** Move to: c\n*** Update File: x/b\n*** Move to: y/b\n"
    assert "Move" not in made({"a": b""}, {"b": b""}), "empty files are alike to nothing"
    assert "Move" not in made({"a": lines(*"abcd")}, {"b": lines(*"axyz")})
    shorter = b"a\nb\nc"
    assert "Move to" in made({"a": shorter}, {"b": shorter}), "an Add could not make this one"
    stripped = made({"a": b"\xef\xbb\xbf" + poem}, {"b": poem})
    assert stripped.startswith("*** Delete File: a\n*** Add File: b\n"), "a move would keep the mark"


def test_a_rename_in_steps_moves_last() -> None:
    text = made({"a": b"1\n2\n3"}, {"b": b"1\n2\n3\n"})
    assert text == "*** Update File: a\n@@\n-3\n*** Update File: a\n*** Move to: b\n@@\n 2\n+3\n"


@pytest.mark.parametrize(
    ("old", "new", "kind", "path"),
    [
        ({"f": b"a\n"}, {"f": b"\0\n"}, "not_text", "f"),
        ({"f": b"\0"}, {"f": b"a\n"}, "not_text", "f"),
        ({}, {"n": b"\xff\xfea\0"}, "not_text", "n"),
        ({}, {"n": b"a"}, "bad_line", "n"),
        ({}, {"../n": b""}, "outside_root", "../n"),
        ({}, {"/n": b""}, "outside_root", "/n"),
        ({}, {"a//n": b""}, "bad_path", "a//n"),
        ({}, {"n ": b""}, "bad_path", "n "),
        ({}, {"n\n": b""}, "bad_path", r"n\n"),
        ({}, {"": b""}, "bad_path", ""),
        ({}, {"\udce9": b""}, "bad_path", r"\udce9"),
        ({"d": b""}, {"d/n": b""}, "bad_path", "d/n"),
        ({"d/n": b""}, {"d": b""}, "bad_path", "d"),
    ],
)
def test_refused_trees(old: dict[str, bytes], new: dict[str, bytes], kind: str, path: str) -> None:
    with pytest.raises(PatchError) as caught:
        derive(old, new)
    assert (caught.value.kind, caught.value.path) == (kind, path)
