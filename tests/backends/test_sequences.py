"""Sequences of native calls: each row alone as a plan, and whole steps without Python inside."""

from __future__ import annotations

import threading
from collections import Counter
from typing import Any, final

import numpy as np
import pytest

import phlox as px
from phlox import nn, optim
from phlox_kernels import _native
from phlox_tensor import Backend, Op
from phlox_tensor._device.backend import watch
from phlox_tensor.capture import Call, CallSequence, Value
from phlox_tensor.testing import Check, checks

# An index is read anew for each shape, a quotient told its float type; both go through Python.
_BY_PYTHON = {"getitem"}


@final
class ByPlans:
    """Runs each op of ``Cpu`` as a plan of one step, where there is one."""

    def __init__(self) -> None:
        self.ran: Counter[str] = Counter()
        self.left: Counter[str] = Counter()

    def entry(self, device: Backend, op: Op, entry: Any, /) -> Any:
        """Return what runs in the place of an entry."""
        if device is not px.Cpu():
            return entry

        def run(*args: Any) -> Any:
            run = device.sequence(_one_call(entry, args))
            (self.left if run is None else self.ran)[op.name] += 1
            if run is None:
                return entry(*args)
            out = run([item for item in _flat(args) if _is_array(item)], ())
            return out if op.signature.several else out[0]

        return run

    def methods(self, device: Backend, /) -> dict[str, Any]:
        """Reading and uploading stay as they are."""
        del device
        return {}


def _is_array(item: Any) -> bool:
    return type(item).__name__ == "RawTensor"


def _flat(args: Any) -> list[Any]:
    return [x for item in args for x in (_flat(item) if type(item) is tuple else [item])]


def _one_call(entry: Any, args: tuple[Any, ...]) -> CallSequence:
    """A call whose arrays are values, the results of which are counted by a call of it."""
    count = 0

    def value(item: Any) -> Any:
        nonlocal count
        if type(item) is tuple:
            return tuple(map(value, item))
        if not _is_array(item):
            return item
        count += 1
        return Value(count - 1)

    given = tuple(map(value, args))
    inputs = tuple(range(count))
    out = entry(*args)
    results = tuple(range(count, count + (len(out) if isinstance(out, tuple) else 1)))
    return CallSequence(inputs, (), (Call(entry, (given,), results, inputs),), results, 0)


def test_every_native_op_is_a_step_with_the_results_of_its_function() -> None:
    first: dict[str, Check] = {}
    for check in checks(px.Cpu()):
        if check.op.name not in first or check.dtype.name == "float32":
            first[check.op.name] = check
    by_plans = ByPlans()
    watch(by_plans, on=True)
    try:
        for check in first.values():
            check()
    finally:
        watch(by_plans, on=False)
    native = {name for name in by_plans.left if px.Cpu().ops[name] is _function(name)}
    assert native <= _BY_PYTHON
    assert len(by_plans.ran) > 150


def _function(name: str) -> Any:
    return getattr(_native, name, None)


def _step() -> tuple[Any, Any, Any]:
    device = px.Autodiff(px.Cpu())
    px.seed(1)
    model = nn.Sequential(
        nn.Linear(12, 16, device=device), nn.Dropout(0.25), nn.Linear(16, 3, device=device)
    )
    rule = optim.AdamConfig().init()
    loss_of = nn.CrossEntropyLossConfig().init()

    def step(model: Any, lr: float, x: Any, y: Any) -> Any:
        loss = loss_of(model(x), y)
        return rule.step(lr, model, loss.backward()), loss

    return step, model, device


def _trained(step: Any, model: Any, device: Any) -> list[bytes]:
    px.seed(2)
    rng = np.random.default_rng(0)
    losses = []
    for at in range(8):
        x = px.asarray(rng.standard_normal((6, 12), np.float32), device=device)
        y = px.asarray(rng.integers(0, 3, 6), device=device)
        model, loss = step(model, 0.01 / (1 + at), x, y)
        losses.append(loss.numpy().tobytes())
    return [*losses, *(p.value.numpy().tobytes() for p in model.params().values())]


def test_a_training_step_is_one_native_call_with_equal_bits() -> None:
    expected = _trained(*_step())
    step, model, device = _step()
    fast = px.compile(step)
    assert _trained(fast, model, device) == expected
    assert fast.fallbacks == 0
    text = fast.sources[-1]
    assert text.count(" = sequence_") == 1
    assert not [line for line in text.splitlines() if " = linear_" in line and line[0] != "#"]


def test_an_index_out_of_range_inside_raises_from_the_function() -> None:
    device = px.Cpu()
    table = px.asarray(np.arange(6.0, dtype=np.float32).reshape(3, 2), device=device)
    fast = px.compile(lambda x, at: (px.take(x * 2, at, axis=0) + 1).sum())
    good, bad = px.asarray([0, 2], device=device), px.asarray([0, 7], device=device)
    for _ in range(4):
        assert fast(table, good).item() == 24.0
    with pytest.raises(px.IndexOutOfRangeError):
        fast(table, bad)
    assert fast(table, good).item() == 24.0


def test_threads_share_a_plan() -> None:
    device = px.Cpu()
    fast = px.compile(lambda x, rate: ((x @ x) * rate).tanh().sum(axis=0))
    x = px.asarray(np.random.default_rng(0).standard_normal((300, 300), np.float32), device=device)
    expected = {rate: [fast(x, rate).tolist() for _ in range(3)][-1] for rate in (0.5, 2.0)}
    found: list[bool] = []

    def work(rate: float) -> None:
        for _ in range(5):
            found.append(fast(x, rate).tolist() == expected[rate])

    threads = [threading.Thread(target=work, args=(rate,)) for rate in (0.5, 2.0)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert found == [True] * 10
    assert fast.fallbacks == 0


def test_a_plan_lets_go_of_arrays_with_their_last_use() -> None:
    device = px.Cpu()
    x = px.asarray(np.ones((512, 512), np.float32), device=device)

    def long(x: Any) -> Any:
        for _ in range(12):
            x = (x @ x).clip(-1.0, 1.0)
        return x

    fast = px.compile(long)
    for _ in range(3):
        fast(x)
    assert any("sequence_" in text for text in fast.sources)
    before = _most(device, lambda: long(x))
    assert _most(device, lambda: fast(x)) <= before


def _most(device: Any, run: Any) -> int:
    start = device.memory().current
    _native._reset_peak()
    run()
    return int(device.memory().peak - start)
