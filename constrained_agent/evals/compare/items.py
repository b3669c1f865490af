"""What a comparison runs: every task or call, in every arm, so many times."""

from __future__ import annotations

import hashlib
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from typing import Literal

from constrained_agent.evals.calls.items import CallItem
from constrained_agent.evals.compare.arms import FOR_CALLS, Arm
from constrained_agent.evals.tasks import Task

_SEED_BITS = 32

MAX_TURNS = 8
"""Answers of a whole run."""


Kind = Literal["patch", "call", "run"]
"""A patch in one answer, calls in one answer, or a whole run of the agent."""


@dataclass(frozen=True, slots=True)
class Item:
    """One answer to be written and judged.

    Attributes:
        source: what is asked.
        arm: how it is asked, and held.
        sample: which of the repetitions, from 0.
        seed: of sampling; the same in all arms, so that arms are compared in pairs.
        agentic: a whole run of the agent instead of one answer.
    """

    source: Task | CallItem
    arm: Arm
    sample: int
    seed: int
    agentic: bool = False

    @property
    def kind(self) -> Kind:
        if not isinstance(self.source, Task):
            return "call"
        return "run" if self.agentic else "patch"

    @property
    def name(self) -> str:
        """What is asked: the task's name or the call's id."""
        return _name(self.source)

    @property
    def set(self) -> str:
        """Where the question comes from."""
        return "tasks" if isinstance(self.source, Task) else self.source.set

    @property
    def id(self) -> str:
        """The item's name among all: kind, source, arm, sample."""
        return f"{self.kind}/{self.name}/{self.arm.name}/{self.sample}"


@dataclass(frozen=True, slots=True)
class Group:
    """Items with one prompt: its state in the model is made once."""

    source: Task | CallItem
    prompt_name: str
    items: tuple[Item, ...]

    @property
    def source_name(self) -> str:
        """What is asked."""
        return _name(self.source)


def groups(
    tasks: Sequence[Task],
    calls: Sequence[CallItem],
    arms: Sequence[Arm],
    samples: int,
    seed: int,
    *,
    agentic: bool = False,
) -> list[Group]:
    """Everything to run, in order.

    Args:
        samples: repetitions of each item.
        seed: of the whole; each source and sample has its own, made from it.
        agentic: tasks are worked on by the agent, in several turns.
    """
    found = []
    sources: list[Task | CallItem] = [*tasks, *calls]
    for source in sources:
        for_it = [arm for arm in arms if isinstance(source, Task) or arm.name in FOR_CALLS]
        for prompt_name in dict.fromkeys(arm.prompt_name for arm in for_it):
            alike = [arm for arm in for_it if arm.prompt_name == prompt_name]
            items = tuple(_items(source, alike, samples, seed, agentic=agentic))
            found.append(Group(source, prompt_name, items))
    return found


def n_items(all_groups: Sequence[Group]) -> int:
    return sum(len(group.items) for group in all_groups)


def shard(all_groups: Sequence[Group], number: int, of: int) -> list[Group]:
    """What one of several machines runs: every `of`-th source, from the `number`-th (1 to `of`), in all of its arms."""
    names = list(dict.fromkeys(group.source_name for group in all_groups))
    mine = set(names[number - 1 :: of])
    return [group for group in all_groups if group.source_name in mine]


def _items(
    source: Task | CallItem, arms: Sequence[Arm], samples: int, seed: int, *, agentic: bool
) -> Iterator[Item]:
    name = _name(source)
    for sample in range(samples):
        for arm in arms:
            yield Item(source, arm, sample, _seed(seed, name, sample), agentic)


def _name(source: Task | CallItem) -> str:
    return source.name if isinstance(source, Task) else source.id


def _seed(seed: int, name: str, sample: int) -> int:
    digest = hashlib.sha256(f"{seed}/{name}/{sample}".encode()).digest()
    return int.from_bytes(digest[: _SEED_BITS // 8], "big")
