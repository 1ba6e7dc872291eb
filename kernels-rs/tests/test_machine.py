"""What the package says of the processor is what the system says, and what kernels really use."""

from __future__ import annotations

import os
import subprocess
import sys

import pytest

from phlox_kernels import Cpu, _machine


def test_what_is_in_use_is_there() -> None:
    used, there = _machine.used_instruction_sets(), _machine.instruction_sets()
    assert used
    if there:  # the system says
        assert {"avx512": "avx512f"}.get(used[0], used[0]) in {*there, "baseline"}


@pytest.mark.parametrize("level", ["avx2", "baseline"])
def test_the_environment_lowers_what_is_in_use(level: str) -> None:
    code = "from phlox_kernels import _machine; print(*_machine.used_instruction_sets())"
    run = subprocess.run(
        [sys.executable, "-c", code],
        env={**os.environ, "PHLOX_SIMD": level},
        capture_output=True,
        text=True,
        check=True,
    )
    assert run.stdout.split() in ([level], ["baseline"])


def test_a_description_holds_plain_facts() -> None:
    (facts,) = Cpu.describe()
    for word in ("model", "processors", "caches", "instruction sets", "instruction sets in use"):
        assert facts[word], word
    assert facts["threads"] >= 1


def test_peaks_are_measured() -> None:
    measured = Cpu.measured()
    assert "GFLOP/s on one thread" in measured["float32 peak"]
