"""Whether words without a call are a finished answer: small models announce what they then do not do, and report what
they did not.

Looked for are sentences in the first person, in English; what is not recognised counts as finished. A reminder costs a
turn, a missed one a task, so quoted text and code are left out before anything is looked for.
"""

from __future__ import annotations

import re
from typing import Literal

Unfinished = Literal["announced", "claimed"]
"""announced: it ends in what will be done next. claimed: it says that files were changed."""

_QUOTED = re.compile(r"```.*?(?:```|\Z)|`[^`\n]*`|\"[^\"\n]*\"", re.DOTALL)
_SENTENCE = re.compile(r"(?<=[.!?:])\s+|\n+")

_DOING = (
    r"(?:read|look|open|check|inspect|examine|search|list|view|run|test|execute|try|see|find|edit|change|update|"
    r"modify|fix|mend|correct|add|insert|remove|delete|replace|rename|create|write|apply|make|patch|implement|use|"
    r"start|begin|proceed|continue|go|call|send|verify|review|analy[sz]e|investigate|explore|understand|debug|locate|"
    r"refactor|move|do|get|take|have\s+a\s+look|confirm)"
)
_SELF = "(?-i:I)"  # a small i is a variable
_ANNOUNCED = re.compile(
    rf"\b(?:{_SELF}\s*(?:(?:'|’)ll|will|shall|(?:am|(?:'|’)m)\s+(?:now\s+)?going\s+to|need\s+to(?!\s+see)|have\s+to|"
    rf"should(?!\s+(?:add|note)\s+that))|let\s+me|let(?:'|’)s|we\s+(?:will|need\s+to|should)\s+now|now\s+{_SELF}|"
    rf"next,?\s+{_SELF})"
    rf"\s+(?:(?:now|first|next|then|also|start\s+by|begin\s+by|have\s+to|need\s+to|try\s+to|go\s+ahead\s+and)\s+)*"
    rf"{_DOING}(?:ing)?\b",
    re.IGNORECASE,
)
_LATER = re.compile(
    r"(?<!check )(?<!see )\b(?:if|once(?!\s+more|\s+again)|when|whenever|unless|in\s+(?:that|any)?\s*case|should\s+you|"
    r"you\s+(?:can|may|want|need|could|should))\b"
)
_CHANGED = (
    r"(?:fixed|changed|updated|edited|modified|added|inserted|removed|deleted|replaced|renamed|created|applied|"
    r"corrected|mended|patched|rewrote|rewritten|implemented|moved|refactored|resolved)"
)
_OFTEN = r"(?:now\s+|also\s+|successfully\s+|just\s+|already\s+)*"
_CLAIMED = re.compile(
    rf"\b(?:i|we)\s*(?:(?:'|’)?ve|have)?\s+{_OFTEN}(?:{_CHANGED}|made\s+(?:the|this|a)\s+change)\b|"
    rf"\b(?:file|function|method|code|bug|issue|test|typo|import|change|fix)s?\b[^,;]{{0,30}}\b(?:has|have)\s+"
    rf"{_OFTEN}been\s+{_OFTEN}{_CHANGED}\b|"
    rf"^\W*{_CHANGED}\s+(?:the|a|an|both)\b",
    re.IGNORECASE,
)
_DENIED = re.compile(
    r"^\W*(?:no|nothing|if|in\s+commit)\b|\b(?:not|never|already|nothing|no)\s+(?:\w+\s+)?(?:was|were|been|be)\b|"
    r"\b(?:have|has|was|were|did|i)\s+(?:not|never)\b|n(?:'|’)t\b|\bun(?:changed|modified|touched)\b|"
    r"(?:changed|modified|edited|applied)\s+(?:nothing|no\b)|\bsince\b",
    re.IGNORECASE,
)
_CODE = re.compile(r"^(?:\s{4}|\s*(?:def|class|if|for|while|with|else|try|elif|except|return)\b.*:?$)")


def unfinished(text: str, *, changed: bool) -> Unfinished | None:
    """What an answer without a call leaves open; None if it is a finished one.

    Args:
        changed: the run's patches did change files.
    """
    sentences = [part for part in _SENTENCE.split(_QUOTED.sub(" ", text)) if part.strip()]
    if not sentences:
        return None
    leads_on = text.rstrip().endswith(":") and not _CODE.search(text.rstrip().rpartition("\n")[2])
    if leads_on or any(
        _ANNOUNCED.search(part) and not _LATER.search(part.lower()) for part in sentences[-2:]
    ):
        return "announced"
    if not changed and any(_CLAIMED.search(part) and not _DENIED.search(part) for part in sentences):
        return "claimed"
    return None
