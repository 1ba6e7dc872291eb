"""Build the kernels for 64-bit ARM and run them there: `./x test --arm`.

On another processor they run under qemu-user, beside the libraries of Debian's Python for ARM and
linked by Zig: first, in that Python, the wheel, with the README's example and the conformance
suite; then the Rust tests, all of them on a processor with all that the kernels know of, products
on one without. On x86-64 products also run on a processor without AVX-512, where an instruction of
it ends them. Their speed there says nothing.
"""

from __future__ import annotations

import platform
import sys
from collections.abc import Callable
from pathlib import Path

from tools import debian, release, setup, targets, wheels
from tools.shell import PRIVATE, CommandError, call, executable, fail, read, run, say, script, which

NAME = "linux-arm64"
_TARGET = targets.TARGETS[NAME]
_RUNNER = "qemu-aarch64"
_FOLDER = PRIVATE / "arm"
# A linker for the oldest libraries that the wheel promises, as maturin has it link.
_LINKER = "{maturin} zig cc -- -g -target aarch64-linux-gnu.2.17"
# Emulated processors, which of the instructions that kernels look for they have, and the tests
# that run there.
_PROCESSORS = (
    ("max", "bf16,dotprod", ()),
    ("cortex-a72", "", ("machine::", "ops::attention", "ops::contraction")),
)
_OLDER = "x86_64-unknown-linux-gnu"
_OLDER_RUNNER = "qemu-x86_64"
_OLDER_PROCESSOR = "Haswell"
# Without convolutions: qemu 7.2 faults at a masked load of no lane, as no processor does.
_OLDER_TESTS = ("machine::", "ops::attention::amx", "ops::contraction")
# What takes longest there; the tests that are left run the same products.
_OLDER_SKIPS = (
    *("contraction::tests::the_number_of_threads", "side::tests::keeping"),
    "side::tests::what_was_packed",
)


def require(find: Callable[[str], str | None], sysroot: Path, private: Path) -> targets.Compiler:
    """Find all that crossing over takes, and return how to compile.

    Raises:
        CommandError: a part is missing, with the command that installs it.
    """
    for emulator in (_RUNNER, _OLDER_RUNNER):
        if find(emulator) is None:
            raise fail(f"the emulator is missing: {emulator}", "apt-get install qemu-user")
    if find("apt-get") is None:
        raise fail("apt-get is missing, which fetches Python for ARM", "run it on Debian")
    return targets.compiler(_TARGET, sysroot, private)


def arm(how: targets.Compiler) -> int:
    """Run the tests; returns the exit status."""
    root = _FOLDER / "root"
    if not root.is_dir():
        debian.fetch(("python3", "libstdc++6"), _FOLDER, "arm64")
    maturin = script("maturin", setup.own("wheels"))
    linker = executable(_FOLDER / "linker", f"exec {_LINKER.format(maturin=maturin)}")
    settings = {"LINKER": str(linker)}
    worst = _wheel(root)
    for processor, has, tests in _PROCESSORS:
        say(f"the kernels' tests on ARM, emulated: {processor}, with {has or 'nothing special'}")
        runner = f"{_RUNNER} -cpu {processor} -L {root}"
        worst = _test(_TARGET.triple, runner, has, tests, settings, how) or worst
    if platform.machine() == "x86_64":
        say(f"the kernels' tests on x86-64, emulated: {_OLDER_PROCESSOR}, without AVX-512")
        runner = f"{_OLDER_RUNNER} -cpu {_OLDER_PROCESSOR}"
        skips = [word for name in _OLDER_SKIPS for word in ("--skip", name)]
        chosen = (*_OLDER_TESTS, *skips)
        worst = _test(_OLDER, runner, "", chosen, {}, targets.Compiler({})) or worst
    return worst


def _test(
    target: str,
    runner: str,
    has: str,
    tests: tuple[str, ...],
    settings: dict[str, str],
    how: targets.Compiler,
) -> int:
    name = "CARGO_TARGET_" + target.upper().replace("-", "_")
    extra = {f"{name}_{key}": value for key, value in ({"RUNNER": runner} | settings).items()}
    extra |= {"PHLOX_TEST_HAS": has, **how.settings}
    chosen = ("--quiet", "--release", "-p", "phlox-kernels", "--lib", *how.options)
    # This machine's own tests are those that `./x test --long` has built.
    crossing = () if target == _OLDER else ("--target", target)
    words = (*chosen, *crossing, "--", *tests)
    # Zig, which links for ARM, is in the environment that wheels are built in.
    return call("cargo", "test", *words, venv=setup.own("wheels"), extra=extra)


def _wheel(root: Path) -> int:
    """Install the wheel for ARM beside that Python, and run what a release runs."""
    built, failed = wheels.build([NAME], left_out=("phlox-wgpu-engine",))
    if failed:
        return 1
    # Under the prefix of that Python, where a release's checks expect what is installed.
    there = root / "usr" / "phlox"
    version = (root / "usr" / "bin" / "python3").readlink().name.removeprefix("python")
    uv = (setup.bootstrap_uv(), "pip", "install", "--quiet", "--no-config", "--target", there)
    machine = ("--python-platform", "aarch64-manylinux_2_28", "--python-version", version)
    others = ("--only-binary=:all:", "--constraint", setup.LOCKED)
    run(*uv, *machine, *others, *release.needs("phlox"))
    run(*uv, *machine, "--no-deps", "--reinstall", *built)
    worst = 0
    for code in (release.quick_start(), release.CHECKS):
        words = (_RUNNER, "-L", root, root / "usr" / "bin" / "python3", "-c", code)
        worst = call(*words, cwd=root, extra={"PYTHONPATH": str(there)}) or worst
    return worst


def main(*, asked: bool = True) -> int:
    """Run it; a machine that cannot is told so, with status 1 if it was asked for by name."""
    if platform.machine() in {"aarch64", "arm64"}:
        say("this processor is ARM: ./x test is the test")
        return 0
    try:
        how = require(which, Path(read("rustc", "--print", "sysroot")), debian.FOLDER)
    except CommandError as error:
        print(f"arm: {'' if asked else 'skipped: '}{targets.reason(error)}", file=sys.stderr)
        return int(asked)
    try:
        return arm(how)
    except CommandError as error:
        print(error, file=sys.stderr)
        return 1


if __name__ == "__main__":
    sys.exit(main())
