"""The prefix checker: status, place, what was found, and what it says about broken encodings."""

from __future__ import annotations

import dataclasses
import json
import subprocess
import sys

import pytest

from constrained_agent.errors import GrammarError
from constrained_agent.grammar import prefix, sources
from constrained_agent.grammar.sources import Grammar

PATCH = sources.load("apply_patch")
STRICT = sources.load("apply_patch_strict")
BEGIN = "*** Begin Patch\n"
GOOD = BEGIN + "*** Update File: a.py\n@@ def f():\n-    return 1\n+    return 2\n*** End Patch\n"


def lark(text: str) -> Grammar:
    return Grammar("test", "lark", text)


def texts(report: prefix.Report) -> list[str]:
    return [entry.text for entry in report.expected]


def test_a_complete_text() -> None:
    report = prefix.check(GOOD.encode(), PATCH)

    assert report.status == "complete"
    assert report.valid_bytes == report.valid_chars == len(GOOD)
    assert (report.line, report.column) == (7, 1)
    assert report.found == "end of text"
    assert texts(report) == ["end of text"]
    assert (report.forced, report.completion, report.hint) == ("", "", "")


def test_a_complete_text_that_may_go_on() -> None:
    report = prefix.check(GOOD[:-1].encode(), PATCH)

    assert report.status == "complete"
    assert texts(report) == ["\n", "end of text"]
    assert report.completion == ""


def test_a_beginning() -> None:
    report = prefix.check(BEGIN.encode(), PATCH)

    assert report.status == "prefix"
    assert (report.valid_bytes, report.line, report.column) == (16, 2, 1)
    assert report.found == "end of text"
    assert texts(report) == ["*** Add File: ", "*** Delete File: ", "*** Update File: "]
    assert report.forced == "*** "
    assert report.completion == "*** Add File: a\n+\n*** End Patch"


def test_the_empty_text_is_a_beginning() -> None:
    report = prefix.check(b"", PATCH)

    assert report.status == "prefix"
    assert (report.valid_bytes, report.line, report.column) == (0, 1, 1)
    assert texts(report) == ["*** Begin Patch\n"]
    assert report.forced == BEGIN + "*** "


def test_a_refused_text() -> None:
    report = prefix.check(f"{BEGIN}*** Begin Patch\n".encode(), PATCH)

    assert report.status == "invalid"
    assert (report.valid_bytes, report.line, report.column) == (20, 2, 5)
    assert report.found == '"B"'
    assert texts(report) == ["Add File: ", "Delete File: ", "Update File: "]
    assert report.completion == "Add File: a\n+\n*** End Patch"


def test_text_after_the_end() -> None:
    report = prefix.check(GOOD.encode() + b"Done!", PATCH)

    assert (report.status, report.valid_bytes, report.found) == ("invalid", len(GOOD), '"D"')
    assert texts(report) == ["end of text"]
    assert report.completion == ""


def test_columns_count_characters_and_bytes_count_bytes() -> None:
    report = prefix.check(f"{BEGIN}*** Add File: 文件.txt\n+😀 café\nx".encode(), PATCH)

    assert report.status == "invalid"
    assert (report.line, report.column) == (4, 1)
    report = prefix.check(f"{BEGIN}*** Delete File: 文/../x".encode(), STRICT)
    assert report.status == "invalid"
    assert report.found == '"/"'
    assert (report.line, report.column) == (2, 22)
    assert report.valid_chars == len(BEGIN) + 21
    assert report.valid_bytes == len(BEGIN) + 23


@pytest.mark.parametrize("n_bytes", [1, 2, 3])
def test_a_cut_character_is_a_beginning(n_bytes: int) -> None:
    whole = f"{BEGIN}*** Add File: a\n+".encode()
    report = prefix.check(whole + "😀".encode()[:n_bytes], PATCH)

    assert report.status == "prefix"
    assert (report.valid_bytes, report.valid_chars) == (len(whole) + n_bytes, len(whole))
    assert (report.line, report.column) == (3, 2)
    assert report.found == "end of text"
    assert "the rest of the character that begins with byte" in texts(report)[0]
    assert report.completion is not None
    completed = whole + "😀".encode()[:n_bytes] + report.completion.encode("utf-8", "surrogateescape")
    assert prefix.check(completed, PATCH).status == "complete"
    assert completed.decode()
    json.dumps(report.as_json())


def test_a_character_that_dies_on_its_second_byte() -> None:
    report = prefix.check("é".encode(), lark("start: /[à-ç]/"))

    assert (report.status, report.valid_bytes, report.valid_chars, report.column) == ("invalid", 1, 0, 1)
    assert report.found == '"é" (U+00E9 LATIN SMALL LETTER E WITH ACUTE)'


@pytest.mark.parametrize(
    ("data", "valid_bytes", "found", "words"),
    [
        (b"*** Begin Patch\r\n", 15, "carriage return (U+000D)", ["byte 15", "CRLF", "LF alone"]),
        (b"*** Begin Patch\r", 15, "carriage return (U+000D)", ["byte 15", "carriage return"]),
        (b"\xef\xbb\xbf*** Begin Patch\n", 0, "byte order mark (U+FEFF)", ["byte order mark", "UTF-8"]),
        ("*** Begin Patch\n".encode("utf-16"), 0, "byte 0xFF", ["UTF-16"]),
        (b"*** Begin\x00Patch", 9, "NUL (U+0000)", ["byte 9", "NUL"]),
        (b"*** Begin Patch\n*** Add File: a\n+caf\xe9\n", 37, "newline", ["byte 37", "not UTF-8"]),
        (b"*** Begin Patch\n*** Add File: a\n+\xff\n", 33, "byte 0xFF", ["byte 33", "0xFF", "not UTF-8"]),
        (b"*** Begin Patch\n*** Add File: a\n+\xed\xa0\x80\n", 34, "byte 0xA0", ["byte 34", "not UTF-8"]),
        (b"*** Begin Patch\n*** Add File: a\n+\xc0\x80\n", 33, "byte 0xC0", ["byte 33", "not UTF-8"]),
        (b"\xe2\x80\x9cx", 0, '"“" (U+201C LEFT DOUBLE QUOTATION MARK)', []),
    ],
)
def test_other_encodings_get_a_plain_hint(
    data: bytes, valid_bytes: int, found: str, words: list[str]
) -> None:
    report = prefix.check(data, PATCH)

    assert (report.status, report.valid_bytes) == ("invalid", valid_bytes)
    if valid_bytes not in (34, 37):  # there the refused byte belongs to the broken character before it
        assert report.found == found
    assert all(word in report.hint for word in words)
    assert bool(report.hint) == bool(words)


def test_no_hint_where_the_refusal_has_another_cause() -> None:
    assert prefix.check(b"*** Begin Patch\n*** Add File: a\r\n*+x\r\n", PATCH).hint == ""


def test_special_tokens_count_as_units_where_the_grammar_allows_them() -> None:
    grammar = lark('start: text <tool_call> "{}" </tool_call>\ntext: /(.|\\n)*/')
    specials = ["<tool_call>", "</tool_call>"]
    text = b"see: <tool_call>{}</tool_call>"

    report = prefix.check(text, grammar, specials=specials)
    assert (report.status, report.valid_bytes) == ("complete", len(text))

    report = prefix.check(text[:-1], grammar, specials=specials)
    assert (report.status, report.valid_bytes) == ("invalid", text.index(b"</"))
    assert texts(report) == ["</tool_call>"]
    assert report.expected[0].kind == "token"
    assert report.forced == report.completion == "</tool_call>"

    report = prefix.check(b"a </tool_call> b", grammar, specials=specials)  # no such token here: plain text
    assert report.status == "prefix"
    assert "<tool_call>" in texts(report)


def test_a_special_token_that_is_not_known_does_not_compile() -> None:
    with pytest.raises(GrammarError, match="tool_call"):
        prefix.check(b"", lark('start: <tool_call> "x"'))


@pytest.mark.parametrize(
    ("text", "data"),
    [('start: "a" X\nX: "ab" & "cd"', b"a"), ('start: start "a"', b""), ("start: a\na: a", b"")],
)
def test_a_dead_end_is_no_beginning(text: str, data: bytes) -> None:
    report = prefix.check(data, lark(text))

    assert (report.status, report.valid_bytes) == ("invalid", len(data))
    assert report.expected == ()
    assert report.completion is None
    assert "dead end" in report.hint


@pytest.mark.parametrize("data", [b"", b"a", b"ac", b"acccccc"])
def test_a_grammar_that_goes_on_for_ever_has_no_completion(data: bytes) -> None:
    report = prefix.check(data, lark('start: "a" b\nb: "c" b'))

    assert (report.status, report.valid_bytes) == ("prefix", len(data))
    assert report.completion is None
    assert len(report.forced) <= 20_000


def test_the_engine_that_cannot_be_rolled_back_is_forked() -> None:
    report = prefix.check(b"ab", lark('start: t "z"\nt[max_tokens=4]: /[a-z]*/'))

    assert report.status == "prefix"
    assert report.completion is not None
    assert "[a-z]" in texts(report)


def test_a_long_chain_of_rules_does_not_overflow_the_stack() -> None:
    chain = "".join(f'r{i}: "a" r{i + 1}\n' for i in range(8_000))
    report = prefix.check(b"aaa", lark(f'start: r0\n{chain}r8000: "b"\n'))

    assert report.status == "prefix"
    assert report.completion == "a" * 7_997 + "b"


def test_a_chain_past_the_engines_limit_does_not_compile() -> None:
    chain = "".join(f'r{i}: "a" r{i + 1}\n' for i in range(70_000))
    with pytest.raises(GrammarError, match="does not compile") as caught:
        prefix.check(b"", lark(f'start: r0\n{chain}r70000: "b"\n'))
    assert "backtrace" not in str(caught.value)


def test_expected_is_cut_to_the_most_specific() -> None:
    grammar = lark("start: " + " | ".join(f'"w{i:02}" /[a-z]/' for i in range(12)) + " | /[A-Z]/")

    report = prefix.check(b"", grammar, max_expected=1)
    assert len(report.expected) == 1
    assert report.n_more >= 1
    everything = prefix.check(b"", grammar, max_expected=None)
    assert everything.n_more == 0
    assert everything.expected[:1] == report.expected
    assert everything.expected[-1].text == "[A-Z]"


def test_the_report_for_programs() -> None:
    made = prefix.check(f"{BEGIN}x".encode(), PATCH).as_json()

    assert {"status", "valid_bytes", "valid_chars", "line", "column", "found", "expected"} <= made.keys()
    assert {"forced", "completion"} <= made.keys()
    assert made["expected"] == ["*** Add File: ", "*** Delete File: ", "*** Update File: "]
    assert made["expected_detail"][0] == {
        "kind": "literal",
        "text": "*** Add File: ",
        "count": 1,
        "example": "*** Add File: ",
    }
    assert json.loads(json.dumps(made)) == made


def test_reports_are_frozen() -> None:
    report = prefix.check(b"", PATCH)

    with pytest.raises(dataclasses.FrozenInstanceError):
        report.status = "complete"  # type: ignore[misc]


def test_the_walk_is_linear_in_the_text() -> None:
    lines = "".join(f" context line {i} of some text\n-old {i}\n+new {i}\n" for i in range(5_000))
    text = f"{BEGIN}*** Update File: a.py\n@@\n{lines}*** End Patch\n".encode()
    assert len(text) > 220_000

    assert prefix.check(text, STRICT).status == "complete"
    broken = prefix.check(text[:-4] + b"\n\n", STRICT)
    assert (broken.status, broken.completion) == ("invalid", "tch")


def test_importing_the_checker_loads_no_model_code() -> None:
    code = (
        "import sys, constrained_agent.grammar.prefix, constrained_agent.cli.check\n"
        "found = {name.split('.')[0] for name in sys.modules} & {'mlx', 'mlx_lm', 'transformers', 'tokenizers'}\n"
        "sys.exit(str(found) if found else 0)"
    )
    assert subprocess.run([sys.executable, "-c", code], check=False).returncode == 0
