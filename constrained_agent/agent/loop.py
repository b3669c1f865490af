"""The agent: answers and tool results in turn, until the task is done or a limit is met.

The conversation is a list of ids that only grows: what the model saw, with every call and its result. Nothing
is executed that was cut off, and every call gets an answer.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Sequence
from dataclasses import dataclass, field

from constrained_agent.agent import prompt
from constrained_agent.agent.budget import (
    MAX_CUTS,
    REPEATS_TO_STOP,
    REPEATS_TO_WARN,
    Budget,
    ExitReason,
)
from constrained_agent.agent.runtime import Runtime
from constrained_agent.agent.transcript import Transcript
from constrained_agent.agent.turn import Progress, Turn, take_turn
from constrained_agent.agent.values import RunResult, Settings
from constrained_agent.agent.watch import NoWatcher, Watcher
from constrained_agent.errors import DecodeError
from constrained_agent.messages import ToolCall, ToolResult, Usage
from constrained_agent.tools.registry import Tools

MAX_VERIFICATIONS = 5
"""Answers that failed the tests before the run is given up."""

_REPEAT_WARNING = (
    "You have sent this very call before and got this very result. Sending it again changes nothing: "
    "do something else, or answer in words."
)
_CUT_NOTE = (
    "Your answer was cut off after {n} tokens and nothing of it was run: it was too long, split it. "
    "Send a smaller patch or one step at a time."
)
_LOOP_NOTE = (
    "Your answer repeated itself and was cut off after {n} tokens and nothing of it was run: it was too long, "
    "split it. Do not write the same lines again."
)
_NOT_RUN = "error: not run again, the same call came too often"
_INTERRUPTED = "error: interrupted by the person before it was finished"
_EMPTY_NOTE = "Your answer was empty. Go on with a tool call, or say in words what you did."


@dataclass(slots=True)
class _Run:
    """What one run has counted so far."""

    budget: Budget
    usage: Usage = field(default_factory=Usage)
    failures: Counter[str] = field(default_factory=Counter)
    answer: str = ""
    last_error: str = ""
    n_empty: int = 0
    tests: ToolResult | None = None


class Agent:
    """One conversation about one repository. `run` may be called again: the conversation goes on."""

    def __init__(
        self,
        runtime: Runtime,
        tools: Tools,
        settings: Settings,
        *,
        transcript: Transcript | None = None,
        watcher: Watcher | None = None,
    ) -> None:
        self._runtime, self._tools, self._settings = runtime, tools, settings
        self._transcript = transcript or Transcript(None)
        self._watcher: Watcher = watcher or NoWatcher()
        self._reader = runtime.reader(tools.specs)
        self._history: list[int] = []
        self._parts: dict[str, int] = {}

    def run(self, task: str, files: Sequence[str] = ()) -> RunResult:
        """Work on a task until it is done or a limit is met.

        Args:
            task: what to do, in words.
            files: paths to put before the model as read.

        Raises:
            UserError: a file cannot be read, or the prompt is too long.
        """
        self._open(task, files)
        run = _Run(Budget(self._settings.limits))
        reason: ExitReason | None = None
        try:
            while reason is None:
                reason = run.budget.spent() or self._turn(run)
            self._final_tests(run)
        except KeyboardInterrupt:
            reason = "interrupted"
        except DecodeError as error:
            run.failures["model_error"] += 1
            run.last_error, reason = str(error), "model_error"
        return self._close(run, reason)

    def _open(self, task: str, files: Sequence[str]) -> None:
        """Append the task; in a new conversation, the system message before it."""
        shown = [(path, self._tools.show(path)) for path in files]
        user = prompt.task_text(task, shown)
        if not self._history:
            dialect = self._runtime.dialect
            parts = prompt.system_parts(self._tools.specs, self._settings.prompt_size, dialect.tool_block)
            self._extend("system", dialect.system("\n\n".join(part.text for part in parts)))
            whole = self._parts.pop("system")
            for part in parts:
                self._parts[part.name] = len(self._runtime.tokenizer.encode(part.text))
            self._parts["system_frame"] = whole - sum(self._parts.values())
        self._extend("task_and_files" if files else "task", self._runtime.dialect.user(user))
        self._transcript.write(
            "start", task=task, files=list(files), prompt_parts=self._parts, settings=self._settings
        )

    def _extend(self, part: str, ids: list[int]) -> None:
        self._history += ids
        self._parts[part] = self._parts.get(part, 0) + len(ids)

    def _turn(self, run: _Run) -> ExitReason | None:
        """One answer and what follows from it; None to go on."""
        run.budget.n_turns += 1
        number = run.budget.n_turns
        choice = self._settings.first_tool if number == 1 and self._settings.first_tool else "auto"
        self._watcher.turn_started(number)
        turn = take_turn(
            self._runtime,
            self._history,
            self._tools.specs,
            choice,
            self._settings.decoding,
            self._reader,
            number=number,
            deadline=run.budget.deadline,
            progress=Progress(self._watcher.prefill, self._watcher.tokens),
        )
        self._history = list(turn.history)
        run.usage += turn.usage
        run.budget.n_tokens += len(turn.generation.tokens)
        self._watcher.turn_ended(turn)
        self._transcript.turn(number, choice, turn, self._runtime.tokenizer.decode(turn.generation.tokens))
        return self._act(run, turn)

    def _act(self, run: _Run, turn: Turn) -> ExitReason | None:
        answer = turn.answer
        if turn.generation.stop_reason == "interrupted":
            return "interrupted"
        if turn.generation.stop_reason == "time_limit":
            return "time_limit"
        if not answer.thinking_closed:
            run.failures["thinking_unclosed"] += 1
            return "thinking_unclosed"
        if turn.generation.thinking_cut:
            run.failures["thinking_limit"] += 1
        if not turn.whole:
            return self._after_cut(run, turn)
        if answer.calls or answer.faults:
            return self._run_calls(run, turn)
        if not answer.text:
            run.failures["no_answer"] += 1
            run.n_empty += 1
            if run.n_empty > 1:
                return "no_answer"
            self._note(_EMPTY_NOTE)
            return None
        run.answer = answer.text
        return self._verified(run)

    def _after_cut(self, run: _Run, turn: Turn) -> ExitReason | None:
        """What was cut is not run, though it reads as whole: it was closed, not finished."""
        looped = turn.generation.stop_reason == "repetition"
        run.failures["loop" if looped else "cut"] += 1
        run.budget.n_cuts += 1
        if run.budget.n_cuts >= MAX_CUTS:
            return "truncated"
        self._note((_LOOP_NOTE if looped else _CUT_NOTE).format(n=len(turn.generation.tokens)))
        return None

    def _run_calls(self, run: _Run, turn: Turn) -> ExitReason | None:
        """Run the calls of an answer in order and give every one its result."""
        answer = turn.answer
        repeats = run.budget.repeats(answer.calls) if answer.calls else 0
        if repeats >= REPEATS_TO_STOP:
            run.failures["loop"] += 1
            self._history += self._runtime.dialect.tool_results([_NOT_RUN] * len(answer.calls))
            return "repeated_calls"
        texts = []
        changed = False
        run.tests = None  # a call may change what they say
        try:
            for call in answer.calls:
                result = self._run_call(run, call)
                changed = changed or (result.ok and bool(result.data.get("files")))
                texts.append(result.text)
            for fault in answer.faults:
                run.failures[fault.kind] += 1
                run.last_error = fault.message
                texts.append(f"error: {fault.message}")
            if changed and self._settings.test_command:
                texts[-1] += f"\n\n{self._run_tests(run).text}"
            if repeats >= REPEATS_TO_WARN:
                texts[-1] += f"\n\n{_REPEAT_WARNING}"
        except KeyboardInterrupt:
            n_calls = len(answer.calls) + len(answer.faults)
            texts += [_INTERRUPTED] * (n_calls - len(texts))
            raise
        finally:
            # Whatever happened, every call has its result, or the next turn would start in the middle.
            self._history += self._runtime.dialect.tool_results(texts)
        return None

    def _run_call(self, run: _Run, call: ToolCall) -> ToolResult:
        self._watcher.call_started(call)
        result = self._tools.run(call)
        self._watcher.call_ended(result)
        self._transcript.result(result)
        if not result.ok:
            run.failures[result.error_kind] += 1
            run.last_error = result.text
        return result

    def _verified(self, run: _Run) -> ExitReason | None:
        """A finished answer counts as done if the tests agree; else their output goes back to the model."""
        if self._settings.test_command is None:
            return "done"
        tests = run.tests or self._run_tests(run)
        if tests.ok:
            return "done"
        run.failures["tests_failed"] += 1
        if run.failures["tests_failed"] >= MAX_VERIFICATIONS or run.budget.spent():
            return "tests_failed"
        self._note(f"The task is not done yet.\n{tests.text}")
        return None

    def _run_tests(self, run: _Run) -> ToolResult:
        assert self._settings.test_command is not None
        run.tests = self._tools.run_tests(self._settings.test_command)
        self._transcript.result(run.tests)
        self._watcher.call_ended(run.tests)
        return run.tests

    def _final_tests(self, run: _Run) -> None:
        if self._settings.test_command is not None and run.tests is None:
            self._run_tests(run)

    def _note(self, text: str) -> None:
        """Tell the model something as the user would."""
        self._transcript.write("note", text=text)
        self._watcher.note(text)
        self._history += self._runtime.dialect.user(text)

    def _close(self, run: _Run, reason: ExitReason) -> RunResult:
        changes = self._tools.changes()
        result = RunResult(
            exit_reason=reason,
            answer=run.answer,
            tests_passed=None if run.tests is None else run.tests.ok,
            turns=run.budget.n_turns,
            changed_files=changes.paths,
            diff=changes.diff,
            usage=run.usage,
            failures=dict(run.failures),
            prompt_parts=dict(self._parts),
            last_error=run.last_error,
        )
        self._transcript.write(
            "end",
            exit_reason=reason,
            tests_passed=result.tests_passed,
            changed_files=result.changed_files,
            usage=result.usage,
            failures=result.failures,
        )
        return result
