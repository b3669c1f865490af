"""Whether words without a call are a finished answer: small models announce what they then do not do, and report what
they did not.

Looked for are sentences in the first person, in English; what is not recognised counts as finished. A reminder costs a
turn, a missed one a task, so quoted text and code are left out before anything is looked for.
"""

from __future__ import annotations

import re
from typing import Literal

Unfinished = Literal["announced", "claimed"]
"""announced: the last sentence says what will be done next. claimed: it says that files were changed."""

_QUOTED = re.compile(r"```.*?(?:```|\Z)|`[^`\n]*`|\"[^\"\n]*\"", re.DOTALL)
_SENTENCE = re.compile(r"(?<=[.!?:])\s+|\n+")

_DOING = (
    r"(?:read|look|open|check|inspect|examine|search|list|view|run|test|execute|try|see|find|edit|change|update|"
    r"modify|fix|mend|correct|add|insert|remove|delete|replace|rename|create|write|apply|make|patch|implement|use|"
    r"start|begin|proceed|continue|go|call|send)"
)
_ANNOUNCED = re.compile(
    rf"\b(?:i\s*(?:'|’)?\s*(?:will|shall|ll|'ll|am\s+going\s+to|m\s+going\s+to|need\s+to|have\s+to|must|should|"
    rf"want\s+to|would)|let\s+me|let(?:'|’)s|we\s+(?:will|need\s+to|should|can)|now\s+i|next,?\s+i|going\s+to)"
    rf"\s+(?:(?:now|first|next|then|also|start\s+by|begin\s+by|have\s+to|need\s+to|try\s+to|go\s+ahead\s+and)\s+)*"
    rf"{_DOING}(?:ing)?\b",
    re.IGNORECASE,
)
_LATER = re.compile(
    r"\b(?:if|once|when|whenever|unless|in\s+case|should\s+you|you\s+(?:can|may|want|need|could|should))\b"
)
_CHANGED = (
    r"(?:fixed|changed|updated|edited|modified|added|inserted|removed|deleted|replaced|renamed|created|applied|"
    r"corrected|mended|patched|rewrote|rewritten|implemented|written|moved|refactored)"
)
_CLAIMED = re.compile(
    rf"\b(?:i|we)\s*(?:(?:'|’)?ve|have)?\s+(?:now\s+|also\s+|successfully\s+|just\s+|already\s+)*{_CHANGED}\b|"
    rf"\b(?:has|have)\s+(?:now\s+|also\s+|successfully\s+)*been\s+(?:now\s+|successfully\s+)*{_CHANGED}\b",
    re.IGNORECASE,
)
_DENIED = re.compile(r"\b(?:not|no|nothing|never|without|un\w+)\b|n't\b|n’t\b", re.IGNORECASE)


def unfinished(text: str, *, changed: bool) -> Unfinished | None:
    """What an answer without a call leaves open; None if it is a finished one.

    Args:
        changed: the run's patches did change files.
    """
    sentences = [part for part in _SENTENCE.split(_QUOTED.sub(" ", text)) if part.strip()]
    if not sentences:
        return None
    last = sentences[-1]
    if (_ANNOUNCED.search(last) and not _LATER.search(last.lower())) or text.rstrip().endswith(":"):
        return "announced"
    if not changed and any(_CLAIMED.search(part) and not _DENIED.search(part) for part in sentences):
        return "claimed"
    return None
