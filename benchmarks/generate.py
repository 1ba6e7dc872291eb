"""Language models from their files: reading a text and going on, beside llama.cpp by --vs llamacpp.

The files hold a random decoder in the shape of SmolLM2-135M. Both sides are processes with as
many threads, which take turns; speeds are medians of the turns. Perplexities are those of a small
decoder after some steps with Shakespeare, on text that it has not seen. The group
``generate_large`` has a decoder in the shape of Llama with a billion parameters.
"""

from __future__ import annotations

import json
import os
import select
import subprocess
import sys
import tempfile
from collections.abc import Iterable, Iterator
from contextlib import contextmanager
from functools import partial
from pathlib import Path
from statistics import median
from time import perf_counter
from typing import Any

import phlox as px
from benchmarks import generate_text, machine
from phlox.nn import models

VERSUS = "llamacpp"
_OURS, _FURTHER = ("Q8_0", "Q4_0"), ("Q4_K_M", "F16")
_TEXT, _COUNT, _TURNS, _COLD = 512, 64, 5, 3
_CROWD = 4  # processes for each core
_LIMIT = 60.0  # seconds for them: pools of threads that spin wait for each other much longer
_WORDS = 49152
_TOKENS = 32000  # that all files have
_THEIRS = Path(__file__).with_name("generate_llamacpp.py")
# Commands that answer a line about the file that is put behind them, by side.
Sides = dict[str, list[str]]


def report(*, with_llamacpp: bool) -> list[dict[str, Any]]:
    """Measure and print the table."""
    rows = []
    with started_sides(with_llamacpp=with_llamacpp) as (folder, sides):
        for name, path in _files(folder, sides.get("llamacpp")):
            for row in rows_of(name, path, sides, crowd=name == "Q8_0"):
                rows.append(told(row))
        for name, path in generate_text.files(folder):
            cells = {s: _perplexity([*command, str(path)]) for s, command in sides.items()}
            rows.append(told(_row(name, "perplexity on Shakespeare", **cells)))
    return rows


@contextmanager
def started_sides(*, with_llamacpp: bool) -> Iterator[tuple[Path, Sides]]:
    """A folder for files, and what starts a side for one."""
    threads = str(machine.threads())
    sides: Sides = {"phlox": [sys.executable, "-m", "benchmarks.generate_phlox"]}
    if with_llamacpp:
        from tools.setup import own  # noqa: PLC0415 - one option alone needs it
        from tools.shell import script  # noqa: PLC0415 - the same

        sides["llamacpp"] = [str(script("python", own("llamacpp"))), str(_THEIRS), threads]
    with tempfile.TemporaryDirectory(prefix="phlox-bench-") as folder:
        os.environ["PYTHONPYCACHEPREFIX"] = folder  # where this program writes none, the sides do
        os.environ.pop("PYTHONDONTWRITEBYTECODE", None)
        yield Path(folder), sides


def header(words: int) -> dict[str, Any]:
    """What the other side needs in a header to read a file without a tokenizer."""
    return {"tokenizer.ggml.model": "no_vocab", "llama.vocab_size": words}


def _files(folder: Path, quantize: list[str] | None) -> Iterator[tuple[str, Path]]:
    """A file of each form; the other side makes those that we read and do not write."""
    px.seed(0)
    config = models.LlamaConfig(
        _WORDS, 2048, 576, 30, n_heads=9, n_heads_kv=3, d_ff=1536, tied=True
    )
    model: Any = config.init(px.Cpu())
    for form in _OURS:
        path = models.save_gguf(model, folder / form, blocks=form, header=header(_WORDS))
        yield form, path
        path.unlink()
    if quantize:
        whole = models.save_gguf(model, folder / "whole", header=header(_WORDS))
        for form in _FURTHER:
            path = folder / f"{form}.gguf"
            subprocess.run(
                [*quantize, str(whole), form, str(path)], check=True, capture_output=True
            )
            yield form, path
            path.unlink()


def rows_of(
    name: str, path: Path, sides: Sides, *, crowd: bool = False
) -> Iterator[dict[str, Any]]:
    """Measure what each side does with a file."""
    sides = {side: [*command, str(path)] for side, command in sides.items()}
    found, most = _turns(sides)
    row = partial(_row, name)
    for what, key, count in (("read", "read", _TEXT), ("made", "made", _COUNT - 1)):
        rate = {side: count / median(each[key] for each in turns) for side, turns in found.items()}
        yield row(f"tokens {what} in a second", **rate)
    size = path.stat().st_size
    yield row("MB at most, above the file's", **{s: (m - size) / 1e6 for s, m in most.items()})
    cold = {side: [_cold(command) for _ in range(_COLD)] for side, command in sides.items()}
    yield row("ms from start to first token", **{s: median(m) * 1e3 for s, m in cold.items()})
    if crowd:
        shares = {side: _share(command) for side, command in sides.items()}
        what = f"{_CROWD} processes a core, share of one's speed (at most, after {_LIMIT:.0f} s)"
        yield row(what, **shares)
    if len(sides) > 1:
        ours, theirs = (each[0]["tokens"] for each in found.values())
        alike = next((i for i in range(_COUNT) if ours[i] != theirs[i]), _COUNT)
        yield row(f"of {_COUNT} tokens, so many are the same", phlox=alike)


def _row(file: str, what: str, **cells: float) -> dict[str, Any]:
    return {"group": "generate", "name": f"{file}: {what}", **cells}


def told(row: dict[str, Any]) -> dict[str, Any]:
    """Print a row, and return it."""
    print(_line(row), flush=True)
    return row


def _perplexity(command: list[str]) -> float:
    with _started([command]) as (only,):
        _read(only)
        _ask(only, {"rows": generate_text.rows()})
        return float(_read(only)["perplexity"])


def _turns(sides: Sides) -> tuple[dict[str, list[dict[str, Any]]], dict[str, int]]:
    """The answers of each side, which take turns, and the most bytes of memory that it had.

    The first answers do not count.
    """
    found: dict[str, list[dict[str, Any]]] = {side: [] for side in sides}
    with _started(sides.values()) as running:
        for each in running:
            _read(each)  # that it is there
        for turn in range(_TURNS + 1):
            for side, each in zip(sides, running, strict=True):
                _ask(each, _going_on(_TEXT, _COUNT))
                answer = _read(each)
                if turn:
                    found[side].append(answer)
        return found, {s: _peak(each.pid) for s, each in zip(sides, running, strict=True)}


def _peak(process: int) -> int:
    """The most bytes of memory that a program had since its start; Linux alone counts them so."""
    lines = Path(f"/proc/{process}/status").read_text().splitlines()
    return next(int(line.split()[1]) << 10 for line in lines if line.startswith("VmHWM:"))


def _cold(command: list[str]) -> float:
    """Seconds from the start of a program to its first token."""
    began = perf_counter()
    with _started([command]) as (only,):
        _ask(only, _going_on(16, 1))
        _read(only)
        _read(only)
        return perf_counter() - began


def _share(command: list[str]) -> float:
    """Speed of many processes together over that of one alone."""
    text, count = 16, 24

    def rate(several: int) -> float:
        with _started([command] * several) as running:
            for each in running:
                _read(each)
            began = perf_counter()
            for each in running:
                _ask(each, _going_on(text, count))
            for each in running:
                left = began + _LIMIT - perf_counter()
                assert each.stdout is not None
                if not select.select([each.stdout], [], [], max(left, 0.0))[0]:
                    break
                _read(each)
            return several * count / (perf_counter() - began)

    alone = max(rate(1) for _ in range(2))  # the first has pages of the file to read
    return rate(_CROWD * machine.threads()) / alone


def _going_on(text: int, count: int) -> dict[str, Any]:
    return {"text": [7 * i % _TOKENS for i in range(text)], "count": count}


def _ask(side: subprocess.Popen[str], asked: dict[str, Any]) -> None:
    assert side.stdin is not None
    side.stdin.write(json.dumps(asked) + "\n")
    side.stdin.flush()


def _read(side: subprocess.Popen[str]) -> dict[str, Any]:
    assert side.stdout is not None
    line = side.stdout.readline()
    if not line:
        raise SystemExit(f"a side of the benchmark ended: {side.args!r}")
    found: dict[str, Any] = json.loads(line)
    return found


@contextmanager
def _started(commands: Iterable[list[str]]) -> Iterator[list[subprocess.Popen[str]]]:
    pipe = subprocess.PIPE
    running = [subprocess.Popen(each, stdin=pipe, stdout=pipe, text=True) for each in commands]
    try:
        yield running
    finally:
        for each in running:
            each.kill()
            each.communicate()


def _line(row: dict[str, Any]) -> str:
    ours, theirs = row["phlox"], row.get("llamacpp")
    precise = 3 if "perplexity" in row["name"] else 2
    cells = f"{ours:>12.{precise}f}" if type(ours) is float else f"{ours!s:>12}"
    if theirs is not None:
        cells += f" {theirs:>12.{precise}f} {ours / theirs:>8.2f}"
    return f"{row['name']:<48} {cells}"
