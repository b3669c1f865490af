"""Answers as models really write them: every one reads as the same calls and faults, whether its markers are tokens or
text, and what stands in thinking is never a call."""

import json

import pytest

from constrained_agent.grammar.answers import AnswerReader
from constrained_agent.grammar.toolcalls import Markers
from constrained_agent.messages import ToolSpec

OPEN, CLOSE = "<tool_call>\n", "\n</tool_call>"
READ = '{"name": "read_file", "arguments": {"path": "a.py"}}'
READ_CALL = OPEN + READ + CLOSE
PATCH = "*** Begin Patch\n*** Update File: a\n@@\n-x\n+y\n*** End Patch"
HEAD = '{"name": "apply_patch"}'


def spec(name, argument, freeform=False):
    schema = {"type": "object", "properties": {argument: {"type": "string"}}, "required": [argument]}
    return ToolSpec(name, "", schema, "read", freeform=freeform)


TOOLS = [
    spec("read_file", "path"),
    spec("exec_command", "command"),
    spec("apply_patch", "patch", freeform=True),
]


def in_call(body):
    return OPEN + body + CLOSE


def command(text):
    """A call of exec_command with its string as it is written."""
    return in_call(f'{{"name": "exec_command", "arguments": {{"command": "{text}"}}}}')


def read(raw, tiny_runtime, cut=False):
    """The answer, which both kinds of markers must agree on."""
    tokenizer = tiny_runtime.tokenizer
    as_text = AnswerReader(TOOLS, Markers(False, thinks=True)).read_text(raw, cut=cut)
    as_tokens = AnswerReader(TOOLS, Markers(True, thinks=True)).read_ids(
        tokenizer.encode(raw), tokenizer.decode, tokenizer.special, cut=cut
    )
    assert as_text == as_tokens
    return as_text


def called(answer):
    return [(call.name, *call.arguments.values()) for call in answer.calls]


@pytest.mark.parametrize(
    ("raw", "calls"),
    [
        (f"<tool_call>{READ}</tool_call>", [("read_file", "a.py")]),
        (f"<tool_call>\r\n\t{READ}\r\n</tool_call>", [("read_file", "a.py")]),
        (in_call(json.dumps(json.loads(READ), indent=2)), [("read_file", "a.py")]),
        ("\n".join([READ_CALL] * 3), [("read_file", "a.py")] * 3),
        (f"```xml\n{READ_CALL}\n```", [("read_file", "a.py")]),
        # Markers inside arguments are text, whatever a tokenizer makes of them.
        (command("grep '</tool_call>' x"), [("exec_command", "grep '</tool_call>' x")]),
        (command("echo '<tool_call>x</tool_call>'"), [("exec_command", "echo '<tool_call>x</tool_call>'")]),
        (command("grep '</think>' x"), [("exec_command", "grep '</think>' x")]),
        (
            command("grep '</tool_call>' x") + "\n" + READ_CALL,
            [("exec_command", "grep '</tool_call>' x"), ("read_file", "a.py")],
        ),
        (
            in_call(f"{HEAD}\n{PATCH.replace('+y', '+</tool_call>')}"),
            [("apply_patch", PATCH.replace("+y", "+</tool_call>"))],
        ),
        (
            in_call(
                json.dumps(
                    {"name": "apply_patch", "arguments": {"patch": PATCH.replace("y", "</tool_call>")}}
                )
            ),
            [("apply_patch", PATCH.replace("y", "</tool_call>"))],
        ),
        # A raw patch after its head, however that line ends.
        (in_call(f"{HEAD}\n{PATCH}"), [("apply_patch", PATCH)]),
        (in_call(f"{HEAD} \n{PATCH}"), [("apply_patch", PATCH)]),
        (in_call(f"{HEAD}{PATCH}"), [("apply_patch", PATCH)]),
        (in_call(f"{HEAD}\r\n{PATCH}"), [("apply_patch", PATCH)]),
        (in_call(f'{{"name": "apply_patch", "arguments": {{}}}}\n{PATCH}'), [("apply_patch", PATCH)]),
        # One that was broken off does not swallow the next call.
        (
            in_call(f"{HEAD}\n{PATCH.removesuffix('*** End Patch').rstrip()}")
            + "\n"
            + in_call(f"{HEAD}\n{PATCH}"),
            [("apply_patch", PATCH.removesuffix("\n*** End Patch")), ("apply_patch", PATCH)],
        ),
    ],
)
def test_calls(tiny_runtime, raw, calls):
    answer = read(raw, tiny_runtime)
    assert called(answer) == calls
    assert answer.faults == ()


@pytest.mark.parametrize(
    ("raw", "kind", "words"),
    [
        (
            command(r"sed s/\s// a"),
            "json_invalid",
            [r"invalid escape at position 57, near `", r"written \\;"],
        ),
        (command(r"C:\user"), "json_invalid", ["invalid escape", r"written \\;"]),
        (command("a\tb"), "json_invalid", ["invalid control character at position", r"a tab \t"]),
        (command('echo "hi"'), "json_invalid", ["expecting ',' delimiter", r"written \", and each"]),
        (in_call("{'name': 'read_file'}"), "json_invalid", ["in double quotes"]),
        (in_call(READ[:-1]), "json_invalid", ["each { has its }"]),
        (in_call(READ.replace('"a.py"', "NaN")), "json_invalid", ["NaN is no JSON value"]),
        (in_call(READ.replace('"a.py"', "-Infinity")), "json_invalid", ["-Infinity"]),
        (in_call(READ + ";"), "json_invalid", ["comes ';'"]),
        (in_call(READ + "\n" + READ), "json_invalid", ["only one object"]),
        (
            in_call(f'{{"name": "apply_patch", "arguments": {{"patch": "{PATCH}"}}}}'),
            "json_invalid",
            [f"line {HEAD}"],
        ),
        (in_call(""), "json_invalid", ["empty"]),
        (in_call('{"name": null, "arguments": {}}'), "wrong_shape", ["must be a string, not null"]),
        (in_call('{"name": "", "arguments": {}}'), "unknown_tool", ["no tool ''"]),
        (in_call('{"function": {"name": "read_file"}}'), "wrong_shape", ["this one has: function"]),
        (in_call(HEAD), "wrong_shape", ["there is no patch"]),
        (in_call(PATCH), "wrong_shape", [HEAD]),
        (in_call("<read_file>\n<path>a</path>\n</read_file>"), "wrong_dialect", ["not XML"]),
        (
            in_call('<function_calls><invoke name="read_file"/></function_calls>'),
            "wrong_dialect",
            ["not XML"],
        ),
        (in_call('read_file(path="a.py")'), "wrong_dialect", ["not a Python call"]),
        (in_call('[read_file(path="a.py")]'), "wrong_dialect", ["not a Python call"]),
        (OPEN + READ_CALL, "wrapper_unclosed", ["twice"]),
        (OPEN + READ + "\n<tool_call>", "wrapper_unclosed", ["does not end with </tool_call>"]),
        (OPEN + READ, "wrapper_unclosed", ["does not end with </tool_call>"]),
        # Printed instead of sent.
        (f"I read it first.\n\n{READ}", "no_wrapper", ["between <tool_call> and </tool_call>"]),
        (f"I read it:\n```json\n{READ}\n```\nThen I go on.", "no_wrapper", ["<tool_call>"]),
        (f"[{READ}]", "no_wrapper", ["<tool_call>"]),
        (f"[TOOL_CALLS][{READ}]", "no_wrapper", ["<tool_call>"]),
        (f"<tool>{READ}</tool>", "no_wrapper", ["<tool_call>"]),
        (f"{READ}\n</tool_call>", "no_wrapper", ["<tool_call>"]),
        ('{"arguments": {"path": "a"}, "name": "read_file"}', "no_wrapper", ["<tool_call>"]),
        (f"```bash\napply_patch <<'EOF'\n{PATCH}\nEOF\n```", "no_wrapper", ["only printed", HEAD]),
        (
            "<function=read_file>\n<parameter=path>\na\n</parameter>\n</function>",
            "wrong_dialect",
            ["not XML"],
        ),
        ('<invoke name="read_file">\n</invoke>', "wrong_dialect", ["not XML"]),
    ],
)
def test_faults(tiny_runtime, raw, kind, words):
    answer = read(raw, tiny_runtime)
    assert answer.calls == ()
    (fault,) = answer.faults
    assert fault.kind == kind
    assert all(word in fault.message for word in words), fault.message


@pytest.mark.parametrize(
    "text",
    [
        "A patch starts with *** Begin Patch and ends with *** End Patch.",
        'The log holds {"name": "read_file"} somewhere.',
        '```json\n{"name": "left-pad", "version": "1.0"}\n```',
        "Use </think> to end it.",
        "The <think> tag is parsed in reader.py.",
        "```diff\n-a\n+b\n```",
    ],
)
def test_words_that_only_speak_of_calls(tiny_runtime, text):
    answer = read(text, tiny_runtime)
    assert (answer.text, answer.items, answer.thinking_closed) == (text, (), True)


@pytest.mark.parametrize(
    ("raw", "text"),
    [
        (f"<think>\nMaybe {READ_CALL} no.\n</think>\n\nNothing.", "Nothing."),
        (f"\n <think>\nMaybe {READ_CALL} no.\n</think>\n\nNothing.", "Nothing."),
        (f"Maybe {READ_CALL} no.\n</think>\n\nNothing.", "Nothing."),
        (f"Maybe {READ_CALL} no.</think> Nothing.", "Nothing."),
        (f"<think>\na\n</think>\n\n<think>\n{READ_CALL}\n</think>\n\nNothing.", "Nothing."),
        (f"<think>\na <think> b </think>\n{READ_CALL}\n</think>\nNothing.", "Nothing."),
        (f"Sure.\n<think>\n{READ_CALL}\n</think>\nNothing.", "Sure.\n\nNothing."),
    ],
)
def test_a_call_in_thinking_is_none_wherever_the_thinking_stands(tiny_runtime, raw, text):
    answer = read(raw, tiny_runtime)
    assert (answer.items, answer.text, answer.thinking_closed) == ((), text, True)
    assert "read_file" in answer.thinking


@pytest.mark.parametrize("before", ["", "\n", "Sure.\n", "<think>\na\n</think>\n\n"])
def test_thinking_that_never_ends_holds_no_call(tiny_runtime, before):
    answer = read(f"{before}<think>\nLet me look.\n{READ_CALL}", tiny_runtime)
    assert (answer.items, answer.text, answer.thinking_closed) == ((), "", False)


@pytest.mark.parametrize(
    "before", ["<think>\nhm\n</think>\n\n", "hm\n</think>\n\n", "<think>\n\n</think>\n\n"]
)
def test_a_call_after_thinking_is_one(tiny_runtime, before):
    assert called(read(before + READ_CALL, tiny_runtime)) == [("read_file", "a.py")]


@pytest.mark.parametrize(
    ("raw", "calls", "kinds"),
    [
        (command(r"\d") + "\n" + READ_CALL, 1, ["json_invalid"]),
        (command("unterminated").replace('d"}', "d}") + "\n" + READ_CALL, 1, ["json_invalid"]),
        (OPEN + READ + "\n" + READ_CALL, 1, ["wrapper_unclosed"]),
        (READ_CALL + "\n" + OPEN + '{"name": "exec', 1, ["wrapper_unclosed"]),
    ],
)
def test_a_fault_does_not_hide_a_call(tiny_runtime, raw, calls, kinds):
    answer = read(raw, tiny_runtime)
    assert len(answer.calls) == calls
    assert [fault.kind for fault in answer.faults] == kinds


@pytest.mark.parametrize(
    "raw",
    [
        OPEN + READ,
        '<tool_call>\n{"na',
        OPEN + '{"name": "exec_command", "arguments": {"command": "echo \'</tool_call>\' && rm -rf build/',
        OPEN + f"{HEAD}\n" + PATCH[:40],
    ],
)
def test_a_call_that_was_cut_off_is_no_call(tiny_runtime, raw):
    answer = read(raw, tiny_runtime, cut=True)
    assert (answer.calls, [fault.kind for fault in answer.faults]) == ((), ["cut"])


@pytest.mark.parametrize(
    ("text", "place"),
    [
        ('[read_file(path="a")]', "[read_file"),
        ('read_file(path="a")', "read_file"),
        ('<|python_tag|>read_file(path="a")', "<|python_tag|>"),
        ('```tool_code\nprint(read_file(path="a"))\n```', "print("),
        ('functions.read_file({"path": "a"})', "functions."),
        ('[TOOL_CALLS]read_file[ARGS]{"path": "a"}', "[TOOL_CALLS]"),
        ('Let me see.\nAction: read_file\nAction Input: {"path": "a"}', "Action: read_file"),
        ("{'name': 'read_file', 'arguments': {'path': 'a'}}", "{'name'"),
        ('{name: "read_file", arguments: {path: "a"}}', "{name"),
        ('{"type":"function","function":{"name":"read_file","arguments":"{}"}}', '{"type"'),
        ('{"tool_calls": [{"name": "read_file", "arguments": {"path": "a"}}]}', '{"tool_calls"'),
        ('{"id": "call_1", "name": "read_file", "arguments": {"path": "a"}}', '{"id"'),
        ('{"tool": "read_file", "path": "a"}', '{"tool"'),
        ('functools[{"name": "read_file", "arguments": {"path": "a"}}]', "functools"),
        ('I see: {"name": "read_file", "arguments": {"path": "a"}}', "I see"),
        ("I read it. <function=read_file><parameter=path>a</parameter>", "I read it"),
        ('{"name": "Read", "arguments": {"path": "a"}}', '{"name": "Read"'),
        ("<function=Read>\n<parameter=path>a</parameter>\n</function>", "<function=Read>"),
        ("<read_file>\n<path>a</path>\n</read_file>", "<read_file>"),
        (
            "<\uff5ctool\u2581call\u2581begin\uff5c>function<\uff5ctool\u2581sep\uff5c>read_file\n",
            "<\uff5ctool\u2581sep",
        ),
        ("<|channel|>commentary to=functions.read_file <|message|>{}", "<|channel|>"),
    ],
)
def test_calls_in_other_dialects_are_attempts_at_calls(text, place, tiny_runtime):
    answer = read(text, tiny_runtime)
    [fault] = answer.faults
    assert fault.kind in ("no_wrapper", "wrong_dialect")
    assert text[fault.at :].startswith(place)
    assert answer.starts == (fault.at,)


@pytest.mark.parametrize(
    "text",
    [
        "I used read_file to look at a.",
        'The call `{"name": "read_file", "arguments": {"path": "a"}}` shows it.',
        "In read_file(path) the path is opened.",
        'The file holds {"name": "x", "arguments": 3}.',
        '{"name": "demo", "version": 1}',
        'Use `read_file(path="a")` for that.',
        "def read_file(path):\n    return open(path).read()",
        "The tag <function> has no name.",
        "Action: none is needed.",
        '{"type": "function", "function": {"name": "read_file", "description": "Reads.", "parameters": {}}}',
        'def call():\n    return {\n        "name": "apply_patch",\n        "arguments": {"patch": ""},\n    }',
    ],
)
def test_words_about_calls_are_words(text, tiny_runtime):
    answer = read(text, tiny_runtime)
    assert (answer.items, answer.text) == ((), text)


def test_a_call_of_keys_and_values_is_another_dialect(tiny_runtime):
    body = "read_file\n<arg_key>path</arg_key>\n<arg_value>a</arg_value>"
    assert [fault.kind for fault in read(in_call(body), tiny_runtime).faults] == ["wrong_dialect"]


def test_a_call_that_is_not_closed_hides_none_in_the_same_line(tiny_runtime):
    answer = read(OPEN + READ + READ_CALL, tiny_runtime)
    assert [fault.kind for fault in answer.faults] == ["wrapper_unclosed"]
    assert [call.name for call in answer.calls] == ["read_file"]


def test_a_tool_whose_schema_names_no_properties():
    tool = ToolSpec("ping", "", {"type": "object"}, "read")
    assert AnswerReader([tool], Markers(False)).read_text("Nothing to ping.").text == "Nothing to ping."
