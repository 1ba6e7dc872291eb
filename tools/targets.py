"""The machines that wheels are built for, as data, and what building for one takes."""

from __future__ import annotations

import sys
from collections.abc import Mapping
from dataclasses import dataclass, field
from pathlib import Path
from types import MappingProxyType

from tools.shell import CommandError, fail

_NO_STRIP = {"CARGO_PROFILE_RELEASE_STRIP": "none"}  # Rust asks for tools of that system
_METAL = {"phlox-wgpu-engine": "it links Apple's Metal, which macOS has; on a Mac: ./x wheels"}


@dataclass(frozen=True)
class Target:
    """A machine.

    Attributes:
        triple: what Rust calls it.
        tag: what the name of a wheel for it holds.
        first: what it holds as maturin has built it, if that is another tag.
        apart: why PyPI takes no wheel for it, if so.
        options: what maturin is given besides.
        settings: variables of the environment besides.
        linked: libraries that the linker asks for and that are empty files.
        dotted: whether maturin has a name exported that no code has: that of the module with its
            package, `PyInit_package._native`.
        lacking: packages that are linked on that system alone, or are of no use there, and why.
        library: what of Rust's library is built where the compiler has none for it.
        linker: a program of tools/ that links, in the place of Zig.
    """

    triple: str
    tag: str
    options: tuple[str, ...] = ()
    settings: Mapping[str, str] = field(default_factory=dict)
    linked: tuple[str, ...] = ()
    dotted: bool = False
    lacking: Mapping[str, str] = field(default_factory=dict)
    library: str = "std,panic_unwind"
    linker: str = ""
    first: str = ""
    apart: str = ""


# A module for Pyodide 0.27, of 128-bit vectors. A panic ends the page's Python: to unwind, calls
# would go through JavaScript.
_BROWSER = {
    **_NO_STRIP,
    "CARGO_PROFILE_RELEASE_CODEGEN_UNITS": "16",
    "CARGO_PROFILE_RELEASE_LTO": "false",
    "CARGO_PROFILE_RELEASE_PANIC": "abort",
    "CARGO_TARGET_WASM32_UNKNOWN_EMSCRIPTEN_RUSTFLAGS": "-C relocation-model=pic "
    "-C link-self-contained=no -C target-feature=+simd128",
    "MATURIN_PYODIDE_ABI_VERSION": "2024_0",
    "PYO3_CROSS_PYTHON_VERSION": "3.12",
}
_LINUX = ("--compatibility", "manylinux2014")
TARGETS: Mapping[str, Target] = MappingProxyType(
    {
        "linux-x86_64": Target("x86_64-unknown-linux-gnu", "manylinux2014_x86_64", _LINUX),
        "linux-arm64": Target("aarch64-unknown-linux-gnu", "manylinux2014_aarch64", _LINUX),
        "macos-arm64": Target("aarch64-apple-darwin", "macosx_11_0_arm64", lacking=_METAL),
        "macos-x86_64": Target("x86_64-apple-darwin", "macosx_10_12_x86_64", lacking=_METAL),
        "windows-x86_64": Target(
            "x86_64-pc-windows-gnu",
            "win_amd64",
            ("--interpreter", "python3.11"),
            _NO_STRIP,
            linked=("libssp_nonshared.a", "libssp.a"),
            dotted=True,
        ),
        "pyodide": Target(
            "wasm32-unknown-emscripten",
            "pyodide_2024_0_wasm32",
            (),
            _BROWSER,
            lacking={"phlox-wgpu-engine": "a browser records and submits by itself"},
            library="std,panic_abort",
            linker="side_module.py",
            # Pyodide knows the name of PEP 783, which alone maturin gives, from 0.29 on.
            first="pyemscripten_2024_0_wasm32",
            apart="PyPI takes wheels for Pyodide from 0.29 on (PEP 783)",
        ),
    }
)


@dataclass(frozen=True)
class Compiler:
    """How to compile for a target: variables of the environment, and words for cargo."""

    settings: Mapping[str, str]
    options: tuple[str, ...] = ()


def compiler(target: Target, sysroot: Path, private: Path) -> Compiler:
    """Find a compiler that has Rust's library for a target, or the sources of that library.

    Args:
        target: the machine.
        sysroot: where the libraries of the installed compiler are.
        private: the folder that `./x wheels --fetch` fills.

    Raises:
        CommandError: there is none, with the line that installs one.
    """
    if has_library(sysroot, target):
        return Compiler({})
    own = private / "rustc"
    if not own.is_file():
        hint = f"rustup target add {target.triple}  (on Debian also: ./x wheels --fetch)"
        raise fail(f"Rust's library for {target.triple} is missing", hint)
    settings = {"RUSTC": str(own)}
    if has_library(private / "root" / "usr", target):
        return Compiler(settings)
    # The library is built from its sources, which a released compiler does if told so.
    settings |= {"RUSTC_BOOTSTRAP": "1"}
    return Compiler(settings, ("-Z", f"build-std={target.library}"))


def has_library(sysroot: Path, target: Target) -> bool:
    """Whether Rust's library for a target is there."""
    return (sysroot / "lib" / "rustlib" / target.triple / "lib").is_dir()


def chosen(names: list[str]) -> dict[str, Target]:
    """Targets by name, all of them without any.

    Raises:
        CommandError: a name is not in the table.
    """
    unknown = [name for name in names if name not in TARGETS]
    if unknown:
        known = ", ".join(TARGETS)
        raise fail(f"wheels: got {', '.join(unknown)}, expected {known}", "./x wheels linux-x86_64")
    return {name: TARGETS[name] for name in names or TARGETS}


def system() -> str:
    """What the names of targets for the system of this machine start with."""
    return {"linux": "linux", "darwin": "macos", "win32": "windows"}.get(sys.platform, "other")


def left_out(project: str, name: str) -> str:
    """Why a package is not built for a target on this machine, or nothing."""
    return "" if name.startswith(system()) else TARGETS[name].lacking.get(project, "")


def reason(error: CommandError) -> str:
    """What is said of a target that is left out, on one line."""
    return " ".join(str(error).removeprefix("[x] ").split("\n"))
