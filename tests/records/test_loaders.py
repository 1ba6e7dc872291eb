"""The place of a loader in a file, beside the parameters that it trained."""

from __future__ import annotations

from pathlib import Path

import numpy as np

import phlox as px


def test_a_loader_goes_on_from_a_file(tmp_path: Path) -> None:
    rows = px.data.arrays(x=np.arange(20))
    first = px.data.DataLoader(rows, 3, shuffle=True, seed=2**63)
    batches = iter(first)
    for _ in range(4):
        next(batches)
    recorder = px.record.NamedMsgpackRecorder()
    recorder.record({"data": first.into_record()}, tmp_path / "run")
    loaded = recorder.load(tmp_path / "run")
    second = px.data.DataLoader(rows, 3, shuffle=True, seed=2**63, workers=2)
    second.load_record(loaded["data"])
    assert [b["x"].tolist() for b in second] == [b["x"].tolist() for b in batches]
