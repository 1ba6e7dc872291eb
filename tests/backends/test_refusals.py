"""What is out of range is one error on every device."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
import pytest

import phlox as px
from phlox import Backend, Cpu, IndexOutOfRangeError, Numpy, ShapeError, Wgpu

DEVICES: list[Backend] = [Cpu(), Numpy(), Wgpu()]
each_device = pytest.mark.parametrize("device", DEVICES, ids=repr)
Call = Callable[[Any], Any]


def ctc(targets: Any, **lengths: Any) -> Call:
    def call(of: Any) -> Any:
        given = {name: of([length]) for name, length in lengths.items()}
        return px.ctc_loss(of(np.zeros((4, 1, 3), np.float32)), of([targets]), **given)

    return call


def rnnt(targets: Any, **lengths: Any) -> Call:
    def call(of: Any) -> Any:
        given = {name: of([length]) for name, length in lengths.items()}
        return px.rnnt_loss(of(np.zeros((1, 4, 3, 3), np.float32)), of([targets]), **given)

    return call


WRONG: dict[str, Call] = {
    "ctc_loss a label that is no class": ctc([1, 3]),
    "ctc_loss a label below 0": ctc([1, -1]),
    "ctc_loss an input length above the time": ctc([1, 2], input_lengths=5),
    "ctc_loss an input length below 0": ctc([1, 2], input_lengths=-1),
    "ctc_loss a target length above the longest": ctc([1, 2], target_lengths=3),
    "ctc_loss a target length below 0": ctc([1, 2], target_lengths=-1),
    "embedding_bag": lambda of: px.embedding_bag(of([[0.0], [1.0]]), of([[2]])),
    "gather_nd": lambda of: px.gather_nd(of([[1.0, 2.0]]), of([[0, 2]])),
    "masked_scatter": lambda of: of([1.0, 2.0]).masked_scatter(of([True, True]), of([1.0])),
    "max_unpool": lambda of: px.max_unpool(of([[[1.0]]]), of([[[4]]]), (4,)),
    "one_hot": lambda of: px.one_hot(of([0, 5]), 3),
    "one_hot below 0": lambda of: px.one_hot(of([-4]), 3),
    "rnnt_loss a label that is no class": rnnt([1, 3]),
    "rnnt_loss a label below 0": rnnt([1, -1]),
    "rnnt_loss an input length above the steps": rnnt([1, 2], input_lengths=5),
    "rnnt_loss an input length below 0": rnnt([1, 2], input_lengths=-1),
    "rnnt_loss a target length above the longest": rnnt([1, 2], target_lengths=3),
}


@each_device
@pytest.mark.parametrize("name", WRONG)
def test_what_is_out_of_range_is_the_same_error(device: Backend, name: str) -> None:
    with pytest.raises(IndexOutOfRangeError) as caught:
        WRONG[name](lambda data: px.asarray(data, device=device)).numpy()
    if device is not Wgpu():  # there it is the op that looked, once something is read
        assert caught.value.op == name.partition(" ")[0]


UPDATES: dict[str, Callable[[px.Tensor, Any, px.Tensor], px.Tensor]] = {
    "add": lambda x, indices, values: x.at[indices].add(values),
    "index_add": lambda x, indices, values: x.index_add(indices, values, axis=0),
    "max": lambda x, indices, values: x.at[indices].max(values),
    "set": lambda x, indices, values: x.at[indices].set(values),
    "subtract": lambda x, indices, values: x.at[indices].subtract(values),
}


@each_device
@pytest.mark.parametrize("dtype", ["float16", "float32", "int32"])
@pytest.mark.parametrize("name", UPDATES)
def test_no_index_lies_on_an_axis_without_elements(device: Backend, name: str, dtype: str) -> None:
    def ones(rows: int) -> px.Tensor:
        return px.ones((rows, 3), dtype=dtype, device=device)

    def at(indices: list[int]) -> px.Tensor:
        return px.asarray(indices, dtype="int32", device=device)

    for indices in ([5, -9], [0], [-1]):
        with pytest.raises(IndexOutOfRangeError, match=r"expected 0 <= i(ndex)? < 0"):
            UPDATES[name](ones(0), at(indices), ones(len(indices))).numpy()
    assert UPDATES[name](ones(0), at([]), ones(0)).shape == (0, 3)


@each_device
def test_indices_of_no_values_are_looked_at(device: Backend) -> None:
    nothing = px.zeros((0, 3), device=device)
    indices = px.asarray([0, 5], dtype="int32", device=device)
    with pytest.raises(IndexOutOfRangeError, match="got 5, expected -3 <= index < 3"):
        px.ops.index_add(nothing, indices, px.ones((0, 2), device=device), axis=1).numpy()


@each_device
@pytest.mark.parametrize("behind", [-1, 7])
def test_what_stands_behind_the_labels_is_not_read(device: Backend, behind: int) -> None:
    calls = (ctc([1, behind], target_lengths=1), rnnt([1, behind], target_lengths=1))
    plain = (ctc([1, 0], target_lengths=1), rnnt([1, 0], target_lengths=1))
    for found, wanted in zip(calls, plain, strict=True):
        values = [
            call(lambda data: px.asarray(data, device=device)).item() for call in (found, wanted)
        ]
        assert values[0] == values[1]
        assert np.isfinite(values[0])


@each_device
def test_a_transform_of_nothing_and_a_division_by_nothing(device: Backend) -> None:
    one = px.ones((1,), device=device)
    calls: list[Callable[[], Any]] = [
        lambda: px.fft.irfft(one),
        lambda: px.fft.irfft(one, n=0),
        lambda: px.fft.hfft(one),
    ]
    for call in calls:
        with pytest.raises(ShapeError, match="no length"):
            call()
    with pytest.raises(ShapeError, match="no length"):
        px.fft.irfftn(px.ones((2, 1), device=device))
    z = px.fft.Spectrum(one, one)
    for zero in (0j, 0, 0.0):
        assert not (z / zero).real.isfinite().any().item()
    assert (z / (1 + 1j)).numpy().tolist() == [1 + 0j]
