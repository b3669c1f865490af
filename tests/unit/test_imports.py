"""What starting the program loads: commands without a model must not wait for one's libraries."""

from __future__ import annotations

import subprocess
import sys

import pytest

from constrained_agent.cli import app

HEAVY = ("mlx", "mlx_lm", "transformers", "tokenizers", "torch")


def loaded_by(code: str) -> list[str]:
    """Heavy packages that a fresh process holds after `code`."""
    report = f"import sys; print('loaded:', *[name for name in {HEAVY!r} if name in sys.modules])"
    done = subprocess.run(
        [sys.executable, "-c", f"{code}\n{report}"], capture_output=True, text=True, check=True, input="x"
    )
    return done.stdout.splitlines()[-1].split()[1:]


@pytest.mark.parametrize(
    "arguments",
    [
        ["--help"],
        ["--version"],
        *([name, "--help"] for name in app.COMMANDS),
        ["check", "--regex", "x", "-"],
        ["models", "list"],
        ["models", "show", "smollm2-135m"],
    ],
    ids=" ".join,
)
def test_commands_without_a_model_load_no_model_code(arguments: list[str]) -> None:
    assert loaded_by(f"from constrained_agent.cli import app; app.run({arguments!r})") == []


def test_the_package_loads_nothing() -> None:
    assert loaded_by("import constrained_agent.__main__") == []


def test_the_loader_waits_until_it_is_called() -> None:
    """A fast BLAS must be in place before mlx comes."""
    assert loaded_by("from constrained_agent.model import weights, gguf, fetch, folder, cards, blas") == []
