"""Reads what a model folder says of itself, without its weights: config, tokenizer, chat template, end tokens.

The tokenizer is taken from tokenizer.json as it stands. Loading it through transformers is not the same: for
Qwen3 that puts other pre-tokenizer settings in place of the file's.
"""

from __future__ import annotations

import dataclasses
import json
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from constrained_agent.errors import ModelError
from constrained_agent.model.cards import Card, Sampling, Thinking

_WEIGHTS = "model*.safetensors"
_INDEX = "model.safetensors.index.json"
_CALL_MARKERS = ("<tool_call>", "</tool_call>")
_THINK_MARKERS = ("<think>", "</think>")


@dataclass(frozen=True, slots=True)
class Snapshot:
    """A complete folder.

    Attributes:
        config, generation: config.json and generation_config.json ({} if there is none).
        tokenizer_json: text of tokenizer.json with the added tokens that only tokenizer_config.json lists.
        added_tokens: id to text.
        weight_bytes: size of the weight files.
    """

    path: Path
    config: Mapping[str, Any]
    generation: Mapping[str, Any]
    tokenizer_json: str
    added_tokens: Mapping[int, str]
    chat_template: str | None
    weight_bytes: int

    @property
    def end_tokens(self) -> tuple[str, ...]:
        """The tokens that the model's own files end an answer with."""
        ids: Any = self.generation.get("eos_token_id") or self.config.get("eos_token_id")
        return tuple(
            self.added_tokens[index]
            for index in (ids if isinstance(ids, list) else [ids])
            if index in self.added_tokens
        )


def missing(path: Path) -> str | None:
    """Name of the first needed file that the folder lacks, or None."""
    for name in ("config.json", "tokenizer.json"):
        if not (path / name).is_file():
            return name
    if not (path / _INDEX).is_file():
        return None if any(path.glob(_WEIGHTS)) else "model.safetensors"
    shards = sorted(set(_json(path / _INDEX, "").get("weight_map", {}).values()))
    return next((name for name in shards if not (path / name).is_file()), None)


def read(path: Path, mend: str) -> Snapshot:
    """Read a folder; about 0.2 seconds for a vocabulary of 150,000.

    Args:
        path: the folder.
        mend: the command that fetches it anew, for messages.

    Raises:
        ModelError: a file is missing or broken.
    """
    if name := missing(path):
        raise ModelError(f"{path / name} is missing; fetch it: {mend}")
    config = _json(path / "config.json", mend)
    if not isinstance(config.get("model_type"), str):
        raise ModelError(
            f"{path / 'config.json'} names no model_type: it is not a model's config; fetch it: {mend}"
        )
    settings = _optional_json(path / "tokenizer_config.json", mend)
    tokenizer_json, added_tokens = _tokenizer(path / "tokenizer.json", settings, mend)
    return Snapshot(
        path=path,
        config=config,
        generation=_optional_json(path / "generation_config.json", mend),
        tokenizer_json=tokenizer_json,
        added_tokens=added_tokens,
        chat_template=_chat_template(path, settings),
        weight_bytes=sum(file.stat().st_size for file in path.glob(_WEIGHTS)),
    )


def complete(card: Card, snapshot: Snapshot) -> Card:
    """The card with everything that only the model's files know.

    A card of a known model keeps its settings; it only learns a shorter context length.

    Raises:
        ModelError: neither card nor files name an end token.
    """
    in_config = snapshot.config.get("max_position_embeddings", 0)
    lengths = [length for length in (card.context_length, in_config) if length]
    if not lengths:
        raise ModelError(
            f"{snapshot.path / 'config.json'} names no max_position_embeddings, the context length"
        )
    card = dataclasses.replace(card, context_length=min(lengths))
    if card.complete:
        return card
    if not snapshot.end_tokens:
        raise ModelError(f"{snapshot.path} names no end token (eos_token_id in generation_config.json)")
    added = set(snapshot.added_tokens.values())
    thinks = added.issuperset(_THINK_MARKERS)
    sampling = Sampling(
        temperature=float(snapshot.generation.get("temperature", card.sampling.temperature)),
        top_p=float(snapshot.generation.get("top_p", card.sampling.top_p)),
        top_k=int(snapshot.generation.get("top_k", card.sampling.top_k)),
    )
    return dataclasses.replace(
        card,
        markers="token" if added.issuperset(_CALL_MARKERS) else "text",
        end_tokens=snapshot.end_tokens,
        thinking=Thinking(*_THINK_MARKERS, by_default=_thinks_unasked(snapshot)) if thinks else None,
        sampling=sampling,
        sampling_thinking=sampling if thinks else None,
        complete=True,
    )


def _thinks_unasked(snapshot: Snapshot) -> bool:
    template = snapshot.chat_template
    return template is None or "enable_thinking" in template or "assistant\\n<think>" in template


def _tokenizer(path: Path, settings: Mapping[str, Any], mend: str) -> tuple[str, dict[int, str]]:
    """The tokenizer's text with all added tokens: some files lack those that tokenizer_config.json lists."""
    tokenizer = _json(path, mend)
    added = tokenizer.setdefault("added_tokens", [])
    known = {token["id"] for token in added}
    listed = settings.get("added_tokens_decoder", {})
    lacking = [{"id": int(index), **token} for index, token in listed.items() if int(index) not in known]
    tokens = {token["id"]: token["content"] for token in [*added, *lacking]}
    if not lacking:
        return path.read_text(encoding="utf-8"), tokens
    added += lacking
    added.sort(key=lambda token: token["id"])
    return json.dumps(tokenizer, ensure_ascii=False), tokens


def _chat_template(path: Path, settings: Mapping[str, Any]) -> str | None:
    own_file = path / "chat_template.jinja"
    if own_file.is_file():
        return own_file.read_text(encoding="utf-8")
    template = settings.get("chat_template")
    if isinstance(template, list):  # several, by name
        template = next((entry["template"] for entry in template if entry["name"] == "default"), None)
    return template if isinstance(template, str) else None


def _optional_json(path: Path, mend: str) -> dict[str, Any]:
    return _json(path, mend) if path.is_file() else {}


def _json(path: Path, mend: str) -> dict[str, Any]:
    try:
        value = json.loads(path.read_text(encoding="utf-8"))
    except (OSError, ValueError) as error:
        raise ModelError(f"{path} is broken ({error}); fetch it anew: {mend}") from error
    if not isinstance(value, dict):
        raise ModelError(f"{path} is broken (expected an object); fetch it anew: {mend}")
    return value
