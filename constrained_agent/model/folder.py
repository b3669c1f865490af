"""Reads what a model folder says of itself, without its weights: config, tokenizer, chat template, end tokens.

The tokenizer is taken from tokenizer.json as it stands. Loading it through transformers is not the same: for
Qwen3 that puts other pre-tokenizer settings in place of the file's.
"""

from __future__ import annotations

import contextlib
import dataclasses
import json
import math
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any, TypeGuard

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
        end_token: the one that tokenizer_config.json names, for models whose other files name none.
    """

    path: Path
    config: Mapping[str, Any]
    generation: Mapping[str, Any]
    tokenizer_json: str
    added_tokens: Mapping[int, str]
    chat_template: str | None
    weight_bytes: int
    end_token: str | None = None

    @property
    def end_tokens(self) -> tuple[str, ...]:
        """The tokens that the model's own files end an answer with."""
        ids: Any = self.generation.get("eos_token_id") or self.config.get("eos_token_id")
        if ids is None and self.end_token in self.added_tokens.values():
            return (str(self.end_token),)
        return tuple(
            self.added_tokens[index]
            for index in (ids if isinstance(ids, list) else [ids])
            if isinstance(index, int) and index in self.added_tokens
        )


def missing(path: Path, mend: str = "") -> str | None:
    """Name of the first needed file that the folder lacks, or None.

    Raises:
        ModelError: the list of weight files is broken.
    """
    for name in ("config.json", "tokenizer.json"):
        if not (path / name).is_file():
            return name
    index = path / _INDEX
    if not index.is_file():
        return None if any(file.is_file() for file in path.glob(_WEIGHTS)) else "model.safetensors"
    with _laid_out(index, mend):
        shards = sorted({str(name) for name in _json(index, mend).get("weight_map", {}).values()})
    return next((name for name in shards if not (path / name).is_file()), None)


def read(path: Path, mend: str) -> Snapshot:
    """Read a folder; about 0.2 seconds for a vocabulary of 150,000.

    Args:
        path: the folder.
        mend: the command that fetches it anew, for messages.

    Raises:
        ModelError: a file is missing or broken.
    """
    if name := missing(path, mend):
        raise ModelError(f"{path / name} is missing; fetch it: {mend}")
    config = _json(path / "config.json", mend)
    if not isinstance(config.get("model_type"), str):
        raise ModelError(
            f"{path / 'config.json'} names no model_type: it is not a model's config; fetch it: {mend}"
        )
    settings = _optional_json(path / "tokenizer_config.json", mend)
    with _laid_out(path / "tokenizer.json", mend, "tokenizer_config.json or the chat template"):
        tokenizer_json, added_tokens = _tokenizer(path / "tokenizer.json", settings, mend)
        chat_template = _chat_template(path, settings)
    return Snapshot(
        path=path,
        config=config,
        generation=_optional_json(path / "generation_config.json", mend),
        tokenizer_json=tokenizer_json,
        added_tokens=added_tokens,
        chat_template=chat_template,
        weight_bytes=sum(file.stat().st_size for file in path.glob(_WEIGHTS)),
        end_token=_content(settings.get("eos_token")),
    )


def complete(card: Card, snapshot: Snapshot) -> Card:
    """The card with everything that only the model's files know.

    A card of a known model keeps its settings; it only learns a shorter context length.

    Raises:
        ModelError: neither card nor files name an end token.
    """
    in_config = snapshot.config.get("max_position_embeddings")
    lengths = [card.context_length] if card.context_length else []
    lengths += [int(in_config)] if _is_number(in_config) and in_config > 0 else []
    if not lengths:
        raise ModelError(
            f"{snapshot.path / 'config.json'} names no max_position_embeddings, the context length"
        )
    card = dataclasses.replace(card, context_length=min(lengths))
    if card.complete:
        return card
    if not snapshot.end_tokens:
        raise ModelError(
            f"{snapshot.path} names no end token of its vocabulary (eos_token_id in generation_config.json or "
            "config.json: the id of an added token; or eos_token in tokenizer_config.json)"
        )
    added = set(snapshot.added_tokens.values())
    thinks = added.issuperset(_THINK_MARKERS)
    sampling = _sampling(snapshot.generation, card.sampling)
    return dataclasses.replace(
        card,
        markers="token" if added.issuperset(_CALL_MARKERS) else "text",
        end_tokens=snapshot.end_tokens,
        thinking=Thinking(*_THINK_MARKERS, by_default=_thinks_unasked(snapshot)) if thinks else None,
        sampling=sampling,
        sampling_thinking=sampling if thinks else None,
        complete=True,
    )


def _sampling(generation: Mapping[str, Any], default: Sampling) -> Sampling:
    """The model's own settings; what is no number is not taken from it."""
    own = {key: generation.get(key) for key in ("temperature", "top_p", "top_k")}
    temperature, top_p, top_k = (
        value if _is_number(value) else getattr(default, key) for key, value in own.items()
    )
    return Sampling(temperature=float(temperature), top_p=float(top_p), top_k=int(top_k))


def _is_number(value: Any) -> TypeGuard[float]:
    return isinstance(value, int | float) and not isinstance(value, bool) and math.isfinite(value)


def _thinks_unasked(snapshot: Snapshot) -> bool:
    template = snapshot.chat_template
    return template is None or "enable_thinking" in template or "assistant\\n<think>" in template


def _tokenizer(path: Path, settings: Mapping[str, Any], mend: str) -> tuple[str, dict[int, str]]:
    """The tokenizer's text with all added tokens: some files lack those that tokenizer_config.json lists."""
    tokenizer = _json(path, mend)
    if not isinstance(tokenizer.get("model"), dict):
        raise ModelError(f"{path} holds no tokenizer (no model in it); {_again(mend)}")
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


def _content(token: Any) -> str | None:
    """The text of a token that is written as a string or as an object."""
    text = token.get("content") if isinstance(token, dict) else token
    return text if isinstance(text, str) else None


def _optional_json(path: Path, mend: str) -> dict[str, Any]:
    return _json(path, mend) if path.is_file() else {}


@contextlib.contextmanager
def _laid_out(path: Path, mend: str, also: str = "") -> Iterator[None]:
    """Turns what comes of a file with unexpected contents into an error that names it."""
    try:
        yield
    except (AttributeError, KeyError, TypeError, ValueError) as error:
        names = f"{path} or {also} beside it" if also else str(path)
        raise ModelError(f"{names} is not laid out as expected ({error!r}); {_again(mend)}") from error


def _again(mend: str) -> str:
    return f"fetch it anew: {mend}" if mend else "fetch it anew"


def _json(path: Path, mend: str) -> dict[str, Any]:
    try:
        value = json.loads(path.read_text(encoding="utf-8"))
    except (OSError, ValueError, RecursionError) as error:
        raise ModelError(f"{path} is broken ({error}); {_again(mend)}") from error
    if not isinstance(value, dict):
        raise ModelError(f"{path} is broken (expected an object); {_again(mend)}")
    return value
