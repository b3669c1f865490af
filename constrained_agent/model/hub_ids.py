"""Names of models on the hub: what is one, and when two name the same model. Pure."""

from __future__ import annotations

import re

_ID = re.compile(r"[A-Za-z0-9][\w.-]*/[\w.-]+")
_ADDRESS = re.compile(
    r"(?:(?:https?://)?(?:www\.)?(?:huggingface\.co|hf\.co)/|hf:(?://)?)([\w.-]+/[\w.-]+)", re.IGNORECASE
)
# Parts of a hub name that change how weights are stored, not what model they are. A part outside this
# list (Coder, VL, 2507 ...) means another model, whose settings must come from its own files.
_STORAGE_PART = re.compile(
    r"(?i)mlx|bf16|fp16|fp8|[2-8](\.\d)?bits?|q\d\w*|int[48]|gs?\d+|mx?fp[48]|nvfp4|dwq\w*|\d{6}|awq|gptq"
)


def is_one(text: str) -> bool:
    """Whether a text has the form owner/name."""
    return _ID.fullmatch(text) is not None


def in_address(text: str) -> str | None:
    """The id in an address of the hub, as people copy it from a browser; None if the text is no address."""
    found = _ADDRESS.match(text.strip())
    return found[1] if found else None


def same_model(model_name: str, base_name: str) -> bool:
    """Whether a name without its owner is that of a model, however its weights are stored."""
    head, rest = model_name[: len(base_name)], model_name[len(base_name) :]
    parts = [part for part in re.split(r"[-_]", rest) if part]
    at_border = not rest or rest[0] in "-_"
    return head.lower() == base_name.lower() and at_border and all(map(_STORAGE_PART.fullmatch, parts))
