"""Messages to prompt ids, turn by turn and append-only.

Chat templates are not used: they do not know raw patches, drop old thinking, ignore tools or crash on absent
content, and they encode file contents as markers. A dialect renders what the template would, where the two
speak of the same thing (`difference` checks that), and history stays the ids that the model really saw.
"""

from __future__ import annotations

import json
from collections.abc import Sequence
from typing import Any

from constrained_agent.errors import ModelError
from constrained_agent.messages import ToolCall, ToolSpec
from constrained_agent.model.tokenizer import Tokenizer, Untrusted

DIALECTS = ("hermes",)


class Hermes:
    """ChatML turns with calls between `<tool_call>` and `</tool_call>` (Qwen3; also SmolLM2, which has no
    tokens for those markers: there they are plain text).

    Every method returns ids to append to the prompt.
    """

    def __init__(self, tokenizer: Tokenizer, *, thinks: bool = False) -> None:
        """Args: `thinks` says whether answers may start with a thinking block.

        Raises:
            ModelError: the tokenizer lacks the markers of a message.
        """
        for name in ("<|im_start|>", "<|im_end|>"):
            if tokenizer.special(name) is None:
                raise ModelError(f"the model has no token {name!r}: its dialect is not hermes")
        self._tokenizer = tokenizer
        self.thinks = thinks

    def system(self, *pieces: str | Untrusted) -> list[int]:
        """The system message; markers count in the harness's own pieces."""
        return self._turn("system", *pieces)

    def user(self, text: str) -> list[int]:
        """A user message; nothing in it counts as a marker."""
        return self._turn("user", Untrusted(text))

    def tool_results(self, texts: Sequence[str]) -> list[int]:
        """The results of the calls of one turn, in order; nothing in them counts as a marker."""
        pieces: list[str | Untrusted] = []
        for text in texts:
            opening = "\n<tool_response>\n" if pieces else "<tool_response>\n"
            pieces += [opening, Untrusted(text), "\n</tool_response>"]
        return self._turn("user", *pieces)

    def assistant(self, text: str, calls: Sequence[ToolCall] = (), freeform: Sequence[str] = ()) -> list[int]:
        """An assistant message that was not generated here (examples, a conversation taken up again).

        Args:
            text: its free text; may be empty.
            calls: its calls.
            freeform: names of the tools whose one argument follows the call's head as raw text.
        """
        pieces: list[str | Untrusted] = [Untrusted(text)] if text else []
        for call in calls:
            opening = "\n<tool_call>\n" if pieces else "<tool_call>\n"
            inside = Untrusted(call_text(call, freeform=call.name in freeform))
            pieces += [opening, inside, "\n</tool_call>"]
        return self._turn("assistant", *pieces)

    def open_answer(self, *, thinking: bool) -> list[int]:
        """The start of the answer to be generated; without thinking, a closed block for models that think."""
        closed_block = "<think>\n\n</think>\n\n" if self.thinks and not thinking else ""
        return self._tokenizer.encode(f"<|im_start|>assistant\n{closed_block}")

    def close_answer(self, end_token: int | None) -> list[int]:
        """What stands between generated ids and the next message.

        Args:
            end_token: the end token that the model wrote itself, if it did.
        """
        end = [] if end_token is None else [end_token]
        return [*end, *self._tokenizer.encode("\n" if end else "<|im_end|>\n")]

    def tool_block(self, tools: Sequence[ToolSpec]) -> str:
        """Tools as the dialect lists them in a system prompt: one JSON object a line between tags.

        Tools with raw text are left out: they are described in words.
        """
        lines = [
            json.dumps(
                {
                    "type": "function",
                    "function": {
                        "name": tool.name,
                        "description": tool.description,
                        "parameters": dict(tool.parameters),
                    },
                },
                ensure_ascii=False,
            )
            for tool in tools
            if not tool.freeform
        ]
        return "\n".join(["<tools>", *lines, "</tools>"])

    def _turn(self, role: str, *pieces: str | Untrusted) -> list[int]:
        return self._tokenizer.encode(f"<|im_start|>{role}\n", *pieces, "<|im_end|>\n")


def call_text(call: ToolCall, *, freeform: bool) -> str:
    """What stands between the call markers."""
    name = json.dumps(call.name, ensure_ascii=False)
    if freeform:
        (raw,) = call.arguments.values()
        return f'{{"name": {name}}}\n{raw}'
    return f'{{"name": {name}, "arguments": {json.dumps(dict(call.arguments), ensure_ascii=False)}}}'


def difference(template: str, dialect: Hermes, tokenizer: Tokenizer) -> str | None:
    """How a model's own chat template renders a plain conversation otherwise than the dialect does.

    Args:
        template: Jinja text of the template.

    Returns:
        None where they agree; else both renderings, for an error message.

    Raises:
        ModelError: the template does not render at all.
    """
    import jinja2
    from transformers.utils.chat_template_utils import render_jinja_template

    messages, ids = _sample(dialect, with_call="tool_call" in template)
    try:
        (theirs,), _ = render_jinja_template([messages], chat_template=template, add_generation_prompt=True)
    except (jinja2.TemplateError, TypeError) as error:
        raise ModelError(f"the model's chat template does not render: {error}") from None
    ours = tokenizer.decode([*ids, *dialect.open_answer(thinking=True)])
    return None if theirs.startswith(ours) else f"the template writes {theirs!r}, the dialect {ours!r}"


def _sample(dialect: Hermes, *, with_call: bool) -> tuple[list[dict[str, Any]], list[int]]:
    """A small conversation as templates take it, and as the dialect renders it. Templates that know no calls
    are compared without one."""
    messages: list[dict[str, Any]] = [
        {"role": "system", "content": "Be brief."},
        {"role": "user", "content": "One?"},
        {"role": "assistant", "content": "Two."},
        {"role": "user", "content": "Three?"},
    ]
    ids = [*dialect.system("Be brief."), *dialect.user("One?"), *dialect.assistant("Two.")]
    ids += dialect.user("Three?")
    if with_call:
        call = ToolCall("call_1", "look", {"path": "a"})
        function = {"name": call.name, "arguments": dict(call.arguments)}
        messages += [
            {"role": "assistant", "content": "", "tool_calls": [{"type": "function", "function": function}]},
            {"role": "tool", "content": "found"},
        ]
        ids += [*dialect.assistant("", [call]), *dialect.tool_results(["found"])]
    return messages, ids
