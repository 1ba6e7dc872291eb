"""Build the kernels for 64-bit ARM and run their Rust tests there: `python -m tools.arm`.

On another processor they run under qemu-user, compiled by the toolchain that crosses over: all of
them on a processor with all that the kernels know of, products on one without. Their speed there
says nothing.
"""

from __future__ import annotations

import platform
import sys
from collections.abc import Callable
from pathlib import Path

from tools.shell import CommandError, call, fail, read, say, which

TARGET = "aarch64-unknown-linux-gnu"
_LINKER = "aarch64-linux-gnu-gcc"
_RUNNER = "qemu-aarch64"
_LIBRARIES = Path("/usr/aarch64-linux-gnu")
# Emulated processors, which of the instructions that kernels look for they have, and the tests
# that run there.
_PROCESSORS = (
    ("max", "bf16,dotprod", ()),
    ("cortex-a72", "", ("machine::", "ops::attention", "ops::contraction")),
)


def has_library(compiler: Path) -> bool:
    """Whether Rust's library for that machine is beside the compiler."""
    return (compiler / "lib" / "rustlib" / TARGET).is_dir()


def require(find: Callable[[str], str | None], compiler: Path, libraries: Path) -> None:
    """Find all that crossing over takes.

    Raises:
        CommandError: a part is missing, with the command that installs it.
    """
    if not has_library(compiler):
        raise fail(f"Rust's library for {TARGET} is missing", f"rustup target add {TARGET}")
    if find(_LINKER) is None or not libraries.is_dir():
        raise fail("the C toolchain for ARM is missing", "apt-get install gcc-aarch64-linux-gnu")
    if find(_RUNNER) is None:
        raise fail("the emulator of ARM is missing", "apt-get install qemu-user")


def arm() -> int:
    """Run the tests; returns the exit status."""
    if platform.machine() in {"aarch64", "arm64"}:
        say("this processor is ARM: ./x test is the test")
        return 0
    require(which, Path(read("rustc", "--print", "sysroot")), _LIBRARIES)
    name = "CARGO_TARGET_" + TARGET.upper().replace("-", "_")
    chosen = ("--quiet", "--release", "-p", "phlox-kernels", "--lib", "--target", TARGET)
    worst = 0
    for processor, has, tests in _PROCESSORS:
        say(f"the kernels' tests on ARM, emulated: {processor}, with {has or 'nothing special'}")
        runner = f"{_RUNNER} -cpu {processor} -L {_LIBRARIES}"
        extra = {f"{name}_LINKER": _LINKER, f"{name}_RUNNER": runner, "PHLOX_TEST_HAS": has}
        worst = call("cargo", "test", *chosen, "--", *tests, extra=extra) or worst
    return worst


def main() -> int:
    """Run it; a machine that cannot is told so, with status 1."""
    try:
        return arm()
    except CommandError as error:
        print(error, file=sys.stderr)
        return 1


if __name__ == "__main__":
    sys.exit(main())
