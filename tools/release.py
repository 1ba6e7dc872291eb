"""`./x release --dry-run`: all that must hold before a release, tried with the wheels themselves.

Builds the wheels for this machine, installs them into an empty environment from folders alone, and
runs there what a newcomer runs: the README's example, `phlox doctor`, checks of the conformance
suite, and the demo. Example and checks run on each other Python of the table too that is in PATH.
Nothing is uploaded; that is by hand, with the line that the end prints: it names what was built
here and the wheels of other machines that are no older than their sources.
"""

from __future__ import annotations

import platform
import re
import shutil
import tempfile
import time
from collections.abc import Callable, Iterable, Iterator
from functools import partial
from pathlib import Path

from tools import audit, setup, targets, versions, wheels
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
PYTHONS = ("3.11", "3.12", "3.13", "3.14")
CHECKS = """
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
        built: list[Path] = []
        steps: dict[str, Callable[[], object]] = {
            "versions and changelogs agree": _agree,
            "wheels are built and audited": partial(_wheels, built),
            "wheels install from folders": partial(_install, venv, scratch),
            "the README's example trains": partial(program, scratch, "-c", quick_start()),
            "phlox doctor": partial(program, scratch, "-m", "phlox", "doctor"),
            "conformance, 1,000 checks": partial(program, scratch, "-c", CHECKS),
            "the demo": partial(program, ROOT, *demo),
        }
        for version, found in _pythons().items():
            line = f"Python {version}: install, example, conformance"
            steps[line] = partial(_on_another, found, scratch / version)
        failed = [text for text, step in steps.items() if not _holds(text, step)]
    if failed:
        say(f"release: {', '.join(failed)} failed")
        return 1
    names = [str(file.relative_to(ROOT)) for file in _taken((*built, *_elsewhere()))]
    say("all of it holds: twine upload " + " ".join(names))
    return 0


def _elsewhere() -> list[Path]:
    """Audited wheels of the other targets; of those that are missing or old it is said."""
    found: list[Path] = []
    for project in (each for each in versions.released() if each.native):
        changed = versions.changed(project)
        for name, target in targets.TARGETS.items():
            if name == wheels.here():
                continue
            pattern = f"{project.module}-{project.version}-*{target.tag}*.whl"
            there = list(wheels.DIST.glob(pattern))
            new = [file for file in there if file.stat().st_mtime >= changed]
            found += new
            if not new:
                why = "older than its sources" if there else "not built"
                why = targets.left_out(project.name, name) or f"{why}: ./x wheels {name}"
                say(f"absent: {project.name} for {name}: {why}")
    if found:
        say(f"built before, audited, not run here: {', '.join(file.name for file in found)}")
        audit.audit(found, setup.own("wheels"))
    return found


def _taken(files: Iterable[Path]) -> Iterator[Path]:
    """The wheels that PyPI takes; of others it is said."""
    apart = {target.tag: target.apart for target in targets.TARGETS.values() if target.apart}
    for file in files:
        why = next((why for tag, why in apart.items() if tag in file.name), "")
        if why:
            say(f"not to upload: {file.name}: {why}")
        else:
            yield file


def _pythons() -> dict[str, Path]:
    """Other Pythons of the table, by version; of those that are not in PATH it is said."""
    own = ".".join(platform.python_version_tuple()[:2])
    found: dict[str, Path] = {}
    for version in (each for each in PYTHONS if each != own):
        program = shutil.which(f"python{version}")
        try:
            # Managers of versions put programs into PATH that only say what else to install.
            read(program or f"python{version}", "-c", "")
        except CommandError:
            say(f"not run: Python {version}: no python{version} in PATH")
        else:
            found[version] = Path(program or "")
    return found


def _on_another(program: Path, folder: Path) -> None:
    """Install into an environment of another Python, and run the example and the checks there."""
    venv, others = folder / "venv", folder / "others"
    run(program, "-m", "venv", venv, cwd=ROOT)
    python = script("python", venv)
    _fetch(python, others, needs("phlox"))
    _pip(venv, folder, others, "phlox")
    for code in (quick_start(), CHECKS):
        _program(python, venv, folder, "-c", code)


def needs(name: str) -> set[str]:
    """What others made of all that a package of ours asks for."""
    ours = {project.name: project for project in versions.released()}
    if name not in ours:
        return {name}
    return {need for each in ours[name].requires for need in needs(each)}


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


def _wheels(built: list[Path]) -> None:
    here = wheels.here()
    found, failed = wheels.build([here])
    tag = targets.TARGETS[here].tag
    if failed or not any(file.match(f"phlox_kernels-*{tag}*.whl") for file in found):
        raise fail("the wheels were not built", "./x wheels")
    built += found


def _install(venv: Path, scratch: Path) -> None:
    """Install with no index: what others made comes out of a folder too."""
    found = versions.released()
    key = digest([setup.LOCKED, *(project.folder / "pyproject.toml" for project in found)])
    if not fresh("others", key) or not OTHERS.is_dir():
        shutil.rmtree(OTHERS, ignore_errors=True)
        wanted = {name for project in found for name in project.requires}
        _fetch(
            script("python", setup.own("wheels")),
            OTHERS,
            wanted - {project.name for project in found},
        )
        stamp("others", key)
    run(script("python"), "-m", "venv", venv, cwd=scratch)
    _pip(venv, scratch, OTHERS, "phlox[all]", "phlox-wgpu[native]")


def _pip(venv: Path, cwd: Path, others: Path, *wanted: str) -> None:
    """Install from folders alone, and print what is there."""
    folders = [word for folder in (wheels.DIST, others) for word in ("--find-links", folder)]
    pip = (script("python", venv), "-m", "pip", "--disable-pip-version-check")
    run(*pip, "install", "--quiet", "--no-index", *folders, *wanted, cwd=cwd, venv=venv)
    print(read(*pip, "list", cwd=cwd, venv=venv), flush=True)


def _fetch(python: Path, folder: Path, wanted: set[str]) -> None:
    """Fetch wheels for a Python, of the versions that constraints/dev.txt pins."""
    with tempfile.NamedTemporaryFile("w", suffix=".txt") as file:
        file.write("\n".join(re.findall(r"(?m)^[^\s#]+==[^\\\n]*", setup.LOCKED.read_text())))
        file.flush()
        pip = (python, "-m", "pip", "--disable-pip-version-check", "download", "--quiet")
        words = ("--only-binary=:all:", "--dest", folder, "--constraint", file.name)
        run(*pip, *words, *sorted(wanted))


def _program(python: Path, venv: Path, cwd: Path, *words: str | Path) -> None:
    if call(python, *words, cwd=cwd, venv=venv):
        raise fail("a program failed", f"python {' '.join(map(str, words[:2]))}")
