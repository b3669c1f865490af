"""The program as people call it, but for a model that writes from a script.

    python tests/scripted_program.py MODEL_FOLDER ANSWERS ARGUMENT...

ANSWERS is a JSON list of texts, one for each answer. Where one is `{"wait_for": FILE, "text": TEXT}`, the model is
slow: each token after the first one takes until FILE is there.
"""

from __future__ import annotations

import json
import sys
import time
from pathlib import Path

sys.path.insert(0, str(Path(__file__).parent.parent))

from constrained_agent.cli import run as run_command
from constrained_agent.cli.app import run
from constrained_agent.cli.setup import load_runtime
from tests.fakes import ScriptedModel


class SlowModel(ScriptedModel):
    """Waits where its script says so."""

    def __init__(self, tokenizer, logit_width, answers):
        self._waits = [answer["wait_for"] if isinstance(answer, dict) else None for answer in answers]
        texts = [answer["text"] if isinstance(answer, dict) else answer for answer in answers]
        super().__init__(tokenizer, logit_width, texts)

    def prefill(self, ids, on_progress=None, deadline=None):
        self._wait_for = self._waits.pop(0) if self._waits else None
        if on_progress is not None:
            on_progress(0, len(ids))
            on_progress(len(ids), len(ids))
        return super().prefill(ids, on_progress, deadline)

    def forward(self, ids):
        while self._written and self._wait_for is not None and not Path(self._wait_for).exists():
            time.sleep(0.01)
        return super().forward(ids)


def main():
    folder, answers, *arguments = sys.argv[1:]

    def scripted(name, draft):
        runtime = load_runtime(folder, None)
        runtime.session = SlowModel(runtime.tokenizer, runtime.session.logit_width, json.loads(answers))
        return runtime

    run_command.load_runtime = scripted
    return run(["run", *arguments])


if __name__ == "__main__":
    sys.exit(main())
