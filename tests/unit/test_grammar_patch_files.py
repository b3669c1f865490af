"""The two patch grammars accept exactly their languages, under LLGuidance and under the lark package."""

from __future__ import annotations

from collections.abc import Callable
from functools import cache

import lark
import pytest

from constrained_agent.grammar import prefix, sources

Accepts = Callable[[str, str], bool]


def with_llguidance(name: str, text: str) -> bool:
    return prefix.check(text.encode(), sources.load(name)).status == "complete"


@cache
def _parser(name: str) -> lark.Lark:
    return lark.Lark(sources.load(name).text, parser="lalr")


def with_lark(name: str, text: str) -> bool:
    try:
        _parser(name).parse(text)
    except lark.exceptions.UnexpectedInput:
        return False
    return True


@pytest.fixture(params=[with_llguidance, with_lark])
def accepts(request: pytest.FixtureRequest) -> Accepts:
    return request.param


def patch(*sections: str) -> str:
    return "*** Begin Patch\n" + "".join(sections) + "*** End Patch\n"


ADD = "*** Add File: a.txt\n"
DELETE = "*** Delete File: a.txt\n"
UPDATE = "*** Update File: a.txt\n"
MOVE = "*** Move to: b.txt\n"
END_OF_FILE = "*** End of File\n"

BOTH_TAKE = {
    "add": patch(ADD + "+x\n"),
    "add an empty line": patch(ADD + "+\n"),
    "add several lines": patch(ADD + "+x\n+\n+ y\n++z\n"),
    "delete": patch(DELETE),
    "update with a header": patch(UPDATE + "@@ def f():\n-a\n+b\n"),
    "update with a bare header": patch(UPDATE + "@@\n-a\n+b\n"),
    "update without a header": patch(UPDATE + "-a\n+b\n"),
    "update that starts with context": patch(UPDATE + " a\n+b\n"),
    "update by removal alone": patch(UPDATE + "@@\n-a\n"),
    "update by addition alone": patch(UPDATE + "@@\n+a\n"),
    "several hunks": patch(UPDATE + "@@\n-a\n+b\n@@ x\n c\n+d\n"),
    "stacked headers": patch(UPDATE + "@@ class A:\n@@     def f():\n-a\n+b\n"),
    "blank context line": patch(UPDATE + "@@\n \n-a\n"),
    "emptied line": patch(UPDATE + "@@\n-\n+\n"),
    "end of file": patch(UPDATE + "@@\n-a\n+b\n" + END_OF_FILE),
    "move alone": patch(UPDATE + MOVE),
    "move and change": patch(UPDATE + MOVE + "@@\n-a\n+b\n"),
    "move, change, end of file": patch(UPDATE + MOVE + "-a\n" + END_OF_FILE),
    "several sections": patch(ADD + "+x\n", DELETE, UPDATE + "@@\n-a\n", UPDATE + MOVE),
    "no newline at the end": patch(DELETE)[:-1],
    "lines that look like markers": patch(ADD + "+*** End Patch\n+@@\n"),
    "header that looks like a line": patch(UPDATE + "@@ -1,2 +1,2 @@\n-a\n"),
    "carriage return inside a line": patch(ADD + "+a\rb\r\n"),
    "other line separators inside a line": patch(ADD + "+a\u2028b\x0cc\x85d\n"),
    "non-ASCII name and text": patch("*** Add File: 文件.txt\n+😀 café e\u0301\n"),
    "name with blanks, dots and backslash": patch("*** Delete File: a b/..c/.d./e\\f/...\n"),
    "tab and NUL in text": patch(UPDATE + "@@ \t\n-\x00\n+\t\n"),
}

BOTH_REFUSE = {
    "nothing": "",
    "no sections": patch(),
    "text before": "x" + patch(DELETE),
    "newline before": "\n" + patch(DELETE),
    "text after": patch(DELETE) + "x",
    "two newlines after": patch(DELETE) + "\n",
    "no end": patch(DELETE)[: -len("*** End Patch\n")],
    "no begin": patch(DELETE)[len("*** Begin Patch\n") :],
    "CRLF": patch(DELETE).replace("\n", "\r\n"),
    "blank after a marker": patch(DELETE).replace("Begin Patch", "Begin Patch "),
    "blank line between sections": patch(DELETE, "\n", DELETE),
    "name is empty": patch("*** Delete File: \n"),
    "no blank before the name": patch("*** Delete File:a\n"),
    "delete with lines": patch(DELETE + "-a\n"),
    "add with a removed line": patch(ADD + "+a\n-b\n"),
    "add with a move": patch(ADD + MOVE + "+a\n"),
    "move twice": patch(UPDATE + MOVE + MOVE),
    "move after the hunk": patch(UPDATE + "@@\n-a\n" + MOVE),
    "header without a blank": patch(UPDATE + "@@x\n-a\n"),
    "header with a blank alone": patch(UPDATE + "@@ \n-a\n"),
    "bare blank line in a hunk": patch(UPDATE + "@@\n a\n\n-b\n"),
    "line without a sign": patch(UPDATE + "@@\na\n-b\n"),
    "no-newline note of git": patch(UPDATE + "@@\n+x\n\\ No newline at end of file\n"),
    "end of file without lines": patch(UPDATE + END_OF_FILE),
    "end of file after a move alone": patch(UPDATE + MOVE + END_OF_FILE),
    "end of file twice": patch(UPDATE + "-a\n" + END_OF_FILE + END_OF_FILE),
    "hunk after end of file": patch(UPDATE + "-a\n" + END_OF_FILE + "@@\n-b\n"),
    "environment line": patch("*** Environment ID: x\n", DELETE),
    "lower case": patch(DELETE).lower(),
}

ONLY_LOOSE_TAKES = {
    "update without anything": patch(UPDATE),
    "header alone": patch(UPDATE + "@@\n"),
    "header alone after a hunk": patch(UPDATE + "@@\n-a\n@@\n"),
    "context alone": patch(UPDATE + "@@\n a\n b\n"),
    "second hunk of context alone": patch(UPDATE + "@@\n-a\n@@\n b\n"),
    "context alone, end of file": patch(UPDATE + " a\n" + END_OF_FILE),
    "header, end of file": patch(UPDATE + "@@\n" + END_OF_FILE),
    **{
        f"path {path!r}": patch(f"*** Delete File: {path}\n")
        for path in (
            *("/a", "/", "../a", "a/../b", "a/..", "..", ".", "./a", "a/./b", "a/", "a//b"),
            *(" a", "a ", "a/ b", "a /b", ".. ", "a\tb", "a\x00b", "a\rb", "a\x7fb", " "),
        )
    },
    "bad move target": patch(UPDATE + "*** Move to: ../b\n"),
    "bad add path": patch("*** Add File: /etc/x\n+a\n"),
    "bad update path": patch("*** Update File: ../x\n@@\n-a\n"),
}

ONLY_STRICT_TAKES = {
    "empty add": patch(ADD),
    "empty add before a section": patch(ADD, DELETE),
}


@pytest.mark.parametrize("text", BOTH_TAKE.values(), ids=BOTH_TAKE)
@pytest.mark.parametrize("name", ["apply_patch", "apply_patch_strict"])
def test_both_grammars_take(accepts: Accepts, name: str, text: str) -> None:
    assert accepts(name, text)


@pytest.mark.parametrize("text", BOTH_REFUSE.values(), ids=BOTH_REFUSE)
@pytest.mark.parametrize("name", ["apply_patch", "apply_patch_strict"])
def test_both_grammars_refuse(accepts: Accepts, name: str, text: str) -> None:
    assert not accepts(name, text)


@pytest.mark.parametrize("text", ONLY_LOOSE_TAKES.values(), ids=ONLY_LOOSE_TAKES)
def test_only_the_loose_grammar_takes(accepts: Accepts, text: str) -> None:
    assert accepts("apply_patch", text)
    assert not accepts("apply_patch_strict", text)


@pytest.mark.parametrize("text", ONLY_STRICT_TAKES.values(), ids=ONLY_STRICT_TAKES)
def test_only_the_strict_grammar_takes(accepts: Accepts, text: str) -> None:
    assert accepts("apply_patch_strict", text)
    assert not accepts("apply_patch", text)


@pytest.mark.parametrize("name", ["apply_patch", "apply_patch_strict"])
def test_lark_reads_a_patch_of_thousands_of_lines(name: str) -> None:
    lines = "".join(f" context {i}\n-old {i}\n+new {i}\n" for i in range(2_000))

    tree = _parser(name).parse(patch(UPDATE + "@@\n" + lines))

    assert sum(1 for _ in tree.find_data("removed")) == 2_000


def test_every_shipped_grammar_compiles_without_warnings() -> None:
    from constrained_agent import resources
    from constrained_agent.grammar.matcher import byte_tokenizer, validate

    for name in resources.names("grammars", ".lark"):
        assert validate(sources.load(name), byte_tokenizer()) == []
