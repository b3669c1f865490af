"""`generate`: flags that go together and flags that do not, over the tiny model."""

import json

import pytest

from constrained_agent.cli import generate
from constrained_agent.cli.app import run


@pytest.fixture
def command(tiny_runtime, monkeypatch, capsys):
    """Runs a command line with the tiny model loaded already; returns (exit code, stdout, stderr)."""
    monkeypatch.setattr(generate, "load_runtime", lambda name, draft: tiny_runtime)

    def call(*arguments):
        code = run(["generate", *arguments])
        out, err = capsys.readouterr()
        return code, out, err

    return call


TOOLS = [
    {"type": "function", "function": {"name": "look", "parameters": {"type": "object", "properties": {}}}}
]


@pytest.fixture
def tools(tmp_path):
    file = tmp_path / "tools.json"
    file.write_text(json.dumps(TOOLS))
    return str(file)


def test_regex(command):
    code, out, _ = command("--prompt", "x", "--regex", "a{3}b")
    assert (code, out) == (0, "aaab\n")


def test_json_is_the_last_line_of_stdout_and_the_text_goes_to_stderr(command):
    code, out, err = command("--prompt", "x", "--regex", "a{3}b", "--json")
    assert code == 0
    result = json.loads(out)
    assert (result["text"], result["stop_reason"], result["complete"]) == ("aaab", "complete", True)
    assert "aaab" in err


def test_tools_and_choice(command, tools):
    code, out, _ = command("--prompt", "x", "--tools", tools, "--tool-choice", "required", "--json")
    assert code == 0
    assert json.loads(out)["text"] == '<tool_call>\n{"name": "look", "arguments": {}}\n</tool_call>'


def test_schema_grammar_and_system(command, tmp_path):
    schema = tmp_path / "s.json"
    schema.write_text('{"enum": ["a"]}')
    assert command("--prompt", "x", "--json-schema", str(schema), "--system", "<|im_end|>")[:2] == (
        0,
        '"a"\n',
    )
    grammar = tmp_path / "g.lark"
    grammar.write_text('start: "ok"')
    assert command("--prompt-file", str(grammar), "--grammar", str(grammar))[:2] == (0, "ok\n")


def test_the_system_message_of_a_person_holds_no_markers(command, tiny_runtime):
    command("--prompt", "x", "--system", "a<|im_end|>b", "--regex", "a")
    held = tiny_runtime.session.ids
    assert list(held).count(tiny_runtime.tokenizer.special("<|im_end|>")) == 2


def test_a_limit_closes_and_a_smaller_one_is_refused(command):
    code, out, _ = command("--prompt", "x", "--grammar", "apply_patch_strict", "--max-tokens", "15", "--json")
    assert (code, json.loads(out)["complete"]) == (0, True)
    code, out, err = command("--prompt", "x", "--grammar", "apply_patch_strict", "--max-tokens", "3")
    assert (code, out) == (2, "")
    assert "the limit of 3" in err


def test_raw(command, tiny_runtime):
    assert command("--raw", "--prompt", "hello", "--regex", "a|b")[0] == 0
    assert tiny_runtime.tokenizer.decode(tiny_runtime.session.ids[:1]) == "hello"


@pytest.mark.parametrize(
    ("arguments", "says"),
    [
        ((), "--prompt"),
        (("--prompt", "x", "--prompt-file", __file__), "one of them"),
        (("--prompt", "x", "--regex", "a", "--grammar", "apply_patch"), "contradict"),
        (("--prompt", "x", "--tool-choice", "auto"), "needs --tools"),
        (("--prompt", "x", "--raw", "--system", "y"), "--raw"),
        (("--prompt", "x", "--regex", "a", "--think"), "--think"),
        (("--prompt", "", "--raw"), "empty"),
        (("--prompt", "x", "--temperature", "nan"), "--temperature"),
        (("--prompt", "x", "--temperature", "inf"), "--temperature"),
        (("--prompt", "x", "--top-p", "nan"), "--top-p"),
        (("--prompt", "x", "--regex", "(?=a)"), "look"),
        (("--prompt", "x", "--grammar", "nothing"), "no grammar"),
        (("--prompt", "one two " * 30_000), "the prompt has"),
    ],
)
def test_wrong_calls_are_told_in_one_message(command, arguments, says):
    code, out, err = command(*arguments)
    assert (code, out) == (2, "")
    assert says in err
    assert "Traceback" not in err


@pytest.mark.parametrize("text", ["{", "[]", "[1]", '[{"name": 1}]', '[{"name": "a b"}]'])
def test_wrong_tool_files(command, tmp_path, text):
    file = tmp_path / "tools.json"
    file.write_text(text)
    code, _, err = command("--prompt", "x", "--tools", str(file), "--tool-choice", "required")
    assert code == 2
    assert err.count("\n") <= 2


def test_a_choice_that_is_no_tool(command, tools):
    code, _, err = command("--prompt", "x", "--tools", tools, "--tool-choice", "jump")
    assert (code, "there are: look" in err) == (2, True)
