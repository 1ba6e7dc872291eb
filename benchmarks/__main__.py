"""The command: python -m benchmarks [GROUP…] [--vs PEER[,PEER…]] [--busy] [--json FILE].

``cpu`` stands for all groups that run on the CPU, ``gpu`` for those of a GPU, with each engine;
beside PyTorch both also write their table to docs/performance. The group ``onnx`` is compared with
ONNX Runtime, ``record`` with safetensors, the others with PyTorch, ``compile`` with JAX too.
"""

from __future__ import annotations

import argparse
import importlib
import json
import sys
from collections.abc import Iterable
from importlib.metadata import version
from pathlib import Path
from statistics import geometric_mean
from typing import Any

from benchmarks import gpu, machine, page
from benchmarks.case import Case
from benchmarks.timing import CLOCKS, interleaved, least

CPU = (
    "eager",
    "matmul",
    "conv",
    "attention",
    "elementwise",
    "rows",
    "movement",
    "threads",
    "derivatives",
    "train",
    "compile",
    "numerical",
    "families",
    "functions",
    "searches",
    "data",
)
GROUPS = (
    *CPU,
    "checkpoints",
    "generate",
    "generate_large",
    "gpu",
    "gpu_compile",
    "gpu_steps",
    "onnx",
    "processes",
    "record",
    "runs",
    "scaling",
    "shaders",
    "speech",
)
NAMES = {
    "jax": "JAX",
    "llamacpp": "llama.cpp",
    "onnxruntime": "ONNX Runtime",
    "safetensors": "safetensors",
    "torch": "PyTorch",
}
# How samples are taken, in words, by whether the machine is busy.
_TIMED = {False: "median wall time", True: "least processor time"}


def main() -> int:
    """Run the groups and print the table."""
    parser = argparse.ArgumentParser(prog="./x bench", description=__doc__)
    parser.add_argument("groups", nargs="*", metavar="GROUP", help=f"cpu, {', '.join(GROUPS)}")
    parser.add_argument(
        "--vs",
        type=_peers,
        default=(),
        metavar="PEER[,PEER]",
        help=f"measure these side by side: {', '.join(NAMES)}",
    )
    parser.add_argument(
        "--busy",
        action="store_true",
        help="for a busy machine: one thread, processor time, the least of the samples",
    )
    parser.add_argument("--json", type=Path, help="also write the numbers here")
    options = parser.parse_args()
    unknown = [g for g in options.groups if g not in (*GROUPS, "cpu")]
    if unknown:
        parser.error(f"no such group: {', '.join(unknown)}; choose from cpu, {', '.join(GROUPS)}")
    wanted = options.groups or [name for name in GROUPS if name not in gpu.GROUPS]
    groups = [g for name in wanted for g in (CPU if name == "cpu" else (name,))]
    if options.busy:
        machine.use_one_thread()
    facts = _facts(options.vs, busy=options.busy)
    facts["timed"] = _TIMED[options.busy]
    print("\n".join(f"{key}: {value}" for key, value in facts.items()))
    rows = [row for group in groups for row in _run(group, options.vs, facts, busy=options.busy)]
    if options.json:
        options.json.write_text(json.dumps({"machine": facts, "rows": rows}, indent=2) + "\n")
    if "torch" in options.vs and "cpu" in options.groups:
        page.write(facts, [row for row in rows if row["group"] in CPU])
    return 0


def _peers(text: str) -> tuple[str, ...]:
    names = tuple(text.split(","))
    unknown = [name for name in names if name not in NAMES]
    if unknown:
        message = f"no such peer: {', '.join(unknown)}; choose from {', '.join(NAMES)}"
        raise argparse.ArgumentTypeError(message)
    return names


def _run(
    group: str, vs: tuple[str, ...], facts: dict[str, Any], *, busy: bool
) -> list[dict[str, Any]]:
    module = importlib.import_module(f"benchmarks.{group}")
    versus = getattr(module, "VERSUS", "torch")
    if hasattr(module, "report"):  # one that measures more than time
        print(f"\n{group}: {(module.__doc__ or '').splitlines()[0]}")
        own: list[dict[str, Any]] = module.report(**{f"with_{versus}": versus in vs})
        return own
    peers = (versus, *getattr(module, "ALSO", ()))
    cases: Iterable[Case] = module.cases(**{f"with_{name}": name in vs for name in peers})
    print(f"\n{group}: {(module.__doc__ or '').splitlines()[0]}")
    print(f"{'':<44} {'phlox':>12} {NAMES[versus]:>12} {'times':>14} {'rate':>12} {'of peak':>14}")
    rows = []
    for case in cases:
        row = {"group": group, **_measure(case, facts, group, busy=busy)}
        if machine.is_full_width(facts) and case.times_full_width:
            row["times_wanted"] = case.times_full_width
        rows.append(row)
        print("\n".join([_line(row), *_further(row)]), flush=True)
    ratios = [row["times"] for row in rows if "times" in row]
    wanted = getattr(module, "MEAN", 0.0)
    if ratios and wanted:
        mean = geometric_mean(ratios)
        mark = "" if mean >= wanted else " !"
        print(
            f"{'geometric mean':<44} {'':>12} {'':>12} {f'{mean:.2f}{mark} (≥ {wanted:.2f})':>14}"
        )
    return rows


def _facts(vs: tuple[str, ...], *, busy: bool) -> dict[str, Any]:
    count = machine.threads()
    clock = CLOCKS[busy]
    facts: dict[str, Any] = {
        "cpu": machine.cpu_model(),
        "threads": count,
        "load": f"{machine.load():.2f}",
        "peak_flops_one_thread": machine.peaks(1, clock),
        "peak_flops": machine.peaks(count, clock),
    }
    if "torch" in vs:
        import torch  # noqa: PLC0415 # pyright: ignore[reportMissingImports] - for comparisons

        torch.set_num_threads(count)
    return facts | {name: version(name) for name in vs if name != "llamacpp"}


def _measure(case: Case, facts: dict[str, Any], group: str, *, busy: bool) -> dict[str, Any]:
    peaks = facts["peak_flops"] if group in CPU else {}  # the measured ones are the CPU's
    other = [] if case.other is None else [case.other]
    runs = [case.phlox, *other, *case.others.values()]
    alone = busy and case.prepare is None
    seconds = least(runs) if alone else interleaved(runs, case.prepare)
    row: dict[str, Any] = {"name": case.name, "phlox_seconds": seconds[0]}
    if case.others:
        further = seconds[1 + len(other) :]
        row["others_seconds"] = dict(zip(case.others, further, strict=True))
    if case.seconds:
        row["seconds_wanted"] = case.seconds
    if case.other is not None:
        row["other_seconds"] = seconds[1]
        row["times"] = seconds[1] / seconds[0]
        row["times_wanted"] = case.times
    if case.flops:
        row["flops_per_second"] = case.flops / seconds[0]
        if case.peak in peaks:
            row["share_of_peak"] = row["flops_per_second"] / peaks[case.peak]
            row["share_of_peak_wanted"] = case.share
    if case.bytes:
        row["bytes_per_second"] = case.bytes / seconds[0]
    return row


def _further(row: dict[str, Any]) -> list[str]:
    """A line for each further peer: its time, and how many times longer that is."""
    return [
        f"{'':<44} {'':>12} {page.duration(seconds):>12} {seconds / row['phlox_seconds']:>14.2f}"
        f" {name}"
        for name, seconds in row.get("others_seconds", {}).items()
    ]


def _line(row: dict[str, Any]) -> str:
    cells = page.cells(row)
    return (
        f"{row['name']:<44} {cells.phlox:>12} {cells.other:>12} {cells.times:>14} "
        f"{cells.rate:>12} {cells.share:>14}"
    )


if __name__ == "__main__":
    sys.exit(main())
