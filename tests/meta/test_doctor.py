"""`phlox doctor` names the devices, the processor, and what is missing."""

from __future__ import annotations

import os
import re
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
    assert "load: " not in report


def test_peaks_are_measured_on_request_beside_the_load(capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["doctor", "--peaks"]) == 0
    report = capsys.readouterr().out
    assert "float32 peak: " in report
    assert re.search(r"^load: (\d+\.\d, \d+\.\d, \d+\.\d over|unknown)", report, re.MULTILINE)
    assert "only while it is idle" in report


def test_a_system_without_loads_says_so(
    capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.delattr(os, "getloadavg", raising=False)
    assert main(["doctor", "--peaks"]) == 0
    assert "load: unknown" in capsys.readouterr().out


def test_a_setting_that_is_refused_is_part_of_the_report() -> None:
    command = [sys.executable, "-m", "phlox", "doctor"]
    environment = os.environ | {"PHLOX_SIMD": "sse"}
    done = subprocess.run(command, check=False, capture_output=True, text=True, env=environment)
    assert done.returncode == 0
    assert "no such level in PHLOX_SIMD: got 'sse'" in done.stdout
    assert "Traceback" not in done.stderr
