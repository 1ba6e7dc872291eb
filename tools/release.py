"""`./x release --dry-run`: all that must hold before a release, tried with the wheels themselves.

Builds the wheels for this machine, installs them into an empty environment from folders alone, and
runs there what a newcomer runs: the README's example, `phlox doctor`, checks of the conformance
suite, and the demo. Nothing is uploaded; that is by hand, with the line that the end prints.
"""

from __future__ import annotations

import re
import shutil
import tempfile
import time
from collections.abc import Callable
from functools import partial
from pathlib import Path

from tools import setup, versions, wheels
from tools.shell import (
    PRIVATE,
    ROOT,
    CommandError,
    call,
    digest,
    fail,
    fresh,
    read,
    run,
    say,
    script,
    stamp,
)

OTHERS = PRIVATE / "others"
_LOCKED = ROOT / "constraints" / "dev.txt"
_CHECKS = """
from pathlib import Path
import sys
import phlox as px
from phlox.testing import checks
assert Path(px.__file__).is_relative_to(sys.prefix), px.__file__
every = checks(px.Cpu())
chosen = [every[i * len(every) // 1000] for i in range(1000)]  # of every op
for check in chosen:
    check()
print(f"{len(chosen)} of {len(every):,} checks passed on {px.Cpu()}")
"""


def release(words: list[str]) -> int:
    """Run the list; the exit status is 1 if a line of it failed."""
    if words != ["--dry-run"]:
        got = " ".join(words) or "nothing"
        raise fail(f"release: got {got}, expected --dry-run", "./x release --dry-run")
    with tempfile.TemporaryDirectory(prefix="phlox-") as name:
        scratch = Path(name)
        venv = scratch / "venv"
        python = script("python", venv)
        demo = ("-m", "examples.mnist", "--epochs", "1", "--out", scratch / "demo")
        program = partial(_program, python, venv)
        steps: dict[str, Callable[[], object]] = {
            "versions and changelogs agree": _agree,
            "wheels are built and audited": partial(_wheels, [wheels.here()]),
            "wheels install from folders": partial(_install, venv, scratch),
            "the README's example trains": partial(program, scratch, "-c", quick_start()),
            "phlox doctor": partial(program, scratch, "-m", "phlox", "doctor"),
            "conformance, 1,000 checks": partial(program, scratch, "-c", _CHECKS),
            "the demo": partial(program, ROOT, *demo),
        }
        failed = [text for text, step in steps.items() if not _holds(text, step)]
    say(
        f"release: {', '.join(failed)} failed" if failed else "all of it holds: twine upload dist/*"
    )
    return 1 if failed else 0


def _holds(text: str, step: Callable[[], object]) -> bool:
    start = time.perf_counter()
    try:
        step()
    except CommandError as error:
        say(f"FAILED: {text}\n{error}")
        return False
    say(f"ok: {text} ({time.perf_counter() - start:.1f} s)")
    return True


def quick_start() -> str:
    """The first Python block of the README.

    Raises:
        CommandError: it has none.
    """
    found = re.search(r"(?ms)^```python\n(.*?)^```$", (ROOT / "README.md").read_text())
    if found is None:
        raise fail("README.md has no block of Python", "write an example")
    return found[1]


def _agree() -> None:
    problems = versions.problems()
    if problems:
        raise fail("; ".join(problems), "./x check")


def _wheels(targets: list[str]) -> None:
    if wheels.wheels(targets) or not list(wheels.DIST.glob("phlox_kernels-*.whl")):
        raise fail("the wheels were not built", "./x wheels")


def _install(venv: Path, scratch: Path) -> None:
    """Install with no index: what others made comes out of a folder too."""
    _fetch_others()
    run(script("python"), "-m", "venv", venv, cwd=scratch)
    folders = [word for folder in (wheels.DIST, OTHERS) for word in ("--find-links", folder)]
    pip = (script("python", venv), "-m", "pip", "--disable-pip-version-check", "install", "--quiet")
    run(*pip, "--no-index", *folders, "phlox[all]", "phlox-wgpu[native]", cwd=scratch, venv=venv)
    print(read(script("python", venv), "-m", "pip", "list", cwd=scratch, venv=venv), flush=True)


def _fetch_others() -> None:
    """Fetch the wheels that ours need, of the versions that constraints/dev.txt pins."""
    found = versions.released()
    key = digest([_LOCKED, *(project.folder / "pyproject.toml" for project in found)])
    if fresh("others", key) and OTHERS.is_dir():
        return
    shutil.rmtree(OTHERS, ignore_errors=True)
    ours = {project.name for project in found}
    wanted = sorted({name for project in found for name in project.requires} - ours)
    with tempfile.NamedTemporaryFile("w", suffix=".txt") as file:
        file.write("\n".join(re.findall(r"(?m)^[^\s#]+==[^\\\n]*", _LOCKED.read_text())))
        file.flush()
        pip = (script("python", setup.own("wheels")), "-m", "pip", "download", "--quiet")
        run(*pip, "--only-binary=:all:", "--dest", OTHERS, "--constraint", file.name, *wanted)
    stamp("others", key)


def _program(python: Path, venv: Path, cwd: Path, *words: str | Path) -> None:
    if call(python, *words, cwd=cwd, venv=venv):
        raise fail("a program failed", f"python {' '.join(map(str, words[:2]))}")
