"""The commands of `./x`, one function each; `COMMANDS` is the table that `./x help` prints."""

import shutil
import sys
import time
from collections.abc import Callable, Sequence
from pathlib import Path

from tools import check as checks
from tools import processor
from tools import setup as steps
from tools.shell import PRIVATE, ROOT, VENV, CommandError, call, fail, say, script

Arguments = list[str]


def setup(arguments: Arguments) -> int:
    """Make .venv with everything in it; quick when nothing changed."""
    _none("setup", arguments)
    start = time.perf_counter()
    steps.setup()
    say(f"ready: .venv ({time.perf_counter() - start:.1f} s)")
    return 0


def demo(arguments: Arguments) -> int:
    """Train, save, load and serve a digit classifier on three backends."""
    steps.setup()
    return call(script("python"), "-m", "examples.mnist", *arguments)


def test(arguments: Arguments) -> int:
    """Every test; --long adds slow ones, --arm emulates, --browser asks Chromium; else pytest's."""
    steps.setup()
    if "--arm" in arguments:
        _flags("test", arguments, "--arm")
        return call(script("python"), "-m", "tools.arm")
    if "--browser" in arguments:
        words = [word for word in arguments if word != "--browser"]
        return call(script("python"), "-m", "tools.browser", *words)
    long = "--long" in arguments
    chosen = [word for word in arguments if word != "--long"]
    program = steps.peers() if long else script("python")
    if long:
        steps.install_locked(steps.bootstrap_uv(), "long")
    extra = {"PHLOX_TEST_EXAMPLES": "long"} if long else {}
    rust = 0
    if not chosen:
        release = ["--release"] if long else []
        told = processor.told() if long else {}
        rust = call("cargo", "test", "--workspace", "--quiet", *release, extra=told)
    proofs = _long_proofs() if long and not chosen else {}
    select = ["-m", "long or not long"] if long else []
    # Two processes have to collect sets in one order.
    both = [] if chosen else ["-n", "2"]
    extra |= {"PYTHONHASHSEED": "0"} if both else {}
    python = call(program, "-m", "pytest", *both, *select, *chosen, extra=extra)
    every = {"cargo test": rust, **proofs, "pytest": python}
    for name, status in every.items():
        if status:
            say(f"{name} failed with exit status {status}")
    return next((status for status in every.values() if status), 0)


def _long_proofs() -> dict[str, int]:
    """Every function on every float32, ARM, AddressSanitizer, the fuzzed parsers."""
    from tools import accuracy, arm, fuzz, sanitize  # noqa: PLC0415 - the long test alone needs them

    return {
        "accuracy": accuracy.main([]),
        "arm": arm.main(asked=False),
        "fuzzing": fuzz.main([]),
        "sanitizer": sanitize.main([]),
    }


def check(arguments: Arguments) -> int:
    """Check format, lint, types, generated files, versions; --fix repairs what can be."""
    steps.setup()
    return checks.check(fix=_flags("check", arguments, "--fix") == {"--fix"})


def bench(arguments: Arguments) -> int:
    """Benchmark: [NAME…] [--vs PEER[,PEER…]] [--json FILE]."""
    steps.setup()
    python = (
        steps.peers() if {"jax", "onnxruntime", "torch"} & _peers(arguments) else script("python")
    )
    return call(python, "-m", "benchmarks", *arguments)


def _peers(arguments: Arguments) -> set[str]:
    """Names in ``--vs jax,torch`` and ``--vs=torch``."""
    return {name for argument in arguments for name in argument.removeprefix("--vs=").split(",")}


def docs(arguments: Arguments) -> int:
    """Write the generated pages again and run every example in the documentation."""
    _none("docs", arguments)
    return gen([]) or call(script("python"), "-m", "pytest", "tests/docs")


def gen(arguments: Arguments) -> int:
    """Write the generated files again."""
    _none("gen", arguments)
    steps.setup()
    return call(script("python"), "tools/gen.py")


def new_op(arguments: Arguments) -> int:
    """Scaffold an op through all tables; --check proves on a copy that this works."""
    steps.setup()
    if arguments == ["--check"]:
        return call(script("python"), "-m", "tools.new_op_check")
    return call(script("python"), "-m", "tools.new_op", *arguments)


def isolate(arguments: Arguments) -> int:
    """Build the wheels and test each package alone, with only what it declares."""
    from tools.isolate import isolate as job  # noqa: PLC0415 - reads the workspace when imported

    steps.setup()
    return job(arguments)


def wheels(arguments: Arguments) -> int:
    """Build wheels into dist/: [--fetch] [TARGET…]; says what cannot be built here, and why."""
    from tools.wheels import wheels as job  # noqa: PLC0415 - reads the workspace when imported

    return job(arguments)


def release(arguments: Arguments) -> int:
    """Try all that must hold before a release with the wheels themselves: --dry-run."""
    from tools.release import release as job  # noqa: PLC0415 - most commands need it never

    steps.setup()
    return job(arguments)


def site(arguments: Arguments) -> int:
    """Build the documentation as a site: [--quick] [--serve]."""
    from tools.site import site as job  # noqa: PLC0415 - most commands need it never

    steps.setup()
    return job(arguments)


def engine(arguments: Arguments) -> int:
    """Build the native engine of the GPU backend into .venv; minutes the first time."""
    _none("engine", arguments)
    steps.setup()
    return steps.build_engine()


def doctor(arguments: Arguments) -> int:
    """Print what is found on this machine: devices, drivers, what is missing."""
    steps.setup()
    return call(script("phlox"), "doctor", *arguments)


def versions(arguments: Arguments) -> int:
    """Print the version of every package and what disagrees; X.Y.Z gives all of them that one."""
    from tools.versions import versions as job  # noqa: PLC0415 - most commands need it never

    return job(arguments)


def lock(arguments: Arguments) -> int:
    """Resolve constraints/*.in again into hashed files."""
    _none("lock", arguments)
    steps.relock(steps.bootstrap_uv())
    return 0


def clean(arguments: Arguments) -> int:
    """Remove everything that these commands made inside the checkout."""
    _none("clean", arguments)
    caches = (
        ".mypy_cache",
        ".pytest_cache",
        ".ruff_cache",
        ".hypothesis",
        "build",
        "dist",
        "target",
    )
    made = [*ROOT.glob("kernels-rs/python/*/_native*.so"), steps.ENGINE / "target"]
    made += steps.ENGINE.glob("python/*/_native*.so")
    for path in (VENV, PRIVATE, *(ROOT / name for name in caches), *made):
        _remove(path)
    return 0


def help_(arguments: Arguments) -> int:
    """Print this list."""
    _none("help", arguments)
    print("usage: ./x COMMAND [ARGUMENT…]\n")
    for name, function in COMMANDS.items():
        print(f"  {name:<8} {(function.__doc__ or '').splitlines()[0]}")
    return 0


COMMANDS: dict[str, Callable[[Arguments], int]] = {
    "setup": setup,
    "demo": demo,
    "test": test,
    "check": check,
    "bench": bench,
    "docs": docs,
    "gen": gen,
    "new-op": new_op,
    "isolate": isolate,
    "wheels": wheels,
    "release": release,
    "site": site,
    "engine": engine,
    "doctor": doctor,
    "versions": versions,
    "lock": lock,
    "clean": clean,
    "help": help_,
}


def main(words: Sequence[str]) -> int:
    """Run one command and return the exit status of `./x`."""
    name = words[0] if words else "help"
    name = "help" if name in {"-h", "--help"} else name
    if name not in COMMANDS:
        print(f"[x] no such command: got {name}, expected one of {', '.join(COMMANDS)}")
        print("hint: ./x help")
        return 2
    try:
        return COMMANDS[name](list(words[1:]))
    except CommandError as error:
        print(error, file=sys.stderr, flush=True)
        return 1
    except KeyboardInterrupt:
        return 130


def _none(name: str, arguments: Arguments) -> None:
    _flags(name, arguments)


def _flags(name: str, arguments: Arguments, *known: str) -> set[str]:
    unknown = [word for word in arguments if word not in known]
    if unknown:
        expected = " ".join(known) or "no arguments"
        raise fail(f"{name}: got {' '.join(unknown)}, expected {expected}", f"./x {name}")
    return set(arguments)


def _remove(path: Path) -> None:
    if path.is_dir() and not path.is_symlink():
        shutil.rmtree(path)
    elif path.exists() or path.is_symlink():
        path.unlink()
    else:
        return
    say(f"removed {path.relative_to(ROOT)}")
