"""Proof that the mask is live, before anything is measured: gibberish that no model would write unasked."""

from __future__ import annotations

import re

from constrained_agent.agent.runtime import Runtime
from constrained_agent.decode.generate import Generation, generate
from constrained_agent.decode.needs import Constraint
from constrained_agent.decode.sampling import Sampling
from constrained_agent.errors import DecodeError
from constrained_agent.grammar.sources import Grammar

_FIRST, _THEN = "[一-龥]", "[B-DF-HJ-NP-TV-XZ]"

SONG = f"{_FIRST}{{6}} {_THEN}{{6}}"
"""First many tokens may come, then few: these are masked in two ways. What a grammar forces would prove nothing, since
nothing is drawn there."""

_MIN_DRAWN = 2  # a token may hold several characters
_MAX_TOKENS = 40
_N_UNMASKED = 12
_BEGINNING = f"{_FIRST}{{0,6}}|{_FIRST}{{6}} {_THEN}{{0,6}}"


def sing(runtime: Runtime) -> float:
    """Ask for something else, and hear whether the song comes. Costs some 30 steps.

    Returns:
        Seconds that a step took, as a first guess for what is to come.

    Raises:
        DecodeError: it did not: the mask is not applied, and no figure would mean anything.
    """
    grammar = Grammar("canary", "lark", f"start: /{SONG}/\n")
    made = _answer(runtime, runtime.grammar_constraint(grammar), _MAX_TOKENS)
    text = runtime.tokenizer.decode(made.tokens)
    if not re.fullmatch(SONG, text) or made.forced.count(False) < _MIN_DRAWN:
        raise DecodeError(
            f"the mask is not live: the grammar allows {SONG} alone, and {text!r} was written; nothing was measured"
        )
    free = _answer(runtime, runtime.unconstrained(), _N_UNMASKED)
    if free.tokens and re.fullmatch(_BEGINNING, runtime.tokenizer.decode(free.tokens)):
        raise DecodeError("the canary sings without a mask, too: its song proves nothing")
    return free.decode_s / max(1, free.model_steps)


def _answer(runtime: Runtime, constraint: Constraint, max_tokens: int) -> Generation:
    dialect = runtime.dialect
    return generate(
        runtime.session,
        constraint,
        [*dialect.user("Say hello."), *dialect.open_answer(thinking=False)],
        sampling=Sampling(temperature=1.0, seed=1),
        max_tokens=max_tokens,
    )
