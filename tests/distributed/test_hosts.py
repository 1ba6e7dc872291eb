"""Ranks on two hosts, which are network namespaces with a slow wire that loses packets."""

from __future__ import annotations

import os
import re
import subprocess
import sys
from pathlib import Path

import pytest

from phlox_tensor.groups import Solo
from tests.distributed.test_mpi import MPIEXEC
from tests.distributed.training import whole
from tools.shell import ROOT

pytestmark = [
    pytest.mark.long,
    pytest.mark.timeout(600),
    pytest.mark.skipif(
        sys.platform != "linux" or os.geteuid() != 0 or not os.access("/dev/net/tun", os.W_OK),
        reason="namespaces and their wire take root and /dev/net/tun",
    ),
    pytest.mark.skipif(MPIEXEC is None, reason="no mpiexec is here: pip install mpich"),
]
WIRE = ROOT / "tests/distributed/wire.py"


@pytest.mark.parametrize(("ranks", "harm"), [(2, []), (4, []), (4, ["SIGKILL", "3", "7"])])
def test_a_training_over_a_bad_wire_ends_in_the_same_bits(
    tmp_path: Path, ranks: int, harm: list[str]
) -> None:
    calm = b"".join(whole(Solo(), tmp_path / "calm"))
    ssh, hosts = tmp_path / "ssh", tmp_path / "hosts"
    ssh.write_text(f'#!/bin/sh\nexec {sys.executable} {WIRE} "$@"\n')
    ssh.chmod(0o755)
    hosts.write_text("".join(f"10.77.0.{k}:{ranks // 2}\n" for k in (1, 2)))
    environment = {
        **os.environ,
        "PYTHONPATH": os.pathsep.join([str(ROOT), os.environ.get("PYTHONPATH", "")]),
        "HYDRA_LAUNCHER_EXEC": str(ssh),
        "UCX_TLS": "tcp",  # MPICH would find memory that both hosts share here
    }
    launch = [sys.executable, "-m", "phlox", "launch", "-n", str(ranks), "--min", str(ranks)]
    training = [str(ROOT / "tests/distributed/training.py"), str(tmp_path / "run"), "eager"]
    done = subprocess.run(
        [
            sys.executable,
            str(WIRE),
            "0.002",
            "0.01",
            *launch,
            "--hosts",
            str(hosts),
            *training,
            *harm,
        ],
        env=environment,
        capture_output=True,
        text=True,
        timeout=500,
        check=False,
    )
    assert done.returncode == 0, done.stdout + done.stderr
    assert ("starts again" in done.stderr) == bool(harm)
    count, lost = map(int, re.findall(r"(\d+) packets, (\d+) lost", done.stderr)[0])
    assert count > 300
    assert lost > 0
    for rank in range(ranks):
        assert Path(f"{tmp_path / 'run'}-{rank}.bits").read_bytes() == calm
