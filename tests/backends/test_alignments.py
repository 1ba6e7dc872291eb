"""Lengths and labels of sequences in every integer type, and in words when they are wrong."""

from __future__ import annotations

from math import inf
from typing import Any

import numpy as np
import pytest

import phlox as px
from phlox import Backend, Cpu, Numpy, Tensor, Wgpu

HOSTED: list[Backend] = [Cpu(), Numpy()]
DEVICES: list[Backend] = [*HOSTED, Wgpu()]
each_hosted = pytest.mark.parametrize("device", HOSTED, ids=repr)
each_device = pytest.mark.parametrize("device", DEVICES, ids=repr)
INTEGERS = ("int8", "int16", "int32", "int64", "uint8", "uint16", "uint32", "uint64")
each_integer = pytest.mark.parametrize("dtype", INTEGERS)


def _logs(*shape: int) -> Any:
    x = np.random.default_rng(6).standard_normal(shape)
    return (x - np.log(np.exp(x).sum(axis=-1, keepdims=True))).astype(np.float32)


@each_integer
@each_hosted
def test_labels_and_lengths_count_in_any_integer_type(device: Backend, dtype: str) -> None:
    def found(device: Backend, dtype: str) -> list[Any]:
        def integers(numbers: Any) -> Tensor[Any]:
            return px.asarray(numbers, dtype=dtype, device=device)

        # More classes and places than an int8 counts.
        x, y = (px.asarray(_logs(*s), device=device) for s in ((110, 2, 200), (1, 40, 30, 3)))
        labels, many = integers([[100, 99], [1, 2]]), integers([[1] * 29])
        first = px.ctc_loss(x, labels, integers([100, 1]), integers([2, 0]))
        return [*first.tolist(), *px.rnnt_loss(y, many, integers([40]), integers([29])).tolist()]

    np.testing.assert_allclose(found(device, dtype), found(Numpy(), "int64"), rtol=1e-4)


@pytest.mark.parametrize(("op", "gates"), [(px.lstm, 4), (px.gru, 3), (px.rnn, 1)])
@each_integer
@each_hosted
def test_recurrences_count_steps_in_any_integer_type(
    device: Backend, dtype: str, op: Any, gates: int
) -> None:
    weight = px.ones((1, gates), device=device) * 0.5
    x, lengths = px.ones((2, 200, 1), device=device), px.asarray([100, 7], device=device)
    wanted = op(x, weight, weight, lengths=lengths)
    found = op(x, weight, weight, lengths=px.asarray([100, 7], dtype=dtype, device=device))
    assert (found[0] != 0).astype(device.default_int).sum().item() == 107
    for one, other in zip(found, wanted, strict=True):
        assert one.tolist() == other.tolist()


@each_device
def test_no_steps_are_one_way_to_no_labels(device: Backend) -> None:
    x = px.asarray(_logs(3, 3, 4), device=device)
    labels = px.asarray([[1, 2]] * 3, device=device)
    steps, counts = (px.asarray(n, device=device) for n in ([0, 0, 3], [1, 0, 0]))
    loss, gradient = px.value_and_grad(lambda x: px.ctc_loss(x, labels, steps, counts)[1:].sum())(x)
    assert px.ctc_loss(x, labels, steps, counts).tolist()[:2] == [inf, 0.0]
    np.testing.assert_allclose(loss.item(), -x[:, 2, 0].sum().item(), rtol=1e-5)
    assert gradient[:, 2, 0].tolist() == pytest.approx([-1.0] * 3)
    assert not bool((gradient[:, :2] != 0).any())


def _refused(device: Backend, function: Any, *arrays: Any, **keywords: Any) -> str:
    def given(array: Any) -> Any:
        return None if array is None else px.asarray(array, device=device)

    with pytest.raises(px.IndexOutOfRangeError) as refused:
        function(*map(given, arrays), **{name: given(x) for name, x in keywords.items()})
    return str(refused.value)


@each_hosted  # elsewhere it is told late
def test_what_is_out_of_range_is_told_as_it_was_given(device: Backend) -> None:
    x, y = np.zeros((3, 1, 4), np.float32), np.zeros((1, 3, 3, 4), np.float32)
    one, weight = np.ones((1, 3, 1), np.float32), np.ones((1, 4), np.float32)
    texts = [
        _refused(device, px.ctc_loss, x, [[1, -1]]),
        _refused(device, px.ctc_loss, x, [[4, 1]]),
        _refused(device, px.ctc_loss, x, [[1, 2]], [7]),
        _refused(device, px.rnnt_loss, y, [[1, 2]], None, [-3]),
        _refused(device, px.lstm, one, weight, weight, lengths=[9]),
    ]
    assert texts == [
        "[ctc_loss] targets out of range: got -1, expected 0 <= targets <= 3",
        "[ctc_loss] targets out of range: got 4, expected 0 <= targets <= 3",
        "[ctc_loss] input_lengths out of range: got 7, expected 0 <= input_lengths <= 3",
        "[rnnt_loss] target_lengths out of range: got -3, expected 0 <= target_lengths <= 2",
        "[lstm] lengths out of range: got 9, expected 0 <= lengths <= 3",
    ]
