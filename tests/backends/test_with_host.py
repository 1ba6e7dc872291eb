"""A device with the host beside it runs what it lacks, and keeps what it has."""

from __future__ import annotations

import asyncio
from typing import Any

import numpy as np
import pytest

import phlox as px
from phlox import Autodiff, Backend, Meta, Numpy, WithHost
from phlox.testing import conformance
from phlox_tensor import DType, bool_, float32, int32

OPS = ["add", "cast", "concat", "cumsum", "eigh", "full", "matmul", "sort", "sum", "where"]


class Narrow(Backend):
    """A device of three element types, without LAPACK, that counts what it runs."""

    name = "narrow"
    default_float, default_int = float32, int32
    dtypes = frozenset({bool_, float32, int32})
    _host = Numpy("float32", "int32")

    def __init__(self) -> None:
        self.ran: list[str] = []

    def entry(self, name: str) -> Any:
        inside = self._host.entry(name)
        if inside is None or px.REGISTRY[name].op_class.hosted:
            return None

        def run(*args: Any) -> Any:
            self.ran.append(name)
            return inside(*args)

        return run

    def shape_of(self, primitive: Any, /) -> tuple[int, ...]:
        return self._host.shape_of(primitive)

    def dtype_of(self, primitive: Any, /) -> DType:
        return self._host.dtype_of(primitive)

    def upload(self, array: Any, dtype: DType, /) -> Any:
        assert dtype in self.dtypes
        return self._host.upload(array, dtype)

    def read(self, primitive: Any, /) -> Any:
        return primitive


def both() -> tuple[Narrow, WithHost]:
    narrow = Narrow()
    narrow.ran.clear()
    return narrow, WithHost(narrow)


def test_what_the_device_has_runs_there() -> None:
    narrow, device = both()
    x = px.asarray([1.0, 2.0], device=device)
    assert (x + x).tolist() == [2.0, 4.0]
    assert narrow.ran == ["add"]


def test_what_it_lacks_runs_on_the_host_and_comes_back() -> None:
    narrow, device = both()
    x = px.asarray([1.0, 2.0], device=device)
    wide = x.astype("float64") + 1e-12
    assert (wide.dtype, wide.device) == (px.float64, device)
    assert wide.tolist() == [1.0 + 1e-12, 2.0 + 1e-12]
    assert narrow.ran == []
    back = wide.astype("float32")
    assert (back + x).tolist() == [2.0, 4.0]
    assert narrow.ran == ["add"]
    assert (px.zeros(2, dtype="int8", device=device) == 0).tolist() == [True, True]


def test_default_types_are_those_of_the_device() -> None:
    _, device = both()
    assert px.asarray([1, 2], device=device).dtype is px.int32
    assert px.asarray([1.5, 2.0], device=device).argmax().dtype is px.int32
    assert px.asarray(np.array([1], np.int64), device=device).dtype is px.int64


def test_ops_for_the_host_run_there() -> None:
    x = px.asarray([[2.0, 0.0], [0.0, 3.0]], device=both()[1])
    found = px.linalg.eigh(x).eigenvalues
    assert (found.dtype, found.tolist()) == (px.float32, [2.0, 3.0])
    with pytest.raises(px.BackendUnavailableError, match="LAPACK"):
        px.linalg.eigh(x.to_device(Narrow()))


def test_the_error_of_a_type_that_is_lacking_names_it() -> None:
    with pytest.raises(px.DTypeError, match=r"hint: device=WithHost\(Narrow\(\)\)"):
        px.ones(2, dtype="float64", device=Narrow())


def test_reading_waits_for_neither() -> None:
    x = px.asarray([1.0, 2.0], device=both()[1])
    for each in (x, x.astype("float64")):
        assert asyncio.run(each.numpy_async()).tolist() == [1.0, 2.0]


@pytest.mark.parametrize(
    "wrong", [Autodiff(Numpy()), Meta(), WithHost(Numpy())], ids=["decorator", "meta", "twice"]
)
def test_what_does_not_compute_is_refused(wrong: Backend) -> None:
    with pytest.raises(px.DeviceError, match=r"\[WithHost\] takes the device that computes"):
        WithHost(wrong)


def test_gradients_pass_between_both() -> None:
    narrow, plain = both()
    device = Autodiff(plain)
    x = px.asarray([0.5, 2.0], device=device).require_grad()
    loss = ((x * x).astype("float64").exp().astype("float32") * x).sum()
    grads = loss.backward()
    gradient = x.grad(grads)
    assert gradient is not None
    assert (gradient.dtype, gradient.device) == (px.float32, plain)
    values = np.array([0.5, 2.0])
    wanted = np.exp(values**2) * (1 + 2 * values**2)
    np.testing.assert_allclose(gradient.numpy(), wanted, rtol=1e-5, atol=0)
    assert "exp" not in narrow.ran


@pytest.mark.parametrize("op", OPS)
def test_ops_keep_their_promises(op: str) -> None:
    conformance(both()[1], [op])


@pytest.mark.parametrize("op", ["add", "matmul", "sum"])
def test_ops_keep_their_promises_beside_a_gpu(op: str) -> None:
    try:
        device = WithHost("wgpu")
        conformance(device, [op])
    except px.BackendUnavailableError as error:
        pytest.skip(f"no adapter: {error}")
