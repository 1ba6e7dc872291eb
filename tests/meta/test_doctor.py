"""`phlox doctor` names the devices, the processor, and what is missing."""

from __future__ import annotations

import os
import subprocess
import sys

import pytest

from phlox._cli import main


def test_the_report_names_devices_and_processor(capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["doctor"]) == 0
    report = capsys.readouterr().out
    for words in (
        "phlox-tensor",
        "Cpu()  model: ",
        "cache in use: L2 ",
        "instruction sets in use: ",
        "default device: ",
    ):
        assert words in report
    assert "GFLOP/s" not in report


def test_peaks_are_measured_on_request(capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["doctor", "--peaks"]) == 0
    assert "float32 peak: " in capsys.readouterr().out


def test_a_setting_that_is_refused_is_part_of_the_report() -> None:
    command = [sys.executable, "-m", "phlox", "doctor"]
    environment = os.environ | {"PHLOX_SIMD": "sse"}
    done = subprocess.run(command, check=False, capture_output=True, text=True, env=environment)
    assert done.returncode == 0
    assert "no such level in PHLOX_SIMD: got 'sse'" in done.stdout
    assert "Traceback" not in done.stderr
