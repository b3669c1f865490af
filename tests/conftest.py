"""Fixtures that several folders share."""

from __future__ import annotations

import hashlib
import sys
from pathlib import Path

import pytest

from constrained_agent.model import blas

sys.path.insert(0, str(Path(__file__).parent.parent))  # helpers beside this file are imported as tests.NAME

from tests import tiny_qwen3

# Before any test module imports mlx: prompts of the embedded model are ten times faster with it.
blas.activate()


@pytest.fixture(scope="session")
def tiny_qwen3_dir(request: pytest.FixtureRequest) -> Path:
    """A random two-layer Qwen3 with the real vocabulary, laid out like a hub snapshot; kept between runs."""
    recipe = hashlib.sha256(Path(tiny_qwen3.__file__).read_bytes()).hexdigest()[:12]
    return tiny_qwen3.build(request.config.cache.mkdir("tiny-qwen3") / recipe)
