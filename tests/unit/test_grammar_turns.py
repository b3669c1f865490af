"""The grammar of a turn: what it lets through, what it refuses, and that all of it reads back."""

import json
import re

import pytest

from constrained_agent.errors import GrammarError, MatcherError, UserError
from constrained_agent.grammar import patches
from constrained_agent.grammar.answers import AnswerReader
from constrained_agent.grammar.carriers import FREEFORM, JSON
from constrained_agent.grammar.located.newpaths import NewPaths
from constrained_agent.grammar.located.offer import Editable, OfferedFile, locate
from constrained_agent.grammar.matcher import Matcher, byte_tokenizer
from constrained_agent.grammar.sources import Grammar
from constrained_agent.grammar.toolcalls import MAX_CALLS, Markers, closed, compile_turn, turn_grammar
from constrained_agent.messages import ToolSpec

SPECIALS = ["<tool_call>", "</tool_call>", "<think>", "</think>"]
TOKENS = byte_tokenizer(SPECIALS)
TEXT = byte_tokenizer()
END = 256 + len(SPECIALS)


def schema(**properties):
    return {
        "type": "object",
        "properties": properties,
        "required": list(properties),
        "additionalProperties": False,
    }


READ = ToolSpec("read_file", "", schema(path={"type": "string"}), "read")
EXEC = ToolSpec("exec_command", "", schema(command={"type": "string"}), "exec")
PATCH = ToolSpec("apply_patch", "", schema(patch={"type": "string"}), "write", freeform=True)
TOOLS = (READ, EXEC, PATCH)

READ_CALL = '<tool_call>\n{"name": "read_file", "arguments": {"path": "a.py"}}\n</tool_call>'
PATCH_TEXT = "*** Begin Patch\n*** Update File: a.py\n@@\n-x </tool_call> <|im_end|>\n+y\n*** End Patch"
PATCH_CALL = f'<tool_call>\n{{"name": "apply_patch"}}\n{PATCH_TEXT}\n</tool_call>'


def as_tokens(text):
    """Bytes, with the thinking markers, the first call marker and a close marker at the end as special ids."""
    ids: list[int] = []
    opened = False
    while text:
        name = next((name for name in SPECIALS if text.startswith(name)), "")
        if name == "<tool_call>":
            real, opened = not opened, True
        else:
            real = name in ("<think>", "</think>") or text == name == "</tool_call>"
        ids += [256 + SPECIALS.index(name)] if real else list((name or text[0]).encode())
        text = text[len(name or text[0]) :]
    return ids


def state(text, choice="auto", *, tokens=True, thinking=False, tools=TOOLS):
    """complete, prefix or refused."""
    matcher = compile_turn(
        TOKENS if tokens else TEXT, tools, choice, Markers(tokens, thinks=tokens), thinking=thinking
    )
    try:
        matcher.consume(as_tokens(text) if tokens else list(text.encode()))
    except MatcherError:
        return "refused"
    return "complete" if matcher.accepting else "prefix"


@pytest.mark.parametrize("tokens", [True, False], ids=["marker tokens", "marker text"])
class TestBothKindsOfMarkers:
    @pytest.mark.parametrize(
        "text", [READ_CALL, PATCH_CALL, f"Let me look.\n{READ_CALL}", "All done: 2 files.", "x" * 300]
    )
    def test_auto_takes_text_and_text_with_a_call(self, tokens, text):
        assert state(text, tokens=tokens) == "complete"

    @pytest.mark.parametrize("text", [READ_CALL, PATCH_CALL])
    def test_required_takes_a_call(self, tokens, text):
        assert state(text, "required", tokens=tokens) == "complete"

    def test_required_takes_no_text(self, tokens):
        assert state("Let", "required", tokens=tokens) == "refused"
        assert state("", "required", tokens=tokens) == "prefix"

    def test_a_named_tool_is_the_only_one(self, tokens):
        assert state(PATCH_CALL, "apply_patch", tokens=tokens) == "complete"
        assert state(READ_CALL, "apply_patch", tokens=tokens) == "refused"

    def test_none_takes_no_call(self, tokens):
        assert state("words", "none", tokens=tokens) == "complete"
        assert state(READ_CALL, "none", tokens=tokens) == "refused"

    @pytest.mark.parametrize(
        "text",
        [
            READ_CALL.replace("read_file", "Read"),
            READ_CALL.replace("path", "file"),
            READ_CALL.replace('": "a', '":"a'),
            READ_CALL.replace("a.py", "\\d"),
            READ_CALL.replace("a.py", "a\nb"),
            READ_CALL.replace("}}", ', "x": 1}}'),
            READ_CALL.replace("arguments", "parameters"),
            PATCH_CALL.replace("*** Begin", "```\n*** Begin"),
            PATCH_CALL.replace("-x", "x"),
            PATCH_CALL.replace("a.py", "../a.py"),
            PATCH_CALL.replace("\n-x </tool_call> <|im_end|>\n+y", ""),
        ],
    )
    def test_malformed_calls_cannot_be_written(self, tokens, text):
        assert state(text, tokens=tokens) == "refused"

    @pytest.mark.parametrize("text", [READ_CALL[:-12], PATCH_CALL[:-20], READ_CALL[:30]])
    def test_a_call_that_is_not_finished_is_not_complete(self, tokens, text):
        assert state(text, tokens=tokens) == "prefix"

    def test_nothing_follows_a_call(self, tokens):
        markers = Markers(tokens, thinks=tokens)
        matcher = compile_turn(TOKENS if tokens else TEXT, TOOLS, "auto", markers)
        matcher.consume(as_tokens(READ_CALL) if tokens else list(READ_CALL.encode()))
        assert matcher.stopped

    @pytest.mark.parametrize("text", [READ_CALL, PATCH_CALL, f"Look:\n{PATCH_CALL}"])
    def test_what_the_grammar_lets_out_reads_back(self, tokens, text):
        reader = AnswerReader(TOOLS, Markers(tokens, thinks=tokens))
        ids = as_tokens(text) if tokens else list(text.encode())
        answer = reader.read_ids(
            ids, decode, lambda name: 256 + SPECIALS.index(name) if name in SPECIALS else None
        )
        assert not answer.faults
        (call,) = answer.calls
        assert call.arguments == ({"patch": PATCH_TEXT} if call.name == "apply_patch" else {"path": "a.py"})
        assert answer.text == ("Look:" if text.startswith("Look") else "")


def decode(ids):
    return b"".join(bytes([t]) if t < 256 else SPECIALS[t - 256].encode() for t in ids).decode()


def test_arguments_are_what_json_dumps_writes():
    value = json.dumps({"path": 'C:\\Users "x"\té\u2028\U0001f600\n'}, ensure_ascii=False)
    call = READ_CALL.replace('{"path": "a.py"}', value)
    assert state(call) == "complete"


def test_the_first_key_and_the_end_are_forced():
    matcher = Matcher(TOKENS, turn_grammar([READ], "required", Markers(True)))
    assert matcher.forced_bytes().endswith(b'{"name": "read_file", "arguments": {"path": "')


def test_marker_text_in_free_text_is_only_text_where_markers_are_tokens():
    markers = Markers(True)
    matcher = compile_turn(TOKENS, TOOLS, "auto", markers)
    matcher.consume(list(b"a call looks like <tool_call> in the prompt"))
    assert matcher.accepting


def test_thinking_comes_first_and_is_closed_before_a_call():
    assert state("<think>\nhm\n</think>\n\n" + READ_CALL, thinking=True) == "complete"
    assert state("<think>\nhm\n</think>\n\nAnswer.", thinking=True) == "complete"
    assert state(READ_CALL, thinking=True) == "refused"
    assert state("<think>\nhm", thinking=True) == "prefix"
    assert state("<think>\nhm\n</think>\n\n" + READ_CALL, "required", thinking=True) == "complete"
    assert state("<think>\n\n</think>\n\n" + READ_CALL, thinking=False) == "refused"
    matcher = compile_turn(TOKENS, TOOLS, "auto", Markers(True, thinks=True), thinking=True)
    with pytest.raises(MatcherError):  # the call token inside thinking
        matcher.consume([256 + SPECIALS.index("<think>"), ord("h"), 256 + SPECIALS.index("<tool_call>")])


def test_end_tokens_are_allowed_only_where_the_answer_is_whole():
    matcher = compile_turn(TOKENS, TOOLS, "required", Markers(True))

    def end_allowed():
        return bool(matcher.bitmask()[END // 32] >> END % 32 & 1)

    for token in as_tokens(PATCH_CALL):
        assert not end_allowed()
        matcher.consume([token])
    assert end_allowed()


def test_a_tool_without_arguments_takes_an_empty_object_alone():
    tool = ToolSpec("stop", "", {"type": "object", "properties": {}}, "read")
    call = '<tool_call>\n{"name": "stop", "arguments": {}}\n</tool_call>'
    assert state(call, tools=[tool]) == "complete"
    assert state(call.replace("{}", '{"a": 1}'), tools=[tool]) == "refused"


def test_sixty_tools_compile():
    tools = [ToolSpec(f"tool_{i}", "", schema(**{f"key_{i}": {"type": "string"}}), "read") for i in range(60)]
    call = '<tool_call>\n{"name": "tool_41", "arguments": {"key_41": "x"}}\n</tool_call>'
    assert state(call, tools=tools) == "complete"


def test_a_tool_whose_schema_does_not_compile_is_named():
    bad = ToolSpec("grep", "", schema(pattern={"type": "string", "pattern": "(?=x)"}), "read")
    with pytest.raises(GrammarError, match="parameters of tool grep"):
        compile_turn(TOKENS, [READ, bad], "auto", Markers(True))


def test_a_choice_that_names_no_tool_is_refused():
    with pytest.raises(UserError, match="read_file, exec_command, apply_patch"):
        turn_grammar(TOOLS, "Read", Markers(True))
    with pytest.raises(UserError, match="there are: none"):
        turn_grammar([], "required", Markers(True))


def test_a_name_that_would_break_the_grammar_is_refused():
    with pytest.raises(UserError, match="tool name"):
        turn_grammar([ToolSpec('a" | "b', "", schema(), "read")], "auto", Markers(True))


def test_open_objects_are_closed_and_others_left_alone():
    given = {
        "type": "object",
        "properties": {
            "a": {"type": "object", "properties": {"type": {"const": {"type": "object"}}}},
            "b": {"type": "array", "items": {"type": "object", "additionalProperties": True}},
        },
    }
    result = closed(given)
    assert result["additionalProperties"] is False
    assert result["properties"]["a"]["additionalProperties"] is False
    assert result["properties"]["a"]["properties"]["type"] == {"const": {"type": "object"}}
    assert result["properties"]["b"]["items"]["additionalProperties"] is True
    assert "additionalProperties" not in given


@pytest.mark.parametrize("opening", ["[", '{"a":'])
def test_nesting_beyond_reason_is_a_fault_not_a_crash(opening):
    raw = '<tool_call>\n{"name": "read_file", "arguments": ' + opening * 3000 + "\n</tool_call>"
    answer = AnswerReader(TOOLS, Markers(False)).read_text(raw)
    assert [fault.kind for fault in answer.faults] == ["json_invalid"]


def test_an_integer_beyond_reason_still_reads():
    raw = '<tool_call>\n{"name": "read_file", "arguments": {"path": ' + "9" * 5000 + "}}\n</tool_call>"
    assert len(AnswerReader(TOOLS, Markers(False)).read_text(raw).calls) == 1


def test_thinking_markers_are_text_for_a_model_that_does_not_think():
    answer = AnswerReader(TOOLS, Markers(False)).read_text("<think> is a tag.")
    assert (answer.thinking_closed, answer.text) == (True, "<think> is a tag.")


class TestAddedLines:
    """At most so many added lines in a row; nothing else of the strict language is lost."""

    def accepts(self, body, limit=3):
        grammar = Grammar("patch", "lark", f"start: {patches.RULE}\n" + patches.freeform_rules(limit))
        text = f"*** Begin Patch\n{body}*** End Patch"
        return Matcher(TEXT, grammar).accepted_prefix(list(text.encode())) == len(text)

    @pytest.mark.parametrize(
        "head", ["*** Add File: a\n", "*** Update File: a\n", "*** Update File: a\n@@\n x\n-y\n"]
    )
    def test_a_run_ends_at_the_limit(self, head):
        assert self.accepts(head + "+a\n" * 3)
        assert not self.accepts(head + "+a\n" * 4)

    def test_old_lines_come_between_two_runs(self):
        assert self.accepts("*** Update File: a\n" + "+a\n+b\n+c\n x\n+d\n+e\n+f\n-y\n+g\n")
        assert self.accepts("*** Update File: a\n" + "-x\n" * 9 + " y\n" * 9)
        assert not self.accepts("*** Update File: a\n" + "+a\n+b\n+c\n x\n+d\n+e\n+f\n+g\n")

    def test_a_hunk_still_changes_something(self):
        assert not self.accepts("*** Update File: a\n x\n y\n")

    def test_the_longest_run(self):
        assert patches.longest_added_run("+a\n+b\n x\n+c\n") == 2
        assert patches.longest_added_run("") == 0


# --- patches in JSON, and several calls in one answer ---

JSON_CALL = (
    f"<tool_call>\n{json.dumps({'name': 'apply_patch', 'arguments': {'patch': PATCH_TEXT}})}\n</tool_call>"
)
FILE = OfferedFile("a.py", ("x </tool_call> <|im_end|>", 'z "q" \\', "\t"))


def located(carrier):
    return locate(Editable((FILE,), NewPaths(frozenset(["a.py"]))), carrier=carrier)


def marked(text, tokens):
    """Bytes, with the markers that stand alone on their lines as special ids where they are tokens."""
    parts = re.split(r"(?m)^(</?tool_call>)$", text) if tokens else [text]
    return [
        token
        for part in parts
        for token in ([256 + SPECIALS.index(part)] if tokens and part in SPECIALS else part.encode())
    ]


def read(text, tokens):
    """What the answer says, by the reader of the dialect."""
    reader = AnswerReader(TOOLS, Markers(tokens))
    special = {name: 256 + i for i, name in enumerate(SPECIALS)} if tokens else {}
    return reader.read_ids(marked(text, tokens), decode, special.get)


@pytest.fixture(scope="module")
def of_turn():
    """`of_turn(text, ...)`: (complete, prefix or refused; the calls that complete it). Compiles each turn once."""
    compiled = {}

    def of(text, choice="auto", *, tokens=True, carrier=JSON, parallel=False, held=False):
        key = (choice, tokens, carrier, parallel, held)
        if key not in compiled:
            compiled[key] = compile_turn(
                TOKENS if tokens else TEXT,
                TOOLS,
                choice,
                Markers(tokens),
                carrier=carrier,
                parallel=parallel,
                located=located(carrier) if held else None,
            )
        matcher = compiled[key].fresh()
        ids = marked(text, tokens)
        if matcher.accepted_prefix(ids) < len(ids):
            return "refused"
        matcher.consume(ids)
        end = matcher.closing()
        assert end is not None
        matcher.consume(end)
        assert matcher.accepting
        return "prefix" if end else "complete"

    return of


@pytest.mark.parametrize("tokens", [True, False], ids=["marker tokens", "marker text"])
@pytest.mark.parametrize("held", [True, False], ids=["located", "grammar"])
class TestPatchesInJson:
    @pytest.mark.parametrize("choice", ["auto", "required", "apply_patch"])
    def test_one_is_taken_and_the_raw_one_is_not(self, of_turn, tokens, held, choice):
        assert of_turn(JSON_CALL, choice, tokens=tokens, held=held) == "complete"
        assert of_turn(PATCH_CALL, choice, tokens=tokens, held=held) == "refused"
        assert of_turn(JSON_CALL, choice, tokens=tokens, held=held, carrier=FREEFORM) == "refused"

    def test_other_tools_stay(self, of_turn, tokens, held):
        assert of_turn(READ_CALL, tokens=tokens, held=held) == "complete"
        assert of_turn("Words.", tokens=tokens, held=held) == "complete"

    def test_every_beginning_has_an_end(self, of_turn, tokens, held):
        """Half an escape among them."""
        patch = PATCH_TEXT.replace("+y", '+y "\\\\" \t\x01')
        text = JSON_CALL.replace(json.dumps(PATCH_TEXT), json.dumps(patch))
        assert of_turn(text, tokens=tokens, held=held) == "complete"
        step = 1 if held else 13  # without files, an end is searched for each time
        for end in range(len("<tool_call>\n"), len(text) - len("</tool_call>") + 1, step):
            assert of_turn(text[:end], tokens=tokens, held=held) == "prefix", text[:end]

    @pytest.mark.parametrize(
        ("old", "new"),
        [
            ("*** Begin", "*** begin"),
            (r"\n-x </tool_call> <|im_end|>\n+y", r"\n x </tool_call> <|im_end|>"),  # changes nothing
            ("+y", "+y\\u0000"),
            ("+y", "+y\\u000az"),
            ("+y", "+\\u0079"),
            ("+y", "+\n"),
            ("+y", "+\t"),
            ("a.py", "../a.py"),
            ("*** End Patch", "*** End Patch\\n"),
            ('"patch"', '"input"'),
            ('"}}', '", "more": 1}}'),
        ],
    )
    def test_malformed_ones_cannot_be_written(self, of_turn, tokens, held, old, new):
        assert old in JSON_CALL
        assert of_turn(JSON_CALL.replace(old, new), tokens=tokens, held=held) == "refused"

    def test_it_reads_back(self, tokens, held):
        answer = read(f"Look:\n{JSON_CALL}", tokens)
        assert not answer.faults
        assert [(call.name, call.arguments) for call in answer.calls] == [
            ("apply_patch", {"patch": PATCH_TEXT})
        ]
        assert answer.text == "Look:"


@pytest.mark.parametrize("tokens", [True, False], ids=["marker tokens", "marker text"])
@pytest.mark.parametrize(
    ("carrier", "patch"), [(FREEFORM, PATCH_CALL), (JSON, JSON_CALL)], ids=["freeform", "json"]
)
class TestSeveralCalls:
    def test_they_are_taken_only_where_they_are_asked_for(self, of_turn, tokens, carrier, patch):
        text = f"Look:\n{READ_CALL}\n{patch}\n{READ_CALL}"
        assert of_turn(text, tokens=tokens, carrier=carrier, parallel=True) == "complete"
        assert of_turn(text, tokens=tokens, carrier=carrier) == "refused"
        assert [call.name for call in read(text, tokens).calls] == ["read_file", "apply_patch", "read_file"]
        assert not read(text, tokens).faults
        assert read(text, tokens).text == "Look:"

    @pytest.mark.parametrize("choice", ["auto", "required", "read_file"])
    def test_one_is_enough_and_there_is_an_end(self, of_turn, tokens, carrier, patch, choice):
        def state(n):
            text = "\n".join([READ_CALL] * n)
            return of_turn(text, choice, tokens=tokens, carrier=carrier, parallel=True)

        assert state(1) == state(MAX_CALLS) == "complete"
        assert state(MAX_CALLS + 1) == "refused"
        assert (
            of_turn(f"{READ_CALL}\nmore", choice, tokens=tokens, carrier=carrier, parallel=True) == "refused"
        )
        text = f"{READ_CALL}\n<tool_call>\n"
        assert of_turn(text, choice, tokens=tokens, carrier=carrier, parallel=True) == "prefix"

    def test_a_named_tool_is_the_only_one(self, of_turn, tokens, carrier, patch):
        text = f"{patch}\n{patch}"
        assert of_turn(text, "apply_patch", tokens=tokens, carrier=carrier, parallel=True) == "complete"
        text = f"{patch}\n{READ_CALL}"
        assert of_turn(text, "apply_patch", tokens=tokens, carrier=carrier, parallel=True) == "refused"

    def test_of_located_patches_there_is_one(self, of_turn, tokens, carrier, patch):
        """After it the lines of files are no longer those that the grammar knows."""

        def state(*calls, choice="auto"):
            text = "\n".join(calls)
            return of_turn(text, choice, tokens=tokens, carrier=carrier, parallel=True, held=True)

        assert state(patch) == state(patch, choice="apply_patch") == "complete"
        assert state(READ_CALL, patch, READ_CALL) == "complete"
        assert state(patch, patch) == state(patch, READ_CALL, patch) == "refused"
        assert state(patch, patch, choice="apply_patch") == "refused"
        assert state(patch, *[READ_CALL] * (MAX_CALLS - 1)) == "complete"
        assert state(patch, *[READ_CALL] * MAX_CALLS) == "refused"
        assert state(*[READ_CALL] * (MAX_CALLS - 1), patch) == "complete"
        assert state(READ_CALL, patch, "<tool_call>\n") == "prefix"
        assert state(READ_CALL, patch.replace("-x", "-y")) == "refused"

    def test_the_end_is_known_within_each(self, of_turn, tokens, carrier, patch):
        text = f"{READ_CALL}\n{patch}\n{READ_CALL}"
        for held in (True, False):
            for end in range(len(READ_CALL), len(text) - len("</tool_call>"), 7 if held else 31):
                cut = text[:end]
                if tokens and re.search(r"</?[a-z_]*$", cut):
                    continue  # half a marker that is a token
                state = of_turn(cut, "required", tokens=tokens, carrier=carrier, parallel=True, held=held)
                assert state == ("complete" if cut.endswith("\n</tool_call>") else "prefix"), cut


def test_located_patches_are_carried_in_one_way():
    with pytest.raises(ValueError, match="located as json, and to be carried as freeform"):
        compile_turn(TOKENS, TOOLS, "auto", Markers(True), located=located(JSON))


def test_without_parallel_calls_the_grammar_is_as_it_was():
    given = turn_grammar(TOOLS, "auto", Markers(True)).text
    assert "one_call" not in given
    assert given == turn_grammar(TOOLS, "auto", Markers(True), carrier=FREEFORM, one_patch=True).text
