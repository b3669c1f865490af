"""What became of a whole run of the agent, by its transcript and its task's tests. Pure.

The state at the end decides, not what went wrong on the way: an agent may err, be told so, and mend it. The first row
that fits:

| at the end | outcome | error_kind | parses | lands |
|---|---|---|---|---|
| the tests pass, whether patches or commands brought that about | `passed` | | yes | yes |
| a file that patches changed is not as it was shipped | `tests_failed` | as of an answer | yes | yes |
| something had failed (`failures`) | the first of them | of the patch error | if it could be read | no |
| patches were applied, and nothing is left of them | `no_change` | | yes | no |
| the same calls came over and over | `loop` | the exit reason | if it could be read | no |
| no patch was sent | `no_call` | the exit reason | if it could be read | no |

"If it could be read": the run made calls, and all of them could be read. A run that only talks does not parse. Changes
by commands alone do not land: the comparison is about patches, and a build or the tests change files, too.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator, Mapping
from dataclasses import dataclass

from constrained_agent.agent.events import Result, Run, Turn
from constrained_agent.decode.steps import WHOLE
from constrained_agent.errors import PatchError
from constrained_agent.evals.compare.landing import Landed
from constrained_agent.evals.compare.outcomes import OUTCOMES, SCHEMA, UNREADABLE, Judgement, of_patch_error
from constrained_agent.patch import parse
from constrained_agent.tools.registry import APPLY_PATCH

_OF_ANSWERS = ("thinking_unclosed", "no_answer")
"""Failures that only the end of a transcript tells of. What was sent and failed goes before them."""

_NOT_RUN = ("not_run", "interrupted")
"""Results that say nothing about their call."""

_BY_EXIT: Mapping[str, str] = {
    "repeated_calls": "loop",
    "truncated": "cut",
    "thinking_limit": "thinking_unclosed",
    "thinking_unclosed": "thinking_unclosed",
}
"""By the exit reason of a run in which nothing else went wrong; any other one is a `no_call`: it sent no patch."""


@dataclass(frozen=True, slots=True)
class RunFailure:
    """One thing that went wrong in a run.

    Attributes:
        outcome: what it would be of an answer.
        error_kind: of a patch error.
        message: as the model was told.
    """

    outcome: str
    error_kind: str = ""
    message: str = ""


def judged(run: Run, landed: Landed) -> Judgement:
    """What became of a run.

    Args:
        run: one that came to its end.
        landed: what its tests said of the files that it left.
    """
    assert run.end is not None
    if landed.outcome == "passed":
        return Judgement("passed", True, True)
    if _left_by_patches(run):
        return Judgement("tests_failed", True, True, landed.error_kind, landed.message)
    found = list(failures(run))
    calls = any(turn.calls for turn in _answers(run))
    parses = calls and not any(one.outcome in UNREADABLE for one in found)
    how = f"the run ended with {run.end.exit_reason}"
    if found:
        first = found[0]
        return Judgement(first.outcome, parses, False, first.error_kind, f"{first.message}\n{how}".lstrip())
    if any(event.ok and _is_patch(run, event) for event in run.events if isinstance(event, Result)):
        return Judgement(
            "no_change", parses, False, "", f"patches were applied, and nothing is left of them; {how}"
        )
    outcome = _BY_EXIT.get(run.end.exit_reason, "no_call")
    return Judgement(outcome, parses, False, run.end.exit_reason, how)


def counted(run: Run) -> dict[str, int]:
    """How often each outcome was met in a run on the way, in the order of the first time."""
    return dict(Counter(one.outcome for one in failures(run)))


def failures(run: Run) -> Iterator[RunFailure]:
    """What went wrong in a run, in order.

    That is: patches that were refused, calls that could not be read or that fit no tool or no schema, and answers that
    were cut, repeated themselves, were empty, or never stopped thinking. What a tool found wrong with the repository (a
    file that is not there, a command that failed) is none: looking is no mistake.
    """
    at_end = run.end.fields.get("failures") if run.end else None
    told: Mapping[str, int] = at_end if isinstance(at_end, Mapping) else {}
    n_printed = told.get("no_wrapper", 0)
    for event in run.events:
        if isinstance(event, Result) and not event.ok:
            yield from _of_result(run, event)
        elif isinstance(event, Turn) and event.tool_choice != "none":
            for failure in _of_turn(event):
                n_printed -= failure.outcome == "no_wrapper"
                if failure.outcome != "no_wrapper" or n_printed >= 0:  # else the run took it for an answer
                    yield failure
    for name in _OF_ANSWERS:
        yield from [RunFailure(name)] * told.get(name, 0)


def _answers(run: Run) -> Iterator[Turn]:
    """All but the last words of a run that met a limit: no tool is on offer for them."""
    return (turn for turn in run.turns if turn.tool_choice != "none")


def _of_turn(turn: Turn) -> Iterator[RunFailure]:
    if turn.stop_reason == "repetition":
        yield RunFailure("loop", "", f"answer {turn.number} was ended for repeating itself")
    elif turn.stop_reason not in WHOLE:
        # Its calls are not run, whole or not.
        yield RunFailure("cut", "", f"answer {turn.number} was ended by a limit ({turn.stop_reason})")
    elif not turn.calls and all(kind == "no_wrapper" for _, kind in turn.faults):
        yield from (RunFailure(kind, "", "a call was only printed") for _, kind in turn.faults)


def _of_result(run: Run, result: Result) -> Iterator[RunFailure]:
    if result.error_kind in _NOT_RUN:
        return
    if _is_patch(run, result):
        yield _of_patch(run, result)
    elif result.error_kind in (*UNREADABLE, *SCHEMA) and result.command is None:
        yield RunFailure(result.error_kind, "", result.text)


def _is_patch(run: Run, result: Result) -> bool:
    call = run.call(result)
    return call is not None and call.name == APPLY_PATCH.name


def _of_patch(run: Run, result: Result) -> RunFailure:
    """A patch that was refused. Whether it can be read is asked anew: some kinds of errors can mean either."""
    call, kind = run.call(result), result.error_kind
    assert call is not None
    if kind in SCHEMA:
        return RunFailure(kind, "", result.text)
    try:
        parse(str(call.arguments.get("patch")))  # leniently, as the tool does
    except PatchError:
        return RunFailure("patch_unparsable", kind, result.text)
    outcome = of_patch_error(kind)
    assert outcome in OUTCOMES
    return RunFailure(outcome, kind, result.text)


def _left_by_patches(run: Run) -> bool:
    """Whether a file that patches changed is another one than at the start."""
    assert run.end is not None
    changed = {left.path for left in run.end.tree or ()}
    return not changed.isdisjoint(run.end.changed_files)
