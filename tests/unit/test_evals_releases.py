"""Releases: fetched by pip without running anything of them, checked, cached. pip sees a folder, no network."""

from __future__ import annotations

import hashlib
import io
import os
import tarfile
from collections.abc import Mapping
from pathlib import Path

import pytest

from constrained_agent.errors import UserError
from constrained_agent.evals import releases
from constrained_agent.evals.releases import Release, fetch, read_files


def packed(path: Path, files: Mapping[str, bytes]) -> str:
    """Write a source distribution; its sha256."""
    top = path.name.removesuffix(".tar.gz")
    with tarfile.open(path, "w:gz") as archive:
        for name, data in files.items():
            member = tarfile.TarInfo(f"{top}/{name}")
            member.size = len(data)
            archive.addfile(member, io.BytesIO(data))
    return hashlib.sha256(path.read_bytes()).hexdigest()


@pytest.fixture
def index(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """A folder that is all that pip sees; the cache is empty."""
    folder = tmp_path / "index"
    folder.mkdir()
    for name in [name for name in os.environ if name.startswith("PIP_")]:
        monkeypatch.delenv(name)
    monkeypatch.setenv("PIP_CONFIG_FILE", os.devnull)
    monkeypatch.setenv("PIP_NO_INDEX", "1")
    monkeypatch.setenv("PIP_FIND_LINKS", str(folder))
    monkeypatch.setenv("CONSTRAINED_AGENT_CACHE", str(tmp_path / "cache"))
    return folder


def made_up(index: Path, system: bytes, *, name: str = "made-up") -> str:
    stem = name.replace("-", "_")
    files = {
        "PKG-INFO": f"Metadata-Version: 2.1\nName: {name}\nVersion: 1.5\n".encode(),
        "setup.py": b"import pathlib, sys\npathlib.Path('/dev/stderr').write_text('it ran')\nsys.exit(3)\n",
        **({"pyproject.toml": system} if system else {}),
        "a.py": b"x = 1\n",
    }
    return packed(index / f"{stem}-1.5.tar.gz", files)


@pytest.mark.parametrize("backend", ["", *releases._BACKENDS, "setuptools.build_meta:__legacy__"])
def test_fetched_without_its_build_backend(
    index: Path, backend: str, capfd: pytest.CaptureFixture[str]
) -> None:
    """What it names as needed for building is not there, and is not looked for."""
    system = (
        f'[build-system]\nrequires = ["absent"]\nbuild-backend = "{backend}"\n'.encode() if backend else b""
    )
    release = Release("made-up", "1.5", made_up(index, system))
    said: list[str] = []
    archive = fetch(release, progress=said.append)
    assert said == ["fetching made-up 1.5"]
    assert read_files(archive, lambda path: path.endswith(".py")).keys() == {"a.py", "setup.py"}
    assert "it ran" not in capfd.readouterr().err
    assert [path.name for path in archive.parent.iterdir()] == ["made-up-1.5.tar.gz"], "no scratch is left"
    next(index.iterdir()).unlink()
    assert fetch(release, progress=said.append) == archive, "from the cache"
    assert len(said) == 1


def test_one_that_is_not_there(index: Path) -> None:
    with pytest.raises(
        UserError, match=r"cannot fetch made-up 1\.5: .*No matching distribution.*pip config list"
    ):
        fetch(Release("made-up", "1.5", ""))


def test_another_hash_is_refused(index: Path, tmp_path: Path) -> None:
    sha256 = made_up(index, b"")
    with pytest.raises(UserError, match=rf"^made-up 1\.5: fetched sha256 {sha256}, expected 00$"):
        fetch(Release("made-up", "1.5", "00"))
    archive = fetch(Release("made-up", "1.5", sha256))
    archive.write_bytes(archive.read_bytes()[:-1])
    with pytest.raises(UserError, match=r"^made-up 1\.5: .* has sha256 .* remove it to fetch it anew"):
        fetch(Release("made-up", "1.5", sha256))


def test_a_cache_that_cannot_be_written(index: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    (tmp_path / "file").touch()
    monkeypatch.setenv("CONSTRAINED_AGENT_CACHE", str(tmp_path / "file"))
    with pytest.raises(UserError, match="CONSTRAINED_AGENT_CACHE=FOLDER"):
        fetch(Release("made-up", "1.5", ""))


def test_reading_takes_regular_files_of_usual_size(tmp_path: Path) -> None:
    archive = tmp_path / "p-1.tar.gz"
    packed(archive, {"a.py": b"a", "sub/b.py": b"b", "c.txt": b"c", "big.py": bytes(1 << 21)})
    with tarfile.open(tmp_path / "links-1.tar.gz", "w:gz") as links:
        link = tarfile.TarInfo("links-1/l.py")
        link.type, link.linkname = tarfile.SYMTYPE, "/etc/hostname"
        links.addfile(link)
    is_python = lambda path: path.endswith(".py")  # noqa: E731
    assert read_files(archive, is_python) == {"a.py": b"a", "sub/b.py": b"b"}
    assert read_files(tmp_path / "links-1.tar.gz", is_python) == {}


def test_reading_something_else(tmp_path: Path) -> None:
    (tmp_path / "p-1.tar.gz").write_bytes(b"<html>")
    with pytest.raises(UserError, match=r"p-1\.tar\.gz cannot be read"):
        read_files(tmp_path / "p-1.tar.gz", bool)
