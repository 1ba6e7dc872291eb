"""Steps on batches of no examples, as the last one of a sharded or filtered set is."""

from __future__ import annotations

from collections.abc import Callable

import numpy as np
import pytest

import phlox_nn as nn
import phlox_optim as optim
import phlox_tensor as pt
from phlox_autodiff import Autodiff
from phlox_kernels import Cpu
from phlox_tensor import Backend, Numpy, ShapeError

DEVICES = [Autodiff(Numpy()), Autodiff(Cpu())]
Make = Callable[[Backend], nn.Module]
NORMS: list[Make] = [
    lambda device: nn.BatchNorm(2, device=device),
    lambda device: nn.BatchNorm(2, momentum=None, device=device),
    lambda device: nn.BatchNorm(2, track_running_stats=False, device=device),
    lambda device: nn.GroupNorm(1, 2, device=device),
    lambda device: nn.LayerNorm(2, device=device),
]


@pytest.mark.parametrize("device", DEVICES, ids=repr)
@pytest.mark.parametrize("shape", [(0, 2), (0, 2, 2), (2, 2, 0)], ids=str)
@pytest.mark.parametrize("make", NORMS)
def test_an_empty_batch_moves_nothing(make: Make, shape: tuple[int, ...], device: Backend) -> None:
    model = make(device)
    if isinstance(model, nn.LayerNorm):  # the one whose channels are the last axis
        shape = (*shape[:1], *shape[2:], 2)
    loss = model(pt.zeros(shape, device=device)).square().sum()
    after = optim.SgdConfig().init().step(0.1, model, loss.backward())
    for path, param in model.params().items():
        assert np.array_equal(after.params()[path].value.numpy(), param.value.numpy())


def test_an_empty_batch_of_other_channels_is_refused() -> None:
    with pytest.raises(ShapeError, match="batch_norm"):
        nn.BatchNorm(2, device=DEVICES[0])(pt.zeros((0, 1), device=DEVICES[0]))
