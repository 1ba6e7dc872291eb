"""The table of ops is apart from the device, ready before it is seen, and keeps nothing alive."""

from __future__ import annotations

import gc
import threading
import weakref
from typing import Any, final

import pytest

import phlox_tensor as pt
from phlox_tensor import ArgumentError, Decorator, Entry, Numpy, Op
from phlox_tensor._op.declaration import REGISTRY
from phlox_tensor.ops import elementwise


@final
class Logging(Decorator):
    """A decorator with attributes whose names are those of ops."""

    name = "logging"

    def __init__(self, inner: pt.Backend) -> None:
        super().__init__(inner)
        self.log: list[str] = []
        self.power = "high"

    def decorate(self, op: Op, inside: Entry) -> Entry:
        def run(*args: Any) -> Any:
            self.log.append(op.name)
            return inside(*args)

        return run


def test_an_op_and_an_attribute_of_a_device_may_have_one_name() -> None:
    device = Logging(Numpy())
    declared = elementwise("power", "x: Float -> Float", expand=lambda x: x * x, doc="x · x.")
    try:
        x = pt.asarray([4.0], device=device)
        assert x.log().exp().power().tolist() == pytest.approx([16.0])  # type: ignore[attr-defined]
        assert device.power == "high"
        assert device.log[-3:] == ["log", "exp", "power"]
    finally:
        del REGISTRY[declared.name]
        del pt.Tensor.power  # type: ignore[attr-defined]


def test_a_table_holds_ops_and_nothing_else() -> None:
    table = Numpy().ops
    assert set(vars(table)) >= {"add", "matmul", "sum"}
    assert {name for name in dir(table) if not name.startswith("_")} == set(vars(table))
    with pytest.raises(ArgumentError, match=r"\[ops\] no such op"):
        table["no_such_op"]
    with pytest.raises(AttributeError):
        table.no_such_op  # noqa: B018


def test_entries_that_check_nothing_reject() -> None:
    x = pt.ones(2, device=Numpy())
    with pytest.raises(pt.Rejected):
        x.device.checking.add(x.primitive, x.primitive)
    assert x.device.ops.add(x.primitive, x.primitive).tolist() == [2.0, 2.0]


def test_a_device_made_by_many_threads_at_once_is_ready_for_all() -> None:
    failures: list[Exception] = []
    for number in range(40):

        @final
        class Fresh(Decorator):
            name = f"fresh {number}"

            def decorate(self, op: Op, inside: Entry) -> Entry:
                return inside

        gate = threading.Barrier(4)

        def make(cls: Any = Fresh, gate: threading.Barrier = gate) -> None:
            gate.wait()
            try:
                made = cls(Numpy())
                assert made.ops.full((1,), 1, pt.float32) is not None
                assert made.passed == {}
            except Exception as error:
                failures.append(error)

        threads = [threading.Thread(target=make) for _ in range(4)]
        for thread in threads:
            thread.start()
        for thread in threads:
            thread.join()
    assert not failures


def test_a_passed_call_does_not_let_a_wrong_one_pass() -> None:
    x = pt.ones((2, 3), device=Numpy())
    for wrong in (1.0, (1.0,)):
        x.sum(axis=1)
        x.sum(axis=(1,))
        with pytest.raises(pt.PhloxError):
            x.sum(axis=wrong)  # type: ignore[arg-type]


def test_passed_calls_keep_no_tensor_alive() -> None:
    x = pt.ones(3, device=Numpy())
    bound = pt.asarray(0.5, device=Numpy())
    x.clip(max=bound)
    kept = weakref.ref(bound)
    del bound
    gc.collect()
    assert kept() is None


def test_zeros_of_both_signs_are_two_attributes() -> None:
    x = pt.ones(1, device=Numpy())
    for value in (0.0, -0.0, 0.0):
        got = x.pad(((1, 0),), value=value)
        assert str(float(got[0])) == str(value)
