"""Checks inside of a browser, one part for each page: `run(part, told)`."""

from __future__ import annotations

import json
import sys
import time
from collections.abc import Callable
from typing import Any

import numpy as np

import phlox as px
from phlox import nn, optim
from phlox_tensor.testing import checks

# Families of kernels and of references, a few ops of each.
OPS = (
    *("add", "argmax", "argsort", "atan2", "avg_pool2d", "batch_norm", "bincount"),
    *("bitwise_left_shift", "concat", "conv2d", "copysign"),
    *("cross_entropy", "cumsum", "erf", "exp", "floor_divide", "gelu", "index_add"),
    *("layer_norm", "less", "log_softmax", "matmul", "max", "max_pool2d", "mean", "multiply"),
    *("remainder", "rms_norm", "scatter", "sin", "softmax", "sort", "sum", "take", "topk"),
    *("take_along_axis", "permute_dims", "pow", "var", "where"),
)


def conformance(device: px.Backend, tell: Callable[..., None]) -> None:
    """Run the suite for some ops, in the types that this Python has."""
    start, count, failed = time.perf_counter(), 0, 0
    for check in checks(device, [*OPS]):
        count += 1
        if count % 50 == 0:
            tell("so far", checks=count)  # a page that says nothing has failed
        try:
            check()
        except Exception as error:  # the page is told of each
            failed += 1
            tell("check failed", check=str(check), error=str(error)[:600])
    assert count > 0, device
    seconds = round(time.perf_counter() - start, 1)
    tell("conformance", device=repr(device), checks=count, failed=failed, seconds=seconds)


def costs(tell: Callable[..., None]) -> None:
    """Time a dispatch and a read, and see errors of indices and of forward mode in reverse."""
    device = px.Wgpu()
    x = px.asarray(np.ones(64, np.float32), device=device)
    for _ in range(20):
        x = x + 1.0
    x.numpy()
    start = time.perf_counter()
    for _ in range(500):
        x = x + 1.0
    recorded = time.perf_counter()
    assert x.numpy()[0] == 521.0
    waited = time.perf_counter()
    reads = 50
    for _ in range(reads):
        (x + 1.0).numpy()
    done = time.perf_counter()
    tell(
        "costs",
        record_us=round((recorded - start) / 500 * 1e6, 1),
        dispatch_us=round((waited - start) / 500 * 1e6, 1),
        read_ms=round((done - waited) / reads * 1e3, 2),
    )
    compiled = px.compile(lambda x: px.softmax(x * 2.0 + 1.0).sum())
    found = [compiled(px.asarray(np.arange(n, n + 8, dtype="f"), device=device)) for n in range(4)]
    assert all(abs(each.item() - 1) < 1e-6 for each in found)
    try:
        px.take(x, px.asarray([99], device=device), axis=0).numpy()
    except px.IndexOutOfRangeError as error:
        tell("index", text=str(error).splitlines()[0])
    else:
        raise AssertionError("an index out of range was taken")
    slope = px.grad(lambda x: px.jvp(px.sin, (x,), (px.ones_like(x),))[1].sum())
    point = px.asarray(np.array([0.3], np.float32), device=device)
    assert abs(slope(point).item() + np.sin(0.3)) < 1e-5
    large = np.arange(20_000_000, dtype=np.float32)
    assert np.array_equal((px.asarray(large, device=device) + 1.0).numpy(), large + 1)


def one_of_two(place: int) -> None:
    """Compute in a call beside which another one computes, while both wait for the GPU."""
    device = px.Wgpu()
    own: Callable[[Any], Any] = [
        lambda x: px.softmax(px.tanh(x) * 3.0 + px.cos(x).cumsum(axis=0)),
        lambda x: px.sort(px.sin(x) + px.sqrt(px.abs(x) + 1.0)).cumsum(axis=0),
    ][place]
    compiled = px.compile(own)
    for turn in range(8):
        x = np.linspace(-1, 2, 40 + place, dtype=np.float32) + turn
        found = compiled(px.asarray(x, device=device)).numpy()
        expected = own(px.asarray(x, device=px.Numpy())).numpy()
        assert np.allclose(found, expected, rtol=1e-4), (place, turn)


def kernels(device: px.Backend, tell: Callable[..., None]) -> None:
    """Time products beside those of NumPy, and see memory come back."""
    left, right = np.random.default_rng(0).normal(size=(2, 512, 512)).astype(np.float32)
    start = time.perf_counter()
    expected = left @ right
    by_numpy = time.perf_counter() - start
    x, y = (px.asarray(each, device=device) for each in (left, right))
    found = (x @ y).numpy()
    start = time.perf_counter()
    found = (x @ y).numpy()
    taken = time.perf_counter() - start
    assert np.allclose(found, expected, atol=1e-3)
    large = px.zeros(1, device=device)
    for _ in range(200):  # 8 GB in all, of which a page has no more than 4
        large = px.ones((10_000_000,), device=device) + 1.0
    assert float(large[-1]) == 2.0
    tell("product of 512", ms=round(taken * 1e3, 1), numpy_ms=round(by_numpy * 1e3, 1))


def records(device: px.Backend) -> None:
    """Train a little, save, and load what was saved."""
    px.seed(0)
    own = px.Autodiff(device)
    model, rule = nn.Linear(2, 1, device=own), optim.AdamWConfig().init()
    x = px.random.normal((64, 2), device=own)
    y = (x * px.asarray([2.0, -3.0], device=own)).sum(axis=1, keepdims=True) + 1.0
    for _ in range(200):
        model = rule.step(0.05, model, (model(x) - y).square().mean().backward())
    assert np.allclose(model.weight.value.numpy().ravel(), [2, -3], atol=0.1)
    path = model.save_file("line")
    loaded = nn.Linear(2, 1, device=own).load_file(path)
    assert loaded.weight.value.tolist() == model.weight.value.tolist()


def run(part: str, told: Any) -> None:
    """Run one part, a device: "numpy", "cpu" or "wgpu"; `told` takes what was seen as JSON."""

    def tell(event: str, **more: Any) -> None:
        told(json.dumps({"event": event, **more}))

    tell("python", version=sys.version.split()[0], part=part)
    # Its package has no wheel for browsers.
    px.Numpy.dtypes -= {px.bfloat16}
    if part == "cpu":
        px.Cpu.dtypes -= {px.bfloat16}
        assert px.ones(3).device == px.Cpu(), px.ones(3).device  # as elsewhere, where it is there
    device = getattr(px, part.capitalize())()
    if part == "wgpu":
        found = px.Wgpu.describe()[0]
        tell("adapter", **{key: found[key] for key in ("name", "software", "features")})
        costs(tell)
    if part == "cpu":
        kernels(device, tell)
    records(device)
    tell("a line was learned, saved and loaded")
    conformance(device, tell)
    if isinstance(device, px.Wgpu):
        lost(device, tell)


def lost(device: px.Wgpu, tell: Callable[..., None]) -> None:
    """Give the GPU up, and see what the next calls say."""
    x = px.ones(3, device=device)
    device.device.engine.lose()
    for _ in range(2):
        try:
            (x + 1.0).numpy()
        except px.DeviceError as error:
            tell("lost", text=str(error).splitlines()[0])
        else:
            raise AssertionError("a lost GPU gave numbers")
