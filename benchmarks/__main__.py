"""The command: python -m benchmarks [GROUP…] [--vs torch] [--json FILE]."""

from __future__ import annotations

import argparse
import importlib
import json
import sys
from pathlib import Path
from typing import Any

from benchmarks import machine
from benchmarks.case import Case
from benchmarks.timing import interleaved

GROUPS = ("eager", "matmul", "conv", "elementwise", "train", "shaders")


def main() -> int:
    """Run the groups and print the table."""
    parser = argparse.ArgumentParser(prog="./x bench", description=__doc__)
    parser.add_argument("groups", nargs="*", metavar="GROUP", help=", ".join(GROUPS))
    parser.add_argument("--vs", choices=["torch"], help="measure PyTorch side by side")
    parser.add_argument("--json", type=Path, help="also write the numbers here")
    options = parser.parse_args()
    unknown = [g for g in options.groups if g not in GROUPS]
    if unknown:
        parser.error(f"no such group: {', '.join(unknown)}; choose from {', '.join(GROUPS)}")
    facts = _facts(options.vs)
    print("\n".join(f"{key}: {value}" for key, value in facts.items()))
    rows: list[dict[str, Any]] = []
    for group in options.groups or GROUPS:
        module = importlib.import_module(f"benchmarks.{group}")
        cases: list[Case] = module.cases(with_torch=options.vs == "torch")
        print(f"\n{group}: {(module.__doc__ or '').splitlines()[0]}")
        print(f"{'':<44} {'phlox':>12} {'PyTorch':>12} {'times':>7} {'rate':>12} {'of peak':>8}")
        for case in cases:
            # The measured peak is the CPU's.
            row = _measure(case, 0.0 if group == "shaders" else facts["peak_flops"])
            rows.append({"group": group, **row})
            print(_line(row), flush=True)
    if options.json:
        options.json.write_text(json.dumps({"machine": facts, "rows": rows}, indent=2) + "\n")
    return 0


def _facts(vs: str | None) -> dict[str, Any]:
    count = machine.threads()
    facts: dict[str, Any] = {
        "cpu": machine.cpu_model(),
        "threads": count,
        "load": f"{machine.load():.2f}",
        "peak_flops_one_thread": machine.peak(1),
        "peak_flops": machine.peak(count),
    }
    if vs == "torch":
        import torch  # noqa: PLC0415 # pyright: ignore[reportMissingImports] - for comparisons

        torch.set_num_threads(count)
        facts["torch"] = torch.__version__
    return facts


def _measure(case: Case, peak: float) -> dict[str, Any]:
    runs = [case.phlox] if case.torch is None else [case.phlox, case.torch]
    seconds = interleaved(runs)
    row: dict[str, Any] = {"name": case.name, "phlox_seconds": seconds[0]}
    if case.torch is not None:
        row["torch_seconds"] = seconds[1]
        row["times"] = seconds[1] / seconds[0]
    if case.flops:
        row["flops_per_second"] = case.flops / seconds[0]
        if peak:
            row["share_of_peak"] = row["flops_per_second"] / peak
    if case.bytes:
        row["bytes_per_second"] = case.bytes / seconds[0]
    return row


def _line(row: dict[str, Any]) -> str:
    other = _time(row["torch_seconds"]) if "torch_seconds" in row else ""
    times = f"{row['times']:.2f}" if "times" in row else ""
    rate = share = ""
    if "flops_per_second" in row:
        rate = f"{row['flops_per_second'] / 1e9:.1f} GF/s"
        share = f"{row['share_of_peak']:.0%}" if "share_of_peak" in row else ""
    elif "bytes_per_second" in row:
        rate = f"{row['bytes_per_second'] / 1e9:.1f} GB/s"
    mine = _time(row["phlox_seconds"])
    return f"{row['name']:<44} {mine:>12} {other:>12} {times:>7} {rate:>12} {share:>8}"


def _time(seconds: float) -> str:
    for unit, scale in (("s", 1.0), ("ms", 1e-3), ("us", 1e-6)):
        if seconds >= scale:
            return f"{seconds / scale:.2f} {unit}"
    return f"{seconds * 1e9:.0f} ns"


if __name__ == "__main__":
    sys.exit(main())
