"""The whole table of a GPU: ops and training steps with each engine; beside PyTorch its page too.

An engine is chosen when a process starts, so each has one of its own.
"""

from __future__ import annotations

import datetime
import importlib.util
import json
import os
import subprocess
import sys
from importlib.metadata import version
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any

from benchmarks import page

GROUPS = ("shaders", "gpu_steps", "gpu_compile")
ENGINES = ("wgpu-py", "native")


def report(*, with_torch: bool) -> list[dict[str, Any]]:
    """Measure with every engine that is installed; write the page of the card beside PyTorch."""
    found = [e for e in ENGINES if e != "native" or importlib.util.find_spec("phlox_wgpu_engine")]
    if found != list(ENGINES):
        print("the native engine is not installed: pip install phlox-wgpu-engine")
    rows = [row for engine in found for row in _measured(engine, with_torch=with_torch)]
    if with_torch and rows:
        card = _card()
        page.put(card, section(rows, found, f"{card}, PyTorch {version('torch')}, TF32 off"))
    return rows


def _measured(engine: str, *, with_torch: bool) -> list[dict[str, Any]]:
    print(f"\nwith the engine {engine}:", flush=True)
    with TemporaryDirectory() as folder:
        file = Path(folder) / "rows.json"
        peer = ["--vs", "torch"] if with_torch else []
        command = [sys.executable, "-m", "benchmarks", *GROUPS, *peer, "--json", str(file)]
        subprocess.run(command, check=True, env=os.environ | {"PHLOX_WGPU_ENGINE": engine})
        rows: list[dict[str, Any]] = json.loads(file.read_text("utf-8"))["rows"]
    return [row | {"engine": engine} for row in rows]


def _card() -> str:
    from phlox_wgpu import Wgpu  # noqa: PLC0415 - opens the driver

    return str(Wgpu.describe()[0]["name"])


def section(rows: list[dict[str, Any]], engines: list[str], measured: str) -> list[str]:
    """Lines of the table: a row for each case, with the time of each engine."""
    today = datetime.datetime.now(tz=datetime.UTC).date()
    out = [f"{measured}, {today}: `./x bench gpu --vs torch`."]
    for group in GROUPS:
        cases: dict[str, dict[str, dict[str, Any]]] = {}
        for row in rows:
            if row["group"] == group:
                cases.setdefault(row["name"], {})[row["engine"]] = row
        if not cases:
            continue
        out += [
            "",
            f"| {group} | {' | '.join(engines)} | PyTorch | times PyTorch | rate |",
            f"| {' | '.join(['---'] * (len(engines) + 4))} |",
        ]
        for name, by_engine in cases.items():
            best = page.cells(min(by_engine.values(), key=lambda row: row["phlox_seconds"]))
            times = [
                page.duration(by_engine[e]["phlox_seconds"]) if e in by_engine else ""
                for e in engines
            ]
            out.append(f"| {' | '.join((name, *times, best.other, best.times, best.rate))} |")
    return out
