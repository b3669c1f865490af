"""`doctor`: what this machine has and lacks, each lack with the command that mends it."""

from __future__ import annotations

import dataclasses
import importlib
import importlib.metadata
import json
import os
import platform
import re
import shutil
import sys
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Literal

import click

from constrained_agent import __version__, resources
from constrained_agent.errors import ModelError, PatchError
from constrained_agent.model import backend, blas, cards, fetch, memory
from constrained_agent.tools.workspace import Workspace

Status = Literal["ok", "lack", "broken"]
"""lack: something would be better. broken: the agent cannot work."""

_MARKS: dict[Status, str] = {"ok": "ok    ", "lack": "lack  ", "broken": "BROKEN"}
_SLOW_GFLOPS = 30.0  # mlx's reference BLAS gives 3 to 10 on two cores, a fast one over 100


@dataclass(frozen=True, slots=True)
class Check:
    """One line of the report; `mend` is a command, empty when there is nothing to mend."""

    name: str
    status: Status
    value: str
    mend: str = ""


@click.command(
    help="Say what this machine has and lacks, after undoing what an interrupted patch left in this folder. "
    "Exit code 1 if something that is needed is broken."
)
@click.option("--json", "as_json", is_flag=True, help="Print one JSON object as the last line.")
def command(as_json: bool) -> int:
    checks = [*_interrupted(), *_machine(), *_backend(), *_packages(), *_model(), *_folders(), *_programs()]
    broken = any(check.status == "broken" for check in checks)
    if as_json:
        click.echo(json.dumps({"ok": not broken, "checks": [dataclasses.asdict(check) for check in checks]}))
        return int(broken)
    width = max(len(check.name) for check in checks)
    for check in checks:
        click.echo(f"{_MARKS[check.status]}  {check.name:<{width}}  {check.value}")
        if check.mend:
            click.echo(f"{'':<{width + 8}}  -> {check.mend}")
    return int(broken)


def _interrupted() -> Iterator[Check]:
    try:
        found = Workspace(".").recover()
    except PatchError as error:
        no_journal = "XDG_STATE_HOME" in error.reason
        mend = "export XDG_STATE_HOME=FOLDER" if no_journal else "constrained-agent doctor"
        yield Check("interrupted patch", "broken", error.reason, mend)
    else:
        yield Check(
            "interrupted patch", "ok", "one was undone here, or its rest removed" if found else "none here"
        )


def _machine() -> Iterator[Check]:
    yield Check("constrained-agent", "ok", __version__)
    yield Check("python", "ok", f"{platform.python_version()} ({sys.executable})")
    yield Check("system", "ok", f"{platform.system()} {platform.release()} {platform.machine()}")
    yield Check("cpu", "ok", f"{_cpu_name()}, {os.cpu_count()} cores")
    total, available = memory.total_bytes(), memory.available_bytes()
    yield Check("memory", "ok", f"{available / 1e9:.1f} of {total / 1e9:.1f} GB available")


def _cpu_name() -> str:
    cpuinfo = Path("/proc/cpuinfo")
    found = re.search(r"^model name\s*:\s*(.+)$", cpuinfo.read_text(), re.M) if cpuinfo.exists() else None
    return found[1] if found else platform.processor() or platform.machine()


def _backend() -> Iterator[Check]:
    facts = backend.inspect()
    if not facts.kind:
        yield Check("mlx", "broken", facts.problem, facts.mend)
        return
    runs_on = (
        f"{facts.version}, {facts.kind} back end, {facts.device}, {facts.gflops:,.0f} GFLOP/s in float32"
    )
    if facts.problem:
        yield Check("mlx", "lack", f"{runs_on}; {facts.problem}", facts.mend)
    else:
        yield Check("mlx", "ok", runs_on)
    slow = facts.kind == "cpu" and blas.activate() is None and facts.gflops < _SLOW_GFLOPS
    yield Check("blas", "lack" if slow else "ok", blas.explain(), blas.INSTALL if slow else "")


def _packages() -> Iterator[Check]:
    for package, module in (
        ("mlx-lm", "mlx_lm"),
        ("llguidance", "llguidance"),
        ("transformers", "transformers"),
        ("tokenizers", "tokenizers"),
        ("huggingface-hub", "huggingface_hub"),
        ("lark", "lark"),
    ):
        try:
            importlib.import_module(module)
            yield Check(package, "ok", importlib.metadata.version(package))
        # An edge: a package that does not load is what is being looked for, whatever it raises.
        except Exception as error:  # noqa: BLE001
            mend = f"python -m pip install --force-reinstall {package}"
            yield Check(package, "broken", f"does not load: {' '.join(str(error).split())}", mend)


def _model() -> Iterator[Check]:
    try:
        for kind in ("grammars", "models"):
            resources.directory(kind)
        card = cards.load(cards.default_name())
        path = fetch.local_path(card)
    except (FileNotFoundError, ModelError, ImportError) as error:
        mend = "python -m pip install --force-reinstall --no-deps constrained-agent"
        yield Check("default model", "broken", str(error), mend)
        return
    if path is None:
        size = f"{card.download_bytes / 1e9:.1f} GB"
        mend = f"constrained-agent models fetch {card.name}"
        yield Check("default model", "lack", f"{card.name}, {size} still to fetch (a run does it too)", mend)
    else:
        yield Check("default model", "ok", f"{card.name} ({path})")
    short = card.memory_bytes > memory.available_bytes()
    needs = f"{card.memory_bytes / 1e9:.1f} GB for {card.name}"
    yield Check("memory for it", "lack" if short else "ok", needs, "close other programs" if short else "")


def _folders() -> Iterator[Check]:
    for name, folder, variable in (
        ("model cache", fetch.cache_directory(), "CONSTRAINED_AGENT_CACHE"),
        ("hub cache", fetch.hub_cache_directory(), "HF_HOME"),
    ):
        # The folder is made when it is needed; what counts is the nearest one that is there.
        there = next(parent for parent in (folder, *folder.parents) if parent.exists())
        if os.access(there, os.W_OK):
            yield Check(name, "ok", f"{folder}, {shutil.disk_usage(there).free / 1e9:.0f} GB free")
        else:
            yield Check(name, "lack", f"{folder} cannot be written", f"export {variable}=FOLDER")


def _programs() -> Iterator[Check]:
    on_mac = platform.system() == "Darwin"
    for name, purpose in (
        ("git", "diffs of a run in a repository"),
        ("bash", "exec_command (sh is used without)"),
    ):
        if found := shutil.which(name):
            yield Check(name, "ok", found)
        else:
            mend = "xcode-select --install" if on_mac else f"sudo apt-get install {name}"
            yield Check(name, "lack", f"not found; for {purpose}", mend)
