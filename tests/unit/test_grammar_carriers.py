"""How patches travel: what is spelled how, and read back."""

import json
import re

import pytest
from hypothesis import example, given, settings
from hypothesis import strategies as st

from constrained_agent.errors import UserError
from constrained_agent.grammar.carriers import FREEFORM, JSON, by_name
from constrained_agent.grammar.located.newpaths import NewPaths

LINES = st.text(st.characters(exclude_characters="\n", exclude_categories=["Cs"]))


@given(text=st.text(st.characters(exclude_categories=["Cs"])))
@example("\\n\\\\u0041 \\u00e9 \x7f\u2028\ufeff/</tool_call>")
@settings(max_examples=300, deadline=None)
def test_json_is_what_json_dumps_writes_and_reads_back(text):
    assert JSON.spell(text) == json.dumps(text, ensure_ascii=False)[1:-1]
    assert JSON.read(JSON.carried(text)) == text
    assert FREEFORM.spell(text) == text
    assert FREEFORM.read(FREEFORM.carried(text)) == text


@pytest.mark.parametrize("carrier", [FREEFORM, JSON], ids=lambda carrier: carrier.name)
@given(lines=st.lists(LINES), rest=LINES)
@example(["\\", "\\n", '"'], "\\\\")
@settings(max_examples=200, deadline=None)
def test_lines_are_parted_where_they_end(carrier, lines, rest):
    whole = carrier.carried("".join(f"{line}\n" for line in lines))
    data = whole + carrier.carried(rest)
    found = list(carrier.lines(data))
    assert [carrier.read(line) for line, _ in found] == lines
    assert [end for _, end in found][-1:] == [len(whole)][: len(lines)]


@given(text=LINES)
@settings(max_examples=200, deadline=None)
def test_half_an_escape_is_known_at_every_byte(text):
    start = 0
    for char in text:
        end = start + len(JSON.carried(char))
        for at in range(start, end):
            half = JSON.half_escape(JSON.carried(text)[:at])
            assert half == (JSON.carried(text)[start:at] if char in JSON.escapes else b"")
            assert FREEFORM.half_escape(JSON.carried(text)[:at]) == b""
            if half:
                finished = JSON.read(half + JSON.finished(half))
                assert finished in JSON.escapes
                assert finished not in "\0\n"
        start = end


def test_the_end_of_the_string_ends_the_last_line():
    data = b'a\\"\\nb"}}\n'
    assert list(JSON.lines(data))[:2] == [(b'a\\"', 5), (b"b", 7)]


def test_sets_of_characters_take_their_escapes_along():
    pattern = JSON.pattern(r"x[^\/a\t]\.")
    for char in ('"', "\\", "\x1f", "\r", "b", "é"):
        assert re.fullmatch(pattern, f"x{JSON.spell(char)}."), char
        assert (re.fullmatch(pattern, f"x{char}.") is None) == (char in JSON.escapes)
    for wrong in ("a", "/", "\\t", "\\u0009", "\\u0000", "\0", "\\u001F", "\\/", "\\x"):
        assert not re.fullmatch(pattern, f"x{wrong}."), wrong
    assert FREEFORM.pattern(r"x[^\/a\t]\.") == r"x[^\/a\t]\."
    with pytest.raises(ValueError, match="sets that say what they do not hold"):
        JSON.pattern("[a-z]")


def test_names_of_new_files_have_no_character_with_an_escape():
    """So their rules serve every carrier."""
    for char in JSON.escapes:
        for name in (char, f"a{char}", f"a{char}b", f"a/{char}b"):
            assert not NewPaths().allows(name)


def test_by_name():
    assert by_name("json") is JSON
    assert by_name("freeform") is FREEFORM
    with pytest.raises(UserError, match="no carrier 'xml': there are freeform, json"):
        by_name("xml")
