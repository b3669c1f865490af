"""A real agent (loop, tools, subprocesses, files, grammar, tokenizer) around a model that writes from a script."""

from __future__ import annotations

import copy
import json

from constrained_agent.agent.budget import Limits
from constrained_agent.agent.loop import Agent
from constrained_agent.agent.transcript import Transcript
from constrained_agent.agent.turn import Decoding
from constrained_agent.agent.values import Settings
from constrained_agent.decode.sampling import Sampling
from constrained_agent.grammar.patches import MAX_ADDED_LINES
from constrained_agent.tools.permissions import Policy
from constrained_agent.tools.registry import Tools
from constrained_agent.tools.workspace import Workspace
from tests.fakes import ScriptedModel


def call(name, **arguments):
    """A call as the model writes it."""
    body = json.dumps({"name": name, "arguments": arguments}, ensure_ascii=False)
    return f"<tool_call>\n{body}\n</tool_call>"


def patch_call(body):
    """A patch call; `body` stands between the Begin and End lines."""
    return f'<tool_call>\n{{"name": "apply_patch"}}\n*** Begin Patch\n{body}*** End Patch\n</tool_call>'


class ScriptedAgent:
    """`run` gives the result; `agent`, `model`, `runtime` and `events` are there to be looked at."""

    def __init__(
        self,
        tiny_runtime,
        root,
        answers,
        *,
        level="grammar",
        max_turns=8,
        max_tokens=400,
        policy=None,
        thinking=False,
        max_added_lines=MAX_ADDED_LINES,
        parallel=False,
        tools=None,
        watcher=None,
        **settings,
    ):
        self.runtime = copy.copy(tiny_runtime)
        self.model = self.runtime.session = ScriptedModel(
            tiny_runtime.tokenizer, tiny_runtime.session.logit_width, answers
        )
        self.tools = tools or Tools(Workspace(root), policy or Policy(yes=True))
        self._log = root.parent / f"{root.name}.jsonl"
        self.agent = Agent(
            self.runtime,
            self.tools,
            Settings(
                Decoding(
                    level,
                    Sampling(),
                    max_tokens,
                    thinking,
                    max_added_lines=max_added_lines,
                    parallel=parallel,
                ),
                Limits(max_turns, settings.pop("max_run_tokens", None), settings.pop("time_limit_s", None)),
                **settings,
            ),
            transcript=Transcript(str(self._log)),
            watcher=watcher,
        )

    def run(self, task="Do it.", files=()):
        return self.agent.run(task, files)

    @property
    def events(self):
        return [json.loads(line) for line in self._log.read_text(encoding="utf-8").splitlines()]

    def prompt_text(self, number):
        """The text of the prompt of a turn, counted from 0."""
        return self.runtime.tokenizer.decode(self.model.prompts[number])
