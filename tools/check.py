"""`./x check`: format, lint, types, generated files, versions.

Every step runs, what needs Rust or Node beside what needs Python alone; the last line names all
that failed.
"""

import time
from dataclasses import dataclass
from functools import partial
from pathlib import Path

from tools import targets, versions
from tools.shell import ROOT, call, read, say, script, together

# Folders whose name is no Python identifier: mypy would see equal module names in them.
_APART = ("kernels-rs/tests", "packages/wgpu-backend/tests")
_TYPED = (
    "benchmarks",
    "conftest.py",
    "examples",
    "kernels-rs/python",
    "packages",
    "src",
    "tests",
    "tools",
)


@dataclass(frozen=True)
class Step:
    """One program that checks the tree, and how it repairs what it finds, if it can."""

    name: str
    command: tuple[str | Path, ...]
    fix: tuple[str | Path, ...] | None = None


def _present(names: tuple[str, ...]) -> list[str]:
    """Those of the names that hold Python: mypy fails on a folder without any."""
    paths = {name: ROOT / name for name in names}
    return [n for n, path in paths.items() if path.is_file() or any(path.rglob("*.py"))]


def for_arm(compiler: Path) -> list[Step]:
    """The kernels compiled for 64-bit ARM, without linking; a line where Rust lacks its library."""
    target = targets.TARGETS["linux-arm64"]
    if not targets.has_library(compiler, target):
        say(f"not checked: cargo clippy for ARM (rustup target add {target.triple})")
        return []
    chosen = ("-p", "phlox-kernels", "--lib", "--target", target.triple, "--quiet")
    return [Step("cargo clippy for ARM", ("cargo", "clippy", *chosen, "--", "-D", "warnings"))]


def steps() -> list[list[Step]]:
    """Return every step in two chains, quick ones first. Runs of mypy share a cache."""
    python, ruff = script("python"), script("ruff")
    generate = (python, "tools/gen.py")
    clippy = ("cargo", "clippy", "--workspace", "--all-targets", "--all-features", "--quiet")
    apart = [Step(f"mypy {folder}", (python, "-m", "mypy", folder)) for folder in _present(_APART)]
    exclude = "|".join(f"^{folder}/" for folder in _APART)
    return [
        [
            Step("ruff format", (ruff, "format", "--check", "."), (ruff, "format", ".")),
            Step("ruff check", (ruff, "check", "."), (ruff, "check", "--fix", ".")),
            Step("generated files", (*generate, "--check"), generate),
            Step("mypy", (python, "-m", "mypy", "--exclude", exclude, *_present(_TYPED))),
            *apart,
        ],
        [
            Step("cargo fmt", ("cargo", "fmt", "--all", "--check"), ("cargo", "fmt", "--all")),
            Step("pyright", (script("pyright"), "--warnings")),
            Step("cargo clippy", (*clippy, "--", "-D", "warnings")),
            *for_arm(Path(read("rustc", "--print", "sysroot"))),
        ],
    ]


def _failed(step: Step) -> list[str]:
    """Run a step; returns its name if it failed."""
    start = time.perf_counter()
    status = call(*step.command)
    say(f"{'FAILED' if status else 'ok'}: {step.name} ({time.perf_counter() - start:.1f} s)")
    return [step.name] if status else []


def check(*, fix: bool = False) -> int:
    """Run every step and print the ones that failed; returns an exit status."""
    chains = steps()
    for step in (step for chain in chains for step in chain):
        if fix and step.fix:
            call(*step.fix)
    found = together([partial(_failed, step) for step in chain] for chain in chains)
    failed = [name for names in found for name in names]
    for problem in versions.problems():
        print(problem)
        failed += ["versions"] if "versions" not in failed else []
    say(f"check failed: {', '.join(failed)}" if failed else "check passed")
    return 1 if failed else 0
