"""Reading patch text: the strict language, each leniency by name, and each refusal by kind."""

from __future__ import annotations

import subprocess
import sys

import pytest

from constrained_agent.errors import PatchError
from constrained_agent.patch import (
    LENIENCIES,
    AddFile,
    DeleteFile,
    Hunk,
    HunkLine,
    Patch,
    UpdateFile,
    parse,
    render,
)

UPDATE = "*** Update File: f\n"
CHANGE = "@@\n-a\n+b\n"


def wrap(body: str) -> str:
    return f"*** Begin Patch\n{body}*** End Patch\n"


def refusal(text: str, *, lenient: bool = True) -> PatchError:
    with pytest.raises(PatchError) as caught:
        parse(text, lenient=lenient)
    return caught.value


def test_every_construct() -> None:
    text = wrap(
        "*** Add File: new/a b.txt\n+x\n+\n++y\n"
        "*** Add File: empty\n"
        "*** Delete File: .gone\n"
        "*** Update File: f\n*** Move to: g\n a\n-\n+\n \n"
        "@@ class A:\n@@   def f\n-x\r\n--- y\n++++ z\n*** End of File\n"
        "*** Update File: ...h\n*** Move to: i\n"
    )
    parsed = parse(text, lenient=False)
    assert parsed.leniencies == {}
    line = HunkLine
    first = Hunk((), (line(" ", "a"), line("-", ""), line("+", ""), line(" ", "")))
    second = Hunk(
        ("class A:", "  def f"), (line("-", "x\r"), line("-", "-- y"), line("+", "+++ z")), end_of_file=True
    )
    assert parsed.patch == Patch(
        (
            AddFile("new/a b.txt", ("x", "", "+y")),
            AddFile("empty", ()),
            DeleteFile(".gone"),
            UpdateFile("f", "g", (first, second)),
            UpdateFile("...h", "i", ()),
        )
    )
    assert parse(render(parsed.patch)).patch == parsed.patch


def test_a_bare_header_narrows_nothing_and_is_not_kept() -> None:
    for headers in ("", "@@\n", "@@\n@@\n", "@@   \n"):
        (section,) = parse(wrap(f"{UPDATE}{headers}-a\n+b\n"), lenient=False).patch.sections
        assert isinstance(section, UpdateFile)
        assert [hunk.headers for hunk in section.hunks] == [()]
    (section,) = parse(wrap(f"{UPDATE}@@ x\n@@\n@@ y\n-a\n+b\n"), lenient=False).patch.sections
    assert isinstance(section, UpdateFile)
    assert section.hunks[0].headers == ("x", "y")


def test_the_last_line_may_lack_its_end() -> None:
    assert parse(wrap(UPDATE + CHANGE).rstrip("\n"), lenient=False).leniencies == {}


LENIENT = [
    ("byte_order_mark", "\ufeff" + wrap(UPDATE + CHANGE)),
    ("crlf", wrap(UPDATE + CHANGE).replace("\n", "\r\n")),
    ("blank_around", "\n" + wrap(UPDATE + CHANGE)),
    ("blank_around", wrap(UPDATE + CHANGE) + "\n\n"),
    ("padded_marker", " " + wrap(UPDATE + CHANGE)),
    ("padded_marker", wrap(UPDATE + CHANGE).replace("Begin Patch", "Begin Patch ")),
    ("padded_marker", wrap(UPDATE + CHANGE).replace("*** End", " *** End")),
    ("padded_marker", wrap("  *** Update File: f\n" + CHANGE)),
    ("padded_marker", wrap("*** Update File: f \t\n" + CHANGE)),
    ("padded_marker", wrap(UPDATE + CHANGE + "*** End of File \n")),
    ("padded_marker", wrap(UPDATE + "@@ \n-a\n+b\n")),
    ("padded_marker", wrap("*** Update File: f\r\n" + CHANGE)),
    ("marker_spacing", wrap("*** Update File:f\n" + CHANGE)),
    ("marker_spacing", wrap(UPDATE + "*** Move to:g\n" + CHANGE)),
    ("marker_spacing", wrap(UPDATE + "@@x\n-a\n+b\n")),
    ("loose_path", wrap("*** Update File: ./f\n" + CHANGE)),
    ("loose_path", wrap("*** Update File: a//./f\n" + CHANGE)),
    ("blank_context", wrap(UPDATE + "@@\n x\n\n-a\n+b\n")),
    ("blank_context", wrap(UPDATE + CHANGE + "\n@@\n-c\n+d\n")),
    ("blank_context", wrap(UPDATE + "@@\n\n-a\n+b\n")),
    ("blank_added", wrap("*** Add File: f\n+a\n\n+b\n")),
    ("blank_before_marker", wrap(UPDATE + CHANGE + "\n*** Delete File: g\n")),
    ("blank_before_marker", wrap(UPDATE + CHANGE + "\n\n")),
    ("blank_before_marker", wrap(UPDATE + CHANGE + "\n*** End of File\n")),
    ("blank_before_marker", wrap("\n" + UPDATE + CHANGE)),
    ("blank_before_marker", wrap(UPDATE + "\n" + CHANGE)),
    ("blank_before_marker", wrap(UPDATE + "@@ x\n\n" + CHANGE)),
    ("blank_before_marker", wrap(UPDATE + "\n*** Move to: g\n")),
    ("blank_before_marker", wrap("*** Add File: f\n+a\n\n*** Delete File: g\n")),
    ("blank_before_marker", wrap("*** Delete File: f\n\n*** Delete File: g\n")),
    ("no_newline_note", wrap(UPDATE + CHANGE + "\\ No newline at end of file\n")),
    ("hunk_after_end_of_file", wrap(UPDATE + CHANGE + "*** End of File\n" + CHANGE)),
]


@pytest.mark.parametrize(("name", "text"), LENIENT)
def test_leniencies(name: str, text: str) -> None:
    """What strict refuses is read, said by name, and refused again when leniency is off."""
    leniencies = parse(text).leniencies
    assert set(leniencies) == {name}
    error = refusal(text, lenient=False)
    assert error.kind == LENIENCIES[name][0]
    assert error.lines


def test_every_leniency_is_tested() -> None:
    assert {name for name, _ in LENIENT} == set(LENIENCIES)


def test_what_leniencies_read() -> None:
    plain = parse(wrap(UPDATE + CHANGE)).patch
    for name, text in LENIENT[:11]:
        expected = plain
        if "End of File" in text:
            continue
        assert parse(text).patch == expected, name
    (section,) = parse(wrap(UPDATE + "@@\n a\n\n\n-b\n\n\n")).patch.sections
    assert isinstance(section, UpdateFile)
    assert section.hunks[0].old() == ["a", "", "", "b"], "blank lines count inside a hunk, not before ***"
    assert parse(wrap("*** Add File: f\n+a\n\n\n+b\n")).leniencies == {"blank_added": 2}
    (section,) = parse(wrap("*** Add File: f\r\n+a\r\n").replace("Patch\n", "Patch\r\n")).patch.sections
    assert section == AddFile("f", ("a",))


REFUSED = [
    ("bad_envelope", "", "empty", 1),
    ("bad_envelope", " \n\n", "empty", 3),
    ("bad_envelope", f"```diff\n{wrap(UPDATE)}```\n", "code fence", 1),
    ("bad_envelope", '{"patch": "*** Begin Patch"}', "JSON", 1),
    ("bad_envelope", '{\n"patch": "*** Begin Patch"}', "JSON", 1),
    ("bad_envelope", '[{"patch": 1}]', "JSON", 1),
    ("bad_envelope", '"*** Begin Patch\\n"', "quot", 1),
    ("bad_envelope", f"<<'EOF'\n{wrap(UPDATE)}EOF\n", "heredoc", 1),
    ("bad_envelope", f"apply_patch <<'EOF'\n{wrap(UPDATE)}EOF\n", "shell", 1),
    ("bad_envelope", f"<patch>\n{wrap(UPDATE)}</patch>\n", "tag", 1),
    ("bad_envelope", "diff --git a/f b/f\n--- a/f\n+++ b/f\n@@ -1 +1 @@\n-a\n+b\n", "unified diff", 1),
    ("bad_envelope", "--- a/f\n+++ b/f\n", "unified diff", 1),
    ("bad_envelope", "*** Begin Patch ***\n*** Delete File: a\n*** End Patch ***\n", "extra stars", 1),
    ("bad_envelope", "**** Begin Patch\n*** Delete File: a\n*** End Patch\n", "exactly", 1),
    ("bad_envelope", "*** begin patch\n*** Delete File: a\n*** end patch\n", "exactly", 1),
    ("bad_envelope", "*** Begin Patch: fix\n*** Delete File: a\n*** End Patch\n", "fix", 1),
    ("bad_envelope", "*** Begin Patch\\n*** Delete File: a\\n*** End Patch", "literal backslash-n", 1),
    ("bad_envelope", "*** Update File: a\n@@\n-a\n+b\n*** End Patch\n", "section", 1),
    ("bad_envelope", "@@\n-a\n+b\n", "hunk", 1),
    ("bad_envelope", "I will now\n" + wrap(UPDATE), "line 2", 1),
    ("bad_envelope", "\n\nHello", "Hello", 3),
    ("bad_envelope", wrap(UPDATE + CHANGE) + "Done!", "Done!", 7),
    ("bad_envelope", wrap(UPDATE + CHANGE) + "```\n", "```", 7),
    ("bad_envelope", wrap(UPDATE + CHANGE) + wrap(UPDATE + CHANGE), "second", 6),
    ("bad_envelope", "*** Begin Patch\n" + wrap(UPDATE + CHANGE), "second", 2),
    ("bad_envelope", "*** Begin Patch", "missing", 1),
    ("bad_envelope", "*** Begin Patch\n" + UPDATE + "@@\n-a\n+tw", '"+tw"', 5),
    ("bad_envelope", "*** Begin Patch\n" + UPDATE + CHANGE + "*** End Patch ***", "extra stars", 6),
    ("bad_envelope", "*** Begin Patch\n" + UPDATE + CHANGE + "*** end patch", "exactly", 6),
    ("empty_patch", wrap(""), "no section", 0),
    ("empty_patch", wrap("\n\n"), "no section", 0),
    ("bad_line", wrap("*** Rename File: f\n"), "line 2", 2),
    ("bad_line", wrap("*** update file: f\n" + CHANGE), "Update File", 2),
    ("bad_line", wrap("-a\n"), "line 2", 2),
    ("bad_line", wrap("*** Environment ID: x\n*** Delete File: f\n"), "line 2", 2),
    ("bad_line", wrap("*** Delete File: f\n-a\n"), "line 3", 3),
    ("bad_line", wrap("*** Add File: f\n+a\nb\n"), "starts with +", 4),
    ("bad_line", wrap("*** Add File: f\n@@\n+b\n"), "starts with +", 3),
    ("bad_line", wrap(UPDATE + "@@\na\n-b\n"), "blank, + or -", 4),
    ("bad_line", wrap(UPDATE + "@@@ x\n-b\n"), "@@", 3),
    ("bad_line", wrap(UPDATE + CHANGE + "*** Move to: g\n"), "Move", 6),
    ("bad_line", wrap(UPDATE + "*** Move to: g\n*** Move to: h\n"), "Move", 4),
    ("bad_line", wrap(UPDATE + "*** End of File\n"), "End of File", 3),
    ("bad_line", wrap(UPDATE + CHANGE + "*** End of File\n-c\n"), "End of File", 7),
    ("bad_line", wrap(UPDATE + CHANGE + "*** bold\n"), "*** bold", 6),
    ("bad_line", wrap("*** Add File: f\n+\ud800\n"), "half a character", 3),
    ("bad_line", wrap("*** Add File: a\udce9\n"), "half a character", 2),
    ("bad_path", wrap("*** Add File:  \n+x\n"), "blank", 2),
    ("bad_path", wrap("*** Add File:\n+x\n"), "blank", 2),
    ("bad_path", wrap("*** Add File: a/\n+x\n"), "names a file", 2),
    ("bad_path", wrap("*** Add File: .\n+x\n"), "names a file", 2),
    ("bad_path", wrap("*** Add File: a /b\n+x\n"), "names a file", 2),
    ("bad_path", wrap("*** Add File: a\tb\n+x\n"), "names a file", 2),
    ("bad_path", wrap("*** Add File: a\0b\n+x\n"), "names a file", 2),
    ("outside_root", wrap("*** Add File: /a\n+x\n"), '"/a"', 2),
    ("outside_root", wrap("*** Add File: ../a\n+x\n"), "../a", 2),
    ("outside_root", wrap("*** Add File: a/../b\n+x\n"), "a/../b", 2),
    ("outside_root", wrap(UPDATE + "*** Move to: ..\n"), '".."', 3),
    ("empty_update", wrap(UPDATE), "no hunk", 0),
    ("empty_update", wrap(UPDATE + "\n" + UPDATE + CHANGE), "no hunk", 0),
    ("empty_hunk", wrap(UPDATE + "@@\n"), "line 3", 3),
    ("empty_hunk", wrap(UPDATE + "@@ x\n@@ y\n"), "line 3", 3),
    ("empty_hunk", wrap(UPDATE + CHANGE + "@@\n*** End of File\n"), "line 6", 6),
    ("empty_hunk", wrap(UPDATE + "@@\n\n*** Delete File: g\n"), "line 3", 3),
    ("no_change", wrap(UPDATE + "@@\n a\n"), "only context", 3),
    ("no_change", wrap(UPDATE + CHANGE + "@@\n a\n" + CHANGE), "only context", 6),
    ("no_change", wrap(UPDATE + "@@\n a\n*** End of File\n"), "only context", 3),
]


@pytest.mark.parametrize(("kind", "text", "says", "line"), REFUSED)
def test_refusals(kind: str, text: str, says: str, line: int) -> None:
    error = refusal(text)
    assert error.kind == kind
    assert says in str(error)
    assert error.lines == ((line,) if line else ())
    assert refusal(text, lenient=False).kind == kind
    str(error).encode()


def test_the_hunk_is_named() -> None:
    error = refusal(wrap(UPDATE + CHANGE + "@@\n a\n"))
    assert (error.path, error.hunk) == ("f", 2)


def test_only_newlines_end_lines() -> None:
    text = "a\x0bb\x0cc\x1cd\x85e\u2028f\u2029g\rh"
    (section,) = parse(wrap(f"*** Add File: f\n+{text}\n"), lenient=False).patch.sections
    assert section == AddFile("f", (text,))


def test_markers_count_only_at_the_start_of_a_line() -> None:
    body = f"{UPDATE}@@\n *** End Patch\n-*** Begin Patch\n+*** Update File: x\n *** End of File\n"
    (section,) = parse(wrap(body), lenient=False).patch.sections
    assert isinstance(section, UpdateFile)
    assert [line.text for line in section.hunks[0].lines] == [
        "*** End Patch",
        "*** Begin Patch",
        "*** Update File: x",
        "*** End of File",
    ]


def test_importing_loads_no_parser_and_no_model_code() -> None:
    program = (
        "import sys, constrained_agent.patch, constrained_agent.tools.workspace\n"
        "heavy = {'lark', 'mlx', 'numpy', 'transformers', 'llguidance'} & set(sys.modules)\n"
        "sys.exit(f'loaded: {heavy}' if heavy else 0)"
    )
    done = subprocess.run([sys.executable, "-c", program], capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stderr


def test_undecodable_bytes_may_stand_in_lines() -> None:
    (section,) = parse(wrap("*** Add File: f\n+caf\udce9\n")).patch.sections
    assert section == AddFile("f", ("caf\udce9",))
