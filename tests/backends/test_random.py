"""The same seed gives the same numbers on every device."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

import phlox as px
from phlox import Autodiff, Backend, Cpu, Numpy, Tensor, Wgpu, nn

DEVICES = [Cpu(int="int32"), Wgpu(), Autodiff(Cpu(int="int32"))]
REFERENCE = Numpy(int="int32")


def drawn(make: Callable[[], Tensor[Any]], device: Backend, seed: int) -> np.ndarray[Any, Any]:
    px.seed(seed)
    with px.use_device(device):
        px.random.uniform(3)  # an odd count: the stream goes on from the next whole block
        out = make()
    assert out.device is device
    return out.numpy()


EXACT: dict[str, Callable[[], Any]] = {
    "bernoulli": lambda: px.random.bernoulli((7, 11), 0.3),
    "bernoulli_rare": lambda: px.random.bernoulli((7, 11), 1e-9),
    "choice": lambda: px.random.choice(px.arange(50), 5, replacement=False),
    "permutation": lambda: px.random.permutation(37),
    "randint": lambda: px.random.randint((5, 3), -40, 40),
    "randint_even": lambda: px.random.randint(9, 0, 2**16 + 1),
    "randint_wide": lambda: px.random.randint((5, 300), -(2**30), 2**30 - 7),
    "uniform": lambda: px.random.uniform((4, 7), -2.0, 3.0),
    "uniform16": lambda: px.random.uniform(9, dtype="float16"),
}


@pytest.mark.parametrize("device", DEVICES, ids=repr)
@pytest.mark.parametrize("name", sorted(EXACT))
@pytest.mark.parametrize("seed", [0, 1, 2**64 - 1])
def test_equal_bits(name: str, device: Backend, seed: int) -> None:
    if name == "uniform16" and px.float16 not in device.dtypes:
        pytest.skip("the adapter lacks float16")
    got, want = drawn(EXACT[name], device, seed), drawn(EXACT[name], REFERENCE, seed)
    assert got.dtype == want.dtype
    assert got.tobytes() == want.tobytes()


@pytest.mark.parametrize("device", DEVICES, ids=repr)
@given(st.integers(0, 2**64 - 1), st.integers(0, 300))
def test_normals_agree(device: Backend, seed: int, count: int) -> None:
    got = drawn(lambda: px.random.normal(count, 1.0, 2.0), device, seed)
    want = drawn(lambda: px.random.normal(count, 1.0, 2.0), REFERENCE, seed)
    assert np.allclose(got, want, rtol=1e-5, atol=1e-5)


@pytest.mark.parametrize("device", DEVICES, ids=repr)
@given(st.integers(0, 2**64 - 1), st.integers(0, 2**64 - 1), st.integers(0, 40))
def test_words_of_any_key_and_counter(device: Backend, key: int, counter: int, count: int) -> None:
    px.random.generator().set_state(key, counter)
    with px.use_device(device):
        got = px.random.uniform(count).numpy()
    px.random.generator().set_state(key, counter)
    with px.use_device(REFERENCE):
        want = px.random.uniform(count).numpy()
    assert got.tobytes() == want.tobytes()


@pytest.mark.parametrize("device", DEVICES, ids=repr)
def test_dropout_drops_the_same(device: Backend) -> None:
    layer = nn.Dropout(0.4).with_training(True)
    masks = []
    for place in (device, REFERENCE):
        px.seed(9)
        masks.append(layer(px.ones((31, 17), device=place)).numpy())
    assert masks[0].tobytes() == masks[1].tobytes()


@pytest.mark.parametrize("device", DEVICES, ids=repr)
def test_layers_start_from_the_same_values(device: Backend) -> None:
    weights = []
    for place in (device, REFERENCE):
        px.seed(10)
        model = nn.Conv2d(3, 4, kernel_size=3, device=place)
        weights.append([p.value.numpy() for p in model.params().values()])
    assert all(a.tobytes() == b.tobytes() for a, b in zip(*weights, strict=True))
