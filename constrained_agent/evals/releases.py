"""Fetches source distributions of pinned releases into the user's cache, and reads the files in them.

pip does the fetching, so its settings (index, proxy, certificates) hold. Nothing of a release is ever run or
unpacked: pip asks a source distribution's build backend for its metadata even where nothing gets installed, and
finds a stand-in for it.
"""

from __future__ import annotations

import hashlib
import importlib.util
import os
import re
import subprocess
import sys
import tarfile
import tempfile
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path

from constrained_agent.errors import UserError
from constrained_agent.model.fetch import cache_directory

Progress = Callable[[str], None]

_BACKENDS = (
    "flit_core.buildapi",
    "hatchling.build",
    "maturin",
    "poetry.core.masonry.api",
    "setuptools.build_meta",
)
"""Build backends that have a stand-in. A release with another one cannot be in the corpus, nor one that brings its
own (`backend-path`): that would be run."""

_STAND_IN = """
import email, pathlib, shutil, sys
__legacy__ = sys.modules[__name__]
def prepare_metadata_for_build_wheel(directory, config_settings=None):
    facts = email.message_from_bytes(pathlib.Path("PKG-INFO").read_bytes())
    folder = pathlib.Path(directory, f"{facts['Name'].replace('-', '_')}-{facts['Version']}.dist-info")
    folder.mkdir()
    shutil.copy("PKG-INFO", folder / "METADATA")
    return folder.name
"""
"""What a backend is asked for: name and version, which every source distribution carries in PKG-INFO."""

_MAX_FILE_BYTES = 1 << 20  # a text file of 3,000 lines is far smaller
_N_REASON_CHARS = 300


@dataclass(frozen=True, slots=True)
class Release:
    """One version of a package, and the sha256 of its source distribution (`.tar.gz`)."""

    package: str
    version: str
    sha256: str

    def __str__(self) -> str:
        return f"{self.package} {self.version}"


def fetch(release: Release, *, progress: Progress | None = None) -> Path:
    """The release's source distribution; downloaded unless it is cached. A cached one needs no network.

    Raises:
        UserError: it cannot be fetched, or what is here has another hash; names the release.
    """
    target = cache_directory() / "releases" / f"{release.package}-{release.version}.tar.gz"
    if not target.is_file():
        if progress:
            progress(f"fetching {release}")
        _download(release, target)
    elif (digest := _sha256(target)) != release.sha256:
        raise UserError(
            f"{release}: {target} has sha256 {digest}, expected {release.sha256}; remove it to fetch it anew"
        )
    return target


def read_files(archive: Path, is_wanted: Callable[[str], bool]) -> dict[str, bytes]:
    """The regular files of a source distribution by path, without its top folder, of at most 1 MB each.

    Raises:
        UserError: it is no tar archive.
    """
    found: dict[str, bytes] = {}
    try:
        with tarfile.open(archive, "r:gz") as packed:
            for member in packed:
                path = member.name.partition("/")[2]
                if member.isreg() and member.size <= _MAX_FILE_BYTES and is_wanted(path):
                    content = packed.extractfile(member)
                    assert content is not None, "a regular file has content"
                    found[path] = content.read()
    except (tarfile.TarError, EOFError, OSError) as error:
        raise UserError(f"{archive} cannot be read: {error}; remove it to fetch it anew") from error
    return found


def _download(release: Release, target: Path) -> None:
    try:
        target.parent.mkdir(parents=True, exist_ok=True)
        # Beside the target: the last step must be a rename within one file system.
        with tempfile.TemporaryDirectory(dir=target.parent, prefix=".fetch-") as scratch:
            _run_pip(release, Path(scratch))
            found = next(iter(Path(scratch).glob("*.tar.gz")), None)
            if found is None:
                raise UserError(f"{release} has no source distribution that ends in .tar.gz")
            if (digest := _sha256(found)) != release.sha256:
                raise UserError(f"{release}: fetched sha256 {digest}, expected {release.sha256}")
            os.replace(found, target)
    except OSError as error:
        raise UserError(
            f"cannot write to {target.parent}: {error}; name another folder: CONSTRAINED_AGENT_CACHE=FOLDER"
        ) from error


def _run_pip(release: Release, scratch: Path) -> None:
    """Put the source distribution into `scratch`."""
    if not importlib.util.find_spec("pip"):
        raise UserError(f"pip is needed to fetch {release}: {sys.executable} -m ensurepip")
    requirement = f"{release.package}=={release.version}"
    _write_stand_ins(scratch / "stand-ins")
    command = [sys.executable, "-m", "pip", "--disable-pip-version-check", "download", "--quiet", "--no-deps"]
    command += ["--no-binary", ":all:", "--no-build-isolation", "--use-pep517", "--ignore-requires-python"]
    environment = {**os.environ, "PYTHONPATH": str(scratch / "stand-ins")}
    done = subprocess.run(
        [*command, "--dest", str(scratch), requirement],
        env=environment,
        stdout=2,
        stderr=subprocess.PIPE,
        check=False,
    )
    if done.returncode:
        reason = " ".join(done.stderr.decode(errors="replace").split())
        reason = re.sub(r"\(from versions: [^)]+\) ", "", reason)  # hundreds of them
        shown = reason if len(reason) <= _N_REASON_CHARS else "... " + reason[-_N_REASON_CHARS:]
        raise UserError(
            f"cannot fetch {release}: {shown}; check the network and pip's settings (pip config list), and repeat"
        )


def _write_stand_ins(folder: Path) -> None:
    """The stand-ins as modules; a folder for PYTHONPATH."""
    for backend in _BACKENDS:
        *packages, name = backend.split(".")
        place = folder
        place.mkdir(exist_ok=True)
        for package in packages:
            place /= package
            place.mkdir(exist_ok=True)
            (place / "__init__.py").touch()
        (place / f"{name}.py").write_text(_STAND_IN, encoding="utf-8")


def _sha256(path: Path) -> str:
    with path.open("rb") as file:
        return hashlib.file_digest(file, "sha256").hexdigest()
