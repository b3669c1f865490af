"""What a person sees: whole characters, dimmed forced tokens, coloured diffs, a bar for long prompts."""

import io

from rich.console import Console

from constrained_agent.cli import view
from constrained_agent.messages import ToolCall, ToolResult


def terminal():
    return Console(
        file=io.StringIO(), force_terminal=True, color_system="standard", highlight=False, soft_wrap=True
    )


def test_forced_tokens_are_dimmed_and_characters_come_whole(tiny_runtime):
    out = terminal()
    stream = view.TokenStream(out, tiny_runtime.tokenizer)
    ids = tiny_runtime.tokenizer.encode_plain("\U0001f469\u200d\U0001f467")
    for token in ids:
        stream.tokens([token], False)
    stream.tokens(tiny_runtime.tokenizer.encode_plain(" must"), True)
    stream.finish()
    shown = out.file.getvalue()
    assert "\U0001f469\u200d\U0001f467" in shown
    assert "\ufffd" not in shown
    assert "\x1b[2m must\x1b[0m" in shown


def test_text_that_looks_like_markup_is_text(tiny_runtime):
    out = terminal()
    stream = view.TokenStream(out, tiny_runtime.tokenizer)
    stream.tokens(tiny_runtime.tokenizer.encode_plain("[red]x[/red]"), False)
    assert "[red]x[/red]" in out.file.getvalue()


def test_a_long_prompt_gets_a_bar_that_goes_away(tiny_runtime):
    out = terminal()
    stream = view.TokenStream(out, tiny_runtime.tokenizer)
    stream.prefill(0, 1000)
    stream.prefill(500, 1000)
    stream.stop()
    shown = out.file.getvalue()
    assert "reading the prompt" in shown
    assert shown.count("\x1b[?25l") == shown.count("\x1b[?25h")
    short = terminal()
    view.TokenStream(short, tiny_runtime.tokenizer).prefill(0, 10)
    assert short.file.getvalue() == ""


def test_a_patch_is_shown_as_a_coloured_diff_and_errors_in_red(tiny_runtime, monkeypatch):
    out = terminal()
    monkeypatch.setattr(view, "console", lambda **more: out)
    seen = view.RunView(tiny_runtime.tokenizer)
    seen.call_started(ToolCall("c", "apply_patch", {"patch": "long"}))
    seen.call_ended(
        ToolResult("c", True, "applied", data={"diff": "--- a/f\n+++ b/f\n@@ -1 +1 @@\n-one\n+two\n"})
    )
    seen.call_ended(ToolResult("c", False, "file_not_found: [x]", "file_not_found"))
    shown = out.file.getvalue()
    assert "long" not in shown
    assert "\x1b[" in shown.split("+two")[0].split("-one")[1]
    assert "\x1b[31mfile_not_found: [x]\x1b[0m" in shown


def test_long_results_and_notes_are_shortened(tiny_runtime, monkeypatch):
    out = terminal()
    monkeypatch.setattr(view, "console", lambda **more: out)
    seen = view.RunView(tiny_runtime.tokenizer)
    seen.call_ended(ToolResult("c", True, "\n".join(map(str, range(100)))))
    seen.note("first\nsecond\nthird")
    shown = out.file.getvalue()
    assert "80 more lines" in shown
    assert "second" not in shown
