"""What a wheel has to be before anybody gets it, read from the wheel itself."""

from __future__ import annotations

import json
import os
import zipfile
from collections.abc import Iterable
from fnmatch import fnmatchcase
from pathlib import Path

from tools import parts
from tools.shell import ROOT, fail, read, run, script

ENTRY = "PyInit__native"
# What maturin has exported for Windows besides.
_DOTTED = "PyInit_{module}._native"
_PRINT_EXPORTS = """
import sys, zipfile, lief
with zipfile.ZipFile(sys.argv[1]) as archive:
    binary = lief.parse(archive.read(sys.argv[2]))
names = [each.name for each in getattr(binary, "exported_symbols", binary.exported_functions)]
front = "_" if isinstance(binary, lief.MachO.Binary) else ""
print(*(name.removeprefix(front) for name in names))
"""


_PRINT_LIBRARIES = """
import sys, zipfile, lief
with zipfile.ZipFile(sys.argv[1]) as archive:
    binary = lief.parse(archive.read(sys.argv[2]))
found = [*binary.libraries]
if isinstance(binary, lief.MachO.Binary):  # the library itself is among them
    own = lief.MachO.LoadCommand.TYPE.ID_DYLIB
    found = [each.name for each in found if each.command != own]
print(*found, sep="\\n")
"""
# What every system of its kind has, by patterns in small letters.
_SYSTEMS = {
    "linux": (
        *("ld-linux-*.so.*", "libc.so.6", "libdl.so.2", "libgcc_s.so.1", "libm.so.6"),
        *("libpthread.so.0", "librt.so.1"),
    ),
    "macosx": (
        *("/system/library/frameworks/*", "/usr/lib/libcharset.1.dylib"),
        *("/usr/lib/libiconv.2.dylib", "/usr/lib/libobjc.a.dylib", "/usr/lib/libsystem.b.dylib"),
    ),
    "win_": (
        *("api-ms-win-*.dll", "bcryptprimitives.dll", "dxgi.dll", "kernel32.dll", "ntdll.dll"),
        *("oleaut32.dll", "python3.dll", "setupapi.dll", "user32.dll", "userenv.dll"),
        "ws2_32.dll",
    ),
}


def audit(files: Iterable[Path], tools: Path) -> None:
    """Check what indexes show, and of machine code how it is called, what is in it and whose.

    Raises:
        CommandError: a wheel is not as it has to be.
    """
    paths = list(files)
    run(script("twine", tools), "check", "--strict", *paths, venv=tools)
    native = [path for path in paths if not path.name.endswith("-none-any.whl")]
    for path in native:
        need_entry(path, tools)
        need_system(path, tools)
        need_licenses(path)
        need_no_paths(path, builder())
    # What abi3audit reads is no WebAssembly.
    code = [path for path in native if "-abi3-" in path.name and "wasm32" not in path.name]
    if code:
        run(script("abi3audit", tools), "--strict", "--summary", *code, venv=tools)


def need_entry(wheel: Path, tools: Path) -> None:
    """See that machine code exports what Python calls when it imports it, and nothing besides.

    Of WebAssembly, whose exports `side_module.py` lists, the name alone is looked for. So it is for
    macOS: Zig's linker takes no list there, and exports all of Rust's library. Python asks for one
    name, and what else loads looks for none in it, as names have two levels there.
    """
    code, held = _code(wheel)
    if held.startswith(b"\0asm"):
        exported = {ENTRY} if ENTRY.encode() in held else set()
    else:
        program = (script("python", tools), "-c", _PRINT_EXPORTS)
        exported = set(read(*program, wheel, code, venv=tools).split())
    dotted = _DOTTED.format(module=wheel.name.split("-")[0])
    more = set() if "macosx" in wheel.name else exported - {ENTRY, dotted}
    if ENTRY not in exported or more:
        got = ", ".join(sorted(more or exported)[:4]) or "nothing"
        raise fail(f"{wheel.name}: {code} exports {got}, expected {ENTRY} alone", "./x wheels")


def _code(wheel: Path) -> tuple[str, bytes]:
    """Name and bytes of the one library in a wheel."""
    with zipfile.ZipFile(wheel) as archive:
        codes = [each for each in archive.namelist() if each.endswith((".so", ".pyd"))]
        if len(codes) != 1:
            raise fail(f"{wheel.name} has {len(codes)} libraries, expected 1", "./x wheels")
        return codes[0], archive.read(codes[0])


def need_system(wheel: Path, tools: Path) -> None:
    """See that machine code asks for libraries alone that each system of its kind has.

    A module of WebAssembly asks for functions, and for no library.
    """
    code, held = _code(wheel)
    if held.startswith(b"\0asm"):
        return
    allowed = next(names for system, names in _SYSTEMS.items() if system in wheel.name)
    asked = read(script("python", tools), "-c", _PRINT_LIBRARIES, wheel, code, venv=tools)
    more = [
        name
        for name in asked.splitlines()
        if not any(fnmatchcase(name.lower(), each) for each in allowed)
    ]
    if more:
        expected = ", ".join(allowed)
        raise fail(f"{wheel.name} asks for {', '.join(more)}, expected {expected}", "./x wheels")


def need_licenses(wheel: Path) -> None:
    """See that each crate in the list of parts, and Rust's library, has a line of its license."""
    with zipfile.ZipFile(wheel) as archive:
        held = {Path(name).name: name for name in archive.namelist()}
        for name in (parts.SBOM, parts.LICENSES):
            if name not in held:
                raise fail(f"{wheel.name} has no {name}", "./x wheels")
        listed = json.loads(archive.read(held[parts.SBOM]))["components"]
        lines = archive.read(held[parts.LICENSES]).decode().splitlines()
    linked = [f"{each['name']} {each['version']}: " for each in listed]
    for name in (*linked, "Rust's library: "):
        if not any(line.startswith(name) for line in lines):
            raise fail(f"{wheel.name}: no license of {name[:-2]}", "./x wheels")


def builder() -> dict[Path, str]:
    """Folders of this machine that sources are compiled in, and what stands for each in a wheel."""
    cargo = Path(os.environ.get("CARGO_HOME", Path.home() / ".cargo"))
    sysroot = Path(read("rustc", "--print", "sysroot"), "lib", "rustlib")
    return {ROOT: "phlox", cargo: "cargo", sysroot: "rust"}


def need_no_paths(wheel: Path, folders: Iterable[Path]) -> None:
    """See that nothing in a wheel says where it was built."""
    with zipfile.ZipFile(wheel) as archive:
        for name in archive.namelist():
            held = archive.read(name)
            for folder in folders:
                if os.fsencode(folder) in held:
                    raise fail(f"{wheel.name}: {name} holds the path {folder}", "./x wheels")
