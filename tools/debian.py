"""A Rust compiler from Debian's packages, in a folder of its own: nothing is installed.

Debian's security updates carry a newer Rust than its releases, with the sources of Rust's library
and with the library itself for other processors.
"""

from __future__ import annotations

import re
import shutil
from pathlib import Path

from tools.shell import PRIVATE, executable, fail, read, run, say, which

FOLDER = PRIVATE / "debian"
# By rust-web-llvm and its LLVM, Rust strips libraries for macOS.
RUST = (
    *("rustc-web", "rust-web-llvm", "rust-web-src"),
    *("libstd-rust-web-dev", "libstd-rust-web-dev:arm64"),
)
# What those depend on of Rust and of its LLVM, under names with a number of the version.
_NUMBERED = re.compile(r"(?m)^(libllvm\d+|libstd-rust-web-[\d.]+|llvm-\d+)$")
_ALSO = "arm64"


def fetch_rust(folder: Path = FOLDER) -> Path:
    """Fetch the compiler, and return the program that starts it.

    Raises:
        CommandError: this is no Debian, or it lacks a package.
    """
    root = fetch(RUST, folder, also=_NUMBERED)
    libraries = next(root.glob("usr/lib/*-linux-gnu/librustc_driver*")).parent
    line = f"LD_LIBRARY_PATH={libraries} exec {root / 'usr/bin/rustc'}"
    program = executable(folder / "rustc", line)
    say(f"{read(program, '--version')}: {program}")
    return program


def fetch(
    packages: tuple[str, ...],
    folder: Path,
    machine: str = "",
    also: re.Pattern[str] | None = None,
) -> Path:
    """Fetch packages by name, and return the root that they lie in.

    Those for another machine come with all that they depend on, the others with what of that
    `also` names. What was there before stays if a step fails.
    """
    if which("apt-get") is None or which("dpkg") is None:
        raise fail("apt-get or dpkg is missing: this is no Debian", "rustup target add TRIPLE")
    root, new = folder / "root", folder / "new"
    lists, files, unpacked = new / "lists", new / "files", new / "root"
    if new.exists():
        shutil.rmtree(new)
    for each in (lists / "partial", files / "partial", unpacked):
        each.mkdir(parents=True)
    (new / "status").touch()
    options = {
        "Dir::State::Lists": lists,
        "Dir::State::status": new / "status",
        "Dir::Cache": new,
        "Dir::Cache::archives": files,
        "APT::Architectures::": _ALSO,  # beside that of this machine
        "APT::Sandbox::User": "root",
        **({"APT::Architecture": machine} if machine else {}),
    }
    words = [word for item in options.items() for word in ("-o", _set(*item))]
    apt = ["apt-get", "-qq", *words]
    say(f"fetching {len(packages)} packages of Debian into {folder}")
    run(*apt, "update")
    if also:
        every = read("apt-cache", *words, "depends", "--recurse", "--important", *packages)
        packages = (*packages, *sorted({*also.findall(every)}))
    whole = ("install", "--download-only", "--no-install-recommends", "--yes")
    run(*apt, *(whole if machine else ("download",)), *packages, cwd=files)
    for file in sorted(files.glob("*.deb")):
        run("dpkg", "-x", file, unpacked)
    if root.exists():
        shutil.rmtree(root)
    unpacked.rename(root)
    shutil.rmtree(new)
    return root


def _set(name: str, value: object) -> str:
    return f"{name}={value}"
