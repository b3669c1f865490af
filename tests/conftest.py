"""Fixtures that several folders share."""

from __future__ import annotations

import hashlib
import os
import sys
from pathlib import Path
from typing import TYPE_CHECKING

import pytest

from constrained_agent.model import blas, cards, shapes, weights

sys.path.insert(0, str(Path(__file__).parent.parent))  # helpers beside this file are imported as tests.NAME

from tests import tiny_qwen3

if TYPE_CHECKING:
    from constrained_agent.agent.runtime import Runtime

# Before any test module imports mlx: prompts of the embedded model are ten times faster with it.
blas.activate()

os.environ["CONSTRAINED_AGENT_PREFIXES"] = "none"  # a test that wants them names a folder


@pytest.fixture(scope="session")
def tiny_qwen3_dir(request: pytest.FixtureRequest) -> Path:
    """A random two-layer Qwen3 with the real vocabulary, laid out like a hub snapshot; kept between runs."""
    written = [Path(module.__file__).read_bytes() for module in (tiny_qwen3, shapes)]
    recipe = hashlib.sha256(b"".join(written)).hexdigest()[:12]
    return tiny_qwen3.build(request.config.cache.mkdir("tiny-qwen3") / recipe)


@pytest.fixture(scope="session")
def tiny_loaded(tiny_qwen3_dir: Path) -> weights.LoadedModel:
    """Its weights."""
    return weights.load(cards.resolve(str(tiny_qwen3_dir)))


@pytest.fixture(scope="session")
def tiny_runtime(tiny_loaded: weights.LoadedModel) -> Runtime:
    """It with tokenizer, dialect, engine and KV cache, as the agent has it."""
    from constrained_agent.agent.runtime import Runtime  # imports mlx

    return Runtime(tiny_loaded)


@pytest.fixture
def root(tmp_path: Path) -> Path:
    """A small repository: one file of one line."""
    folder = tmp_path / "repo"
    folder.mkdir()
    (folder / "f.txt").write_text("one\n")
    return folder
