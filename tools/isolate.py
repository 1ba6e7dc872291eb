"""`./x isolate`: each package alone, from its wheel, with only what it declares.

Builds every wheel, then for each package makes an empty environment, installs the wheel and the
wheels of the packages it declares, imports it, and runs its own tests. This is what proves the
layers: an import that no pyproject.toml declares fails here.
"""

import shutil
import tempfile
from dataclasses import dataclass
from functools import partial
from pathlib import Path

from tools import setup, versions
from tools.shell import (
    PRIVATE,
    ROOT,
    CommandError,
    call,
    fail,
    pinned,
    read,
    run,
    say,
    script,
    together,
)

WHEELS = PRIVATE / "wheels"
_TEST_TOOLS = ("hypothesis", "ml-dtypes", "pytest", "pytest-timeout")
# Programs that a package must run when it is installed alone, before any test tool is there.
_PROGRAMS = {
    "phlox-tensor": ROOT / "tests" / "isolation" / "tensor_alone.py",
    "phlox": ROOT / "tests" / "isolation" / "everything.py",
}
_NOT_FOR_TESTS = ("__pycache__", "python", "src", "target")
# Best of five; NumPy's own share is printed beside it, since no package can be quicker.
_IMPORT_TIME = """
import importlib, subprocess, sys
importlib.import_module(sys.argv[1])
code = "import time; t = time.perf_counter(); import {}; print(time.perf_counter() - t)"
for name in (sys.argv[1], "numpy"):
    command = [sys.executable, "-c", code.format(name)]
    print(min(float(subprocess.check_output(command)) for _ in range(5)))
"""


@dataclass(frozen=True)
class Row:
    """What is printed of one package."""

    name: str
    wheel: int
    passed: bool
    seconds: float = float("nan")
    numpy: float = float("nan")


def isolate(chosen: list[str]) -> int:
    """Run the job for the named distributions, or for all of them; returns an exit status."""
    found = {project.name: project for project in versions.projects()}
    unknown = sorted(set(chosen) - set(found))
    if unknown:
        expected = ", ".join(found)
        raise fail(f"isolate: got {', '.join(unknown)}, expected {expected}", "./x isolate")
    uv = setup.bootstrap_uv()
    names = sorted(chosen or found)
    built = set[str]().union(*(needed(name, found) for name in names))
    wheels = {name: _build(uv, found[name]) for name in sorted(built)}

    def row(name: str) -> Row:
        say(f"{name}: alone")
        try:
            return _alone(uv, found[name], found, wheels)
        except CommandError as error:
            say(f"{error}")
            return Row(name, wheels[name].stat().st_size, passed=False)

    # Those with most tests first, so that both chains end together.
    order = sorted(names, key=lambda name: -_size_of_tests(found[name].folder))
    rows = together([partial(row, name)] for name in order)
    _print_table(sorted(rows, key=lambda row: row.name))
    return 0 if all(row.passed for row in rows) else 1


def _size_of_tests(folder: Path) -> int:
    return sum(file.stat().st_size for file in folder.glob("tests/**/*.py"))


def needed(name: str, found: dict[str, versions.Project]) -> set[str]:
    """Names of the workspace's distributions that `name` pulls in, itself included."""
    names = {name}
    for other in found[name].requires:
        if other in found:
            names |= needed(other, found)
    return names


def _build(uv: Path, project: versions.Project) -> Path:
    """Build one wheel into `.x/wheels` and return its path."""
    out = WHEELS / project.name
    shutil.rmtree(out, ignore_errors=True)
    if project.native:
        run("maturin", "build", "--release", "--quiet", "--out", out, cwd=project.folder)
    else:
        run(uv, "build", "--quiet", "--wheel", "--out-dir", out, project.folder)
    (wheel,) = out.glob("*.whl")
    return wheel


def _alone(
    uv: Path,
    project: versions.Project,
    found: dict[str, versions.Project],
    wheels: dict[str, Path],
) -> Row:
    """Install one package alone, time its import, run its program and its tests."""
    with tempfile.TemporaryDirectory(prefix="phlox-") as scratch:
        venv = Path(scratch) / "venv"
        python = script("python", venv)
        run(uv, "venv", "--quiet", "--no-config", "--python", script("python"), venv)
        # Paths, not names: a package of ours is never asked of an index.
        ours = [wheels[name] for name in sorted(needed(project.name, found))]
        install = (uv, "pip", "install", "--quiet", "--no-config", "--python", python)
        run(*install, "--constraint", setup.LOCKED, *ours, cwd=Path(scratch))
        run(uv, "pip", "check", "--quiet", "--python", python, cwd=Path(scratch))
        arguments = (python, "-c", _IMPORT_TIME, project.module)
        seconds, numpy = map(float, read(*arguments, cwd=Path(scratch), venv=venv).split())
        passed = _program(project, python, venv, Path(scratch))
        if project.folder != ROOT:  # a package without tests fails: pytest says that it ran none
            run(*install, *(f"{tool}=={pinned(setup.LOCKED, tool)}" for tool in _TEST_TOOLS))
            passed = _tests(project.folder, python, venv, Path(scratch)) and passed
    return Row(project.name, wheels[project.name].stat().st_size, passed, seconds, numpy)


def _program(project: versions.Project, python: Path, venv: Path, scratch: Path) -> bool:
    program = _PROGRAMS.get(project.name)
    return program is None or call(python, "-I", program, cwd=scratch, venv=venv) == 0


def _tests(folder: Path, python: Path, venv: Path, scratch: Path) -> bool:
    """Run a package's tests away from its sources, with the settings of the whole workspace."""
    there = scratch / folder.name
    shutil.copytree(folder, there, ignore=shutil.ignore_patterns(*_NOT_FOR_TESTS))
    shutil.copy(ROOT / "conftest.py", there)
    shutil.copy(ROOT / "pyproject.toml", there)
    options = ("--override-ini=pythonpath=", "-p", "no:cacheprovider", "--quiet", "tests")
    quick = {"PHLOX_TEST_EXAMPLES": "quick"}
    return call(python, "-m", "pytest", *options, cwd=there, venv=venv, extra=quick) == 0


def _print_table(rows: list[Row]) -> None:
    print(f"\n{'package':<16} {'wheel':>9} {'import':>9} {'numpy':>9}  alone")
    for row in rows:
        size, state = f"{row.wheel / 1000:,.0f} kB", "passed" if row.passed else "FAILED"
        times = f"{row.seconds * 1000:6,.0f} ms {row.numpy * 1000:6,.0f} ms"
        print(f"{row.name:<16} {size:>9} {times}  {state}")
    print(f"{'all':<16} {f'{sum(row.wheel for row in rows) / 1000:,.0f} kB':>9}\n", flush=True)
