"""Devices beside each other: names, moves, types that one lacks, errors told late and early."""

from __future__ import annotations

import asyncio
import os
import subprocess
import sys
import threading
from typing import Any

import numpy as np
import pytest

import phlox as px
from phlox import (
    ArgumentError,
    Autodiff,
    Backend,
    Cpu,
    DeviceError,
    DTypeError,
    IndexOutOfRangeError,
    KindError,
    Numpy,
    PhloxError,
    ShapeError,
    Wgpu,
)

BASES = [Cpu(), Numpy(), Wgpu()]
EVERY = [*BASES, Autodiff(Cpu()), Autodiff(Wgpu()), Autodiff(Autodiff(Cpu()))]


def test_every_device_is_found_by_name() -> None:
    found = px.devices()
    assert {Cpu(), Numpy(), Wgpu()} <= set(found)
    assert px.as_device("cpu") is Cpu()
    assert px.as_device("wgpu") is px.as_device("wgpu:0") is Wgpu(0)
    assert px.default_device() is Cpu()
    with pytest.raises(ArgumentError, match=r"one device: got 'cpu:1', expected 'cpu'"):
        px.as_device("cpu:1")


@pytest.mark.parametrize("target", EVERY, ids=repr)
@pytest.mark.parametrize("source", EVERY, ids=repr)
@pytest.mark.parametrize("values", [[1.5, -2.0], [True, False], [7, -7], [[]], 3.0], ids=repr)
def test_values_survive_every_move(source: Backend, target: Backend, values: Any) -> None:
    x = px.asarray(values, device=source)
    moved = x.to_device(target)
    assert moved.device is target
    assert moved.dtype.kind == x.dtype.kind
    assert moved.shape == x.shape
    assert moved.tolist() == x.tolist()
    assert moved.T.to_device(source).tolist() == x.T.tolist()


@pytest.mark.parametrize("other", [Numpy(), Wgpu(), Autodiff(Wgpu())], ids=repr)
def test_two_base_devices_do_not_mix(other: Backend) -> None:
    x, y = px.ones(2, device=Cpu()), px.ones(2, device=other)
    calls: list[Any] = [lambda: x + y, lambda: y * x, lambda: px.concat([x, y]), lambda: x @ y]
    for call in calls:
        with pytest.raises(DeviceError, match=r"tensors on different devices: got \w+\("):
            call()


def test_what_a_device_lacks_is_an_error_with_a_list() -> None:
    gpu = Wgpu()
    for call in (
        lambda: px.ones(2, dtype="float64", device=gpu),
        lambda: px.ones(2, device=gpu).astype("float64"),
        lambda: px.ones(2, dtype="float64", device=Cpu()).to_device(gpu),
        lambda: px.asarray(np.ones(2), device=gpu),
    ):
        with pytest.raises(
            DTypeError, match=r"got float64, expected bool, .*float32, int32, uint32"
        ):
            call()
    assert px.asarray(np.arange(3), device=gpu).dtype is px.int32
    calls: list[Any] = [
        lambda: px.asarray([2**31], device=gpu),
        lambda: px.asarray([-(2**31) - 1]).to_device(gpu),
        lambda: px.full(2, 2**40, device=gpu),
        lambda: px.arange(0, 2**33, 2**32, device=gpu),
        lambda: px.arange(3, device=gpu) + 2**31,
    ]
    for call in calls:
        with pytest.raises(DTypeError, match=r"out of range|do not fit"):
            call()


WRONG: list[tuple[type[PhloxError], Any]] = [
    (ShapeError, lambda x, n, b: x @ x),
    (ShapeError, lambda x, n, b: x + x.T),
    (ShapeError, lambda x, n, b: x.reshape(7)),
    (ShapeError, lambda x, n, b: x.sum(axis=3)),
    (ShapeError, lambda x, n, b: x[:, :0].max(axis=1)),
    (ShapeError, lambda x, n, b: px.concat([x, x.T])),
    (ShapeError, lambda x, n, b: px.conv2d(x, x)),
    (KindError, lambda x, n, b: b.sin()),
    (KindError, lambda x, n, b: n.exp()),
    (KindError, lambda x, n, b: x + n),
    (KindError, lambda x, n, b: n + 0.5),
    (KindError, lambda x, n, b: b * 2),
    (KindError, lambda x, n, b: x & x),
    (KindError, lambda x, n, b: n / x),
    (DTypeError, lambda x, n, b: n + 2**70),
    (DTypeError, lambda x, n, b: x + 10**400),
    (ArgumentError, lambda x, n, b: x + np.ones(3, np.float32)),
    (ArgumentError, lambda x, n, b: x.sum(axis="a")),
    (ArgumentError, lambda x, n, b: px.exp("a")),  # type: ignore[arg-type]
    (ArgumentError, lambda x, n, b: float(x)),
]


@pytest.mark.parametrize("device", EVERY, ids=repr)
@pytest.mark.parametrize(("error", "call"), WRONG)
def test_wrong_calls_fail_alike_on_every_device(
    device: Backend, error: type[PhloxError], call: Any
) -> None:
    """The short path of a backend and the full path give one answer, and the same text."""
    texts = []
    for place in (device, Numpy(int=device.default_int)):
        x = px.asarray([[1.0, 2.0, 3.0], [4.0, 5.0, 6.0]], device=place)
        with pytest.raises(error) as caught:
            call(x, px.arange(3, device=place), px.asarray([True, False], device=place))
        texts.append(str(caught.value))
    assert texts[0] == texts[1]
    assert texts[0].startswith("[")


def late(device: Backend) -> bool:
    while device.inner is not None:
        device = device.inner
    return isinstance(device, Wgpu)


@pytest.mark.parametrize("device", EVERY, ids=repr)
def test_an_index_out_of_range_is_an_error_at_the_call_or_the_next_read(device: Backend) -> None:
    x = px.asarray([1.0, 2.0, 3.0], device=device)
    bad = px.asarray([0, 3], device=device)
    if late(device):
        out = px.take(x, bad)
        with pytest.raises(IndexOutOfRangeError, match=r"\[take\].*got 3"):
            out.numpy()
    else:
        with pytest.raises(IndexOutOfRangeError, match=r"\[take\].*got 3"):
            px.take(x, bad)
    assert (x + 1).tolist() == [2.0, 3.0, 4.0]  # the device goes on
    assert px.take(x, px.asarray([-1, 0], device=device)).tolist() == [3.0, 1.0]


@pytest.mark.parametrize("device", EVERY, ids=repr)
def test_a_negative_exponent_of_integers_is_an_error(device: Backend) -> None:
    n = px.asarray([2, 3], device=device)
    with pytest.raises(ArgumentError, match=r"\[pow\] .*negative"):
        (n ** px.asarray([1, -1], device=device)).numpy()
    assert (n**2).tolist() == [4, 9]


@pytest.mark.parametrize("device", EVERY, ids=repr)
def test_a_tensor_made_in_one_thread_is_used_in_another(device: Backend) -> None:
    made: list[Any] = []
    threads = [
        threading.Thread(target=lambda: made.append(px.arange(5, device=device) + 1)),
        threading.Thread(target=lambda: made.append((made[0] * 2).tolist())),
    ]
    for thread in threads:
        thread.start()
        thread.join()
    assert made[1] == [2, 4, 6, 8, 10]
    assert made[0].tolist() == [1, 2, 3, 4, 5]


@pytest.mark.parametrize("device", BASES, ids=repr)
def test_many_threads_on_shared_tensors(device: Backend) -> None:
    x = px.asarray(np.arange(60, dtype=np.float32).reshape(6, 10), device=device)
    want = [(x @ x.T * i).sum().item() for i in range(4)]
    got: dict[int, list[float]] = {}

    def work(i: int) -> None:
        got[i] = [(x @ x.T * i).sum().item() for _ in range(10)]

    threads = [threading.Thread(target=work, args=(i,)) for i in range(4)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert got == {i: [want[i]] * 10 for i in range(4)}


@pytest.mark.parametrize("device", BASES, ids=repr)
def test_reading_has_an_async_twin(device: Backend) -> None:
    async def read() -> list[Any]:
        tensors = [px.arange(4, device=device) * i for i in range(5)]
        return [a.tolist() for a in await asyncio.gather(*(t.numpy_async() for t in tensors))]

    assert asyncio.run(read()) == [[i * n for n in range(4)] for i in range(5)]


@pytest.mark.parametrize("device", [Cpu(), Wgpu()], ids=repr)
def test_memory_is_counted_and_given_back(device: Backend) -> None:
    device.sync()
    before = device.memory().current
    x = px.zeros((512, 1024), device=device) + 1
    x.numpy()
    assert device.memory().current >= before + x.nbytes
    assert device.memory().peak >= device.memory().current
    del x
    device.sync()
    assert device.memory().current <= before + 4096


NO_ADAPTER = """
import phlox as px
from phlox import BackendUnavailableError, Wgpu
device = Wgpu()
assert device not in px.devices()
try:
    px.ones(2, device=device)
except BackendUnavailableError as error:
    assert error.op == "wgpu"
    assert "no GPU adapter found" in str(error), error
    assert error.hint is not None and "vulkan" in error.hint.lower(), error
    assert str(error).startswith("[wgpu] "), error
else:
    raise AssertionError("no error")
assert px.ones(2).tolist() == [1.0, 1.0]
"""


def test_no_adapter_is_an_error_with_a_hint() -> None:
    """A loader that is pointed at no driver finds no adapter; the CPU still works."""
    nowhere = dict.fromkeys(("VK_DRIVER_FILES", "VK_ICD_FILENAMES"), "/nonexistent")
    done = subprocess.run(
        [sys.executable, "-W", "error", "-c", NO_ADAPTER],
        env={**os.environ, **nowhere},
        capture_output=True,
        text=True,
        check=False,
        timeout=60,
    )
    assert done.returncode == 0, done.stderr


def test_an_adapter_that_is_not_there() -> None:
    with pytest.raises(px.BackendUnavailableError, match=r"no such adapter: got 99, expected 0: "):
        px.ones(2, device="wgpu:99")
    with pytest.raises(ArgumentError):
        Wgpu(-1)
