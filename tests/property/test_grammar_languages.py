"""Laws of the patch grammars and of the prefix checker over generated and broken texts.

The two engines accept the same texts; the mask allows a byte exactly when the matcher takes it; every beginning
of a complete text is a prefix; what the checker offers can really be appended.
"""

from __future__ import annotations

import json
from functools import cache
from itertools import pairwise
from typing import Any

import lark
import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from constrained_agent.errors import MatcherError
from constrained_agent.grammar import prefix, sources
from constrained_agent.grammar.carriers import FREEFORM, JSON, Carrier
from constrained_agent.grammar.matcher import EngineTokenizer, Matcher, byte_tokenizer
from constrained_agent.grammar.patches import RULE, carried_rules, freeform_rules
from constrained_agent.grammar.sources import Grammar

PATCH_GRAMMARS = ("apply_patch", "apply_patch_strict")

# --- patches, good ones and broken ones ---

PIECES = ["a", "b.py", "..", ".", "/", "+", "-", "@@", "***", "é", "文", "😀", "\\", "{", '"']
pieces = st.sampled_from([*PIECES, "*** End Patch", " ", "  ", "\t", "\r", "\x00", "\x7f", "\x85", "\u2028"])
texts = st.lists(pieces, max_size=4).map("".join)
paths = st.one_of(
    st.sampled_from(["a.txt", "src/b.py", "文件/x y.z", ".hidden", "..x/..."]),
    st.lists(pieces, min_size=1, max_size=4).map("".join),
)
plain_lines = st.tuples(st.sampled_from(" +-"), texts).map("".join)
headers = st.one_of(st.just("@@"), texts.filter(bool).map("@@ {}".format))
bodies = st.lists(st.one_of(plain_lines, plain_lines, headers), max_size=6)
moves = st.one_of(st.just([]), st.just([]), paths.map(lambda path: [f"*** Move to: {path}"]))
tails = st.sampled_from([[], [], ["*** End of File"]])
sections = st.one_of(
    st.tuples(paths, st.lists(texts.map("+{}".format), max_size=3)).map(
        lambda made: [f"*** Add File: {made[0]}", *made[1]]
    ),
    paths.map(lambda path: [f"*** Delete File: {path}"]),
    st.tuples(paths, moves, bodies, tails).map(
        lambda made: [f"*** Update File: {made[0]}", *made[1], *made[2], *made[3]]
    ),
)


@st.composite
def patches(draw: st.DrawFn) -> str:
    """Patches, most of them in the loose language."""
    lines = ["*** Begin Patch"]
    for section in draw(st.lists(sections, min_size=1, max_size=3)):
        lines += section
    return "\n".join([*lines, "*** End Patch"]) + draw(st.sampled_from(["", "\n"]))


@st.composite
def broken_patches(draw: st.DrawFn) -> str:
    """Patches with a few lines or characters dropped, doubled, swapped or put in."""
    text = draw(patches())
    for _ in range(draw(st.integers(1, 3))):
        units: list[str] = draw(st.sampled_from([text.splitlines(keepends=True), list(text)])) or ["x"]
        at = draw(st.integers(0, len(units) - 1))
        match draw(st.sampled_from(["drop", "double", "swap", "insert"])):
            case "drop":
                del units[at]
            case "double":
                units.insert(at, units[at])
            case "swap":
                other = draw(st.integers(0, len(units) - 1))
                units[at], units[other] = units[other], units[at]
            case _:
                units.insert(
                    at, draw(st.one_of(pieces, st.sampled_from(["\n", "@@\n", "*** End of File\n"])))
                )
        text = "".join(units)
    return text


# --- other grammars, each with texts that it accepts ---

OBJECT = {
    "type": "object",
    "properties": {"path": {"type": "string"}, "line": {"type": "integer"}},
    "required": ["path"],
    "additionalProperties": False,
}
OTHERS: list[tuple[Grammar, str]] = [
    (Grammar("nested", "lark", 'start: "(" start ")" | /[a-zà-ü]+/'), "((((ab))))"),
    (Grammar("suffix", "lark", 'start: body\nbody[suffix="END"]: /.*/'), "fooENEND"),
    (Grammar("words", "lark", 'start: "true" | "try" "x" | "trapezoid" | "tr" /[0-9]{3}/'), "tr123"),
    (Grammar("pairs", "lark", 'start: (/[a-z]+/ "=" /[^\\n]*/ "\\n")+'), "a=b\nfoo=bär\n"),
    (
        Grammar("ignore", "lark", '%ignore /[ \\t]+/\nstart: "if" NAME ":" "pass"+\nNAME: /[a-z]+/'),
        "if  a : pass",
    ),
    (Grammar("counted", "lark", 'start: ("ab" | "cd"){3,5}'), "abcdab"),
    (Grammar("chinese", "lark", 'start: /[一-龥]+/ "。"'), "文件。"),
    (Grammar("inline JSON", "lark", f"start: %json {sources.from_json_schema(OBJECT).text}"), '{"path":"x"}'),
    (sources.from_json_schema(OBJECT), '{"path":"aé\\n","line":3}'),
    (sources.from_json_schema(OBJECT, compact=True), '{"path": "a", "line": -30}'),
    (sources.from_json_schema({}), '[1,{"a":[true,null,-1.5e3]},"x😀"]'),
    (sources.from_json_schema({"enum": ["red", "green", 1, None, {"a": 1}]}), '{"a":1}'),
    (sources.from_json_schema({"type": "string", "pattern": "^[a-f0-9]{8}$"}), '"deadbeef"'),
    (sources.from_json_schema({"type": "string", "minLength": 5}), '"héllo"'),
    (
        sources.from_json_schema({"type": "array", "items": {"type": "boolean"}, "minItems": 2}),
        "[true, false]",
    ),
    (sources.from_regex(r"(\d{3}-)+x?[α-ω]*"), "123-456-xαβ"),
]
accepted = st.one_of(st.sampled_from(OTHERS), patches().map(lambda text: (sources.load("apply_patch"), text)))


@cache
def parser(name: str) -> lark.Lark:
    return lark.Lark(sources.load(name).text, parser="lalr")


@cache
def tokenizer() -> EngineTokenizer:
    return byte_tokenizer()


@cache
def compiled(grammar: Grammar) -> Matcher:
    return Matcher(tokenizer(), grammar)


def lark_accepts(name: str, text: str) -> bool:
    try:
        parser(name).parse(text)
    except lark.exceptions.UnexpectedInput:
        return False
    return True


def llguidance_accepts(grammar: Grammar, text: str) -> bool:
    matcher = compiled(grammar).copy()
    data = list(text.encode())
    if matcher.accepted_prefix(data) < len(data):
        return False
    matcher.consume(data)
    return matcher.accepting


def fed_byte_by_byte(grammar: Grammar, data: bytes) -> int:
    """How many bytes the matcher takes, one engine call for each."""
    matcher = compiled(grammar).copy()
    for position, byte in enumerate(data):
        try:
            matcher.consume([byte])
        except MatcherError:
            return position
    return len(data)


@pytest.mark.parametrize("name", PATCH_GRAMMARS)
@given(text=st.one_of(patches(), broken_patches()))
@settings(max_examples=400, deadline=None)
def test_both_engines_accept_the_same_texts(name: str, text: str) -> None:
    assert llguidance_accepts(sources.load(name), text) == lark_accepts(name, text)


@given(text=patches())
@settings(max_examples=200, deadline=None)
def test_the_strict_language_lies_within_the_loose_one_but_for_empty_adds(text: str) -> None:
    lines = text.split("\n")
    empty_add = any(
        line.startswith("*** Add File: ") and not after.startswith("+") for line, after in pairwise(lines)
    )
    if llguidance_accepts(sources.load("apply_patch_strict"), text) and not empty_add:
        assert llguidance_accepts(sources.load("apply_patch"), text)


@pytest.mark.parametrize("name", PATCH_GRAMMARS)
@given(text=st.one_of(patches(), broken_patches()), data=st.data())
@settings(max_examples=60, deadline=None)
def test_the_mask_allows_a_byte_exactly_when_the_matcher_takes_it(name: str, text: str, data: Any) -> None:
    grammar = sources.load(name)
    encoded = list(text.encode())
    matcher = compiled(grammar).copy()
    n_taken = matcher.accepted_prefix(encoded[: data.draw(st.integers(0, len(encoded)))])
    matcher.consume(encoded[:n_taken])

    mask = matcher.bitmask()

    for byte in range(256):
        allowed = bool(int(mask[byte // 32]) >> (byte % 32) & 1)
        assert allowed == bool(matcher.accepted_prefix([byte])), f"byte 0x{byte:02x} after {text[:n_taken]!r}"
    end = next(iter(tokenizer().end_ids))
    assert bool(int(mask[end // 32]) >> (end % 32) & 1) == matcher.accepting


@given(made=accepted, data=st.data())
@settings(max_examples=150, deadline=None, suppress_health_check=[HealthCheck.too_slow])
def test_every_beginning_of_a_complete_text_can_be_completed(made: tuple[Grammar, str], data: Any) -> None:
    grammar, text = made
    encoded = text.encode()
    if not llguidance_accepts(grammar, text):
        return
    cut = encoded[: data.draw(st.integers(0, len(encoded)), label="cut")]

    report = prefix.check(cut, grammar)

    assert report.status in ("prefix", "complete")
    assert report.valid_bytes == len(cut)
    assert report.completion is not None
    completed = cut + report.completion.encode("utf-8", "surrogateescape")
    assert prefix.check(completed, grammar).status == "complete"
    assert encoded[len(cut) :].startswith(report.forced.encode("utf-8", "surrogateescape"))


@given(made=accepted, data=st.data())
@settings(max_examples=150, deadline=None, suppress_health_check=[HealthCheck.too_slow])
def test_a_changed_character_is_found_at_its_first_dead_byte(made: tuple[Grammar, str], data: Any) -> None:
    grammar, text = made
    at = data.draw(st.integers(0, len(text) - 1), label="at")
    other = data.draw(
        st.sampled_from(["x", "\n", "é", "文", "*", " ", "\0", "9", '"', "\r", ""]), label="other"
    )
    encoded = (text[:at] + other + text[at + 1 :]).encode()
    if data.draw(st.booleans(), label="not UTF-8"):
        encoded = encoded[:at] + b"\xff" + encoded[at:]

    report = prefix.check(encoded, grammar, max_expected=None)

    assert report.valid_bytes == fed_byte_by_byte(grammar, encoded)
    assert (report.status == "invalid") == (report.valid_bytes < len(encoded))
    before = encoded[: report.valid_bytes].decode("utf-8", "ignore")
    assert report.valid_chars == len(before)
    assert (report.line, report.column) == (before.count("\n") + 1, len(before) - before.rfind("\n"))


@given(made=accepted, data=st.data())
@settings(max_examples=60, deadline=None, suppress_health_check=[HealthCheck.too_slow])
def test_whatever_is_expected_may_be_appended(made: tuple[Grammar, str], data: Any) -> None:
    grammar, text = made
    encoded = text.encode()
    report = prefix.check(encoded[: data.draw(st.integers(0, len(encoded)))], grammar, max_expected=None)
    good = encoded[: report.valid_bytes]

    for entry in report.expected:
        longer = good + entry.example
        assert fed_byte_by_byte(grammar, longer) == len(longer), entry
        if entry.kind == "literal":
            assert entry.example.decode() == entry.text
    assert any(entry.kind == "end" for entry in report.expected) == (report.completion == "")


@given(text=st.one_of(patches(), broken_patches()))
@settings(max_examples=300, deadline=None, suppress_health_check=[HealthCheck.too_slow])
def test_embedded_patches_are_the_strict_language(text: str) -> None:
    """Up to the newline after the end, which what follows in a turn brings."""
    text = text.removesuffix("\n")
    whole = Matcher(byte_tokenizer(), sources.load("apply_patch_strict"))
    part = Matcher(byte_tokenizer(), Grammar("part", "lark", f"start: {RULE}\n{freeform_rules(20)}"))
    data = list(text.encode())
    taken = whole.accepted_prefix(data)
    ends = text.encode()[:taken].endswith(b"\n*** End Patch\n")  # whatever follows it in the text
    assert part.accepted_prefix(data) == taken - ends
    if part.accepted_prefix(data) == len(data):
        part.consume(data)
        whole.consume(data)
        assert part.accepting == whole.accepting


# --- patches in strings of JSON ---

MAX_ADDED = 2
ESCAPES = [
    "\\",
    '\\"',
    '"',
    "\\\\",
    "\\n",
    "\\t",
    "\\/",
    "\\u000a",
    "\\u0000",
    "\\u0009",
    "\\u001f",
    "\\u001F",
    "\\u0041",
]
ESCAPES += [
    "\\u00e9",
    "\\ud83d\\ude00",
    "\t",
    "\n",
    "\r",
    "\0",
    "\x7f",
    "\u2028",
    "u",
    "n",
    "\\n+x",
    "\\n+\\n+",
]


def as_json(text: str) -> str:
    return json.dumps(text, ensure_ascii=False)[1:-1]


@cache
def carried(carrier: Carrier) -> Grammar:
    return Grammar(carrier.name, "lark", f"start: {RULE}\n{carried_rules(carrier, MAX_ADDED)}")


@given(text=st.one_of(patches(), broken_patches()))
@settings(max_examples=400, deadline=None)
def test_patches_in_json_are_the_strict_ones_escaped(text: str) -> None:
    """To the byte: what makes a text wrong raw makes it wrong escaped. NUL, which no patch may hold, is left out."""
    text = text.removesuffix("\n").replace("\0", "")
    data = text.encode()
    assert llguidance_accepts(carried(JSON), as_json(text)) == llguidance_accepts(carried(FREEFORM), text)
    taken = data[: compiled(carried(FREEFORM)).accepted_prefix(list(data))].decode("utf-8", "ignore")
    in_json = compiled(carried(JSON)).accepted_prefix(list(as_json(text).encode()))
    assert len(as_json(taken).encode()) <= in_json
    if taken != text:  # some of the next character may have been taken: half an escape, half a character
        assert in_json < len(as_json(text[: len(taken) + 1]).encode())


@given(text=patches(), data=st.data())
@settings(max_examples=400, deadline=None)
def test_nothing_else_is_a_patch_in_json(text: str, data: Any) -> None:
    escaped = as_json(text.removesuffix("\n"))
    for _ in range(data.draw(st.integers(1, 3))):
        at = data.draw(st.integers(0, len(escaped)))
        end = min(len(escaped), at + data.draw(st.integers(0, 2)))
        escaped = escaped[:at] + data.draw(st.sampled_from(ESCAPES)) + escaped[end:]
    try:
        raw = json.loads(f'"{escaped}"')
        right = as_json(raw) == escaped and "\0" not in raw and llguidance_accepts(carried(FREEFORM), raw)
    except (ValueError, UnicodeEncodeError):  # not JSON; half a surrogate pair
        right = False
    assert llguidance_accepts(carried(JSON), escaped) == right


@pytest.mark.parametrize(
    "char", [chr(n) for n in (*range(1, 0x20), 0x22, 0x2F, 0x5C, 0x7F, 0x85, 0x2028, 0xFEFF)]
)
def test_every_character_is_carried_in_lines_and_paths(char: str) -> None:
    line = (
        f"*** Begin Patch\n*** Update File: a\n@@ {char}b\n x{char}\n-{char}\n+{char}{char}y\n*** End Patch"
    )
    path = f"*** Begin Patch\n*** Delete File: a{char}b/{char}\n*** End Patch"
    for text in (line, path):
        assert llguidance_accepts(carried(JSON), as_json(text)) == llguidance_accepts(carried(FREEFORM), text)
    assert llguidance_accepts(carried(JSON), as_json(line)) == (char != "\n")
