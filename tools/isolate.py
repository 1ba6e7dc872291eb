"""`./x isolate`: each package alone, from its wheel, with only what it declares.

Builds every wheel, then for each package makes an empty environment, installs the wheel and the
wheels of the packages it declares, imports it, and runs its own tests. This is what proves the
layers: an import that no pyproject.toml declares fails here.
"""

import shutil
import tempfile
from dataclasses import dataclass
from pathlib import Path

from tools import setup, versions
from tools.shell import PRIVATE, ROOT, CommandError, call, fail, pinned, read, run, say, script

WHEELS = PRIVATE / "wheels"
LOCKED = ROOT / "constraints" / "dev.txt"
_TEST_TOOLS = ("hypothesis", "pytest", "pytest-timeout")
# Programs that a package must run when it is installed alone, before any test tool is there.
_PROGRAMS = {
    "phlox-tensor": ROOT / "tests" / "isolation" / "tensor_alone.py",
    "phlox": ROOT / "tests" / "isolation" / "everything.py",
}
_IMPORT_TIME = """
import importlib, subprocess, sys
importlib.import_module(sys.argv[1])
code = "import time; t = time.perf_counter(); import {}; print(time.perf_counter() - t)"
runs = [subprocess.check_output([sys.executable, "-c", code.format(sys.argv[1])]) for _ in range(5)]
print(min(float(run) for run in runs))
"""


@dataclass(frozen=True)
class Row:
    """What is printed of one package."""

    name: str
    wheel: int
    seconds: float
    passed: bool


def isolate(chosen: list[str]) -> int:
    """Run the job for the named distributions, or for all of them; returns an exit status."""
    found = {project.name: project for project in versions.projects()}
    unknown = sorted(set(chosen) - set(found))
    if unknown:
        names = ", ".join(found)
        raise fail(f"isolate: got {', '.join(unknown)}, expected names of {names}", "./x isolate")
    uv = setup.bootstrap_uv()
    wheels = {name: _build(uv, project) for name, project in found.items()}
    rows = []
    for name in sorted(chosen or found):
        say(f"{name}: alone")
        try:
            rows.append(_alone(uv, found[name], found, wheels))
        except CommandError as error:
            print(error, flush=True)
            rows.append(Row(name, wheels[name].stat().st_size, float("nan"), passed=False))
    _print_table(rows)
    return 0 if all(row.passed for row in rows) else 1


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
        run(*install, "--constraint", LOCKED, *ours, cwd=Path(scratch))
        run(uv, "pip", "check", "--quiet", "--python", python, cwd=Path(scratch))
        arguments = (python, "-c", _IMPORT_TIME, project.module)
        seconds = float(read(*arguments, cwd=Path(scratch), venv=venv))
        passed = _program(project, python, venv, Path(scratch))
        tests = project.folder / "tests"
        if project.folder != ROOT and any(tests.rglob("test_*.py")):
            run(*install, *(f"{tool}=={pinned(LOCKED, tool)}" for tool in _TEST_TOOLS))
            passed = _tests(tests, python, venv, Path(scratch)) and passed
    return Row(project.name, wheels[project.name].stat().st_size, seconds, passed)


def _program(project: versions.Project, python: Path, venv: Path, scratch: Path) -> bool:
    program = _PROGRAMS.get(project.name)
    return program is None or call(python, "-I", program, cwd=scratch, venv=venv) == 0


def _tests(tests: Path, python: Path, venv: Path, scratch: Path) -> bool:
    """Run a copy of the package's tests, away from the checkout, with the settings of the whole."""
    shutil.copytree(tests, scratch / "tests", ignore=shutil.ignore_patterns("__pycache__"))
    shutil.copy(ROOT / "conftest.py", scratch)
    shutil.copy(ROOT / "pyproject.toml", scratch)
    options = ("--override-ini=pythonpath=", "-p", "no:cacheprovider", "--quiet", "tests")
    quick = {"PHLOX_TEST_EXAMPLES": "quick"}
    return call(python, "-m", "pytest", *options, cwd=scratch, venv=venv, extra=quick) == 0


def _print_table(rows: list[Row]) -> None:
    print(f"\n{'package':<16} {'wheel':>9} {'import':>9}  alone")
    for row in rows:
        size, time = f"{row.wheel / 1000:,.0f} kB", f"{row.seconds * 1000:,.0f} ms"
        print(f"{row.name:<16} {size:>9} {time:>9}  {'passed' if row.passed else 'FAILED'}")
    print(f"{'all':<16} {f'{sum(row.wheel for row in rows) / 1000:,.0f} kB':>9}\n", flush=True)
