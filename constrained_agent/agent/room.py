"""Keeps a conversation within the model's context: what is too long is cut, what is old gives way."""

from __future__ import annotations

from constrained_agent.agent.conversation import Conversation, head_and_tail
from constrained_agent.agent.runtime import Runtime
from constrained_agent.agent.transcript import Transcript
from constrained_agent.tools.registry import Tools

FULL_SHARE = 0.8
"""Of the context: a prompt that would take more is made shorter first."""

_ROOMY_SHARE = 0.5  # of the context: what it is made shorter to, so that not every turn does it again
_RESULT_SHARE = 0.25  # of the context: a result that would take more is cut
_CHARS_PER_TOKEN = 2.5  # of what commands print, by a careful guess: what is cut there can still be read
_LONG_CHARS = 6_000  # of results: after so much, the model has to be told its task once more


class Room:
    """What a model's context has room for."""

    def __init__(
        self, runtime: Runtime, conversation: Conversation, tools: Tools, transcript: Transcript
    ) -> None:
        self._runtime, self._conversation = runtime, conversation
        self._tools, self._transcript = tools, transcript
        tools.limit_outputs(self._result_chars)

    @property
    def _result_chars(self) -> int:
        """Of one result, about so many characters are shown at most."""
        return int(self._runtime.session.context_limit * _RESULT_SHARE * _CHARS_PER_TOKEN)

    @property
    def long_chars(self) -> int:
        """Characters of results after which the model is told its task once more; few in a small context, where longer
        ones never come."""
        return min(_LONG_CHARS, self._result_chars // 2)

    def make(self) -> None:
        """Shorten the conversation where it would soon outgrow the context; what is no longer shown was not read."""
        limit = self._runtime.session.context_limit
        if self._conversation.n_tokens <= FULL_SHARE * limit:
            return
        before = self._conversation.shown_files()
        try:
            n_changed = self._conversation.shrink(int(_ROOMY_SHARE * limit), int(FULL_SHARE * limit))
        finally:  # also after Ctrl-C
            for path in before - self._conversation.shown_files():
                self._tools.forget(path)
        self._transcript.write("shrink", messages=n_changed, tokens=self._conversation.n_tokens)

    def bounded(self, text: str) -> str:
        """A result that leaves room for others: head and tail."""
        limit = int(self._runtime.session.context_limit * _RESULT_SHARE)
        return head_and_tail(self._runtime.tokenizer, text, limit)
