"""The fuzz targets read what they begin with; `python -m tools.fuzz` goes on from there."""

from __future__ import annotations

import runpy
from pathlib import Path
from typing import Any

import pytest

from phlox_record._recorder import kinds

ATTACKS = Path(__file__).parent.parent / "attacks"
FUZZ: dict[str, Any] = runpy.run_path(str(ATTACKS / "targets.py"), run_name="targets")
PARSERS = {
    "CompactMsgpackGzRecorder": "gzip",
    "CompactMsgpackRecorder": "compact",
    "GgufRecorder": "gguf",
    "JsonGzRecorder": "gzip",
    "JsonRecorder": "json",
    "NamedMsgpackGzRecorder": "gzip",
    "NamedMsgpackRecorder": "named",
    "NpzRecorder": "npz",
    "PyTorchRecorder": "pytorch",
    "SafetensorsRecorder": "safetensors",
}


@pytest.mark.parametrize("name", FUZZ["TARGETS"])
def test_a_target_reads_files_and_refuses_others(name: str) -> None:
    inputs = FUZZ["seeds"](name)
    ways = len(FUZZ["TARGETS"][name].ways)
    read = {data[0] for data in inputs if FUZZ["one_input"](name, data)}
    assert read == set(range(ways)), "a way by which no seed is read is fuzzed in vain"
    for data in inputs:
        for cut in (0, 1, len(data) // 2):
            FUZZ["one_input"](name, data[:cut])


def test_every_recorder_has_a_target() -> None:
    own = {kind.__name__ for kind in kinds() if kind.__module__.startswith("phlox_record.")}
    assert own == set(PARSERS)
    assert {*PARSERS.values(), "index"} == set(FUZZ["TARGETS"])
