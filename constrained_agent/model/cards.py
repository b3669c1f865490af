"""Model cards: what `models/*.toml` say of a model, and the card that a `--model` argument means."""

from __future__ import annotations

import dataclasses
import difflib
import platform
import tomllib
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Literal, TypeVar

from constrained_agent import resources
from constrained_agent.errors import ModelError
from constrained_agent.model import hub_ids

_SUFFIX = ".toml"
_N_NEAR_NAMES = 3  # more names than this in one error line are noise
_MAX_SHOWN = 100  # characters of a name that is none

_Table = TypeVar("_Table", "Sampling", "Thinking", "HubSource", "PackageSource")


@dataclass(frozen=True, slots=True)
class Sampling:
    """Defaults of the sampler: `temperature` 0 is greedy, `top_p` 1 and `top_k` 0 are off."""

    temperature: float
    top_p: float
    top_k: int


@dataclass(frozen=True, slots=True)
class Thinking:
    """How the model thinks: text between `open` and `close`.

    Attributes:
        by_default: it thinks unless the prompt already holds a closed, empty block.
    """

    open: str
    close: str
    by_default: bool


@dataclass(frozen=True, slots=True)
class HubSource:
    """A repository `hub` = owner/name at `revision` (branch, tag or commit)."""

    hub: str
    revision: str = "main"

    def __str__(self) -> str:
        return self.hub if self.revision == "main" else f"{self.hub}@{self.revision}"


@dataclass(frozen=True, slots=True)
class FolderSource:
    """A folder laid out like a hub snapshot."""

    path: Path

    def __str__(self) -> str:
        return str(self.path)


@dataclass(frozen=True, slots=True)
class PackageSource:
    """One GGUF `file` inside the wheel of a Python package, known by its hash."""

    package: str
    version: str
    file: str
    sha256: str

    @property
    def requirement(self) -> str:
        return f"{self.package}=={self.version}"

    def __str__(self) -> str:
        return f"{self.requirement} (Python package)"


@dataclass(frozen=True, slots=True)
class Card:
    """What must be known of a model before its weights are read.

    Attributes:
        name: the card's name, or the hub id or folder it was derived from.
        title: one line for people.
        base_name: the model's name without storage words; other hub ids with it get this card's settings.
        context_length: most tokens of prompt and answer together; 0 = as the model's config says.
        download_bytes, memory_bytes: 0 = not known before the files are here.
        dialect: how tools, calls and results are written.
        markers: the dialect's markers are vocabulary tokens, or spelled as text.
        prompt: which form of the system prompt the model is given.
        end_tokens: tokens that end an answer.
        thinking: None for a model that does not.
        sampling, sampling_thinking: defaults without and with thinking.
        complete: False when dialect markers, thinking, end tokens and sampling are still to be read from
            the model's own files; `weights.load` returns the filled-in card.
    """

    name: str
    title: str
    license: str
    base_name: str
    source: HubSource | FolderSource | PackageSource
    context_length: int
    download_bytes: int
    memory_bytes: int
    dialect: Literal["hermes"]
    markers: Literal["token", "text"]
    prompt: Literal["full", "compact"]
    end_tokens: tuple[str, ...]
    thinking: Thinking | None
    sampling: Sampling
    sampling_thinking: Sampling | None
    complete: bool = True

    def sampling_for(self, thinking: bool) -> Sampling:
        """The sampler's defaults for an answer with or without thinking."""
        return self.sampling_thinking if thinking and self.sampling_thinking else self.sampling


_CHOICES = {"dialect": ("hermes",), "markers": ("token", "text"), "prompt": ("full", "compact")}
_STRINGS = ("title", "license", "base_name", *_CHOICES)
_INTEGERS = ("context_length", "download_bytes", "memory_bytes")
_TABLES = ("source", "sampling", "thinking")


def names() -> list[str]:
    """Names of all cards, sorted."""
    return resources.names("models", _SUFFIX)


def default_name() -> str:
    """The card used without `--model`: one that this kind of machine runs at a useful speed."""
    apple_silicon = platform.system() == "Darwin" and platform.machine() == "arm64"
    return "qwen3-8b-4bit" if apple_silicon else "smollm2-135m"


def load(name: str) -> Card:
    """Read one card.

    Raises:
        ModelError: no such card, or its file has a wrong, missing or unknown key.
    """
    path = resources.path("models", name, _SUFFIX)
    if path is None:
        raise ModelError(_no_such_model(name))
    try:
        return _read(name, tomllib.loads(path.read_text(encoding="utf-8")))
    except (tomllib.TOMLDecodeError, ValueError) as error:
        raise ModelError(f"{path}: {error}") from error


def resolve(text: str) -> Card:
    """The card that a `--model` argument means; never touches the network.

    Args:
        text: a card's name, a hub id `owner/name` or the path of a folder.

    Raises:
        ModelError: it is none of these; the message names near cards and both other forms.
    """
    if text in names():
        return load(text)
    path = _on_disk(text)
    if path is not None and path.is_dir():
        return _derived(text, path.resolve().name, FolderSource(path.resolve()))
    if path is not None:
        raise ModelError(f"{text} is a file; --model takes the folder that holds config.json and the weights")
    if found := hub_ids.in_address(text):
        raise ModelError(f"{_one_line(text)} is an address; --model takes the hub id in it: {found}")
    if text.startswith((".", "/", "~")) or text.count("/") > 1:
        raise ModelError(
            f"there is no folder {_one_line(text)}; --model takes a card ({', '.join(names())}), a hub id or a folder"
        )
    if hub_ids.is_one(text):
        return _derived(text, text.split("/")[1], HubSource(text))
    raise ModelError(_no_such_model(text))


def _on_disk(text: str) -> Path | None:
    """What stands at a path, if anything does."""
    try:
        path = Path(text).expanduser()
        return path if text and path.exists() else None
    except (OSError, RuntimeError, ValueError):  # too long, no such person's home, a NUL
        return None


def _one_line(text: str) -> str:
    shown = "".join(c if c.isprintable() else " " for c in text).strip()
    return shown if len(shown) <= _MAX_SHOWN else shown[:_MAX_SHOWN] + "…"


def _no_such_model(text: str) -> str:
    cards, text = names(), _one_line(text)
    model_name = text.rstrip("/").rpartition("/")[2]
    same = [
        name for name in cards if name == text.lower() or hub_ids.same_model(model_name, load(name).base_name)
    ]
    near = same or difflib.get_close_matches(text.lower(), cards, _N_NEAR_NAMES, cutoff=0.5)
    source = load(near[0] if near else "qwen3-8b-4bit").source
    example = source.hub if isinstance(source, HubSource) else "Qwen/Qwen3-8B-MLX-4bit"
    hint = f"did you mean the card {' or '.join(near)}?" if near else f"the cards are {', '.join(cards)}."
    return (
        f"there is no model {text!r}: {hint} A hub model needs its full id, owner/name "
        f"(as {example}); a model on this disk needs its path (as ./{text.strip('/') or 'folder'})"
    )


def _derived(text: str, model_name: str, source: HubSource | FolderSource) -> Card:
    for card in map(load, names()):
        if hub_ids.same_model(model_name, card.base_name):
            same_files = card.source == source
            return dataclasses.replace(
                card,
                name=text,
                source=source,
                download_bytes=card.download_bytes if same_files else 0,
                memory_bytes=card.memory_bytes if same_files else 0,
            )
    return Card(
        name=text,
        title=f"{text}: settings read from its own files",
        license="see the model's own page",
        base_name=model_name,
        source=source,
        context_length=0,
        download_bytes=0,
        memory_bytes=0,
        dialect="hermes",
        markers="text",
        prompt="full",
        end_tokens=(),
        thinking=None,
        sampling=Sampling(temperature=0.7, top_p=0.8, top_k=20),
        sampling_thinking=None,
        complete=False,
    )


def _read(name: str, data: dict[str, Any]) -> Card:
    _check_keys("", data, {*_STRINGS, *_INTEGERS, *_TABLES, "end_tokens"}, optional={"thinking"})
    for keys, kind in ((_STRINGS, str), (_INTEGERS, int), (_TABLES, dict)):
        for key in keys:
            if key in data and type(data[key]) is not kind:
                raise ValueError(f"{key}: expected {kind.__name__}, found {data[key]!r}")
    for key, choices in _CHOICES.items():
        if data[key] not in choices:
            raise ValueError(f"{key}: expected {' or '.join(choices)}, found {data[key]!r}")
    ends = data["end_tokens"]
    if not isinstance(ends, list) or not ends or not all(isinstance(token, str) for token in ends):
        raise ValueError(f"end_tokens: expected a list of strings, found {ends!r}")
    thinking = _table(Thinking, "thinking", data["thinking"]) if "thinking" in data else None
    samplings = data["sampling"]
    _check_keys("sampling.", samplings, {"plain", "thinking"} if thinking else {"plain"}, optional=set())
    plain = _table(Sampling, "sampling.plain", samplings["plain"])
    deep = _table(Sampling, "sampling.thinking", samplings["thinking"]) if thinking else None
    if deep is not None and deep.temperature == 0:
        raise ValueError(
            "sampling.thinking.temperature: expected more than 0: greedy thinking repeats itself"
        )
    return Card(
        name=name,
        source=_source(data["source"]),
        end_tokens=tuple(ends),
        thinking=thinking,
        sampling=plain,
        sampling_thinking=deep,
        **{key: data[key] for key in (*_STRINGS, *_INTEGERS)},
    )


def _source(data: dict[str, Any]) -> HubSource | PackageSource:
    if "hub" in data:
        return _table(HubSource, "source", data)
    return _table(PackageSource, "source", data)


def _table(kind: type[_Table], name: str, data: dict[str, Any]) -> _Table:
    fields = {field.name: field.type for field in dataclasses.fields(kind)}
    _check_keys(f"{name}.", data, set(fields), optional=set())
    for key, value in data.items():
        accepted = {"str": str, "bool": bool, "int": int, "float": int | float}[str(fields[key])]
        if not isinstance(value, accepted) or (isinstance(value, bool) and accepted is not bool):
            raise ValueError(f"{name}.{key}: expected {fields[key]}, found {value!r}")
    return kind(**data)


def _check_keys(prefix: str, data: dict[str, Any], known: set[str], optional: set[str]) -> None:
    if unknown := sorted(set(data) - known):
        raise ValueError(f"unknown key {prefix}{unknown[0]} (known: {', '.join(sorted(known))})")
    if missing := sorted(known - set(data) - optional):
        raise ValueError(f"key {prefix}{missing[0]} is missing")
