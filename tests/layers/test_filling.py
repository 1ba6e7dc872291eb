"""The row of a table that fills sequences up: not trained, on every kind of device."""

from __future__ import annotations

import pytest

import phlox as px
from phlox import Backend, Cpu, Numpy, nn


@pytest.mark.parametrize("place", [1, -3])
@pytest.mark.parametrize("inner", [Cpu(), Numpy()])
def test_a_filling_row_has_no_gradient(place: int, inner: Backend) -> None:
    device = px.Autodiff(inner)
    table = nn.Embedding(4, 2, padding_idx=place, device=device)
    moved = table.replace(weight=table.weight.with_value(table.weight.value.detach() + 1.0))
    indices = px.asarray([[0, 1, -3], [1, 3, 3]], device=device)
    out = moved(indices)
    assert (out.numpy()[0, 1] == 1).all()  # the row as it is, such as a loaded one
    gradient = moved.weight.value.grad(out.sum().backward())
    assert gradient.tolist() == [[1, 1], [0, 0], [0, 0], [2, 2]]
    sloped = px.grad(lambda model: model(indices).sum())(moved)
    assert sloped.weight.value.tolist() == gradient.tolist()
