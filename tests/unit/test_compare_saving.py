"""What a lenient reading makes of failed text, and what mlx-lm's server makes of calls."""

import json

import pytest

from constrained_agent.evals.compare import saving
from tests.compared import FIX, TASK, TEXT, TOKENS, as_json, patch, raw, wrapped

OPEN = FIX.removesuffix("\n*** End Patch")
"""The fix without its end."""

OTHER = patch("@@\n import datetime\n+import calendar\n import re\n")
MISSING = patch("@@\n-nothing like it\n+x\n")
BROKEN = "*** Begin Patch\nnot a line of a patch\n*** End Patch"


def halves():
    head, second = FIX.split("@@\n-        month = MONTHS")
    return f"{head}*** End Patch", patch(f"@@\n-        month = MONTHS{second.removesuffix('*** End Patch')}")


@pytest.mark.parametrize(
    ("text", "outcome"),
    [
        ("\nand then\n".join(halves()), "passed"),
        (halves()[0], "tests_failed"),
        ("\n".join(map(raw, halves())), "passed"),
        ("\n".join(map(as_json, halves())), "passed"),
        (f"{FIX}\nOnce more:\n{FIX}", "passed"),
        (f"{FIX}\n{OTHER}", "passed"),
        (f"{FIX}\n{MISSING}", "context_not_found"),
        (f"{BROKEN}\n{FIX}", "passed"),
        (f"A patch begins with *** Begin Patch and is like this:\n{FIX}", "passed"),
        (f"{OPEN}\n{FIX}", "passed"),
        (BROKEN, None),
        ("", None),
    ],
)
@pytest.mark.parametrize("whole", [True, False])
def test_every_patch_of_a_text_is_taken(text, outcome, whole):
    assert saving.saved(TASK, text, whole=whole) == outcome


@pytest.mark.parametrize(
    "text",
    [
        OPEN,
        f"{OPEN}\n",
        raw(OPEN),
        f"Here:\n```\n{OPEN}\n```\nThat is all.",
        as_json(OPEN),
        as_json(f"{OPEN}\n"),
        wrapped(
            f'{{"name": "apply_patch", "arguments": {{"patch": "{json.dumps(OPEN)[1:-1]}", "x": "\\d"}}}}'
        ),
        f"{BROKEN}\n{OPEN}",
        "\n".join([halves()[0], halves()[1].removesuffix("\n*** End Patch")]),
    ],
)
def test_a_last_patch_may_lack_its_end_if_the_text_has_one(text):
    assert saving.saved(TASK, text, whole=True) == "passed"
    assert saving.saved(TASK, text, whole=False) in (None, "tests_failed")


GOOD = '{"name": "move_file", "arguments": {"source": "a"}}'

TEXTS = [
    "",
    "Nothing.",
    wrapped(GOOD),
    f"{wrapped(GOOD)}{wrapped('{')}\nand {wrapped(GOOD)}",
    "<tool_call>",
    "<tool_call></tool_call>",
    "<tool_call>\n",
    f"<tool_call>{GOOD}",
    f"<tool_call>\n{wrapped(GOOD)}",
    f"</tool_call>{wrapped(GOOD)}</tool_call>",
    f"<think>\n{wrapped(GOOD)}\n</think>\n{wrapped(GOOD)}",
    f"<think>hm</think>{wrapped(GOOD)}<think>\n{wrapped(GOOD)}",
    f"<think><think></think>{wrapped('<think>')}",
    "<tool_<tool_call>x</tool</tool_call>",
]


@pytest.mark.parametrize("text", TEXTS)
def test_calls_are_found_where_mlx_lms_own_server_finds_them(text):
    assert saving._marked(text, TOKENS) == found_by_the_server(text)
    assert saving.server_finds(text, TOKENS)["calls"] == len(found_by_the_server(text))


def found_by_the_server(text):
    """The texts of calls by mlx-lm's own machine, and the loop over its segments that its server has."""
    from mlx_lm.generate import TextStateMachine

    machine = TextStateMachine(
        {
            "normal": [("<think>", "reasoning"), ("<tool_call>", "tool")],
            "reasoning": [("</think>", "normal"), ("<tool_call>", "tool")],
            "tool": [("</tool_call>", "normal")],
        }
    )
    _, segments = TextStateMachine.split(machine.make_state(), text)
    calls, call, before = [], "", None
    for state, part in segments:
        if state == "tool":
            call += part
        elif state == "normal" and before == "tool":
            calls.append(call)
            call = ""
        before = state
    return calls + ([call] if before == "tool" and call else [])


def test_the_server_is_not_asked_about_markers_that_are_text():
    assert saving.server_finds(wrapped(GOOD), TEXT) is None
