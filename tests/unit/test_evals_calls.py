"""Items of tool calls: the leaderboard's and our own, and the judge of both."""

from __future__ import annotations

import copy
import json
import zipfile
from collections import Counter
from collections.abc import Iterator
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest

from constrained_agent.errors import MatcherError, UserError
from constrained_agent.evals.calls import bfcl, own, values
from constrained_agent.evals.calls.items import CallItem, ExpectedCall, expected_calls
from constrained_agent.evals.calls.judge import judge
from constrained_agent.evals.calls.reference import reference
from constrained_agent.grammar.matcher import Matcher, byte_tokenizer
from constrained_agent.grammar.toolcalls import Markers, compile_turn, parameter_grammars, turn_grammar
from constrained_agent.messages import ToolCall, ToolSpec
from constrained_agent.model.fetch import cache_directory
from constrained_agent.tools.arguments import violations

MARKERS = Markers(are_tokens=True)
SPECIALS = [MARKERS.call_open, MARKERS.call_close]
TOKENS = byte_tokenizer(SPECIALS)
OWN = {item.id: item for item in own.load()}


@pytest.fixture(scope="module")
def leaderboard() -> list[CallItem]:
    """All 800; the files are fetched on the first run and lie in the user's cache then."""
    return bfcl.load()


def tool_of(item: CallItem, call: ToolCall) -> ToolSpec:
    return next(tool for tool in item.tools if tool.name == call.name)


def calls(*named: tuple[str, dict[str, Any]]) -> list[ToolCall]:
    return [ToolCall(str(i), name, arguments) for i, (name, arguments) in enumerate(named)]


def is_admitted(matcher: Matcher, answer: list[ToolCall]) -> bool:
    """Whether a turn may be these calls; the strings in them hold no marker tokens, only their letters."""
    ids: list[int] = []
    for call in answer:
        body = json.dumps({"name": call.name, "arguments": call.arguments}, ensure_ascii=False)
        ids += [*(b"\n" if ids else b""), 256, *f"\n{body}\n".encode(), 257]
    turn = matcher.copy()
    try:
        turn.consume(ids)
    except MatcherError:
        return False
    return turn.accepting


def test_every_schema_of_the_leaderboard_compiles(leaderboard: list[CallItem]) -> None:
    n_schemas = 0
    for item in leaderboard:
        for schema in parameter_grammars(item.tools):
            Matcher(TOKENS, schema)
            n_schemas += 1
    assert n_schemas == 1157


def test_right_answers_of_the_leaderboard_can_be_written_and_are_judged_right(
    leaderboard: list[CallItem],
) -> None:
    for item in leaderboard:
        answer = reference(item)
        verdict = judge(item, answer)
        assert verdict.right, (item.id, verdict)
        assert not any(violations(tool_of(item, call), call.arguments) for call in answer), item.id
        grammar = turn_grammar(item.tools, "auto", MARKERS, parallel=item.parallel)
        assert is_admitted(Matcher(TOKENS, grammar), answer), (item.id, answer)


def test_sets_of_the_leaderboard(leaderboard: list[CallItem]) -> None:
    assert Counter(item.set for item in leaderboard) == {
        "simple_python": 400,
        "multiple": 200,
        "parallel": 200,
    }
    assert len({item.id for item in leaderboard}) == 800
    for item in leaderboard:
        assert item.parallel == (item.set == "parallel") == (len(item.expected) > 1)
        assert {call.name for call in item.expected} <= {tool.name for tool in item.tools}
    first = leaderboard[0]
    assert first.prompt.startswith("Find the area of a triangle with a base of 10 units")
    assert first.expected == (
        ExpectedCall("calculate_triangle_area", {"base": [10], "height": [5], "unit": ["units", ""]}),
    )


@pytest.mark.parametrize(
    ("n", "counts"),
    [(0, (0, 0, 0)), (1, (1, 0, 0)), (8, (4, 2, 2)), (100, (50, 25, 25)), (800, (400, 200, 200))],
)
def test_selection_is_spread_in_proportion(n: int, counts: tuple[int, ...]) -> None:
    found = Counter(item.set for item in bfcl.load(n=n, seed=3))
    assert tuple(found[name] for name in bfcl.SETS) == counts


def test_selection_depends_on_the_seed_alone(leaderboard: list[CallItem]) -> None:
    ids = [
        [item.id for item in bfcl.load(n=n, seed=seed)] for n, seed in ((40, 1), (40, 1), (40, 2), (90, 1))
    ]
    assert ids[0] == ids[1]
    assert ids[0] != ids[2]
    assert set(ids[0]) < set(ids[3])
    order = [item.id for item in leaderboard]
    assert ids[3] == sorted(ids[3], key=order.index)
    # Written down: other releases of Python must choose the same.
    assert [item.id for item in bfcl.load(["multiple"], 3, seed=1)] == [
        "multiple_19",
        "multiple_104",
        "multiple_171",
    ]


def test_selection_that_cannot_be() -> None:
    with pytest.raises(UserError, match=r"no set 'java'.*simple_python, multiple, parallel"):
        bfcl.load(["multiple", "java"])
    with pytest.raises(UserError, match="at most 200"):
        bfcl.load(["multiple"], 201)


def test_types_of_the_leaderboard_become_json_schema() -> None:
    described = {
        "type": "dict",
        "optional": [],
        "properties": {
            "type": {"type": "any", "optional": True, "description": "a property with the name of a keyword"},
            "point": {"type": "tuple", "items": {"type": "float", "maximum": 9}},
            "scores": {"type": "dict", "required": ["math"]},
            "rows": {"type": "array", "items": {"type": "dict", "properties": {"n": {"type": "integer"}}}},
            "day": {"type": "string", "format": "date", "enum": ["2024-01-01"], "default": "2024-01-01"},
        },
        "required": ["point"],
    }
    assert bfcl.json_schema(described) == {
        "type": "object",
        "properties": {
            "type": {"type": "string", "description": "a property with the name of a keyword"},
            "point": {"type": "array", "items": {"type": "number", "maximum": 9}},
            "scores": {"type": "object", "required": ["math"], "additionalProperties": True},
            "rows": {
                "type": "array",
                "items": {
                    "type": "object",
                    "properties": {"n": {"type": "integer"}},
                    "additionalProperties": False,
                },
            },
            "day": {"type": "string", "format": "date", "enum": ["2024-01-01"], "default": "2024-01-01"},
        },
        "required": ["point"],
        "additionalProperties": False,
    }


class TestFetching:
    """With pip, from a folder in the index's place, into a cache of the test's own."""

    @pytest.fixture
    def cache(self, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
        monkeypatch.setenv("CONSTRAINED_AGENT_CACHE", str(tmp_path / "cache"))
        return tmp_path / "cache" / "bfcl" / "2026.3.23"

    @pytest.fixture
    def wheel(self, leaderboard: list[CallItem], tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
        """A wheel with the real files in it, where pip, kept from every index, finds it."""
        real = cache_directory() / "bfcl" / "2026.3.23"
        path = tmp_path / "wheels" / "bfcl_eval-2026.3.23-py3-none-any.whl"
        path.parent.mkdir()
        monkeypatch.setenv("PIP_NO_INDEX", "1")
        monkeypatch.setenv("PIP_FIND_LINKS", str(path.parent))
        data = "bfcl_eval/data"
        with zipfile.ZipFile(path, "w") as packed:
            packed.writestr("bfcl_eval/__init__.py", "raise SystemExit('code of the package was run')")
            for name in bfcl.SETS:
                packed.write(real / f"{name}.questions.jsonl", f"{data}/BFCL_v4_{name}.json")
                packed.write(real / f"{name}.answers.jsonl", f"{data}/possible_answer/BFCL_v4_{name}.json")
            info = "bfcl_eval-2026.3.23.dist-info"
            needs = "Requires-Dist: a-package-that-is-nowhere"
            packed.writestr(
                f"{info}/METADATA", f"Metadata-Version: 2.1\nName: bfcl_eval\nVersion: 2026.3.23\n{needs}\n"
            )
            packed.writestr(f"{info}/WHEEL", "Wheel-Version: 1.0\nTag: py3-none-any\n")
            packed.writestr(f"{info}/RECORD", "")
        return path

    def test_fetched_once(self, wheel: Path, cache: Path, leaderboard: list[CallItem]) -> None:
        told: list[str] = []
        assert bfcl.load(progress=told.append) == leaderboard
        assert len(told) == 1
        assert "bfcl-eval==2026.3.23" in told[0]
        assert sorted(file.name for file in cache.iterdir()) == sorted(
            f"{name}.{kind}.jsonl" for name in bfcl.SETS for kind in ("questions", "answers")
        )
        wheel.unlink()
        assert len(bfcl.load(["parallel"], progress=told.append)) == 200
        assert len(told) == 1

    def test_changed_files_are_fetched_anew(
        self, wheel: Path, cache: Path, leaderboard: list[CallItem]
    ) -> None:
        bfcl.load()
        (cache / "multiple.answers.jsonl").write_text("{}")
        assert bfcl.load() == leaderboard

    def test_offline(self, wheel: Path, cache: Path) -> None:
        wheel.unlink()
        with pytest.raises(UserError, match=r"cannot fetch bfcl-eval==.*check the network.*pip download"):
            bfcl.load()
        assert list(cache.iterdir()) == []

    def test_another_package_of_that_name(self, wheel: Path, cache: Path) -> None:
        with zipfile.ZipFile(wheel) as packed:
            content = {name: packed.read(name) for name in packed.namelist()}
        content["bfcl_eval/data/possible_answer/BFCL_v4_parallel.json"] += b"\n"
        with zipfile.ZipFile(wheel, "w") as packed:
            for name, data in content.items():
                packed.writestr(name, data)
        with pytest.raises(UserError, match=r"has sha256 \w{64}, expected \w{64}; this is not the package"):
            bfcl.load()
        assert list(cache.iterdir()) == []


STRING, INTEGER, NUMBER, BOOLEAN = ({"type": name} for name in ("string", "integer", "number", "boolean"))
OBJECT: dict[str, Any] = {"type": "object"}


def array(items: dict[str, Any]) -> dict[str, Any]:
    return {"type": "array", "items": items}


@pytest.mark.parametrize(
    ("value", "schema", "right"),
    [
        ("San Francisco, CA", STRING, ["Berkeley", "San Francisco, CA"]),
        ("san-francisco_ca.", STRING, ["San Francisco, CA"]),
        ("it's 2^3 * 4/5", STRING, ['IT"S 23 45']),
        ("", STRING, ["metric", ""]),
        (True, STRING, ["", True]),
        (5, INTEGER, [5]),
        (5, NUMBER, [5.0]),
        (5.0, NUMBER, [5]),
        (None, NUMBER, ["", None]),
        (2**64, NUMBER, [2.0**64]),
        (False, BOOLEAN, [False]),
        (["Tea", "ice-cream"], array(STRING), [["x"], ["tea", "Ice Cream"]]),
        ([["Apple"], ["Pear"]], array(STRING), [["Apple", "Pear"], [["Apple"], ["Pear"]]]),
        ([1, 2], array(INTEGER), [[1, 2]]),
        ([1, 2], array(NUMBER), [[1, 2]]),
        ([], array(STRING), [["x"], ""]),
        ([1.0], array(INTEGER), [[1], ""]),
        ({"a": 1, "b": "X Y"}, OBJECT, [{"a": [1], "b": ["z", "xy"]}]),
        ({"a": 1.0}, OBJECT, [{"a": [1], "b": ["z", ""]}]),
        ({"a": ["X"]}, OBJECT, [{"a": [["X"]]}]),
        ([{"a": "Age"}, {"a": "b"}], array(OBJECT), [[{"a": ["age"]}, {"a": ["b"]}]]),
        ([], array(OBJECT), [""]),
    ],
)
def test_values_that_the_leaderboard_takes(value: Any, schema: dict[str, Any], right: list[Any]) -> None:
    assert values.fits(value, schema, right)


@pytest.mark.parametrize(
    ("value", "schema", "right"),
    [
        ("San Francisco; CA", STRING, ["San Francisco, CA"]),
        ("a\nb", STRING, ["ab"]),
        ("true", STRING, ["", True]),
        (1, STRING, ["1"]),
        ("5", INTEGER, [5]),
        (5.0, INTEGER, [5]),
        (True, INTEGER, [1]),
        (1, BOOLEAN, [True]),
        (5.1, NUMBER, [5]),
        (10**400, NUMBER, [1.0]),
        ("", INTEGER, [5, ""]),
        ("", INTEGER, [""]),
        (["ice cream", "tea"], array(STRING), [["tea", "ice cream"]]),
        (["tea"], array(STRING), [["tea", "ice cream"]]),
        ("tea", array(STRING), [["tea"]]),
        ([1, 2], array(NUMBER), [[1.0, 2.0]]),
        ([1.0], array(INTEGER), [[1]]),
        ([True], array(INTEGER), [[1]]),
        ({"a": 1, "c": 1}, OBJECT, [{"a": [1]}]),
        ({"a": 2}, OBJECT, [{"a": [1]}]),
        ({}, OBJECT, [{"a": [1]}, ""]),
        ({"a": ["x"]}, OBJECT, [{"a": [["X"]]}]),
        ("a", OBJECT, [{"a": [1]}]),
        ([{"a": "b"}, {"a": "age"}], array(OBJECT), [[{"a": ["age"]}, {"a": ["b"]}]]),
        ([{"a": 1}], array(OBJECT), [""]),
        (["a"], array(OBJECT), [[{"a": [1]}], ""]),
    ],
)
def test_values_that_the_leaderboard_refuses(value: Any, schema: dict[str, Any], right: list[Any]) -> None:
    assert not values.fits(value, schema, right)


def test_exact_values() -> None:
    for value in ("a b", "", 1, 2**70, 0.5, True, None, [], [1, [2]], {"a": {"b": [True, None]}}):
        assert values.same(value, ["other", copy.deepcopy(value)])
    assert values.same(1.0, [1])
    assert values.same({"a": 1, "b": 2}, [{"b": 2, "a": 1}])
    for value, other in (
        ("a b", "ab"),
        ("A", "a"),
        ("re\u0301", "r\u00e9"),
        (True, 1),
        (0, False),
        (2**53 + 1, 2.0**53),
        (None, False),
        ([1], [1, 1]),
        ([True], [1]),
        ({"a": 1}, {"a": 1, "b": 1}),
        ("1", 1),
    ):
        assert not values.same(value, [other])


TRAINS = CallItem(
    "trains",
    "test",
    "",
    (
        ToolSpec(
            "book",
            "",
            {
                "type": "object",
                "properties": {"to": STRING, "seats": INTEGER, "class": {"enum": ["first"], **STRING}},
                "required": ["to"],
                "additionalProperties": False,
            },
            "read",
        ),
        ToolSpec("wait", "", {"type": "object", "properties": {}, "additionalProperties": False}, "read"),
    ),
    expected_calls(
        [{"book": {"to": ["Bern"], "seats": [2, 3], "class": ["", "first", "1st"]}}, {"wait": {}}]
    ),
    parallel=True,
)
BERN = ("book", {"to": "bern", "seats": 3})
WAIT: tuple[str, dict[str, Any]] = ("wait", {})


@pytest.mark.parametrize("answer", [(BERN, WAIT), (WAIT, BERN)])
def test_calls_may_come_in_any_order(answer: tuple[tuple[str, dict[str, Any]], ...]) -> None:
    verdict = judge(TRAINS, calls(*answer))
    assert (verdict.right, verdict.reason) == (True, "")


@pytest.mark.parametrize(
    ("answer", "kind", "reason"),
    [
        ((), "too_few_calls", "0 calls, expected 2 calls"),
        ((BERN,), "too_few_calls", "1 call, expected 2 calls"),
        ((BERN, WAIT, WAIT), "repeated_call", "3 calls, expected 2 calls"),
        ((BERN, ("book", {"to": "Chur"}), WAIT), "too_many_calls", "3 calls, expected 2 calls"),
        ((BERN, BERN, BERN), "too_many_calls", "3 calls, expected 2 calls"),
        ((BERN, BERN), "wrong_tool", "calls book, expected wait"),
        ((("Book", BERN[1]), WAIT), "wrong_tool", "calls Book, expected book"),
        ((("book", {"seats": 2}), WAIT), "missing_argument", "book: to is missing"),
        ((WAIT, ("book", {"to": "Bern"})), "missing_argument", "book: seats is left out"),
        ((("book", {**BERN[1], "from": "Chur"}), WAIT), "extra_argument", "book: from is not expected"),
        ((("book", {"to": "Bern", "seats": 4}), WAIT), "wrong_value", "book: seats is 4, expected 2 or 3"),
    ],
)
def test_wrong_calls_are_told_apart(
    answer: tuple[tuple[str, dict[str, Any]], ...], kind: str, reason: str
) -> None:
    verdict = judge(TRAINS, calls(*answer))
    assert (verdict.right, verdict.kind, verdict.reason) == (False, kind, reason)


def test_a_right_answer_may_be_one_that_its_schema_refuses() -> None:
    assert judge(TRAINS, calls(("book", {"to": "Bern", "seats": 2, "class": "1st"}), WAIT)).right


def mutated(value: Any) -> Iterator[Any]:
    """A value with one thing in it changed: each leaf, each key, each element."""
    if isinstance(value, dict):
        for key, inner in value.items():
            yield {other: one for other, one in value.items() if other != key}
            yield from ({**value, key: changed} for changed in mutated(inner))
        yield {**value, "more": 1}
    elif isinstance(value, list):
        for i, inner in enumerate(value):
            yield value[:i] + value[i + 1 :]
            yield from ([*value[:i], changed, *value[i + 1 :]] for changed in mutated(inner))
        yield [*value, "more"]
    elif isinstance(value, str):
        others = (
            f"{value} ",
            value[:-1],
            value.swapcase(),
            value.replace("\\", "\\\\"),
            value.replace("\\\\", "\\"),
        )
        yield from {other for other in (*others, value.replace('"', "'"), value.rstrip()) if other != value}
    elif isinstance(value, bool) or value is None:
        yield from (other for other in (True, False, None, str(value)) if other is not value)
    else:
        yield from (value + 1 if abs(value) < 1e9 else value * 2, -value or 1, str(value), bool(value))


def test_own_items_are_many_and_of_their_own() -> None:
    assert len(OWN) == len(own.load()) == 34
    assert all(name.startswith("own_") and item.exact for name, item in OWN.items())
    assert {name for name, item in OWN.items() if item.parallel} == {
        name for name, item in OWN.items() if len(item.expected) > 1
    }


@pytest.mark.parametrize("name", OWN)
def test_own_item(name: str) -> None:
    item = OWN[name]
    answer = reference(item)
    verdict = judge(item, answer)
    assert (verdict.right, verdict.reason) == (True, "")
    assert is_admitted(compile_turn(TOKENS, item.tools, "auto", MARKERS, parallel=item.parallel), answer)
    for i, call in enumerate(answer):
        for other in wrong_calls(call, item.expected[i]):
            assert not judge(item, [*answer[:i], other, *answer[i + 1 :]]).right, other
    assert not judge(item, answer[1:]).right
    assert not judge(item, [*answer, answer[0]]).right


def wrong_calls(call: ToolCall, expected: ExpectedCall) -> Iterator[ToolCall]:
    yield replace(call, name=f"{call.name}_")
    for arguments in mutated(call.arguments):
        dropped = call.arguments.keys() - arguments.keys()
        if not any(values.LEFT_OUT in expected.arguments[name] for name in dropped):
            yield replace(call, arguments=arguments)


def test_what_a_turn_admits_satisfies_its_schema(leaderboard: list[CallItem]) -> None:
    """Grammar and judge must read a schema alike: a comparison stops where they do not."""
    open_objects = ("simple_python_337", "multiple_9", "parallel_29")
    items = [*OWN.values(), *(item for item in leaderboard if item.id in open_objects)]
    n_refused = 0
    for item in items:
        matcher = Matcher(TOKENS, turn_grammar(item.tools, "auto", MARKERS))
        for call in reference(item):
            for arguments in mutated(call.arguments):
                other = replace(call, arguments=arguments)
                wrong = violations(tool_of(item, other), arguments)
                assert not wrong or not is_admitted(matcher, [other]), (item.id, other, wrong)
                n_refused += bool(wrong)
    assert n_refused > 100


def test_own_prompts_hold_the_strings_that_are_expected() -> None:
    """Each line of each string is in the prompt, except where the names of its characters are."""
    for item in OWN.values():
        if item.id != "own_unicode_by_number":
            for call in reference(item):
                for text in _strings(call.arguments):
                    assert all(line.strip() in item.prompt for line in text.splitlines()), (item.id, text)


def _strings(value: Any) -> Iterator[str]:
    if isinstance(value, str):
        yield value
    elif isinstance(value, dict | list):
        for inner in value.values() if isinstance(value, dict) else value:
            yield from _strings(inner)
