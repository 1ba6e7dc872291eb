"""Files over 4 GB: offsets and sizes that 32 bits do not hold."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np
import pytest

from phlox import record
from phlox.record import Limits, TensorEntry

SIZE = 2**32 + 100_000
LIMITS = Limits(inflated_bytes=1 << 34)


@pytest.mark.long
@pytest.mark.timeout(1200)
@pytest.mark.parametrize(
    "name", ["NamedMsgpackGzRecorder", "NamedMsgpackRecorder", "NpzRecorder", "SafetensorsRecorder"]
)
def test_a_tensor_over_4_gb_and_one_behind_it_come_back(name: str, tmp_path: Path) -> None:
    recorder = getattr(record, name)(limits=LIMITS)
    array = np.zeros(SIZE, np.uint8)  # pages that nobody writes to take no memory
    array[-3:] = 7
    last = np.arange(5, dtype=np.uint8)
    tree = {"big": TensorEntry.from_numpy(array), "last": TensorEntry.from_numpy(last)}
    path = recorder.record(tree, tmp_path / "a")
    del array, tree
    try:
        found = recorder.open(path)
        assert found["last"].numpy().tolist() == [0, 1, 2, 3, 4]
        if not path.name.endswith(".gz"):  # which would be whole in memory
            assert path.stat().st_size > 2**32
            check(found["big"])
    finally:
        path.unlink()


def check(entry: Any) -> None:
    big = entry.numpy()
    assert big.shape == (SIZE,)
    assert big[-4:].tolist() == [0, 7, 7, 7]
    assert not big[: -4 : 1 << 16].any()
    entry.drop()
