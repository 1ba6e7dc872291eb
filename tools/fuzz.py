"""Fuzz the parsers of files: python -m tools.fuzz [SECONDS [PARSER…]].

Each parser is fuzzed for that long in a process of its own, by default ten minutes; as many at once
as there are processors. What they find and print lies in target/fuzz.
"""

from __future__ import annotations

import os
import re
import subprocess
import sys
import time
from collections.abc import Sequence
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

from tools.shell import ROOT, CommandError, call, environment, fail, say, script

PARSERS = {
    **dict.fromkeys(("graph", "nodes"), "onnx"),
    **dict.fromkeys(
        ("compact", "gguf", "gzip", "index", "json", "named", "npz", "pytorch", "safetensors"),
        "record",
    ),
}
"""The package of each parser: its ``attacks/targets.py`` says how it is fuzzed."""
_SCRIPT = ROOT / "tools" / "fuzz_one.py"
_FOLDER = ROOT / "target" / "fuzz"
# An input may take this long and a process this much, or that is a finding.
_OPTIONS = ("-timeout=20", "-rss_limit_mb=768", "-max_len=8192", "-print_final_stats=1")
_INSTALLED = "import importlib.util, sys; sys.exit(importlib.util.find_spec('atheris') is None)"
_STATS = re.compile(r"^stat::(\w+): +(\d+)$", re.MULTILINE)


def fuzz(seconds: str = "600", *names: str) -> int:
    """Fuzz the parsers; returns the first exit status that is not 0.

    Raises:
        CommandError: atheris is not installed; no such parser.
    """
    if call(script("python"), "-c", _INSTALLED):
        raise fail(
            "fuzzing needs atheris, which runs on Linux and on Python before 3.14",
            ".venv/bin/python -m pip install atheris",
        )
    unknown = sorted(set(names) - set(PARSERS))
    if unknown:
        raise fail(f"no such parser: {', '.join(unknown)}", f"one of {', '.join(PARSERS)}")
    chosen = names or tuple(PARSERS)
    say(f"fuzzing {', '.join(chosen)}, {seconds} s each")
    with ThreadPoolExecutor(os.cpu_count()) as pool:
        found = list(pool.map(lambda name: _one(name, seconds), chosen))
    return next((status for status in found if status), 0)


def _one(name: str, seconds: str) -> int:
    place = _FOLDER / name
    place.mkdir(parents=True, exist_ok=True)
    log = place.with_suffix(".log")
    options = (*_OPTIONS, f"-max_total_time={seconds}", f"-artifact_prefix={_FOLDER}/{name}-")
    read = [PARSERS[name], name]
    command = [str(script("python")), str(_SCRIPT), *read, str(place), *options]
    start = time.perf_counter()
    with log.open("wb") as file:
        done = subprocess.run(
            command, stdout=file, stderr=subprocess.STDOUT, env=environment(), check=False
        )
    text = log.read_text(errors="replace")
    if done.returncode:
        say(f"{name}: a finding, exit status {done.returncode}\n{text[-3000:]}")
        written = re.search(r"Test unit written to (\S+)", text)
        unit = Path(written[1]).relative_to(ROOT) if written else "FILE"
        again = f"{' '.join(read)} {unit}"
        say(f"again: .venv/bin/python {_SCRIPT.relative_to(ROOT)} {again}")
        return done.returncode
    stats = dict(_STATS.findall(text))
    count = int(stats.get("number_of_executed_units", 0))
    peak = stats.get("peak_rss_mb", "?")
    took = time.perf_counter() - start
    say(f"{name}: {count:,} inputs in {took:.0f} s without a finding, at most {peak} MB")
    return 0


def main(arguments: Sequence[str] | None = None) -> int:
    """Run it; a machine that cannot is told so, with status 1."""
    try:
        return fuzz(*(sys.argv[1:] if arguments is None else arguments))
    except CommandError as error:
        print(error, file=sys.stderr)
        return 1


if __name__ == "__main__":
    sys.exit(main())
