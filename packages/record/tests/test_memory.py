"""A module is never twice in memory: tensors are read and written one at a time."""

from __future__ import annotations

import threading
import tracemalloc
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import pytest

import phlox_record as pr
import phlox_tensor as pt

COUNT = 16
SIDE = 512
ONE = SIDE * SIDE * 4  # 1 MiB
ALL = COUNT * ONE
STREAMED = (
    pr.CompactMsgpackGzRecorder,
    pr.CompactMsgpackRecorder,
    pr.NamedMsgpackGzRecorder,
    pr.NamedMsgpackRecorder,
)


@pytest.fixture(scope="module")
def large() -> dict[str, Any]:
    rng = np.random.default_rng(0)
    return {
        f"t{index}": pt.asarray(rng.standard_normal((SIDE, SIDE), np.float32), device=pt.Numpy())
        for index in range(COUNT)
    }


def peak_of(action: Callable[[], object]) -> int:
    """Bytes allocated at most during `action`, beyond what was there before."""
    tracemalloc.start()
    try:
        kept = action()
        peak = tracemalloc.get_traced_memory()[1]
        del kept
    finally:
        tracemalloc.stop()
    return peak


@pytest.mark.parametrize("kind", [*STREAMED, pr.JsonGzRecorder, pr.JsonRecorder])
@pytest.mark.parametrize("precision", [pr.DoublePrecision, pr.FullPrecision, pr.HalfPrecision])
def test_writing_holds_no_copy_of_a_tensor(
    kind: type[pr.Recorder], precision: pr.PrecisionSettings, tmp_path: Path
) -> None:
    tree: Any = {"w": pt.ones(ALL // 4)}
    recorder = kind(precision)
    assert peak_of(lambda: recorder.record(tree, tmp_path / "a")) < ALL // 4


@pytest.mark.parametrize("kind", STREAMED)
def test_loading_needs_the_tensors_and_one_more(
    kind: type[pr.Recorder], large: dict[str, Any], tmp_path: Path
) -> None:
    recorder = kind(pr.HalfPrecision)
    path = recorder.record(large, tmp_path / "a")
    peak = peak_of(lambda: recorder.load(path, like=large))
    assert ALL <= peak < ALL + 4 * ONE


def test_opening_reads_only_the_header(large: dict[str, Any], tmp_path: Path) -> None:
    recorder = pr.NamedMsgpackRecorder()
    path = recorder.record(large, tmp_path / "a")
    assert peak_of(lambda: recorder.open(path)) < ONE // 4
    tree = recorder.open(path)
    assert peak_of(tree["t7"].numpy) < ONE // 4
    assert peak_of(lambda: pr.materialize(tree["t7"])) < 2 * ONE
    assert np.array_equal(tree["t7"].numpy(), large["t7"].numpy())


def test_mapped_arrays_outlive_the_record(large: dict[str, Any], tmp_path: Path) -> None:
    recorder = pr.NamedMsgpackRecorder()
    path = recorder.record(large, tmp_path / "a")
    array = recorder.open(path)["t3"].numpy()
    assert not array.flags.writeable
    recorder.record({"other": 1}, path)
    assert np.array_equal(array, large["t3"].numpy())


def test_one_tensor_of_a_gzip_file(large: dict[str, Any], tmp_path: Path) -> None:
    recorder = pr.NamedMsgpackGzRecorder()
    few = {key: large[key] for key in ("t0", "t1", "t2")}
    tree = recorder.open(recorder.record(few, tmp_path / "a"))
    assert peak_of(tree["t2"].numpy) < 2 * ONE
    # Backwards, which inflates the file again.
    for key in ("t2", "t0", "t1"):
        assert np.array_equal(tree[key].numpy(), few[key].numpy())


@pytest.mark.parametrize("kind", STREAMED)
def test_threads_share_an_open_file(
    kind: type[pr.Recorder], large: dict[str, Any], tmp_path: Path
) -> None:
    few = {key: large[key] for key in ("t0", "t1", "t2", "t3")}
    recorder = kind()
    tree = recorder.open(recorder.record(few, tmp_path / "a"), like=few)
    wrong: list[str] = []

    def read(keys: list[str]) -> None:
        wrong.extend(k for k in keys if not np.array_equal(tree[k].numpy(), few[k].numpy()))

    orders = [["t0", "t1", "t2", "t3"], ["t3", "t0"], ["t2", "t2"], ["t1", "t0"]]
    threads = [threading.Thread(target=read, args=(keys,)) for keys in orders]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert wrong == []


def test_a_lazy_leaf_is_read_only_when_written(tmp_path: Path) -> None:
    reads: list[int] = []

    def make() -> Any:
        reads.append(1)
        return np.ones((2, 3), np.float32)

    leaf = pr.TensorEntry((2, 3), pt.float32, make)
    assert reads == []
    data = pr.NamedMsgpackRecorder().to_bytes({"w": leaf})
    assert reads == [1]
    assert pr.NamedMsgpackRecorder().from_bytes(data)["w"].tolist() == [[1, 1, 1], [1, 1, 1]]


def test_a_lazy_leaf_must_keep_its_promise() -> None:
    leaf = pr.TensorEntry((2, 3), pt.float32, lambda: np.ones((3, 2), np.float32))
    with pytest.raises(pr.RecordError, match=r"got float32\[3, 2\], expected float32\[2, 3\]"):
        pr.NamedMsgpackRecorder().to_bytes({"w": leaf})
