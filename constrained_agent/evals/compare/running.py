"""Runs a comparison: prompt by prompt, answer by answer, each judged and on the disk before the next is begun.

The same items give the same records, whether or not a run was stopped in between: each prompt is run from an empty
cache in passes of one length, and every answer has its own seed.

What an answer brings about in its copy (tests that crash or hang) is a result. All else stops the comparison, and what
is on the disk stays: a machine that cannot judge an item, a prompt that does not fit (told before anything runs), a
limit of tokens into which no whole text of a grammar fits (told when that grammar is there: compiling all of them ahead
would take longer), a constraint that broke, and an answer that its constraint should have made impossible.
"""

from __future__ import annotations

import hashlib
import json
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import asdict, dataclass
from typing import Any

from constrained_agent.agent.runtime import Runtime
from constrained_agent.errors import BudgetError, PromptTooLongError, UserError
from constrained_agent.evals.circumstances import versions
from constrained_agent.evals.compare import agentic, judging, prompts, writing
from constrained_agent.evals.compare.items import Group, Item
from constrained_agent.evals.compare.outcomes import Judgement
from constrained_agent.evals.compare.prompts import Prompt
from constrained_agent.evals.compare.records import Folder, Record, Written
from constrained_agent.evals.compare.writing import Settings
from constrained_agent.model import cards, fetch

PREFILL_CHUNK = 512
"""Ids of a prompt that run at once: about as fast as more, and always the same."""

_DECIDING = ("llguidance", "mlx", "mlx-lm")
"""Packages on whose versions texts and masks depend."""


@dataclass(frozen=True, slots=True)
class Prepared:
    """A group and its prompt.

    Attributes:
        ids: of the prompt; of whole runs, that of the first answer in the first arm.
        prompt: None for whole runs, which make their own.
    """

    group: Group
    ids: tuple[int, ...]
    prompt: Prompt | None

    @property
    def n_prompt(self) -> int:
        """Ids of the prompt."""
        return len(self.ids)


def prepare(runtime: Runtime, groups: Sequence[Group], settings: Settings) -> list[Prepared]:
    """Make the prompts, before anything runs: one that is too long is told at once. Costs about 20 ms each.

    Raises:
        UserError: a task's prompt does not fit the model.
    """
    made = []
    for group in groups:
        first = group.items[0]
        if first.kind == "run":
            prompt, ids = None, agentic.first_prompt(runtime, first, settings)
        else:
            prompt = prompts.make(runtime, group.source, group.prompt_name)
            ids = prompt.ids
        try:
            runtime.session.room(len(ids))
        except PromptTooLongError as error:
            raise UserError(f"{first.name}: {error} (leave it out with --tasks)") from error
        made.append(Prepared(group, ids, prompt))
    return made


def fingerprint(prepared: Sequence[Prepared]) -> str:
    """Changes when any prompt or any item changes."""
    digest = hashlib.sha256()
    for one in prepared:
        items = [(item.id, item.seed) for item in one.group.items]
        digest.update(json.dumps([items, one.ids]).encode())
    return digest.hexdigest()[:16]


def run(
    runtime: Runtime, prepared: Sequence[Prepared], settings: Settings, folder: Folder
) -> Iterator[Record]:
    """Write and judge every item that has no record yet.

    Yields:
        Each record, when it is on the disk.

    Raises:
        Disagreement: a constrained answer is not what its constraint promises. Its record is on the disk, and stops the
            run again when it is gone on with.
        DecodeError: a constraint broke.
        UserError: an item cannot be judged on this machine, or its answer cannot be written in the limit of tokens.
        KeyboardInterrupt: the person stopped it; what is on the disk stays.
    """
    session = runtime.session
    session.chunk = PREFILL_CHUNK
    done = folder.load()
    for record in done.values():
        judging.check(record)
    for one in prepared:
        left = [item for item in one.group.items if item.id not in done]
        for number, item in enumerate(left):
            if number == 0 or one.prompt is None:
                session.forget()
            record = _record(runtime, item, one.prompt, settings, folder)
            folder.add(record)
            judging.check(record)
            yield record


def _record(
    runtime: Runtime, item: Item, prompt: Prompt | None, settings: Settings, folder: Folder
) -> Record:
    try:
        written, judgement, judge_s = _judged(runtime, item, prompt, settings, folder)
    except BudgetError as error:
        raise UserError(
            f"{item.id}: {error}; --max-tokens is the same for all answers of a comparison: begin one in a new folder "
            "with a larger one, or leave this item out"
        ) from error
    return Record(
        id=item.id,
        kind=item.kind,
        name=item.name,
        arm=item.arm.name,
        sample=item.sample,
        set=item.set,
        seed=item.seed,
        written=written,
        judgement=judgement,
        judge_s=judge_s,
    )


def _judged(
    runtime: Runtime, item: Item, prompt: Prompt | None, settings: Settings, folder: Folder
) -> tuple[Written, Judgement, float]:
    """Write and judge. Where the machine fails a text is judged once more, and a whole run, which is judged in the
    copy that it worked in, is made once more."""
    if prompt is None:
        transcript = folder.transcript(item.id)
        return judging.twice(item.id, lambda: agentic.write(runtime, item, settings, transcript))
    written = writing.write(runtime, item, prompt, settings)
    judgement, judge_s = judging.twice(
        item.id, lambda: judging.judge(item.source, item.arm, runtime.markers, written)
    )
    return written, judgement, judge_s


def facts(runtime: Runtime, settings: Settings, asked: Mapping[str, Any]) -> dict[str, Any]:
    """What a resumed run must have in common with the one that it goes on with, and parts with each other.

    The machine, and the commit of this program, may be others; of the commit a person is told.

    Args:
        asked: what was asked for on the command line: arms, tasks, calls, samples, seed, shard.
    """
    sampling = {key: value for key, value in asdict(settings.sampling).items() if key != "seed"}
    return {
        "model": runtime.card.name,
        "revision": revision(runtime.card),
        "versions": versions(_DECIDING),
        "markers": asdict(runtime.markers),
        "sampling": sampling,
        "max_tokens": settings.max_tokens,
        "drafts": settings.drafts,
        **asked,
    }


def revision(card: cards.Card) -> str | None:
    """Which weights a card's name stands for: the commit of a hub's repository, or the hash of a file; None if unknown.

    Of a folder nothing is known: its weights would have to be read whole.
    """
    if isinstance(card.source, cards.PackageSource):
        return card.source.sha256
    if isinstance(card.source, cards.HubSource):
        # The cache of the hub's client: .../snapshots/COMMIT.
        path = fetch.local_path(card)
        return path.name if path is not None and path.parent.name == "snapshots" else card.source.revision
    return None
