"""At temperature 0 the text is the same on every fast path: drafts, forced tokens fed along, passes queued ahead, and a
cache that is reused.

The reference has none of them: each token is the likeliest one that the mask allows, after a pass over the whole text
in an empty cache. Long versions: `FAST_PATHS=200 pytest tests/property/test_fast_paths.py` (4 minutes), and
`FAST_PATHS_SMOLLM2=20` (10 minutes).
"""

from __future__ import annotations

import os
import random

import numpy as np

from constrained_agent.agent.drafts import PatchLookup
from constrained_agent.agent.runtime import Runtime
from constrained_agent.decode import mask
from constrained_agent.decode.draft import Drafter, PassCosts
from constrained_agent.decode.generate import generate
from constrained_agent.decode.sampling import Sampling
from constrained_agent.grammar.located.offer import Editable, OfferedFile
from constrained_agent.grammar.sources import from_json_schema, load
from constrained_agent.model import cards, weights
from constrained_agent.model.session import Session

N_TINY = int(os.environ.get("FAST_PATHS", "12"))
N_SMOLLM2 = int(os.environ.get("FAST_PATHS_SMOLLM2", "1"))
N_TOKENS = 24

WORDS = "the same area width height return value if else for x in range lines patch file = ( ) : + - 1 2"
LINES = (
    "def area(width, height):",
    "    return width + height",
    "",
    "def volume(width, height, depth):",
    "    return area(width, height) + depth",
    "",
)
FILE = OfferedFile("area.py", LINES)
SCHEMA = {
    "type": "object",
    "properties": {"name": {"type": "string"}, "n": {"type": "integer"}},
    "required": ["name", "n"],
    "additionalProperties": False,
}


class Patient(Drafter):
    """Guesses as long as it can, and always waits for the next token, or never."""

    def __init__(self, runtime, prompt, *, waits):
        lookup = PatchLookup(runtime.engine)
        lookup.begin(prompt, [FILE])
        super().__init__([lookup], PassCosts([1.0, 1.0, 1.0, 1.0]))
        self._always = waits

    def waits(self):
        return self._always


def levels(runtime):
    return [
        runtime.unconstrained(),
        runtime.grammar_constraint(load("apply_patch_strict")),
        runtime.grammar_constraint(from_json_schema(SCHEMA, compact=True)),
        runtime.patch_constraint(Editable((FILE,)), 100).result(),
    ]


def prompts(runtime, n):
    """Half of them go on from the one before, so that its cache is reused."""
    rng = random.Random(7)
    ids = []
    for i in range(n):
        text = " ".join(rng.choices(WORDS.split(), k=rng.randint(4, 30)))
        if i % 2 == 0:
            ids = runtime.dialect.user("Write a patch of area.py.\n" + "\n".join(LINES))
        ids = [*ids, *runtime.dialect.user(text), *runtime.dialect.open_answer(thinking=False)]
        yield ids


def reference(loaded, constraint, prompt):
    """The first tokens, one pass over everything for each."""
    constraint = constraint.fresh()
    written = []
    while len(written) < N_TOKENS and not constraint.stopped:
        forced = [token for token in constraint.forced() if token not in constraint.end_ids][:1]
        if not forced:
            session = Session(loaded)
            with session.running():
                logits = session.forward([*prompt, *written])[-1]
                words = mask.padded(constraint.bitmask(), constraint.vocab_size, session.logit_width)
                allowed = np.unpackbits(words.view(np.uint8), bitorder="little")[: session.logit_width]
                forced = [likeliest(constraint, np.where(allowed == 1, np.array(logits), -np.inf))]
        if forced[0] in constraint.end_ids:
            break
        constraint.consume(forced)
        written += forced
    return written


def likeliest(constraint, logits):
    """The likeliest token after which the text can still end: a path must not be named twice, which no mask says."""
    while True:
        token = int(logits.argmax())
        ahead = constraint.copy()
        if token in constraint.end_ids:
            return token
        ahead.consume([token])
        if ahead.closing() is not None:
            return token
        logits[token] = -np.inf


def fast(runtime, constraint, prompt, drafts):
    """The same by the loop, stopped from outside so that no limit has a say."""
    written = []

    def count(tokens, forced):
        written.extend(tokens)
        if len(written) >= N_TOKENS:
            raise KeyboardInterrupt

    return generate(
        runtime.session,
        constraint.fresh(),
        prompt,
        sampling=Sampling(temperature=0),
        max_tokens=1_000,
        drafts=drafts,
        on_tokens=count,
    )


def compare(runtime, loaded, n):
    constraints = levels(runtime)
    n_compared = n_forced = n_accepted = n_reused = 0
    for i, prompt in enumerate(prompts(runtime, n)):
        constraint = constraints[i // 2 % len(constraints)]
        expected = reference(loaded, constraint, prompt)
        for drafts in (
            None,
            Patient(runtime, prompt, waits=True),
            Patient(runtime, prompt, waits=False),
        ):
            done = fast(runtime, constraint, prompt, drafts)
            shared = min(len(expected), len(done.tokens))  # the loop also ends what goes round in circles
            assert list(done.tokens[:shared]) == expected[:shared], (i, drafts)
            n_compared += shared
            n_forced += sum(done.forced[:shared])
            n_accepted += done.accepted_tokens
            n_reused += done.reused_tokens
    return n_compared, n_forced, n_accepted, n_reused


def test_the_tiny_model_writes_the_same(tiny_runtime, tiny_loaded):
    seen = compare(tiny_runtime, tiny_loaded, N_TINY)
    print(dict(zip(("compared", "forced", "accepted", "reused"), seen, strict=True)))
    assert seen[0] > N_TINY * 3 * N_TOKENS / 2
    assert min(seen) > N_TINY


def test_smollm2_writes_the_same():
    loaded = weights.load(cards.resolve("smollm2-135m"))
    seen = compare(Runtime(loaded), loaded, N_SMOLLM2)
    print(dict(zip(("compared", "forced", "accepted", "reused"), seen, strict=True)))
    assert seen[0] > N_SMOLLM2 * N_TOKENS
