"""Run the kernels' tests under AddressSanitizer, from Rust and from Python, and fuzz the boundary.

Usage: python -m tools.sanitize [SECONDS [SEED]]   the fuzzing's; an hour, and seed 1

Stable Rust has the sanitizer behind RUSTC_BOOTSTRAP; its runtime is that of the C compiler, since
Python, which is no Rust program, loads the kernels. Arrays get allocations of just their size.
Checks are calls and the code is hardly optimized: checks in line in unrolled SIMD code take the
compiler a quarter of an hour longer.
"""

from __future__ import annotations

import os
import platform
import shutil
import sys
from collections.abc import Sequence
from pathlib import Path

from tools.processor import told
from tools.shell import ROOT, CommandError, call, fail, read, say, script

TARGET = "x86_64-unknown-linux-gnu"
_FUZZ = ROOT / "kernels-rs" / "tests" / "fuzz_boundary.py"
_FOLDER = ROOT / "target" / "sanitizer"
_BUILD = {
    "CARGO_PROFILE_RELEASE_CODEGEN_UNITS": "16",
    "CARGO_PROFILE_RELEASE_LTO": "off",
    "CARGO_PROFILE_RELEASE_OPT_LEVEL": "1",
    "CARGO_PROFILE_RELEASE_STRIP": "none",
    "CARGO_TARGET_DIR": str(_FOLDER),
    "RUSTC_BOOTSTRAP": "1",
    "RUSTFLAGS": (
        "-Zsanitizer=address -Cdebuginfo=line-tables-only"
        " -Cllvm-args=-asan-instrumentation-with-call-threshold=0"
    ),
}
_OPTIONS = {
    "ASAN_OPTIONS": "detect_leaks=0:allocator_may_return_null=1:max_allocation_size_mb=1024",
    "PHLOX_NUM_THREADS": "3",
}
_CARGO = ("--release", "--quiet", "-p", "phlox-kernels", "--target", TARGET)
_CONFORMANCE = """
import phlox_kernels
from phlox_tensor.testing import conformance
print(conformance(phlox_kernels.Cpu()), "checks of", phlox_kernels.__file__)
"""
# Proves that the sanitizer sees the arrays of the native module: one byte too many.
_OVERRUN = """
import ctypes, numpy as np
from phlox_kernels import Cpu
from phlox_tensor import float32
array = np.asarray(Cpu().upload(np.zeros(5, np.float32), float32))
ctypes.string_at(array.ctypes.data, array.nbytes + 1)
"""


def runtime() -> Path:
    """The sanitizer's library.

    Raises:
        CommandError: this machine has none.
    """
    if sys.platform != "linux" or platform.machine() != "x86_64":
        raise fail("the sanitizer runs on Linux on x86-64 alone", "./x test")
    library = Path(read("cc", "-print-file-name=libasan.so"))
    if not library.is_absolute():
        raise fail("libasan is missing", "apt-get install gcc libasan8")
    return library


def sanitize(seconds: str = "3600", seed: str = "1") -> int:
    """Build and run everything; returns the first exit status that is not 0."""
    library = runtime()
    features = ("--features", "exact-allocations")
    say("cargo test under AddressSanitizer")
    tests = ("--lib", *features, "--", "--skip", "ulp::")
    status = call("cargo", "test", *_CARGO, *tests, extra=_BUILD | _OPTIONS | told())
    if status:
        return status
    python = ("--features", "python,abi3,exact-allocations")
    status = call("cargo", "build", *_CARGO, *python, extra=_BUILD)
    if status:
        return status
    path = _package()
    env = _OPTIONS | {"LD_PRELOAD": str(library), "PYTHONPATH": path}
    say("the conformance suite under AddressSanitizer")
    status = call(script("python"), "-c", _CONFORMANCE, extra=env)
    if status:
        return status
    say(f"random calls under AddressSanitizer: {seconds} s from seed {seed}")
    status = call(script("python"), str(_FUZZ), "--for", seconds, seed, extra=env)
    if status:
        return status
    say("one read beyond an array: the next report is expected")
    if call(script("python"), "-c", _OVERRUN, extra=env) == 0:
        raise fail("the sanitizer missed a read beyond an array", "python -m tools.sanitize")
    return 0


def _package() -> str:
    """A copy of phlox_kernels with the instrumented module, as PYTHONPATH."""
    folder = _FOLDER / "python"
    shutil.rmtree(folder, ignore_errors=True)
    shutil.copytree(ROOT / "kernels-rs/python/phlox_kernels", folder / "phlox_kernels")
    built = _FOLDER / TARGET / "release" / "libphlox_kernels_core.so"
    shutil.copy(built, folder / "phlox_kernels" / "_native.abi3.so")
    sources = sorted((ROOT / "packages").glob("*/src"))
    return os.pathsep.join(map(str, [folder, *sources]))


def main(arguments: Sequence[str] | None = None) -> int:
    """Run it; a machine that cannot is told so, with status 1."""
    try:
        return sanitize(*(sys.argv[1:] if arguments is None else arguments))
    except CommandError as error:
        print(error, file=sys.stderr)
        return 1


if __name__ == "__main__":
    sys.exit(main())
