"""Keeps on disk what a model's KV cache holds after the ids that every conversation begins with.

One file for each model and prefix, in the format of mlx-lm's own `save_prompt_cache`. All this only saves time:
what cannot be written is not, and what cannot be trusted is not used.
"""

from __future__ import annotations

import contextlib
import hashlib
import os
import tempfile
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any

from constrained_agent.model import fetch

if TYPE_CHECKING:
    from constrained_agent.model.weights import LoadedModel

MIN_IDS = 64
"""Shorter prefixes run in less time than a file is worth."""
MAX_FILES = 8
"""Files that are kept: a prefix or two for each of a few models."""
MAX_BYTES = 2_000_000_000
"""What they may take together; a long prompt of Qwen3-8B takes 150 MB."""

_FORMAT = 1  # to be raised when what stands in a file comes to mean something else
_SUFFIX = ".prefix.safetensors"  # mlx insists on the last part; the first says which files may be removed
_SAMPLE = 8  # numbers of each weight array that tell one model from another

# What a broken file makes mlx (RuntimeError) and mlx-lm's reader raise.
_BROKEN = (RuntimeError, ValueError, TypeError, LookupError, AttributeError, OSError)


@dataclass(frozen=True, slots=True)
class Saved:
    """One file.

    Attributes:
        used: seconds since the epoch when it was written or last loaded.
    """

    path: Path
    n_bytes: int
    used: float


class Prefixes:
    """The saved prefixes of one loaded model. Nothing here fails a run.

    Only plain caches (one growing pair of arrays a layer) are kept, as of Qwen3 and llama models.
    """

    def __init__(self, loaded: LoadedModel) -> None:
        from mlx_lm.models import cache as kv

        empty = kv.make_prompt_cache(loaded.module)
        self._n_layers = len(empty)
        self._plain = all(type(layer) is kv.KVCache for layer in empty)
        self._loaded = loaded
        self._model: str | None = None

    def keeps(self, n_ids: int) -> bool:
        """Whether the state after so many ids is kept at all."""
        return self._plain and n_ids >= MIN_IDS and directory() is not None

    def load(self, ids: Sequence[int]) -> list[Any] | None:
        """The cache after exactly these ids of this very model, evaluated; about 0.1 seconds for 100 MB.

        Returns:
            A layer's cache each; None if there is none. A file that is not what its name says is removed.
        """
        import mlx.core as mx
        from mlx_lm.models import cache as kv

        path = self._path(ids)
        if path is None or not os.path.isfile(path):
            return None
        with contextlib.suppress(*_BROKEN):
            cache, facts = kv.load_prompt_cache(str(path), return_metadata=True)
            mx.eval([layer.state for layer in cache])
            if self._belongs(cache, facts, ids):
                with contextlib.suppress(OSError):  # it only goes sooner
                    os.utime(path)
                return list(cache)
        with contextlib.suppress(OSError):
            path.unlink()
        return None

    def save(self, ids: Sequence[int], cache: Sequence[Any]) -> None:
        """Write what the cache holds, which is `ids`; the oldest files go. About 0.2 seconds for 100 MB."""
        from mlx_lm.models import cache as kv

        path = self._path(ids)
        layers = [_compact(layer, len(ids)) for layer in cache]
        if path is None or sum(layer.nbytes for layer in layers) > MAX_BYTES:
            return
        # No disk, no room, no right to write (mlx has a RuntimeError for all of them): then the prompt runs again.
        with contextlib.suppress(OSError, RuntimeError):
            facts = {"ids": _spelled(ids), "digest": _digest(layers)}
            path.parent.mkdir(mode=0o700, parents=True, exist_ok=True)
            handle, scratch = tempfile.mkstemp(dir=path.parent, prefix=".saving-", suffix=_SUFFIX)  # 0600
            os.close(handle)
            try:
                kv.save_prompt_cache(scratch, layers, facts)
                os.replace(scratch, path)
            finally:
                with contextlib.suppress(FileNotFoundError):  # it has its name now
                    os.unlink(scratch)
            _evict()

    def _belongs(self, cache: Sequence[Any], facts: Mapping[str, Any], ids: Sequence[int]) -> bool:
        """Whether a file holds what was saved for these ids, to the last bit."""
        from mlx_lm.models import cache as kv

        return (
            facts["ids"] == _spelled(ids)
            and len(cache) == self._n_layers
            and all(type(layer) is kv.KVCache and layer.offset == len(ids) for layer in cache)
            and facts["digest"] == _digest(cache)
        )

    def _path(self, ids: Sequence[int]) -> Path | None:
        """Where the state after these ids lies or would lie; its name is a hash of model and ids."""
        folder = directory()
        if folder is None:
            return None
        if self._model is None:
            try:
                self._model = _identity(self._loaded)
            except OSError:  # the weights are no longer where they were read from
                return None
        name = hashlib.sha256(f"{self._model} {_spelled(ids)}".encode()).hexdigest()
        return folder / (name + _SUFFIX)


def directory() -> Path | None:
    """Where the files lie: CONSTRAINED_AGENT_PREFIXES (`none`: nowhere), or in the program's cache folder."""
    own = os.environ.get("CONSTRAINED_AGENT_PREFIXES")
    if own == "none":
        return None
    return Path(own).expanduser() if own else fetch.cache_directory() / "prefixes"


def saved() -> list[Saved]:
    """All files, the last used one first; none where the folder cannot be read."""
    found = []
    folder = directory()
    with contextlib.suppress(OSError):
        for path in folder.iterdir() if folder else ():
            with contextlib.suppress(FileNotFoundError):  # another process was quicker
                if path.name.endswith(_SUFFIX):
                    facts = path.stat()
                    found.append(Saved(path, facts.st_size, facts.st_mtime))
    return sorted(found, key=lambda file: file.used, reverse=True)


def clear() -> None:
    """Remove all files.

    Raises:
        OSError: one cannot be removed.
    """
    for file in saved():
        file.path.unlink(missing_ok=True)


def _evict() -> None:
    """Remove what was not used for longest, and what an interrupted process left, until the limits are kept."""
    n_bytes = 0
    for number, file in enumerate(saved()):
        n_bytes += file.n_bytes
        if number >= MAX_FILES or n_bytes > MAX_BYTES:
            file.path.unlink(missing_ok=True)


def _identity(loaded: LoadedModel) -> str:
    """A hash of all that the numbers in a cache depend on: weights, how they are held, and what runs them.

    Raises:
        OSError: the weight files are gone.
    """
    import mlx.core as mx
    import mlx_lm
    from mlx.utils import tree_flatten

    weights = [(name, array) for name, array in tree_flatten(loaded.module.parameters())]
    facts = (
        _FORMAT,
        (mx.__version__, mlx_lm.__version__),  # type: ignore[attr-defined]  # it is there
        (str(mx.default_device()), mx.metal.is_available(), mx.cuda.is_available()),
        (repr(loaded.card.source), str(loaded.origin), _file_stamps(loaded.origin)),
        repr(getattr(loaded.module, "args", None)),
        loaded.float_type,
        [(name, str(array.dtype), array.shape) for name, array in weights],  # tells packed from unpacked, too
        _sample([array for _, array in weights]),
    )
    return hashlib.sha256(repr(facts).encode()).hexdigest()


def _file_stamps(origin: Path) -> list[tuple[str, int, int]]:
    """Name, size and time of the files that a model was made from."""
    files = [origin] if origin.is_file() else [*origin.glob("*.safetensors"), origin / "config.json"]
    return sorted((file.name, (facts := file.stat()).st_size, facts.st_mtime_ns) for file in files)


def _sample(arrays: Sequence[Any]) -> bytes:
    """A few bytes of each array: other weights may come under the same names, sizes and times."""
    import mlx.core as mx

    rows = [array[(0,) * (array.ndim - 1)].reshape(-1) for array in arrays]
    sample: Any = mx.concatenate([row[:_SAMPLE].view(mx.uint8) for row in rows])
    return bytes(memoryview(sample))


def _compact(layer: Any, n_ids: int) -> Any:
    """A copy without the room to grow, where older conversations may still stand."""
    import mlx.core as mx
    from mlx_lm.models import cache as kv

    keys, values = (mx.contiguous(array[..., :n_ids, :]) for array in (layer.keys, layer.values))
    return kv.KVCache.from_state((keys, values, n_ids))


def _digest(cache: Sequence[Any]) -> str:
    """A hash of all arrays: a file that lost some of its pages to a crash is as long as before."""
    import mlx.core as mx

    digest = hashlib.sha256()
    for layer in cache:
        for array in (layer.keys, layer.values):
            digest.update(f"{array.dtype} {array.shape} ".encode())
            digest.update(memoryview(array.view(mx.uint8).reshape(-1)))
    return digest.hexdigest()


def _spelled(ids: Sequence[int]) -> str:
    return " ".join(map(str, ids))
