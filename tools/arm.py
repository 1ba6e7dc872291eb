"""Build the kernels for 64-bit ARM and run their Rust tests there: `python -m tools.arm`.

On another processor they run under qemu-user, compiled by the toolchain that crosses over: all of
them on a processor with all that the kernels know of, products on one without. On x86-64 products
also run on a processor without AVX-512, where an instruction of it ends them. Their speed there
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
_OLDER = "x86_64-unknown-linux-gnu"
_OLDER_RUNNER = "qemu-x86_64"
_OLDER_PROCESSOR = "Haswell"
_OLDER_TESTS = ("machine::", "ops::attention::amx", "ops::contraction", "ops::convolution")


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
    for emulator in (_RUNNER, _OLDER_RUNNER):
        if find(emulator) is None:
            raise fail(f"the emulator is missing: {emulator}", "apt-get install qemu-user")


def arm() -> int:
    """Run the tests; returns the exit status."""
    if platform.machine() in {"aarch64", "arm64"}:
        say("this processor is ARM: ./x test is the test")
        return 0
    require(which, Path(read("rustc", "--print", "sysroot")), _LIBRARIES)
    worst = 0
    for processor, has, tests in _PROCESSORS:
        say(f"the kernels' tests on ARM, emulated: {processor}, with {has or 'nothing special'}")
        runner = f"{_RUNNER} -cpu {processor} -L {_LIBRARIES}"
        worst = _test(TARGET, runner, has, tests, {"LINKER": _LINKER}) or worst
    if platform.machine() == "x86_64":
        say(f"the kernels' tests on x86-64, emulated: {_OLDER_PROCESSOR}, without AVX-512")
        runner = f"{_OLDER_RUNNER} -cpu {_OLDER_PROCESSOR}"
        worst = _test(_OLDER, runner, "", _OLDER_TESTS, {}) or worst
    return worst


def _test(
    target: str, runner: str, has: str, tests: tuple[str, ...], settings: dict[str, str]
) -> int:
    name = "CARGO_TARGET_" + target.upper().replace("-", "_")
    extra = {f"{name}_{key}": value for key, value in ({"RUNNER": runner} | settings).items()}
    chosen = ("--quiet", "--release", "-p", "phlox-kernels", "--lib")
    # This machine's own tests are those that `./x test --long` has built.
    crossing = () if target == _OLDER else ("--target", target)
    words = (*chosen, *crossing, "--", *tests)
    return call("cargo", "test", *words, extra=extra | {"PHLOX_TEST_HAS": has})


def main() -> int:
    """Run it; a machine that cannot is told so, with status 1."""
    try:
        return arm()
    except CommandError as error:
        print(error, file=sys.stderr)
        return 1


if __name__ == "__main__":
    sys.exit(main())
