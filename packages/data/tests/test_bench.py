"""The command that says which workers to take."""

from __future__ import annotations

import re
import sys
from pathlib import Path
from typing import Any

import pytest

from phlox_data import _bench

PROGRAM = """
import time
import numpy as np
import phlox_data as data

def slow(x):
    time.sleep(0.002)
    return x

loader = data.DataLoader(data.of(range(64)).map(slow), 8, shuffle=True, seed=4)
unsendable = data.DataLoader(data.of(range(64)).map(lambda x: x), 8)

def rows():
    return data.DataLoader(data.arrays(np.arange(1000)), 10)

number = 3
"""


@pytest.fixture
def program(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Any:
    (tmp_path / "its_loader.py").write_text(PROGRAM)
    monkeypatch.chdir(tmp_path)
    monkeypatch.syspath_prepend(str(tmp_path))  # processes look there, too
    yield
    sys.modules.pop("its_loader", None)


@pytest.mark.usefixtures("program")
def test_each_kind_is_measured(capsys: pytest.CaptureFixture[str]) -> None:
    assert _bench.main(["bench", "its_loader", "--seconds", "0.2"]) == 0
    out = capsys.readouterr().out
    rates = [int(rate.replace(",", "")) for rate in re.findall(r" s +([\d,]+)$", out, re.MULTILINE)]
    assert len(rates) == (2 if sys.platform == "win32" else 3)
    assert rates[0] < rates[1]
    assert re.search(r"^take workers=\S+, \d\.\d times as fast as without$", out, re.MULTILINE)


@pytest.mark.usefixtures("program")
def test_what_cannot_be_sent_to_processes_is_said(capsys: pytest.CaptureFixture[str]) -> None:
    assert _bench.main(["bench", "its_loader:unsendable", "--seconds", "0.1"]) == 0
    out = capsys.readouterr().out
    assert sys.platform == "win32" or "workers=data.Processes" in out
    assert "take workers=" in out


@pytest.mark.usefixtures("program")
def test_arrays_need_no_workers(capsys: pytest.CaptureFixture[str]) -> None:
    assert _bench.main(["bench", "its_loader:rows", "--seconds", "0.1"]) == 0
    out = capsys.readouterr().out
    assert "one gather" in out
    assert out.endswith("take workers=0\n")


@pytest.mark.usefixtures("program")
@pytest.mark.parametrize(
    ("place", "said"),
    [
        ("no_such_module", "no such loader: got No module named 'no_such_module'"),
        ("its_loader:nothing", "no such loader: got module 'its_loader' has no attribute"),
        ("its_loader:number", "its_loader:number is no loader: got int"),
    ],
)
def test_what_is_no_loader_is_told(
    place: str, said: str, capsys: pytest.CaptureFixture[str]
) -> None:
    assert _bench.main(["bench", place]) == 2
    assert said in capsys.readouterr().err


def test_the_simplest_of_the_fastest_is_taken() -> None:
    speeds = [_bench.Speed("0", 0, 100), _bench.Speed("2", 0, 195)]
    speeds.append(_bench.Speed("data.Processes(2)", 0, 200))
    assert _bench.advice(speeds) == "take workers=2, 1.9 times as fast as without"
    assert _bench.advice(speeds[:1]) == "take workers=0"
