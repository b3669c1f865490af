"""Commands that speak of the rules of permission: whatever may change those files needs a person's yes.

Not covered: what brings such a file along unnamed, with a folder that is copied, an archive, another branch. A run has
read its rules by then, and the next one says what they allow.
"""

from __future__ import annotations

import re

from constrained_agent.tools.commands import paths, programs
from constrained_agent.tools.commands.paths import Zone
from constrained_agent.tools.commands.scene import Call
from constrained_agent.tools.commands.verdict import Judgement, Risk, danger
from constrained_agent.tools.names import as_seen
from constrained_agent.tools.rules import HOME_NAME, REPOSITORY_NAME

_PATCHERS = frozenset(["patch", "git", "ed", "ex", "red", "vi", "vim", "nvim", "emacs"])
"""Programs that are told in a text which files to change."""

_GIT_RECORDS = frozenset(["add", "commit", "stage", "tag", "notes"])
"""Of git: what leaves the files themselves as they are."""


def guarded(call: Call, judged: Judgement) -> Judgement:
    """A judgement, made dangerous where the command may change files and names the file of rules.

    That is more than those that surely write it: how a program takes its arguments is its own affair.
    """
    if judged.risk is not Risk.WRITES or _only_records(call):
        return judged
    words = any(_names_rules(word, call) for word in call.args)
    if words or (programs.name_of(call.argv[0]) in _PATCHERS and _is_told(call)):
        return danger("may change the rules of permission, which say what runs unasked")
    return judged


def _only_records(call: Call) -> bool:
    return programs.name_of(call.argv[0]) == "git" and bool(_GIT_RECORDS.intersection(call.args[:1]))


def _names_rules(word: str, call: Call) -> bool:
    """Whether a word is, holds or leads to its name."""
    call.scene.record.step(len(word) // 200)
    if any(name in as_seen(word) for name in (REPOSITORY_NAME, HOME_NAME.as_posix())):
        return True
    # A pattern or a link; no option, and no text.
    return not re.search(r"\s|^-", word) and paths.zone(word, call.scene) is Zone.RULES


def _is_told(call: Call) -> bool:
    """Whether a text that is piped in, or that this line wrote into a file, names it."""
    files = call.scene.files
    texts = [files[full] for word in call.args for full in paths.absolute(word, call.scene) if full in files]
    return any(
        one is not None and one.text is not None and REPOSITORY_NAME in as_seen(one.text)
        for one in (call.stdin, *texts)
    )
