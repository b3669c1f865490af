"""Stand-ins at the one seam where the decode loop meets a model (`decode.needs.Model`).

The real model stands beside them in every suite that uses them: these only make it write on purpose.
"""

from __future__ import annotations

import contextlib

import mlx.core as mx
import numpy as np

from constrained_agent.errors import PromptTooLongError


class ScriptedModel:
    """Writes given answers, one per generation, as far as the mask lets it.

    Attributes:
        prompts: the ids that each generation was given.
    """

    context_limit = 100_000
    can_cut = True

    def __init__(self, tokenizer, logit_width, answers):
        self.logit_width = logit_width
        self.prompts = []
        self._tokenizer = tokenizer
        self._answers = [tokenizer.encode(answer) for answer in answers]
        self._written = []

    def room(self, n_prompt):
        if n_prompt >= self.context_limit:
            raise PromptTooLongError(n_prompt, self.context_limit, "the context of the fake")
        return self.context_limit - n_prompt

    def prefill(self, ids, on_progress=None, deadline=None):
        self.prompts.append(list(ids))
        assert self._answers, "the script has no further answer"
        self._answer = self._answers.pop(0)
        self._written = []
        self._n_fed = -1  # the last prompt id is fed first
        return 0

    def forward(self, ids):
        wishes = []
        for token in ids:
            self._n_fed += 1
            if self._n_fed:
                self._written.append(token)
            wishes.append(self._wish())
        return mx.array(np.stack(wishes))

    def forward_lazy(self, token):
        self._pending = True
        return self.forward([int(token.item())])

    def confirm(self, token):
        assert self._written[-1] == token

    def cut(self, n_ids):
        if n_ids:
            del self._written[-n_ids:]
            self._n_fed -= n_ids

    @contextlib.contextmanager
    def running(self):
        yield

    def _next(self):
        """The script's next token; where the written tokens cut its text otherwise, what continues the text."""
        written = self._tokenizer.bytes_of(self._written)
        at = 0
        for token in self._answer:
            if at >= len(written):
                return token
            at += len(self._tokenizer.token_bytes[token])
        rest = self._tokenizer.bytes_of(self._answer)[len(written) :]
        return self._tokenizer.encode_plain(rest.decode())[0] if rest else self._tokenizer.end_ids[0]

    def _wish(self):
        logits = np.zeros(self.logit_width, dtype=np.float32)
        logits[self._next()] = 100.0
        return logits


class NoisyModel:
    """A real session whose logits are drowned in noise that prefers structure some of the time.

    Uniform noise hardly ever ends a construct. `structure` are the ids that do: quotes, braces, newlines and
    the pieces of the patch markers.
    """

    def __init__(self, session, structure, seed, share=0.75):
        self._session, self._share = session, share
        self._rng = np.random.default_rng(seed)
        self._key = mx.random.key(seed)
        bonus = np.zeros(session.logit_width, dtype=np.float32)
        bonus[sorted(structure)] = 40
        self._bonus = mx.array(bonus)
        # Ids past the vocabulary get the highest logits of all: they must never come out.
        padding = np.zeros(session.logit_width, dtype=np.float32)
        padding[-200:] = 50
        self._padding = mx.array(padding)
        self.logit_width = session.logit_width
        self.prefill = session.prefill
        self.confirm = session.confirm
        self.running = session.running
        self.cut = session.cut

    def forward(self, ids):
        return self._session.forward(ids) + self._noise()

    def forward_lazy(self, token):
        return self._session.forward_lazy(token) + self._noise()

    def _noise(self):
        self._key, key = mx.random.split(self._key)
        noise = mx.random.gumbel(self._padding.shape, key=key) * 3 + self._padding
        return noise + self._bonus if self._rng.random() < self._share else noise


def structural_ids(tokenizer):
    """Ids out of which constructs are ended."""
    texts = [
        '"',
        '"}',
        "}",
        "]",
        "\n",
        "*** End Patch\n",
        "+x\n",
        "-y\n",
        " z\n",
        "@@\n",
        "*** Begin Patch",
        "5",
        ", ",
    ]
    return {token for text in texts for token in tokenizer.encode_plain(text)}
