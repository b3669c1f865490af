"""What an error tells: the place, what the file really holds, and what to write instead."""

from __future__ import annotations

import pytest

from constrained_agent.errors import PatchError
from constrained_agent.patch import parse, plan

MAX_LINES = 12


def message(text: str, hunks: str, names: tuple[str, ...] = ("f",)) -> PatchError:
    patch = parse(f"*** Begin Patch\n*** Update File: f\n{hunks}*** End Patch\n").patch
    with pytest.raises(PatchError) as caught:
        plan(patch, {"f": text.encode()}.get, names=lambda: names)
    assert str(caught.value).count("\n") < MAX_LINES
    return caught.value


def test_context_not_found_shows_the_first_line_that_differs() -> None:
    text = "".join(f"line {i}\n" for i in range(1, 30)) + "def f(a, b):\n    x\n\ty  \n    return 1\n"
    error = message(text, "@@\n def f(a, b):\n     x\n-    z\n+    q\n")
    told = str(error)
    assert error.kind == "context_not_found"
    assert error.lines == (32,)
    assert "f, hunk 1" in told
    assert 'hunk: "    z"' in told
    assert 'file: line 32 is "→y··"' in told
    assert "   33|    return 1" in told


def test_the_best_place_counts_not_the_first_line() -> None:
    text = "a\nb\nc\nd\ne\n" + "x\n" * 300
    error = message(text, "@@\n A\n b\n c\n-d\n+D\n")
    assert 'hunk: "A"' in str(error)
    assert error.lines == (1,)


def test_a_place_at_the_edge_of_the_file() -> None:
    assert "there is no such line" in str(message("a\nb\n", "@@\n b\n-c\n+d\n"))
    assert "there is no such line" in str(message("b\n", "@@\n a\n-b\n+d\n"))
    assert "the file is empty" in str(message("", "@@\n-b\n+d\n"))


def test_similar_lines_are_shown() -> None:
    error = message("total = price + tax\nend\n", "@@\n-total = prices + taxes\n+x\n")
    assert "    1|total = price + tax" in str(error)
    assert error.lines == (1,)


@pytest.mark.parametrize(
    ("text", "hunks", "hint"),
    [
        ("a = 1\nb = 2\n", "@@\n 1: a = 1\n-2: b = 2\n+2: b = 3\n", "line-number prefix"),
        ("a = 1\nb = 2\n", "@@\n-   2│b = 2\n+b = 3\n", "line-number prefix"),
        ("a = 1\nb = 2\n", "@@\n-2|b = 2\n+b = 3\n", "line-number prefix"),
        ("a\n", "--- a/f\n+++ b/f\n@@ -1 +1 @@\n-a\n+b\n", "--- and +++"),
        ("a\nb\nc\n", "@@\n a\n # ... rest of the code ...\n-c\n+d\n", "stands for left-out code"),
        ("a\nb\n", "@@\n a\n \n-b\n+c\n", "an empty line"),
        ("a\nb\n", "@@\n-q\n+c\n", "read the file again"),
    ],
)
def test_usual_causes_are_named(text: str, hunks: str, hint: str) -> None:
    error = message(text, hunks)
    assert error.kind == "context_not_found"
    assert hint in str(error)


def test_old_lines_above_their_header() -> None:
    error = message("x\ny\ndef g():\n  z\n", "@@ def g():\n-x\n+q\n")
    assert error.kind == "context_not_found"
    assert error.lines == (1,)
    assert 'not below "def g():"' in str(error)


def test_ambiguous_proposes_a_header_that_works() -> None:
    text = "class A:\n    def f(self):\n        x\n\nclass B:\n    def f(self):\n        x\n"
    error = message(text, "@@\n-        x\n+        y\n")
    told = str(error)
    assert error.lines == (3, 7)
    assert "2 matches" in told
    assert 'line 3: "        x" in "def f(self):", in "class A:"' in told
    assert "@@ class A: and @@ def f(self):" in told
    fixed = parse(
        "*** Begin Patch\n*** Update File: f\n@@ class A:\n@@ def f(self):\n-        x\n+        y\n*** End Patch\n"
    )
    (file,) = plan(fixed.patch, {"f": text.encode()}.get).files
    assert file.changes[0].old_start == 2


def test_ambiguous_proposes_context_that_works() -> None:
    told = str(message("[cpu]\nmax = 10\n[mem]\nmax = 10\n", "@@\n-max = 10\n+max = 20\n"))
    assert 'for line 2 the lines above it: "[cpu]"; for line 4 the lines above it: "[mem]"' in told
    told = str(message("x\na\nx\nb\n", "@@\n-x\n+y\n"))
    assert 'for line 1 the lines below it: "a"; for line 3 the lines above it: "a"' in told


def test_a_header_that_fits_several_lines() -> None:
    error = message("def f(a):\n  x\ndef f(b):\n  x\n", "@@ def f\n-  x\n+  y\n")
    assert (error.kind, error.lines) == ("ambiguous", (1, 3))
    assert "2 matches" in str(error)
    assert '"def f"' in str(error)


def test_many_candidates_stay_short() -> None:
    error = message("x\n" * 5000, "@@\n-x\n+y\n")
    assert error.lines == tuple(range(1, 5001))
    assert "5000 matches" in str(error)
    assert len(str(error)) < 1000


def test_long_lines_stay_short() -> None:
    assert len(str(message("x" * 100_000, "@@\n-" + "y" * 100_000 + "\n+z\n"))) < 1500


def test_anchor_not_found_shows_near_lines() -> None:
    error = message("def compute(a):\n  x\n", "@@ def computes(a):\n-  x\n+  y\n")
    assert error.kind == "anchor_not_found"
    assert '"def computes(a):"' in str(error)
    assert "    1|def compute(a):" in str(error)
    error = message("class A:\n  x\n", "@@ class A:\n@@ def g\n-  x\n+  y\n")
    assert "below line 1" in str(error)


def test_eof_mismatch_shows_the_end() -> None:
    error = message("a\nb\nc\nd\n", "@@\n-a\n+b\n*** End of File\n")
    assert (error.kind, error.lines) == ("eof_mismatch", (1,))
    assert "    4|d" in str(error)


def test_indentation_and_look_alikes_are_visible() -> None:
    told = str(message("  a\n\tb\n", "@@\n a\n-b\n+c\n"))
    assert 'file "→b", hunk "b"' in told
    told = str(message("p – q\n", "@@\n-p - q\n+x\n"))
    assert '"p – q"' in told
    assert "U+2013 in column 3" in told


def test_what_cannot_be_shown_is_escaped() -> None:
    told = str(
        message("caf\udce9\x1b\nb\n".encode("utf-8", "surrogateescape").decode("latin-1"), "@@\n-q\n+x\n")
    )
    told.encode()
    patch = parse("*** Begin Patch\n*** Update File: f\n@@\n b\n-c\n+d\n*** End Patch\n").patch
    with pytest.raises(PatchError) as caught:
        plan(patch, {"f": b"b\ncaf\xe9\x1b\n"}.get)
    assert "caf\\udce9\\x1b" in str(caught.value)
    str(caught.value).encode()


@pytest.mark.parametrize(
    ("path", "names", "says"),
    [
        ("main.py", ("src/app/main.py", "src/x.py"), "did you mean src/app/main.py?"),
        ("app/main.py", ("lib/main.py", "src/app/main.py"), "did you mean src/app/main.py or lib/main.py?"),
        ("src/mian.py", ("src/main.py", "x"), "did you mean src/main.py?"),
        ("`src/main.py`", ("src/main.py",), "did you mean src/main.py?"),
        ("Main.PY", ("src/main.py",), "did you mean src/main.py?"),
        ("fresh.py", (), "use *** Add File: fresh.py"),
    ],
)
def test_file_not_found_proposes_names(path: str, names: tuple[str, ...], says: str) -> None:
    patch = parse(f"*** Begin Patch\n*** Update File: {path}\n@@\n-a\n+b\n*** End Patch\n").patch
    with pytest.raises(PatchError) as caught:
        plan(patch, lambda _: None, names=lambda: names)
    assert caught.value.kind == "file_not_found"
    assert path in str(caught.value)
    assert says in str(caught.value)


def test_a_move_that_was_made_before() -> None:
    patch = parse("*** Begin Patch\n*** Update File: a\n*** Move to: b\n*** End Patch\n").patch
    with pytest.raises(PatchError, match="was it moved already"):
        plan(patch, {"b": b""}.get)


def test_a_file_that_was_added_before() -> None:
    patch = parse("*** Begin Patch\n*** Add File: a\n+x\n*** End Patch\n").patch
    with pytest.raises(PatchError, match="already holds exactly this text") as caught:
        plan(patch, {"a": b"x\n"}.get)
    assert caught.value.kind == "exists"
