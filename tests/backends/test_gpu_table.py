"""The table of a GPU: a row for each case, with the time of each engine."""

from __future__ import annotations

from pathlib import Path

import pytest

from benchmarks import page
from benchmarks.gpu import section
from benchmarks.shaders import Row, rows
from phlox import Cpu, asarray, ones


def test_a_row_has_the_times_of_both_engines(tmp_path: Path) -> None:
    base = {"group": "shaders", "other_seconds": 2e-3, "times_wanted": 1.0}
    measured = [
        base | {"name": "sum", "engine": "wgpu-py", "phlox_seconds": 4e-3, "times": 0.5},
        base | {"name": "sum", "engine": "native", "phlox_seconds": 1e-3, "times": 2.0},
        base | {"name": "sort", "engine": "native", "phlox_seconds": 8e-3, "times": 0.25},
    ]
    lines = section(measured, ["wgpu-py", "native"], "A card, PyTorch 9")
    assert "| sum | 4.00 ms | 1.00 ms | 2.00 ms | 2.00 (≥ 1.00) |  |" in lines
    assert "| sort |  | 8.00 ms | 2.00 ms | 0.25 ! (≥ 1.00) |  |" in lines
    for _ in range(2):  # the second time in place of the first
        page.put("A card", lines, tmp_path)
    assert (tmp_path / "a-card.md").read_text("utf-8").count("| sum |") == 1


@pytest.mark.parametrize("row", rows(software=True), ids=lambda row: row.name)
def test_every_op_of_the_table_runs(row: Row) -> None:
    given = [ones(shape, device=Cpu()) for shape in row.arrays]
    given += [asarray([0, 1], dtype="int32", device=Cpu())] * row.picks
    assert row.ours(*given) is not None
