"""The agent: answers and tool results in turn, until the task is done or a limit is met.

The conversation is what the model saw, by ids, with every call and its result (`agent.conversation`). Nothing is
executed that was cut off, and every call gets an answer.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace

from constrained_agent.agent import notes, prompt
from constrained_agent.agent.budget import MAX_CUTS, Budget, ExitReason
from constrained_agent.agent.calls import Calls, called
from constrained_agent.agent.conversation import Conversation
from constrained_agent.agent.finished import unfinished
from constrained_agent.agent.inbox import Inbox, NoInbox
from constrained_agent.agent.offers import Offers
from constrained_agent.agent.room import Room
from constrained_agent.agent.runtime import Level, Runtime
from constrained_agent.agent.tally import Tally
from constrained_agent.agent.transcript import Transcript
from constrained_agent.agent.turn import Decoding, Progress, Turn, take_turn
from constrained_agent.agent.values import RunResult, Settings
from constrained_agent.agent.verifier import Verifier
from constrained_agent.agent.watch import NoWatcher, Watcher
from constrained_agent.errors import BudgetError, DecodeError, GrammarError, PromptTooLongError
from constrained_agent.grammar.answers import Answer
from constrained_agent.grammar.located.offer import Editable
from constrained_agent.tools.registry import Tools

MAX_REMINDERS = 2
"""Answers that were none, and of which the model was told so, in a run; one of each kind."""

WRAP_UP_TOKENS = 400
"""For the last words of a run that has come to its limit."""


class Agent:
    """One conversation about one repository. `run` may be called again: the conversation goes on.

    Attributes:
        conversation: what the model saw, to be looked at.
    """

    def __init__(
        self,
        runtime: Runtime,
        tools: Tools,
        settings: Settings,
        *,
        transcript: Transcript | None = None,
        watcher: Watcher | None = None,
        inbox: Inbox | None = None,
    ) -> None:
        self._runtime, self._tools, self._settings = runtime, tools, settings
        self._transcript = transcript or Transcript(None)
        self._watcher: Watcher = watcher or NoWatcher()
        self._inbox: Inbox = inbox or NoInbox()
        self._reader = runtime.reader(tools.specs)
        self.conversation = self._conversation = Conversation(runtime)
        self._room = Room(runtime, self._conversation, tools, self._transcript)
        self._untold: list[str] = []
        self._commands = False  # whether a command of an earlier run changed files
        self._offers = Offers(tools)

    @property
    def level(self) -> Level:
        """The level of constraint of the answers from now on."""
        return self._settings.decoding.level

    @level.setter
    def level(self, level: Level) -> None:
        self._settings = replace(self._settings, decoding=replace(self._settings.decoding, level=level))
        self._transcript.write("constraint", level=level)

    def tell(self, text: str) -> None:
        """Tell the model something together with the next task."""
        self._untold.append(text)

    def run(self, task: str, files: Sequence[str] = ()) -> RunResult:
        """Work on a task until it is done or a limit is met.

        Args:
            task: what to do, in words.
            files: paths to put before the model as read.

        Raises:
            UserError: a file cannot be read, or the prompt is too long for a first answer.
        """
        verifier = Verifier(self._settings, self._tools, self._room, self._transcript, self._watcher)
        run = Tally(Budget(self._settings.limits), verifier, task=task)
        self._calls = Calls(
            run,
            self._tools,
            self._conversation,
            self._room,
            self._transcript,
            self._watcher,
            max_added_lines=self._settings.decoding.max_added_lines,
        )
        self._tools.start_run(run.budget.deadline)
        before = list(self._conversation.messages)
        try:
            self._open(task, files)
        except BaseException:
            self._conversation.take_back(before)  # a task that never began must not be in the way
            raise
        reason: ExitReason | None = None
        try:
            while reason is None:
                reason = run.budget.spent() or self._turn(run)
        except KeyboardInterrupt:
            reason = "interrupted"
        except (PromptTooLongError, BudgetError) as error:
            if run.budget.n_turns <= 1:
                self._conversation.take_back(before)  # what was never answered must not be in the way
                raise
            # The conversation has outgrown the context: what was done so far stands.
            run.last_error, reason = str(error), "token_budget"
        except (DecodeError, GrammarError) as error:
            if isinstance(error, GrammarError) and run.budget.n_turns <= 1:
                raise
            run.failures["model_error"] += 1
            run.last_error, reason = str(error), "model_error"
        finally:
            self._calls.settle(notes.INTERRUPTED, "interrupted")
        return self._close(run, self._finish(run, reason))

    def _finish(self, run: Tally, reason: ExitReason) -> ExitReason:
        """The last tests, and the last words; returns why the run ended in the end."""
        if reason in ("interrupted", "model_error"):  # whoever stops a run does not wait for its tests
            return reason
        try:
            run.verifier.run_tests()
            return "interrupted" if self._wrap_up(run, reason) else reason
        except KeyboardInterrupt:
            return "interrupted"
        finally:
            self._calls.settle(notes.INTERRUPTED, "interrupted")

    def _open(self, task: str, files: Sequence[str]) -> None:
        """Append the task; in a new conversation, the system message before it."""
        shown = [(path, self._tools.show(path)) for path in files]
        self._conversation.begin(
            self._settings.system(self._tools.specs, self._runtime.dialect.tool_block),
            thinking=self._settings.decoding.thinking,
        )
        said = "\n\n".join([*self._untold, prompt.task_text(task, shown)])
        self._conversation.say(said, "task_and_files" if files else "task")
        self._transcript.start(
            self._tools,
            task=task,
            files=files,
            told=self._untold,
            model=self._runtime.card.name,
            prompt_parts=self._conversation.parts,
            settings=self._settings,
        )

    def _turn(self, run: Tally) -> ExitReason | None:
        """One answer and what follows from it; None to go on."""
        run.budget.n_turns += 1
        number = run.budget.n_turns
        choice = self._settings.first_tool if number == 1 and self._settings.first_tool else "auto"
        self._hear(run)
        self._room.make()
        offered, lost = self._offers.now(self._settings)
        if lost:
            self._note(notes.LOST_NOTE.format(paths=", ".join(lost)))
        turn = self._answer(run, number, choice, self._settings.decoding, offered)
        return self._act(run, turn)

    def _answer(
        self, run: Tally, number: int, choice: str, decoding: Decoding, offered: Editable | None
    ) -> Turn:
        """Let the model answer once, and take down what it cost."""
        decoding = replace(decoding, max_tokens=run.budget.room(decoding.max_tokens))
        self._watcher.turn_started(number)
        turn = take_turn(
            self._runtime,
            self._conversation.ids,
            self._tools.specs,
            choice,
            decoding,
            self._reader,
            editable=offered,
            number=number,
            deadline=run.budget.deadline,
            progress=Progress(self._watcher.prefill, self._watcher.tokens),
        )
        messages = self._conversation.prompt(len(turn.prompt) - self._conversation.n_tokens)
        self._calls.answered(turn)
        run.usage += turn.usage
        run.budget.n_tokens += len(turn.generation.tokens)
        self._transcript.turn(number, choice, turn, self._runtime.tokenizer, messages)
        self._watcher.turn_ended(turn)
        return turn

    def _act(self, run: Tally, turn: Turn) -> ExitReason | None:
        answer = turn.answer
        if turn.generation.stop_reason == "interrupted":
            return "interrupted"
        if turn.generation.stop_reason == "time_limit":
            self._calls.settle(notes.TIME_UP)
            return "time_limit"
        if not answer.thinking_closed:
            return self._reminded(run, "thinking_unclosed", notes.THINKING_NOTE) and "thinking_unclosed"
        if turn.generation.thinking_cut:
            run.failures["thinking_limit"] += 1
        if not turn.whole:
            return self._after_cut(run, turn)
        if called(turn):
            return self._calls.run(turn)
        run.budget.forget_calls()
        if not answer.text:
            reason = self._reminded(run, "no_answer", notes.EMPTY_NOTE)
            return "thinking_limit" if reason and turn.generation.thinking_cut else reason
        run.answer = answer.text
        return self._answered(run, answer)

    def _answered(self, run: Tally, answer: Answer) -> ExitReason | None:
        """Take words without a call for the end of the run, unless they are none."""
        if answer.faults and not self._may_print(run, answer):
            return self._reminded(run, answer.faults[0].kind, answer.faults[0].message)
        changed = self._commands or run.commands or self._tools.patched
        open_end = None if answer.faults else unfinished(answer.text, changed=changed)
        if open_end == "announced":
            return self._reminded(run, "no_call", notes.ANNOUNCED_NOTE)
        if open_end == "claimed" and not run.verifier.has_tests:  # else the tests decide
            return self._reminded(run, "claimed", notes.CLAIMED_NOTE)
        return self._verified(run)

    def _may_print(self, run: Tally, answer: Answer) -> bool:
        """Whether an answer may show a call or a patch that was not sent with it: one that was applied before; or,
        where the model was told already that printing does nothing, any once the work is done."""
        if self._reader.printed(answer.text, self._tools.applied) is None:
            return True
        if answer.faults[0].kind not in run.reminded or not (run.commands or self._tools.changes().paths):
            return False
        tests = run.verifier.run_tests()
        return tests is not None and tests.ok

    def _reminded(self, run: Tally, failure: str, note: str) -> ExitReason | None:
        """Tell the model that its answer is none, once for each kind of failure."""
        run.failures[failure] += 1
        if failure in run.reminded or len(run.reminded) >= MAX_REMINDERS:
            return "no_answer"
        run.reminded.add(failure)
        run.answer = ""
        self._note(note)
        return None

    def _after_cut(self, run: Tally, turn: Turn) -> ExitReason | None:
        """What was cut is not run, though it reads as whole: it was closed, not finished."""
        looped = turn.generation.stop_reason == "repetition"
        run.failures["loop" if looped else "cut"] += 1
        run.budget.n_cuts += 1
        run.budget.forget_calls()
        self._calls.settle(notes.CUT_CALL)
        if run.budget.n_cuts >= MAX_CUTS:
            return "thinking_limit" if turn.generation.thinking_cut else "truncated"
        self._note((notes.LOOP_NOTE if looped else notes.CUT_NOTE).format(n=len(turn.generation.tokens)))
        return None

    def _verified(self, run: Tally) -> ExitReason | None:
        """A finished answer counts as done if tests and hook agree; else their output goes back to the model."""
        note = run.verifier.objection()
        if note is None:
            # Where no further answer may come, what was typed is left for the next run.
            return None if run.budget.spent() is None and self._hear(run) else "done"
        run.failures["tests_failed"] += 1
        spent = run.budget.spent()
        if run.failures["tests_failed"] >= self._settings.max_verifications or spent == "max_turns":
            return "tests_failed"
        if spent is None:
            self._note(note)
        return spent

    def _wrap_up(self, run: Tally, reason: ExitReason | None) -> bool:
        """Let a run that has come to its limit say in words how far it got; tools are not on offer for that.

        Returns:
            Whether the person interrupted that.
        """
        if reason not in ("max_turns", "token_budget") or run.answer:
            return False
        self._note(notes.WRAP_UP_NOTE)
        brief = replace(self._settings.decoding, max_tokens=WRAP_UP_TOKENS, thinking=False)
        try:
            self._room.make()
            turn = self._answer(run, run.budget.n_turns + 1, "none", brief, None)
        except (PromptTooLongError, BudgetError, DecodeError, GrammarError) as error:
            run.last_error = str(error)  # the run stands without last words
            return False
        run.answer = turn.answer.text
        self._calls.settle(notes.NO_MORE_CALLS)
        return turn.generation.stop_reason == "interrupted"

    def _hear(self, run: Tally) -> bool:
        """Take in what the person said meanwhile. True: there was something."""
        texts = self._inbox.take()
        for text in texts:
            self._note(text, "added", by="person")
        if texts:
            run.add(texts)
            run.budget.forget_calls()  # "look again" is no repetition
        return bool(texts)

    def _note(self, text: str, part: str = "notes", **facts: str) -> None:
        """Tell the model something as the user would."""
        self._transcript.write("note", text=text, **facts)
        self._conversation.say(text, part)
        self._watcher.note(text)

    def _close(self, run: Tally, reason: ExitReason) -> RunResult:
        self._untold.clear()
        self._commands = self._commands or run.commands
        result = run.result(reason, self._tools.changes(), self._conversation.parts)
        self._transcript.end(
            exit_reason=reason,
            tests_passed=result.tests_passed,
            changed_files=result.changed_files,
            usage=result.usage,
            failures=result.failures,
        )
        return result
