"""Loads a model: its card's files, fetched if need be, into an mlx-lm module ready to run."""

from __future__ import annotations

from collections import Counter
from collections.abc import Mapping
from dataclasses import dataclass, replace
from pathlib import Path
from typing import TYPE_CHECKING, Any

from constrained_agent.errors import ModelError
from constrained_agent.model import blas, cards, fetch, folder, gguf, memory
from constrained_agent.model.cards import Card

if TYPE_CHECKING:
    from constrained_agent.model.tokenizer import Tokenizer

_CACHED_TOKENS = 8_192  # a conversation that memory must have room for beside the weights
_WORKING_BYTES = 500_000_000  # logits and activations of a pass, tokenizer, grammar
_MAX_SHOWN_CHARS = 400  # of what mlx-lm says
_UNPACKED_SHARE = 0.5  # of the available memory that float32 weights may take on a CPU


@dataclass(frozen=True, slots=True)
class LoadedModel:
    """A model in memory.

    Attributes:
        card: the card, filled in from the model's own files where it was derived.
        origin: the folder or file that the weights were read from.
        module: mlx_lm module; `module(ids[None], cache=cache)` gives (1, n_ids, logit_width) logits.
        tokenizer_json: text of a `tokenizers` tokenizer.json, added tokens included.
        chat_template: the model's own Jinja template, if it has one.
        logit_width: what the module emits; ids past the tokenizer's are padding.
        context_length: most tokens of prompt and answer together.
        end_tokens: tokens that end an answer.
        n_bytes: the weights in memory.
        kv_bytes_per_token: keys and values of one token over all layers; 0 if the config does not tell.
        float_type: of activations, and of keys and values.
    """

    card: Card
    origin: Path
    module: Any
    tokenizer_json: str
    chat_template: str | None
    logit_width: int
    context_length: int
    end_tokens: tuple[str, ...]
    n_bytes: int
    kv_bytes_per_token: int
    float_type: str


def load(card: Card, *, progress: fetch.Progress | None = None) -> LoadedModel:
    """Fetch, verify and load a model; seconds once its files are here.

    On a CPU the weights become float32: measured with SmolLM2-135M, a pass over 1 / 4 / 12 tokens takes
    49 / 64 / 125 ms then, 108 / 373 / 1,086 ms with packed weights and float32 activations, and ten times that
    with 16-bit ones. What does not fit that way stays packed.

    Args:
        card: from `cards.resolve`.
        progress: told in words what happens.

    Raises:
        ModelError: too little memory, or files that cannot be fetched, are missing, broken or of another kind.
    """
    check_memory(card, card.memory_bytes)
    path = fetch.fetch(card, progress=progress)
    blas.activate()
    if progress:
        progress(f"loading {card.name}")
    return _from_gguf(card, path) if path.is_file() else _from_folder(card, path)


def load_tokenizer(card: Card, *, progress: fetch.Progress | None = None) -> tuple[Card, Tokenizer]:
    """A model's tokenizer alone, with the card filled in; about a second for 150,000 tokens.

    Args:
        card: from `cards.resolve`.
        progress: told in words what happens.

    Raises:
        ModelError: its files cannot be fetched, are missing, broken or of another kind.
    """
    from constrained_agent.model.tokenizer import Tokenizer

    path = fetch.fetch(card, progress=progress)
    blas.activate()
    if path.is_file():
        tokenizer_json, end_tokens = gguf.read_tokenizer(path)
        return card, Tokenizer(tokenizer_json, card.end_tokens or end_tokens)
    snapshot = folder.read(path, fetch.command(card))
    card = folder.complete(card, snapshot)
    return card, Tokenizer(snapshot.tokenizer_json, card.end_tokens)


def _from_gguf(card: Card, path: Path) -> LoadedModel:
    found = gguf.load(path, "float32" if _on_cpu() else "float16")
    context_length = min(card.context_length, found.config["max_position_embeddings"])
    return _loaded(
        replace(card, context_length=context_length),
        path,
        found.module,
        found.config,
        found.tokenizer_json,
        found.chat_template,
    )


def _from_folder(card: Card, path: Path) -> LoadedModel:
    snapshot = folder.read(path, fetch.command(card))
    card = folder.complete(card, snapshot)
    kv_bytes = _kv_bytes_per_token(snapshot.config, 2)
    check_memory(card, snapshot.weight_bytes + _CACHED_TOKENS * kv_bytes + _WORKING_BYTES)
    module = _read_module(path, fetch.command(card))
    return _loaded(card, path, module, snapshot.config, snapshot.tokenizer_json, snapshot.chat_template)


def _read_module(path: Path, mend: str) -> Any:
    from mlx_lm.utils import load_model

    try:
        # Lazy: on a CPU the packed arrays are not wanted as they stand.
        module, _ = load_model(path, lazy=True, trust_remote_code=False)
    except (RuntimeError, OSError) as error:
        raise ModelError(
            f"the weights in {path} are broken ({_first_line(error)}); fetch them anew: {mend}"
        ) from error
    # An edge: a model type that mlx-lm does not know, a config without its shape or of no sense, arrays that do not
    # fit it, or code of the model's own come out as whatever it happens upon.
    except Exception as error:
        raise ModelError(f"mlx-lm cannot load {path}: {_in_short(error)}; fetch it anew: {mend}") from error
    return module


def _loaded(
    card: Card,
    origin: Path,
    module: Any,
    config: Mapping[str, Any],
    tokenizer_json: str,
    chat_template: str | None,
) -> LoadedModel:
    import mlx.core as mx
    from mlx.utils import tree_flatten

    if _on_cpu():
        _suit_cpu(module)
    module.eval()
    # Reading is lazy: without this the first pass would pay for it, and a broken file would show up there.
    try:
        mx.eval(module.parameters())
    except RuntimeError as error:
        raise ModelError(f"the weights in {origin} are broken ({_first_line(error)})") from error
    logits = module(mx.array([[0]]))
    if not mx.isfinite(logits).all():
        raise ModelError(f"the weights in {origin} are broken: they come to numbers that are not finite")
    arrays = [array for _, array in tree_flatten(module.parameters())]
    floats = Counter(array.dtype for array in arrays if mx.issubdtype(array.dtype, mx.floating))
    float_type = floats.most_common(1)[0][0]
    return LoadedModel(
        card=card,
        origin=origin,
        module=module,
        tokenizer_json=tokenizer_json,
        chat_template=chat_template,
        logit_width=logits.shape[-1],
        context_length=card.context_length,
        end_tokens=card.end_tokens,
        n_bytes=sum(array.nbytes for array in arrays),
        kv_bytes_per_token=_kv_bytes_per_token(config, float_type.size),
        float_type=str(float_type).removeprefix("mlx.core."),
    )


def _on_cpu() -> bool:
    import mlx.core as mx

    return bool(mx.default_device() == mx.cpu)


def _suit_cpu(module: Any) -> None:
    """Make everything float32, unpacked if that fits."""
    import mlx.core as mx
    from mlx_lm.utils import dequantize_model, get_total_parameters

    module.set_dtype(mx.float32)
    if get_total_parameters(module) * mx.float32.size <= memory.available_bytes() * _UNPACKED_SHARE:
        dequantize_model(module)
        module.set_dtype(mx.float32)


def _kv_bytes_per_token(config: Mapping[str, Any], n_float_bytes: int) -> int:
    inner = config.get("text_config")
    shape = inner if isinstance(inner, Mapping) else config

    def number(key: str) -> int:
        value = shape.get(key)
        return value if isinstance(value, int) and value > 0 else 0

    heads, layers = number("num_attention_heads"), number("num_hidden_layers")
    if not heads or not layers:
        return 0
    head_dim = number("head_dim") or number("hidden_size") // heads
    return 2 * layers * (number("num_key_value_heads") or heads) * head_dim * n_float_bytes


def check_memory(card: Card, needed_bytes: int) -> None:
    available = memory.available_bytes()
    if needed_bytes <= available:
        return
    fitting = [other for other in map(cards.load, cards.names()) if other.memory_bytes <= available]
    largest = max(fitting, key=lambda other: other.memory_bytes, default=None)
    advice = f"try --model {largest.name}" if largest else "close other programs, or use a machine with more"
    need, have = needed_bytes / 1e9, available / 1e9
    raise ModelError(f"{card.name} needs about {need:.1f} GB of memory, {have:.1f} GB is available; {advice}")


def _first_line(error: Exception) -> str:
    lines = str(error).strip().splitlines()
    return lines[0] if lines else type(error).__name__


def _in_short(error: Exception) -> str:
    """All lines as one: mlx-lm names the arrays that are missing below its first."""
    words = " ".join(str(error).split())
    return words[:_MAX_SHOWN_CHARS] if words else type(error).__name__
