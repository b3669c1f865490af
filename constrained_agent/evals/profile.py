"""Where the time of a decode step goes when the model's arithmetic is left out.

The loop itself (`decode.generate`) writes with a stand-in for Qwen3-8B (`model.shapes`: its graph and logit width,
hardly any arithmetic) in four places: in a located patch of a file of 1,000 lines, in JSON tool calls, in free text
where a call may begin, and at level off. Timers stand between the loop and what it is given: the model, the module in
it, and the constraint; the time between their calls is the loop's own. The same texts are written once more with a
model whose passes are done before they begin: there a draw waits for nothing but mask and sampler.
"""

from __future__ import annotations

import argparse
import inspect
import json
import random
import statistics
import time
from collections import defaultdict
from collections.abc import Callable, Mapping, Sequence
from dataclasses import asdict, replace
from functools import partial
from typing import TYPE_CHECKING, Any

from constrained_agent.model import backend, shapes
from constrained_agent.tools import files, search, shell
from constrained_agent.tools.registry import APPLY_PATCH

if TYPE_CHECKING:
    from constrained_agent.agent.runtime import Runtime
    from constrained_agent.decode.generate import Generation
    from constrained_agent.model.session import Session

N_DRAWS = 300  # in each place, at least
N_LINES = 1_000  # of the file that is patched
MAX_TOKENS = 400  # of one text
AIM_US, AIM_EXPOSED_US = 1_000, 300  # median of the work beside the model's, and of that which no pass hides

PARTS = {
    "graph": "building the graph of a pass",
    "start": "handing the graph to the device",
    "bitmask": "bitmask",
    "draw": "mask and sampler, on logits that are there",
    "wait": "waiting for the device beyond that",
    "follow": "consuming, forced tokens, way to the end",
    "rest": "the rest of the loop",
    "outside": "**work beside the model's**",
    "hidden": "… while a pass runs",
    "exposed": "… while the device waits for it",
    "outside_alone": "… where no pass competes for the processor",
}
"""Parts of a step. `hidden` and `exposed` are the loop's own account (`decode.clock`) and make up `outside`: bitmask,
`follow`, `rest`, and of `draw` what Python does."""

_PART_OF = {"bitmask": "bitmask", "forward": "start", "forward_lazy": "start"}

Times = defaultdict[str, float]
"""Microseconds of the parts of one step; `queued` is the number of passes that were started on an unknown token."""
Place = tuple[Callable[[], Any], str]
"""What makes the constraint of a text, and tokens that the model wishes for, as often as they stand in here."""


def profile(
    progress: Callable[[str], None] | None = None, *, n_draws: int = N_DRAWS, n_layers: int = shapes.N_LAYERS
) -> dict[str, Any]:
    """Measure every place; about a minute on two slow cores.

    Args:
        progress: told in words what happens.
        n_draws, n_layers: fewer for tests.

    Returns:
        Values for JSON: the shape, the device, and for each place its counts and the parts of a step (`PARTS`).

    Raises:
        ModelError: the package with the vocabulary is not installed.
    """
    tell = progress or (lambda _: None)
    tell("profile: making a model of the shape of Qwen3-8B")
    loaded = shapes.load(n_layers=n_layers)
    from constrained_agent.agent.runtime import Runtime  # brings mlx, which `load` has prepared

    watch = Stopwatch()
    runtime = Runtime(replace(loaded, module=Timed(loaded.module, watch)))
    lines = inspect.getsource(argparse).splitlines()[:N_LINES]
    measured = {}
    for name, (constraint, wishes) in places(runtime, lines).items():
        tell(f"profile: {name}")
        shapes.prefer(loaded.module, runtime.tokenizer.encode_plain(wishes))
        measured[name] = _measured(runtime, constraint, watch, n_draws)
    return {
        "model": loaded.card.name,
        "layers": len(loaded.module.layers),
        "logit_width": loaded.logit_width,
        "file_lines": len(lines),
        "sampling": asdict(runtime.card.sampling),
        "device": backend.inspect().kind,
        "aim_us": {"outside": AIM_US, "exposed": AIM_EXPOSED_US},
        "places": measured,
    }


def places(runtime: Runtime, lines: Sequence[str]) -> dict[str, Place]:
    """What is written, where a file that was read has these lines."""
    from constrained_agent.grammar.located.offer import Editable, OfferedFile

    editable = Editable((OfferedFile("a.py", tuple(lines)),))
    json_tools = (files.LIST_DIR, files.READ_FILE, search.SEARCH_TEXT, shell.EXEC_COMMAND)
    tools = (*json_tools, APPLY_PATCH)

    def turn(*what: Any) -> Callable[[], Any]:
        return lambda: runtime.turn_constraint(*what, thinking=False, editable=editable).result()

    rng = random.Random(1)
    patch = "".join(f"{rng.choice('+ -')}{line}\n" for line in lines)
    patch += "*** Update File: a.py\n@@\n" * 30 + "*** End Patch\n" * 10
    calls = "".join(json.dumps({"command": line}) + "\n" for line in lines)
    prose = "\n".join(lines)
    return {
        "located patch": (turn("located", tools, APPLY_PATCH.name), patch),
        "JSON calls": (turn("located", json_tools, "required"), calls),
        "free text": (turn("located", tools, "auto"), prose),
        "off": (turn("off", tools, "auto"), prose),
    }


class Stopwatch:
    """Calls that were timed, in order of their ends.

    Attributes:
        spans: what was called, when it began and when it ended, in seconds.
    """

    def __init__(self) -> None:
        self.spans: list[tuple[str, float, float]] = []

    def timed(self, name: str, job: Callable[..., Any], *args: Any, **more: Any) -> Any:
        """What a call returns; the copy of a constraint is timed as well."""
        begun = time.perf_counter()
        value = job(*args, **more)
        self.spans.append((name, begun, time.perf_counter()))
        return Timed(value, self) if name == "copy" else value


class Timed:
    """A model, a module or a constraint that is another one, but for a stopwatch."""

    FACTS = ("logit_width", "vocab_size", "end_ids", "running", "fresh", "describe")
    """Members that no step is spent in; all others are timed."""

    def __init__(self, inner: Any, watch: Stopwatch) -> None:
        self._inner, self._watch = inner, watch

    def __call__(self, *args: Any, **more: Any) -> Any:
        return self._watch.timed("module", self._inner, *args, **more)

    def __getattr__(self, member: str) -> Any:
        begun = time.perf_counter()
        found = getattr(self._inner, member)
        if member in self.FACTS:
            return found
        if callable(found):
            return partial(self._watch.timed, member, found)
        self._watch.spans.append((member, begun, time.perf_counter()))  # a property: it has done its work
        return found


class Finished:
    """A model whose passes are done before they begin: all have the logits of one that has run."""

    def __init__(self, session: Session) -> None:
        self.logit_width, self.running = session.logit_width, session.running
        with session.running():
            session.prefill([0])
            row = session.forward([0])[0]  # (V,)
        self._rows: Any = defaultdict(lambda: row)

    def prefill(self, *_: Any) -> int:
        return 0

    def forward(self, _: Any) -> Any:
        """(n, V), whatever n is."""
        return self._rows

    def confirm(self, _: int) -> None:
        """Nothing is recorded, so nothing is cut."""

    forward_lazy, cut = forward, confirm


def steps(spans: Sequence[tuple[str, float, float]]) -> list[Times]:
    """The whole steps of one text, each from one bitmask to the next.

    Args:
        spans: of a `Stopwatch` that timed model, module and constraint.
    """
    found: list[Times] = [defaultdict(float)]
    last = graph = 0.0
    for name, begun, ended in spans:
        if name == "module":  # within a pass
            graph += ended - begun
            continue
        # What stands before these is a draw: its token becomes known, or is asked for.
        drawn = name in ("copy", "confirm", "forward_lazy")
        found[-1]["draw" if drawn else "rest"] += (begun - last) * 1e6
        if name == "bitmask":
            found.append(defaultdict(float))
        found[-1]["graph"] += graph * 1e6
        found[-1][_PART_OF.get(name, "follow")] += (ended - begun - graph) * 1e6
        found[-1]["queued"] += name == "forward_lazy"
        last, graph = ended, 0.0
    return found[1:-1]


def _measured(runtime: Runtime, constraint: Callable[[], Any], watch: Stopwatch, n: int) -> dict[str, Any]:
    """The figures of one place, over at least `n` draws."""
    finished, alone = _written(runtime, Finished(runtime.session), constraint, watch, n)
    taken, texts = _written(runtime, runtime.session, constraint, watch, n)
    usual = statistics.median(step["draw"] for step in finished)
    parts = {
        **{name: [step[name] for step in taken] for name in ("graph", "start", "bitmask", "follow", "rest")},
        "draw": [step["draw"] for step in finished],
        "wait": [max(0.0, step["draw"] - usual) for step in taken],
        "outside": _outside(texts),
        "hidden": [us for text in texts for us in text.hidden_us],
        "exposed": [us for text in texts for us in text.exposed_us],
        "outside_alone": _outside(alone),
    }
    return {
        "draws": len(taken),
        "tokens": sum(len(text.tokens) for text in texts),
        "forced_tokens": sum(sum(text.forced) for text in texts),
        "queued_share": round(statistics.mean(step["queued"] for step in taken), 3),
        "us": {name: _spread(parts[name]) for name in PARTS},
    }


def _written(
    runtime: Runtime, model: Any, constraint: Callable[[], Any], watch: Stopwatch, n: int
) -> tuple[list[Times], list[Generation]]:
    """Steps, at least `n`, and the texts that they belong to; seeds are the same for every model."""
    from constrained_agent.decode.generate import generate
    from constrained_agent.decode.sampling import Sampling

    prompt = [*runtime.dialect.user("Work."), *runtime.dialect.open_answer(thinking=False)]
    model = Timed(model, watch)
    taken: list[Times] = []
    texts: list[Generation] = []
    while len(taken) < n and len(texts) < n:
        timed: Any = Timed(constraint(), watch)
        watch.spans.clear()
        sampling = Sampling(**asdict(runtime.card.sampling), seed=len(texts))
        blank_ids = runtime.tokenizer.blank_ids
        texts.append(
            generate(model, timed, prompt, sampling=sampling, max_tokens=MAX_TOKENS, blank_ids=blank_ids)
        )
        taken += steps(watch.spans)
    return taken, texts


def _outside(texts: Sequence[Generation]) -> list[float]:
    return [sum(both) for text in texts for both in zip(text.hidden_us, text.exposed_us, strict=True)]


def _spread(values: Sequence[float]) -> dict[str, Any]:
    low, middle, high = statistics.quantiles(values, method="inclusive")
    return {"median": round(middle, 1), "quartiles": [round(low, 1), round(high, 1)]}


def table(figures: Mapping[str, Any]) -> str:
    """The figures of `profile` in Markdown: a column for each place, a row for each part of a step."""
    found, aim = figures["places"], figures["aim_us"]

    def row(name: str, cell: Callable[[Mapping[str, Any]], str]) -> str:
        return f"| {name} | {' | '.join(cell(one) for one in found.values())} |"

    about = (
        f"Microseconds of one step, median (quartiles), at the shape of Qwen3-8B: {figures['layers']} layers, "
        f"{figures['logit_width']:,} logits; the file that is patched has {figures['file_lines']:,} lines. "
        f"Aim: at most {aim['outside']:,} of work beside the model's, {aim['exposed']:,} of it while the device waits."
    )
    if figures["device"] == "cpu":
        about += (
            " The device is this machine's own processor: a pass is computed while it is handed over, "
            "and competes with the work that it hides."
        )
    rows = [
        f"| | {' | '.join(found)} |",
        f"|---|{'---|' * len(found)}",
        row("draws", lambda one: f"{one['draws']}"),
        row("tokens / forced ones among them", lambda one: f"{one['tokens']} / {one['forced_tokens']}"),
        row("next pass queued before the token is known", lambda one: f"{one['queued_share']:.0%}"),
        *(row(name, partial(_times, part)) for part, name in PARTS.items()),
    ]
    return "\n".join([about, "", *rows])


def _times(part: str, one: Mapping[str, Any]) -> str:
    low, high = one["us"][part]["quartiles"]
    return f"{one['us'][part]['median']:,.0f} ({low:,.0f}–{high:,.0f})"
