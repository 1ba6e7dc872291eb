"""The benchmark of several GPUs runs where there is none: two processes share software Vulkan."""

from __future__ import annotations

import sys

import pytest

from phlox import Wgpu
from tests.distributed.test_mpi import MPIEXEC

pytestmark = [
    pytest.mark.long,
    pytest.mark.timeout(900),
    pytest.mark.skipif(sys.platform == "win32" or MPIEXEC is None, reason="no mpiexec is here"),
]


def test_two_processes_take_the_steps_of_one(capsys: pytest.CaptureFixture[str]) -> None:
    from benchmarks import scaling

    if not Wgpu.found()[0].is_software:
        pytest.skip("./x bench scaling measures the GPUs of this machine")
    rows = scaling.report(with_torch=False)
    bits = {
        count: [row["bits"] for row in rows if f", {count} GPUs" in row["name"]] for count in (1, 2)
    }
    assert len(bits[1]) == 4
    assert bits[1] == bits[2]
    assert len(set(bits[1])) == 4
    assert capsys.readouterr().out.count("not run") == 2 * 4  # four and eight
