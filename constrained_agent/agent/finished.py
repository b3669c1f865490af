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
_CODE_MARK = "¤"  # stands for quoted text
_SENTENCE = re.compile(r"(?<=[.!?:])\s+|\n+")

_DOING = (
    r"(?:read|look|open|check|double-check|inspect|examine|search|list|view|run|test|execute|re-?try|try|see|find|edit|"
    r"change|update|modify|fix|mend|correct|adjust|swap|switch|resolve|rewrite|handle|add|insert|remove|delete|replace|"
    r"rename|create|write|apply|make|patch|implement|use|start|begin|proceed|continue|go|call|send|verify|review|"
    r"analy[sz]e|investigate|explore|understand|debug|locate|refactor|move|do|get|take|have\s+a\s+look|confirm)"
)
_AT_IT = (
    r"(?:(?:re-?)?read|look|open|check|inspect|examin|search|view|runn|execut|edit|chang|updat|modify|fix|correct|"
    r"adjust|swapp|add|insert|remov|delet|replac|renam|creat|(?:re)?writ|apply|patch)ing"
)
_SELF = "(?-i:I)"  # a small i is a variable
_APOSTROPHE = "(?:'|’)"
_ANNOUNCED = re.compile(
    rf"\b(?:{_SELF}\s*(?:{_APOSTROPHE}ll|will|shall|(?:am|{_APOSTROPHE}m)\s+(?:(?:now\s+)?going|about)\s+to|"
    rf"(?:need|want|plan)\s+to(?!\s+(?:see|know|add|note|point|make\s+(?:clear|sure)))|"
    rf"(?:{_APOSTROPHE}d|would)\s+like\s+to(?!\s+(?:see|know|add|note|point))|have\s+to|must|"
    rf"should(?!\s+(?:add|note)\s+that))|let\s+me|let{_APOSTROPHE}s|we\s+(?:will|need\s+to|should)\s+now|now\s+{_SELF}|"
    rf"next,?\s+{_SELF}|(?:my|our)\s+next\s+step\s+is\s+to|^\W*(?:now\s+it{_APOSTROPHE}s\s+)?time\s+to|^\W*now\s+to)"
    rf"\s+(?:(?:now|first|next|then|also|start\s+by|begin\s+by|have\s+to|need\s+to|try\s+to|go\s+ahead\s+and)\s+)*"
    rf"{_DOING}(?:ing)?\b|"
    rf"\b{_SELF}\s*(?:am|{_APOSTROPHE}m)\s+(?:now\s+)?{_AT_IT}\b|"
    rf"^\W*now\s+{_AT_IT}\b|^\W*{_AT_IT}\b.*(?:\bnow\W*|\.\.\.|…)$",
    re.IGNORECASE,
)
_LATER = re.compile(
    r"(?<!check )(?<!see )\b(?:if|once(?!\s+more|\s+again)|when|whenever|unless|in\s+(?:that|any)?\s*case|should\s+you|"
    r"you\s+(?:can|may|want|need|could|should))\b"
)
_CHANGED = (
    r"(?:fixed|changed|updated|edited|modified|adjusted|added|inserted|removed|deleted|replaced|renamed|swapped|switched|"
    r"created|applied|corrected|mended|patched|rewrote|rewritten|implemented|moved|refactored|resolved|solved)"
)
_OFTEN = r"(?:now\s+|also\s+|successfully\s+|just\s+|already\s+|(?:gone|went)\s+ahead\s+and\s+)*"
_SOME_CHANGES = (
    r"made\s+(?:(?:the|this|a|an|all|some|these|those|following|necessary|required|requested|needed|small)\s+)+"
    r"(?:changes?|edits?|fix(?:es)?|corrections?)\b"
)
_SOME_CODE = (
    r"(?:wrote|written)\s+(?:the|a|an)\s+(?:new\s+)?"
    r"(?:file|function|method|test|module|class|script|code|fix|patch)\b"
)
_FILE = r"[\w/-]+\.[a-z]\w{0,4}\b"
_THING = (
    rf"(?:(?:file|function|method|code|bug|issue|problem|error|test|typo|import|change|edit|fix|patch|line|both)(?:e?s)?\b|"
    rf"\b{_FILE})"
)
_CLAIMED = re.compile(
    rf"\b(?:i|we)\s*(?:{_APOSTROPHE}?ve|have)?\s+{_OFTEN}(?:{_CHANGED}\b|{_SOME_CHANGES}|{_SOME_CODE})|"
    rf"\b{_THING}[^,;]{{0,30}}\b(?:has|have)\s+{_OFTEN}been\s+{_OFTEN}(?:{_CHANGED}|made)\b|"
    rf"\b(?:change|edit|fix|patch)(?:e?s)?\s+(?:was|were)\s+{_OFTEN}(?:made|applied)\b|"
    rf"\b(?:bug|issue|problem|error|typo|both)s?\s+(?:is|are)\s+{_OFTEN}(?:fixed|corrected|resolved|solved)\b(?!\s+by\b)|"
    rf"\b{_FILE}\s+(?:was|were|is)\s+{_OFTEN}(?:changed|updated|edited|modified|fixed|corrected|patched)\b(?!\s+by\b)|"
    rf"\b{_FILE}\s+now\s+(?:contains|reads|says|has|uses|returns)\b|^\W*(?:{_THING}|all)\s+{_OFTEN}{_CHANGED}\W*$|"
    rf"^\W*successfully\s+{_CHANGED}\b|"
    rf"\b(?:fix|change)\s+is\s+(?:now\s+)?in\s+place\b|\btests?\s+(?:now\s+pass|pass(?:es)?\s+now)\b|"
    rf"^\W*(?:done\W+)?{_CHANGED}(?:\s+(?:the|a|an|both|all|it|lines?\s+\d|{_FILE}|[+\-\d{_CODE_MARK}])|\W*$)",
    re.IGNORECASE,
)
_DENIED = re.compile(
    r"^\W*(?:no|nothing|in\s+commit)\b|\b(?:not|never|already|nothing|no)\s+(?:\w+\s+)?(?:was|were|been|be)\b|"
    r"\b(?:have|has|was|were|did|i)\s+(?:not|never)\b|n(?:'|’)t\b|\bun(?:changed|modified|touched)\b|"
    r"(?:changed|modified|edited|applied)\s+(?:nothing|no\b)|\b(?:since|if|once|when|until|unless)\b|"
    r"\bin\s+(?:[\w.]+\s+){0,2}v?\d+\.\d|\bin\s+(?:19|20)\d\d\b",
    re.IGNORECASE,
)
_CODE = re.compile(r"^(?:\s{4}|\s*(?:def|class|if|for|while|with|else|try|elif|except|return)\b.*:?$)")


def unfinished(text: str, *, changed: bool) -> Unfinished | None:
    """What an answer without a call leaves open; None if it is a finished one.

    Args:
        changed: patches or commands did change files, in this run or before it: then it may speak of that.
    """
    sentences = [part for part in _SENTENCE.split(_QUOTED.sub(f" {_CODE_MARK} ", text)) if part.strip()]
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
