"""How much of a conversation the KV cache spares: six turns, as the agent appends them."""

from __future__ import annotations

import tempfile
from dataclasses import dataclass
from pathlib import Path

from constrained_agent.agent import prompt
from constrained_agent.agent.conversation import Conversation
from constrained_agent.agent.editable import editable
from constrained_agent.agent.runtime import Level, Runtime
from constrained_agent.agent.turn import Decoding, Turn, take_turn
from constrained_agent.decode.sampling import Sampling
from constrained_agent.evals.small_edits import SmallEdit
from constrained_agent.tools.permissions import Policy
from constrained_agent.tools.registry import APPLY_PATCH, Tools
from constrained_agent.tools.workspace import Workspace

_TURNS = (
    ("What is {path} for?", "none"),
    ("Which line would you change for this? {instruction}", "none"),
    ("Write the patch.", APPLY_PATCH.name),
    ("What does it change?", "none"),
    ("Write another patch, with a comment that says why.", APPLY_PATCH.name),
    ("Sum up what was done.", "none"),
)
"""What the person says, and the tool that the answer has to call."""

_TEXT_TOKENS, _CALL_TOKENS = 8, 64


@dataclass(frozen=True, slots=True)
class Reused:
    """The prompts after the first one.

    Attributes:
        n_known: ids of the prompt and the answer before, over all of them.
        n_reused: those of them that were in the cache.
    """

    n_known: int
    n_reused: int

    @property
    def share(self) -> float:
        return self.n_reused / self.n_known


def converse(runtime: Runtime, edit: SmallEdit, level: Level, *, drafts: bool) -> Reused:
    """Hold a conversation about one file with the real model; patches are written, but not applied.

    Raises:
        KeyboardInterrupt: Ctrl-C.
    """
    with tempfile.TemporaryDirectory() as folder:
        Path(folder, edit.path).write_text(edit.content, encoding="utf-8")
        tools = Tools(Workspace(folder), Policy(read_only=True))
        shown = tools.show(edit.path)
        may_edit = editable(tools, renames=runtime.card.prompt == "full")
    specs = (APPLY_PATCH,)
    reader = runtime.reader(specs)
    conversation = Conversation(runtime)
    conversation.begin(prompt.system_parts(specs, runtime.card.prompt, runtime.dialect.tool_block))
    turns: list[Turn] = []
    for number, (words, choice) in enumerate(_TURNS):
        files = [(edit.path, shown)] if number == 0 else []
        said = words.format(path=edit.path, instruction=edit.instruction)
        conversation.say(prompt.task_text(said, files), "task")
        limit = _TEXT_TOKENS if choice == "none" else _CALL_TOKENS
        decoding = Decoding(level, Sampling(temperature=0.0), limit, drafts=drafts)
        turn = take_turn(
            runtime, conversation.ids, specs, choice, decoding, reader, editable=may_edit, number=number
        )
        if turn.generation.stop_reason == "interrupted":
            raise KeyboardInterrupt
        conversation.answered(turn, len(turn.answer.calls) if turn.whole else 0)
        conversation.settle("written, not applied")
        turns.append(turn)
    return Reused(
        n_known=sum(len(turn.prompt) + len(turn.generation.tokens) for turn in turns[:-1]),
        n_reused=sum(turn.generation.reused_tokens for turn in turns[1:]),
    )
