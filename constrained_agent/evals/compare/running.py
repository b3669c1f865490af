"""Runs a comparison: prompt by prompt, answer by answer, each judged and on the disk before the next is begun.

The same items give the same records, whether or not a run was stopped in between: each prompt is run from an empty
cache in passes of one length, and every answer has its own seed.
"""

from __future__ import annotations

import hashlib
import json
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import asdict, dataclass
from typing import Any

from constrained_agent.agent.runtime import Runtime
from constrained_agent.errors import PromptTooLongError, UserError
from constrained_agent.evals.compare import agentic, judging, prompts, writing
from constrained_agent.evals.compare.items import Group, Item
from constrained_agent.evals.compare.prompts import Prompt
from constrained_agent.evals.compare.records import Folder, Record
from constrained_agent.evals.compare.writing import Settings

PREFILL_CHUNK = 512
"""Ids of a prompt that run at once: about as fast as more, and always the same."""


@dataclass(frozen=True, slots=True)
class Prepared:
    """A group with its prompt; a whole run makes its own."""

    group: Group
    prompt: Prompt | None

    @property
    def n_prompt(self) -> int:
        """Ids of the prompt, as far as it is known."""
        return len(self.prompt.ids) if self.prompt else 0


def prepare(runtime: Runtime, groups: Sequence[Group]) -> list[Prepared]:
    """Make the prompts, before anything runs: one that is too long is told at once. Costs about 20 ms each.

    Raises:
        UserError: a task's prompt does not fit the model.
    """
    made = []
    for group in groups:
        if group.items[0].kind == "run":
            made.append(Prepared(group, None))
            continue
        prompt = prompts.make(runtime, group.source, group.prompt)
        try:
            runtime.session.room(len(prompt.ids))
        except PromptTooLongError as error:
            raise UserError(f"{group.items[0].name}: {error} (leave it out with --tasks)") from error
        made.append(Prepared(group, prompt))
    return made


def fingerprint(prepared: Sequence[Prepared]) -> str:
    """Changes when any prompt or any item changes."""
    digest = hashlib.sha256()
    for one in prepared:
        ids = [item.id for item in one.group.items]
        digest.update(
            json.dumps(
                [ids, [item.seed for item in one.group.items], one.prompt.ids if one.prompt else []]
            ).encode()
        )
    return digest.hexdigest()[:16]


def run(
    runtime: Runtime, prepared: Sequence[Prepared], settings: Settings, folder: Folder
) -> Iterator[Record]:
    """Write and judge every item that has no record yet.

    Yields:
        Each record, when it is on the disk.

    Raises:
        Disagreement: a constrained answer is not what its constraint promises.
        DecodeError: a constraint broke.
        KeyboardInterrupt: the person stopped it; what is on the disk stays.
    """
    session = runtime.session
    session.chunk = PREFILL_CHUNK
    done = folder.load()
    for one in prepared:
        left = [item for item in one.group.items if item.id not in done]
        for number, item in enumerate(left):
            if number == 0 or one.prompt is None:
                session.forget()
            record = _record(runtime, item, one.prompt, settings, folder)
            folder.add(record)
            yield record


def _record(
    runtime: Runtime, item: Item, prompt: Prompt | None, settings: Settings, folder: Folder
) -> Record:
    if prompt is None:
        written, judgement, judge_s = agentic.write(runtime, item, settings, folder.transcript(item.id))
    else:
        written = writing.write(runtime, item, prompt, settings)
        judgement, judge_s = judging.judge(item.source, item.arm, runtime.markers, written)
        judging.check(item.arm, item.kind, judgement, written.text)
    return Record(
        id=item.id,
        kind=item.kind,
        name=item.name,
        arm=item.arm.name,
        sample=item.sample,
        seed=item.seed,
        written=written,
        judgement=judgement,
        judge_s=judge_s,
    )


def facts(runtime: Runtime, settings: Settings, asked: Mapping[str, Any]) -> dict[str, Any]:
    """What a resumed run must have in common with the one that it goes on with.

    Args:
        asked: what was asked for on the command line: arms, tasks, calls, samples, seed, shard.
    """
    sampling = {key: value for key, value in asdict(settings.sampling).items() if key != "seed"}
    return {
        "model": runtime.card.name,
        "markers": asdict(runtime.markers),
        "sampling": sampling,
        "max_tokens": settings.max_tokens,
        "drafts": settings.drafts,
        **asked,
    }
