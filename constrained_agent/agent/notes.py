"""What the harness tells a model in words, beside the results of its calls."""

from __future__ import annotations

REPEAT_WARNING = (
    "You have sent this very call before, and it will not be run a third time: "
    "do something else, or answer in words."
)
CUT_NOTE = (
    "Your answer was cut off after {n} tokens and nothing of it was run: it was too long, split it. "
    "Send a smaller patch or one step at a time."
)
LOOP_NOTE = (
    "Your answer repeated itself, so it was stopped after {n} tokens and nothing of it was run. "
    "Do not write the same lines again: send one small step, or say in words what stops you."
)
NOT_RUN = "error: not run again, the same call came too often"
CUT_CALL = "error: not run: the answer was cut off before it came to its end; send smaller pieces"
TIME_UP = "error: not run: the time of this run was over"
NO_MORE_CALLS = "error: not run: this run had come to its limit"
BESIDE_NOTE = (
    "note: only what stands between the markers was run. What you printed beside it was not: {fault}"
)
LONG_RUN_NOTE = (
    "note: the patch came to the limit of {n} added lines in a row. If more was meant, send the rest as "
    "another patch."
)
LOST_NOTE = (
    "What you read of {paths} no longer holds, or too much was read since. "
    "Before you edit it, read it once more."
)
INTERRUPTED = "error: interrupted by the person before it was finished"
THINKING_NOTE = (
    "Your thinking never ended, and nothing of it was run. "
    "Think in a few words, then send the call or answer in words."
)
EMPTY_NOTE = "Your answer was empty. Go on with a tool call, or say in words what you did."
ANNOUNCED_NOTE = (
    "You said what you will do, but sent no call: nothing was done. Send the call now. "
    "If the task is done, say in one sentence what you did."
)
CLAIMED_NOTE = (
    "You said that something was changed, but no patch of yours was applied: every file is as it was. "
    "Send the patch now, or say that nothing was changed."
)
UNDONE_NOTE = "I took your last patch back:\n{report}"
WRAP_UP_NOTE = (
    "This run has come to its limit: no further call will be run. Say in a few sentences what is done, "
    "what is left to do, and what you would do next."
)
REMINDER = "(The task, once more: {task})"
CUT_RESULT = "\n[... cut: {n:,} characters are left out here, the context has no room for them ...]\n"
HOOK_NOTE = "The task is not done yet: the check {command} said so.\n{report}"
