"""What every command of `./x` needs: paths, running programs, saying things, stamps."""

import hashlib
import os
import re
import shutil
import subprocess
import sys
import tempfile
from collections.abc import Callable, Iterable, Mapping
from concurrent.futures import ThreadPoolExecutor
from contextvars import ContextVar
from pathlib import Path
from typing import IO, TypeVar

ROOT = Path(__file__).resolve().parent.parent
VENV = ROOT / ".venv"
PRIVATE = ROOT / ".x"
STAMPS = VENV / ".stamps"
_SCRIPTS = "Scripts" if os.name == "nt" else "bin"
# Where a job of `together` and its programs print; None is the terminal.
_output: ContextVar[IO[str] | None] = ContextVar("_output", default=None)
_Result = TypeVar("_Result")


class CommandError(Exception):
    """A command cannot go on; its text follows the house form and ends with a hint."""


def fail(what: str, hint: str) -> CommandError:
    """Build the error of a step: what failed, and what to type next."""
    return CommandError(f"[x] {what}\nhint: {hint}")


def say(text: str) -> None:
    """Print one line of progress, in order with what programs print."""
    print(f"x: {text}", file=_output.get(), flush=True)


def together(chains: Iterable[Iterable[Callable[[], _Result]]]) -> list[_Result]:
    """Run the jobs of each chain one after another, and two chains at a time.

    What a job prints comes in one piece when it has ended.
    """

    def whole(job: Callable[[], _Result]) -> _Result:
        with tempfile.TemporaryFile("w+", encoding="utf-8", errors="replace") as output:
            before = _output.set(output)
            try:
                return job()
            finally:
                _output.reset(before)
                output.seek(0)
                print(output.read(), end="", flush=True)

    with ThreadPoolExecutor(2) as pool:
        results = pool.map(lambda chain: [whole(job) for job in chain], chains)
        return [result for of_chain in results for result in of_chain]


def script(name: str, venv: Path = VENV) -> Path:
    """Path of an installed program, or of `python`, inside a virtual environment."""
    return venv / _SCRIPTS / (f"{name}.exe" if os.name == "nt" else name)


def environment(venv: Path = VENV, extra: Mapping[str, str] | None = None) -> dict[str, str]:
    """Environment of every program: our own tools first, nothing of the caller's Python."""
    env = {k: v for k, v in os.environ.items() if k not in {"PYTHONHOME", "PYTHONPATH"}}
    cargo = Path.home() / ".cargo" / "bin"
    front = [str(venv / _SCRIPTS), str(PRIVATE / "uv" / "bin")]
    back = [str(cargo)] if cargo.is_dir() else []
    env["PATH"] = os.pathsep.join([*front, env.get("PATH", os.defpath), *back])
    env["VIRTUAL_ENV"] = str(venv)
    env.setdefault("UV_HTTP_TIMEOUT", "180")
    env["UV_NO_PROGRESS"] = "1"
    return env | dict(extra or {})


def which(name: str) -> str | None:
    """Find a program in the environment that `run` gives."""
    return shutil.which(name, path=environment()["PATH"])


def call(
    *command: str | Path,
    cwd: Path = ROOT,
    venv: Path = VENV,
    extra: Mapping[str, str] | None = None,
) -> int:
    """Run a program, let it print, and return its exit status."""
    words = [str(word) for word in command]
    env, output = environment(venv, extra), _output.get()
    sys.stdout.flush()
    if output is not None:
        output.flush()
    try:
        return subprocess.run(
            words,
            cwd=cwd,
            env=env,
            check=False,
            stdout=output,
            stderr=None if output is None else subprocess.STDOUT,
        ).returncode
    except FileNotFoundError:
        raise fail(f"a program is missing: {words[0]}", "./x setup") from None


def run(
    *command: str | Path,
    cwd: Path = ROOT,
    venv: Path = VENV,
    extra: Mapping[str, str] | None = None,
) -> None:
    """Run a program that must succeed.

    Raises:
        CommandError: it ended with another exit status than 0.
    """
    status = call(*command, cwd=cwd, venv=venv, extra=extra)
    if status:
        line = " ".join(str(word) for word in command)
        raise fail(f"a program failed: exit status {status}", line)


def read(*command: str | Path, cwd: Path = ROOT, venv: Path = VENV) -> str:
    """Run a program that must succeed and return what it printed.

    Raises:
        CommandError: it ended with another exit status than 0; holds what it printed.
    """
    words = [str(word) for word in command]
    try:
        done = subprocess.run(
            words, cwd=cwd, env=environment(venv), check=False, capture_output=True, text=True
        )
    except OSError as error:
        raise fail(f"a program does not start: {error}", "./x setup") from None
    if done.returncode:
        said = (done.stderr or done.stdout).strip()
        raise fail(f"a program failed: exit status {done.returncode}: {said}", " ".join(words))
    return done.stdout.strip()


def digest(files: Iterable[Path], *words: str) -> str:
    """Hash of the names and contents of files and of some words, for a stamp."""
    total = hashlib.sha256("\0".join(words).encode())
    for file in sorted(files):
        total.update(str(file.relative_to(ROOT)).encode() + b"\0")
        total.update(hashlib.sha256(file.read_bytes()).digest())
    return total.hexdigest()


def fresh(name: str, value: str) -> bool:
    """Tell whether a step was last done with this very input."""
    stamp = STAMPS / name
    return stamp.is_file() and stamp.read_text() == value


def stamp(name: str, value: str) -> None:
    """Remember the input that a step was done with."""
    STAMPS.mkdir(parents=True, exist_ok=True)
    (STAMPS / name).write_text(value)


def executable(file: Path, line: str) -> Path:
    """Write a program of one line, which hands on what it is told."""
    file.write_text(f'#!/bin/sh\n{line} "$@"\n')
    file.chmod(0o755)
    return file


def pinned(file: Path, name: str) -> str:
    """Version of a distribution in a hashed constraints file."""
    found = re.search(rf"^{re.escape(name)}==(\S+)", file.read_text(), re.MULTILINE)
    if found is None:
        raise fail(f"{file.relative_to(ROOT)} does not pin {name}", "./x lock")
    return found.group(1)
