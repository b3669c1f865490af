"""What the model has seen, in order, by ids. It only grows, until it has to be made shorter.

Then the results of calls give way first, to a line each; after them whole turns, to one message that says what was
called and what came of it. What the person asked for last always stays, with what was added to it since, and so do the
last turns. A prompt after that shares less with the one before, and is run anew from where they part.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field, replace
from typing import TYPE_CHECKING, Literal

from constrained_agent.agent import notes
from constrained_agent.agent.prompt import Part
from constrained_agent.agent.turn import Turn
from constrained_agent.model.tokenizer import Tokenizer, Untrusted
from constrained_agent.tools.output import shortened

if TYPE_CHECKING:
    from constrained_agent.agent.runtime import Runtime

KEPT_TURNS = 2
"""Answers at the end, with their results, that are never made shorter: what the model is at."""

_STUB_CHARS = 400
"""Of a result: shorter ones stay, a longer one keeps its first line."""

_HEADLINE_CHARS = 120
_FRAME_TOKENS = 40  # around a result, and of the mark where it was cut
_LEAST_TOKENS = 60  # of a result; less says no more than its first line

HEAD = "answer_head"
"""Name of the part of a prompt that begins the answer."""

_SUMMARY_SHARE = 0.25  # of the limit of a conversation
_SUMMARY_LINES = 60
"""Of the calls that turned into a summary, the last ones."""

Kind = Literal["system", "task", "added", "note", "answer", "results", "summary"]

_ASKED = ("task", "added")
"""What came from the person."""

_KINDS: dict[str, Kind] = {"notes": "note", "added": "added"}
"""By the part that a message counts for; all others belong to a task."""


@dataclass(slots=True)
class Message:
    """One message, or the answer between two.

    Attributes:
        name: what it is, for the count of tokens.
        results: of a message of results, each with the call that it answers, in words.
        words: of an answer, its text.
    """

    kind: Kind
    name: str
    ids: list[int]
    results: list[Result] = field(default_factory=list)
    words: str = ""


@dataclass(frozen=True, slots=True)
class Result:
    """What came of a call.

    Attributes:
        call: the call in a few words.
        read: the file that it showed, if it showed one.
    """

    text: str
    call: str = "call"
    read: str | None = None

    @property
    def headline(self) -> str:
        """Its first line, shortened."""
        return shortened(self.text.strip().partition("\n")[0], _HEADLINE_CHARS)


class Conversation:
    """History by ids, and what is owed to it.

    States: *settled*, or *owing* results after an answer with calls. While owing, results are collected by
    `give`; `settle` writes them all and fills up those that never came, so that no call is left without one,
    whatever interrupted its run. Nothing else may be said while owing.

    Attributes:
        messages: everything so far.
    """

    def __init__(self, runtime: Runtime) -> None:
        self._runtime, self._dialect, self._tokenizer = runtime, runtime.dialect, runtime.tokenizer
        self.messages: list[Message] = []
        self._parts: dict[str, int] = {}
        self._system_parts: dict[str, int] = {}
        self._n_head = 0
        self._owed = 0
        self._results: list[Result] = []

    @property
    def ids(self) -> list[int]:
        """Everything so far; a prompt goes on from here."""
        return [token for message in self.messages for token in message.ids]

    @property
    def n_tokens(self) -> int:
        """How many ids that are."""
        return sum(len(message.ids) for message in self.messages)

    def begin(self, system: Sequence[Part], *, thinking: bool = False) -> None:
        """Start counting parts; in a new conversation, also the system message.

        Args:
            thinking: whether answers may start with it.
        """
        self._n_head = len(self._dialect.open_answer(thinking=thinking))
        self._parts = {"history": self.n_tokens} if self.messages else {}
        if not self.messages:
            ids = self._dialect.system(*joined(system))
            self._runtime.session.prefix = tuple(ids)  # the same in every run: its state is kept on disk
            for part in system:
                self._system_parts[part.name] = len(self._tokenizer.encode(_piece(part)))
            self._system_parts["system_frame"] = len(ids) - sum(self._system_parts.values())
            self._parts = dict(self._system_parts)
            self.messages.append(Message("system", "system", ids))

    def say(self, text: str, part: str) -> None:
        """A message of the user, counted as one part; "notes" are the harness's own, "added" belongs to the task."""
        assert not self._owed, "a call has no result yet"
        ids = self._dialect.user(text)
        self.messages.append(Message(_KINDS.get(part, "task"), part, ids, words=text))
        self._parts[part] = self._parts.get(part, 0) + len(ids)

    @property
    def parts(self) -> dict[str, int]:
        """Tokens of each part since the last `begin`, by name, answers and results apart; before the first answer they
        sum to its prompt."""
        return {**self._parts, HEAD: self._n_head}

    def answered(self, turn: Turn, n_calls: int) -> None:
        """Take in an answer; `n_calls` results are owed to it."""
        ids = list(turn.history[self.n_tokens :])
        self.messages.append(Message("answer", "answer", ids, words=turn.answer.text))
        self._owed, self._results = n_calls, []

    def give(self, text: str, call: str = "call", read: str | None = None) -> None:
        """The result of the next call.

        Args:
            call: it in a few words.
            read: the file that it showed.
        """
        self._results.append(Result(text, call, read))

    def amend(self, text: str) -> None:
        """Add something to the last result."""
        last = self._results[-1]
        self._results[-1] = Result(f"{last.text}\n\n{text}", last.call, last.read)

    @property
    def n_result_chars(self) -> int:
        """Length of the results that were given and not written yet."""
        return sum(len(result.text) for result in self._results)

    def settle(self, missing: str) -> None:
        """Write the results that are owed; calls that have none, the last ones, get `missing`."""
        if self._owed:
            results = [*self._results, *[Result(missing)] * (self._owed - len(self._results))]
            self._write_results(results)
        self._owed, self._results = 0, []

    def _write_results(self, results: list[Result]) -> None:
        ids = self._dialect.tool_results([result.text for result in results])
        self.messages.append(Message("results", "results", ids, results))

    def tokens(self) -> Iterator[tuple[str, int]]:
        """Each message with its tokens, the parts of the system message apart; they sum to `ids`."""
        yield from self._system_parts.items()
        for message in self.messages[1:]:
            yield message.name, len(message.ids)

    def prompt(self, n_head: int | None = None) -> list[tuple[str, int]]:
        """The same, and the head of the answer that comes next: they sum to its prompt.

        Args:
            n_head: tokens of the head; None: as of answers since the last `begin`.
        """
        counts = list(self.tokens())
        return [*counts, (HEAD, self._n_head if n_head is None else n_head)] if counts else []

    def take_back(self, messages: Sequence[Message]) -> None:
        """Be again what it was when its messages were these, but for results that had to give way meanwhile."""
        self.messages[:] = messages
        self._owed, self._results = 0, []

    def shrink(self, n_tokens: int, limit: int | None = None) -> int:
        """Make it at most so many tokens, as far as that goes.

        Args:
            limit: tokens from which on even the last results give way; None: they stay.

        Returns:
            How many messages were made shorter or left out.
        """
        assert not self._owed, "a call has no result yet"
        n_changed = 0
        for message in self._old():
            if self.n_tokens <= n_tokens:
                return n_changed
            n_changed += self._stub(message)
        while self.n_tokens > n_tokens and (turn := self._oldest_turn()):
            self._summarise(turn, None if limit is None else int(limit * _SUMMARY_SHARE))
            n_changed += len(turn)
        newest = next((one for one in reversed(self.messages) if one.results), None)
        for message in self.messages:
            if limit is None or self.n_tokens <= limit:
                break
            n_changed += self._fit(message, limit) if message is newest else self._stub(message)
        return n_changed

    def shown_files(self) -> set[str]:
        """The files that a result still shows."""
        return {result.read for message in self.messages for result in message.results if result.read}

    def _old(self) -> list[Message]:
        """All but the last turns."""
        answers = [at for at, message in enumerate(self.messages) if message.kind == "answer"]
        return self.messages[: answers[-KEPT_TURNS]] if len(answers) >= KEPT_TURNS else []

    def _stub(self, message: Message) -> bool:
        """Shorten long results to a line each."""
        stubs = [_stub(result) for result in message.results]
        if stubs == message.results:
            return False
        self._show(message, stubs)
        return True

    def _show(self, message: Message, results: list[Result]) -> None:
        """Put others in the place of results; an interrupt leaves one or the other."""
        ids = self._dialect.tool_results([result.text for result in results])
        message.results, message.ids = results, ids

    def _n_tokens_of(self, lines: Sequence[str]) -> int:
        return len(self._tokenizer.encode_plain("\n".join(lines)))

    def _fit(self, message: Message, limit: int) -> bool:
        """Shorten results that the model has not seen yet only as far as they must be, all to one length."""
        room = limit - (self.n_tokens - len(message.ids))
        share = room // len(message.results) - _FRAME_TOKENS
        if share < _LEAST_TOKENS:
            return self._stub(message)
        cut = [replace(one, text=head_and_tail(self._tokenizer, one.text, share)) for one in message.results]
        self._show(message, cut)
        return True

    def _oldest_turn(self) -> list[Message]:
        """The first answer that is old, with what was said to it; or what was asked before the last task."""
        old = self._old()
        last = max((at for at, message in enumerate(self.messages) if message.kind == "task"), default=0)
        kinds = [message.kind for message in old]
        start = next(
            (i for i, kind in enumerate(kinds) if kind == "answer" or (kind in _ASKED and i < last)), None
        )
        if start is None:
            return []
        end = next(
            (at for at in range(start + 1, len(old)) if kinds[at] in ("answer", "summary", *_ASKED)),
            len(old),
        )
        return old[start:end]

    def _summarise(self, turn: Sequence[Message], n_tokens: int | None) -> None:
        """Put a turn's calls and outcomes into the summary before it, made if need be.

        Args:
            n_tokens: about as long as it may be: its oldest lines give way; None: as long as its lines are.
        """
        at = self.messages.index(turn[0])
        lines = [f"- {result.call}: {result.headline}" for message in turn for result in message.results]
        if not lines and (words := turn[0].words.strip()):
            # The person's own words come last, behind files that were put before the model.
            asked = turn[0].kind in _ASKED
            said = Result(words.rpartition("\n")[2] if asked else words).headline
            lines = [f"- {'you were asked' if asked else 'you said'}: {said}"]
        end = at + len(turn)
        if at and self.messages[at - 1].kind == "summary":
            at -= 1
            lines = [*self.messages[at].words.split("\n"), *lines]
        lines = lines[-_SUMMARY_LINES:]
        while n_tokens is not None and len(lines) > 1 and self._n_tokens_of(lines) > n_tokens:
            del lines[: max(1, len(lines) // 8)]
        words = "\n".join(lines)
        # As a result: what it quotes was never said by the person.
        ids = self._dialect.tool_results([f"What was done before, in short:\n{words}"])
        # In one step: an interrupt leaves the turn or its summary.
        self.messages[at:end] = [Message("summary", "summary", ids, words=words)] if words else []


def head_and_tail(tokenizer: Tokenizer, text: str, n_tokens: int) -> str:
    """A text of about so many tokens at most, the middle left out and marked."""
    if len(text) <= n_tokens:  # no text has more tokens than bytes, and hardly any one than characters
        return text
    ids = tokenizer.encode_plain(text)
    if len(ids) <= n_tokens:
        return text
    head, tail = (tokenizer.decode(part) for part in (ids[: n_tokens // 2], ids[-n_tokens // 2 :]))
    return head + notes.CUT_RESULT.format(n=len(text) - len(head) - len(tail)) + tail


def _stub(result: Result) -> Result:
    if len(result.text) <= _STUB_CHARS:
        return result
    text = f"{result.headline}\n[{len(result.text):,} characters are left out here to save room]"
    return Result(text, result.call)


def _piece(part: Part) -> str | Untrusted:
    return part.text if part.trusted else Untrusted(part.text)


def joined(parts: Sequence[Part]) -> list[str | Untrusted]:
    """The parts of a message with blank lines between."""
    pieces: list[str | Untrusted] = []
    for part in parts:
        pieces += ["\n\n", _piece(part)] if pieces else [_piece(part)]
    return pieces
