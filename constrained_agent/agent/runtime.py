"""One loaded model with everything that a turn needs of it. The only place where model and grammar meet."""

from __future__ import annotations

from collections.abc import Sequence
from concurrent.futures import Future
from typing import TYPE_CHECKING, Literal

from constrained_agent.errors import ModelError, UserError
from constrained_agent.grammar import patches, toolcalls
from constrained_agent.grammar.answers import AnswerReader
from constrained_agent.grammar.carriers import FREEFORM, Carrier
from constrained_agent.grammar.deepstack import started
from constrained_agent.grammar.endings import ClosableMatcher, closable
from constrained_agent.grammar.located.offer import (
    MAX_FILES,
    MAX_LINES,
    Editable,
    OfferedFile,
    left_out,
    locate,
)
from constrained_agent.grammar.located.placing import PlacingMatcher, compile_patch
from constrained_agent.grammar.matcher import EngineTokenizer
from constrained_agent.grammar.sources import Grammar
from constrained_agent.grammar.toolcalls import Markers
from constrained_agent.messages import ToolSpec

if TYPE_CHECKING:
    from constrained_agent.agent.drafts import PatchLookup
    from constrained_agent.decode.draft import Drafter
    from constrained_agent.decode.draft_model import ModelDrafts
    from constrained_agent.decode.needs import Constraint, Drafts
    from constrained_agent.model.weights import LoadedModel

Level = Literal["off", "grammar", "located"]
"""off: nothing but the vocabulary's limits. grammar: the syntax of turns, calls and patches. located: that, and
patches speak of real lines in one place of files that were read."""

_MAX_COMPILED = 4
"""Constraints that are kept, by what they were compiled from: most turns have the grammar of the turn before."""


class Runtime:
    """Weights, tokenizer, dialect and KV cache of one model, and constraints over its vocabulary.

    Attributes:
        card: the model card.
        tokenizer: text to ids and back.
        dialect: messages to ids.
        markers: how calls are marked.
        session: owner of the KV cache.
        engine: the grammar engine's view of the vocabulary.
    """

    def __init__(self, loaded: LoadedModel) -> None:
        """Wrap loaded weights; about two seconds for 150,000 tokens.

        Raises:
            ModelError: tokenizer or dialect do not fit.
        """
        from constrained_agent.model.chat import Hermes
        from constrained_agent.model.session import Session
        from constrained_agent.model.tokenizer import Tokenizer

        self.card = loaded.card
        self.tokenizer = Tokenizer(loaded.tokenizer_json, loaded.end_tokens)
        if self.tokenizer.vocab_size > loaded.logit_width:
            raise ModelError(
                f"the tokenizer in {loaded.origin} has {self.tokenizer.vocab_size:,} tokens, its weights know "
                f"{loaded.logit_width:,}: they do not belong together; fetch both from one place"
            )
        self.dialect = Hermes(self.tokenizer, thinks=loaded.card.thinking is not None)
        self.markers = Markers(loaded.card.markers == "token", self.dialect.thinks)
        self._check_dialect(loaded.chat_template)
        self.session = Session(loaded)
        self.engine = EngineTokenizer(self.tokenizer)
        self._draft_model: ModelDrafts | None = None
        self._drafting: tuple[PatchLookup, Drafter] | None = None
        self._compiled: dict[tuple[str, int, Editable | None], ClosableMatcher] = {}

    def _check_dialect(self, template: str | None) -> None:
        """A model that was trained on other turns or markers would be led astray by ours.

        Raises:
            ModelError: names what differs.
        """
        from constrained_agent.model.chat import difference

        if template and (found := difference(template, self.dialect, self.tokenizer)):
            raise ModelError(f"{self.card.name} does not speak the dialect {self.card.dialect}: {found}")
        words = [self.markers.call_open, self.markers.call_close]
        if self.markers.thinks:
            words += [self.markers.think_open, self.markers.think_close]
        for word in words if self.markers.are_tokens else []:
            if self.tokenizer.special(word) is None:
                raise ModelError(
                    f"the card of {self.card.name} says that {word} is a token, but its tokenizer has none"
                )

    def reader(self, tools: Sequence[ToolSpec]) -> AnswerReader:
        """A reader of this model's answers."""
        return AnswerReader(tools, self.markers)

    def turn_constraint(
        self,
        level: Level,
        tools: Sequence[ToolSpec],
        choice: str,
        *,
        thinking: bool,
        max_added_lines: int = patches.MAX_ADDED_LINES,
        editable: Editable | None = None,
        carrier: Carrier = FREEFORM,
        parallel: bool = False,
    ) -> Future[Constraint]:
        """The constraint of one answer, compiled while the caller goes on to run the prompt.

        Args:
            max_added_lines: `+` lines that may follow each other in a patch.
            editable: what patches may do, at level `located`.
            carrier: how a patch travels.
            parallel: several calls may follow each other; of located patches only one (`toolcalls.compile_turn`).

        Raises (by the future):
            GrammarError: a tool's schema does not compile, or files are too large; never answered by a looser
                constraint.
        """
        if level == "off":
            done: Future[Constraint] = Future()
            done.set_result(self.unconstrained())
            return done
        files = (editable or Editable()) if level == "located" else None
        return started(
            lambda: self._turn_constraint(tools, choice, thinking, max_added_lines, files, carrier, parallel)
        )

    def _turn_constraint(
        self,
        tools: Sequence[ToolSpec],
        choice: str,
        thinking: bool,
        max_added_lines: int,
        editable: Editable | None,
        carrier: Carrier,
        parallel: bool,
    ) -> Constraint:
        turn = toolcalls.turn_grammar(
            tools, choice, self.markers, thinking=thinking, carrier=carrier, parallel=parallel
        )
        key = (turn.text, max_added_lines, editable)
        if key in self._compiled:
            return self._compiled[key].fresh()
        located = None
        if editable is not None:
            can_spell = self.tokenizer.can_spell
            located = locate(editable, max_added_lines=max_added_lines, can_spell=can_spell, carrier=carrier)
        made = toolcalls.compile_turn(
            self.engine,
            tools,
            choice,
            self.markers,
            thinking=thinking,
            max_added_lines=max_added_lines,
            carrier=carrier,
            parallel=parallel,
            located=located,
        )
        if isinstance(made, PlacingMatcher):
            made.warm()
        while len(self._compiled) >= _MAX_COMPILED:
            self._compiled.pop(next(iter(self._compiled)), None)
        self._compiled[key] = made
        return made.fresh()

    def patch_constraint(self, editable: Editable, max_added_lines: int) -> Future[Constraint]:
        """The constraint of a text that is one located patch, compiled while the caller goes on.

        Raises:
            UserError: the files are too many or too large.
        """
        if too_many := left_out(editable):
            raise UserError(
                f"{', '.join(too_many)}: too much to edit at once; name fewer files "
                f"(at most {MAX_FILES} files, {MAX_LINES:,} lines of them in all)"
            )

        def compiled() -> Constraint:
            located = locate(editable, max_added_lines=max_added_lines, can_spell=self.tokenizer.can_spell)
            made = compile_patch(self.engine, located)
            made.warm()
            return made

        return started(compiled)

    def grammar_constraint(self, grammar: Grammar) -> ClosableMatcher:
        """A constraint from any grammar.

        Raises:
            GrammarError: it does not compile.
            BudgetError: none of its texts ends.
        """
        return closable(self.engine, grammar)

    def add_draft_model(self, loaded: LoadedModel) -> None:
        """Let a smaller model take part in `drafts`.

        Raises:
            ModelError: its vocabulary is another one.
        """
        from constrained_agent.decode.draft_model import ModelDrafts
        from constrained_agent.model.session import Session
        from constrained_agent.model.tokenizer import Tokenizer

        other = Tokenizer(loaded.tokenizer_json, loaded.end_tokens)
        if other.token_bytes != self.tokenizer.token_bytes or loaded.logit_width < other.vocab_size:
            raise ModelError(
                f"{loaded.card.name} cannot guess for {self.card.name}: it has another vocabulary "
                f"({other.vocab_size:,} tokens, not {self.tokenizer.vocab_size:,}, or not the same ones); "
                "take a smaller model of the same family"
            )
        self._draft_model, self._drafting = ModelDrafts(Session(loaded), other.vocab_size), None

    def drafts(
        self, prompt: Sequence[int], files: Sequence[OfferedFile] = (), carrier: Carrier = FREEFORM
    ) -> Drafts:
        """Guesses at an answer to a prompt, from what it repeats, and from the draft model if there is one.

        What passes cost, and how often guesses came true, is known from the answers before.

        Args:
            files: whose lines a patch may speak of.
            carrier: how the patch travels.
        """
        from constrained_agent.agent.drafts import PatchLookup
        from constrained_agent.decode.draft import Drafter
        from constrained_agent.decode.needs import NoDrafts

        if not self.session.can_cut:  # each wrong guess would run the whole text anew
            return NoDrafts()
        if self._drafting is None:
            lookup = PatchLookup(self.engine)
            second = [self._draft_model] if self._draft_model else []
            self._drafting = lookup, Drafter([lookup, *second])
        lookup, drafter = self._drafting
        lookup.begin(prompt, files, carrier)
        if self._draft_model:
            self._draft_model.begin(prompt)
        return drafter

    def unconstrained(self) -> Constraint:
        """Level `off`."""
        from constrained_agent.decode.needs import Unconstrained

        return Unconstrained(self.tokenizer.vocab_size, self.tokenizer.end_ids)
