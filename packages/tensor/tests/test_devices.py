"""A backend object is the device: naming one, choosing one, moving between them."""

from __future__ import annotations

import asyncio
import copy
import pickle
import threading
from dataclasses import dataclass
from typing import Any, final

import numpy as np
import pytest

import phlox_tensor as pt
from phlox_tensor import (
    ArgumentError,
    Backend,
    BackendUnavailableError,
    Decorator,
    DeviceError,
    DTypeError,
    Entry,
    GradientError,
    Numpy,
    Op,
    Tensor,
)
from phlox_tensor._device import finding as _device
from phlox_tensor._device.numpy_backend import Arrays

WIDE = Numpy(float="float64", int="int32")


@final
@dataclass(frozen=True)
class Held:
    """A primitive that is not that of the inner device."""

    value: Any


@final
class Over(Decorator):
    """A decorator as thin as can be: its primitive holds the inner one."""

    name = "over"

    def decorate(self, op: Op, inside: Entry) -> Entry:
        return lambda *args: self.lift_all(op, inside(*self.lower_all(op, args)))

    def lift(self, primitive: Any, /) -> Any:
        return Held(primitive)

    def lower(self, primitive: Any, /) -> Any:
        return primitive.value


def test_equal_settings_are_one_object() -> None:
    assert Numpy() is Numpy(float="float32", int="int64")
    assert Numpy(float="float64") is not Numpy()
    assert Over(Numpy()) is Over(Numpy())
    assert copy.deepcopy(WIDE) is WIDE
    assert pickle.loads(pickle.dumps(WIDE)) is WIDE
    assert repr(WIDE) == "Numpy(float='float64', int='int32')"
    assert repr(Numpy()) == "Numpy()"


def test_names_and_objects_mean_devices() -> None:
    assert pt.as_device("numpy") is Numpy()
    assert pt.as_device(WIDE) is WIDE
    assert pt.ones(1, device="numpy").device is Numpy()


class Point:
    """Stands for an entry point of an installed backend."""

    def __init__(self, made: Any) -> None:
        self._made = made

    def load(self) -> Any:
        if isinstance(self._made, Exception):
            raise self._made
        return self._made


def test_installed_backends_are_found(monkeypatch: pytest.MonkeyPatch) -> None:
    """Those that cannot run here are left out; one that can is the default when it is the CPU."""

    class Several(Arrays):
        name = "several"

        def __init__(self, index: int = 0) -> None:
            if index > 1:
                raise BackendUnavailableError("several", "no such adapter", got=index)
            self.settings = (index,)

        def entry(self, name: str) -> Any:
            return Numpy().entry(name)

        @classmethod
        def found(cls) -> list[Any]:
            return [cls(0), cls(1)]

    points = {
        "broken": Point(ImportError("no native part")),
        "cpu": Point(ImportError("no native part")),
        "numpy": Point(Numpy),
        "several": Point(Several),
    }
    monkeypatch.setattr(_device, "backend_classes", lambda: points)
    _device.load_class.cache_clear()
    _device._fallback.cache_clear()
    try:
        assert pt.devices() == [Numpy(), Several(0), Several(1)]
        assert pt.as_device("several:1") is Several(1)
        with pytest.raises(BackendUnavailableError):
            pt.as_device("several:2")
        assert _device._fallback() is Numpy()
        points["cpu"] = Point(Several)
        _device.load_class.cache_clear()
        _device._fallback.cache_clear()
        assert _device._fallback() is Several()
    finally:
        _device.load_class.cache_clear()
        _device._fallback.cache_clear()


@pytest.mark.parametrize(
    ("device", "text"),
    [
        ("nope", "no such backend is installed: got 'nope', expected .*numpy"),
        ("numpy:0", "the backend has one device: got 'numpy:0', expected 'numpy'"),
        ("numpy:x", "not a device: got 'numpy:x'"),
        ("numpy:²", "not a device"),
        ("", "no such backend"),
        ("cuda:0", 'hint: device="wgpu"'),
        ("autodiff", r"hint: device=px\.Autodiff\("),
        (5, "not a device: got 5"),
        (Numpy, r"(?s)not a device.*hint: Numpy\(\)"),
        (pt.Mixed, r"(?s)not a device.*hint: Mixed\(Cpu\(\)\)"),
    ],
)
def test_what_is_no_device_is_refused(device: Any, text: str) -> None:
    with pytest.raises(ArgumentError, match=text):
        pt.ones(1, device=device)


@pytest.mark.parametrize("device", [Numpy, pt.Meta])
def test_a_default_type_of_another_kind_is_refused(device: Any) -> None:
    with pytest.raises(DTypeError, match="wrong kind of default float: got int8"):
        device(float="int8")
    with pytest.raises(DTypeError, match="wrong kind of default int: got float32"):
        device(int="float32")


def test_the_default_device_holds_in_its_block_alone() -> None:
    assert pt.default_device() is Numpy()
    with pt.use_device(WIDE) as inside:
        assert inside is WIDE
        assert pt.ones(1).device is WIDE
        assert pt.ones(1).dtype is pt.float64
        assert pt.arange(3).dtype is pt.int32
        with pt.use_device("numpy"):
            assert pt.zeros(1).device is Numpy()
        assert pt.zeros(1).device is WIDE
    assert pt.zeros(1).device is Numpy()
    with pytest.raises(KeyError), pt.use_device(WIDE):
        raise KeyError
    assert pt.default_device() is Numpy()


def test_the_default_device_is_of_its_thread_and_task() -> None:
    seen: list[Backend] = []

    async def task(device: Backend) -> Backend:
        with pt.use_device(device):
            await asyncio.sleep(0)
            return pt.ones(1).device

    async def both() -> list[Backend]:
        return list(await asyncio.gather(task(WIDE), task(Over(WIDE))))

    with pt.use_device(WIDE):
        thread = threading.Thread(target=lambda: seen.append(pt.default_device()))
        thread.start()
        thread.join()
        assert asyncio.run(both()) == [WIDE, Over(WIDE)]
    assert seen[0] is not WIDE


def test_two_base_devices_do_not_mix() -> None:
    x, y = pt.ones(2), pt.ones(2, device=WIDE)
    with pytest.raises(DeviceError) as caught:
        _ = x + y
    assert str(caught.value) == (
        "[add] tensors on different settings of one device: got Numpy() and "
        "Numpy(float='float64', int='int32'), expected one device\n"
        "hint: y.to_device(Numpy())"
    )
    with pytest.raises(DeviceError):
        pt.concat([x, y])
    with pytest.raises(DeviceError):
        pt.where(pt.asarray([True, False]), y, 1.0)
    assert (x + y.to_device(Numpy()).astype("float32")).tolist() == [2.0, 2.0]


def test_an_operand_inside_is_lifted() -> None:
    over = Over(Numpy())
    twice = Over(over)
    x, y, z = pt.ones(2), pt.ones(2, device=over), pt.ones(2, device=twice)
    for out, device in ((x + y, over), (y + x, over), (x * z, twice), (z - y, twice)):
        assert out.device is device
    assert pt.where(pt.asarray([True, False]), x, y).tolist() == [1.0, 1.0]
    assert x.at[0].set(y[0]).device is over
    with pytest.raises(DeviceError):
        _ = y + pt.ones(2, device=Over(WIDE))


def test_moving_to_a_decorator_and_back() -> None:
    over = Over(Over(Numpy()))
    x = pt.asarray([1.0, 2.0])
    up = x.to_device(over)
    assert up.device is over
    assert up.to_device(Numpy()).tolist() == [1.0, 2.0]
    assert up.inner().device is Over(Numpy())
    assert x.to_device(Numpy()) is x
    assert up.to_device(WIDE).dtype is pt.float32
    with pytest.raises(DeviceError, match="wraps no backend"):
        x.inner()


def test_moving_between_base_devices() -> None:
    for values in ([1.5, 2.0], [True, False], [1, -2]):
        x = pt.asarray(values)
        moved = x.to_device(WIDE)
        assert moved.device is WIDE
        assert moved.dtype is x.dtype
        assert moved.tolist() == values


def test_a_device_that_does_not_record_says_so() -> None:
    x = pt.ones(1)
    assert not x.requires_grad
    assert x.detach().tolist() == [1.0]
    with pytest.raises(GradientError, match=r"hint: x.to_device\(Autodiff\(Numpy\(\)\)\)"):
        x.require_grad()
    with pytest.raises(GradientError, match="does not record"):
        x.backward()
    with pytest.raises(DeviceError, match="does not count"):
        Numpy().memory()


def test_an_op_that_a_backend_lacks() -> None:
    @final
    class Poor(Arrays):
        name = "poor"

        def entry(self, name: str) -> Any:
            return Numpy().entry(name) if name in ("full", "maximum") else None

    x = pt.ones(2, device=Poor())
    assert x.relu().tolist() == [1.0, 1.0]  # by expansion: maximum(x, 0)
    with pytest.raises(BackendUnavailableError, match=r"\[add\] Poor\(\) lacks the op"):
        _ = x + x
    with pytest.raises(AttributeError, match="no attribute 'no_such_op'"):
        _ = Poor().ops.no_such_op


def test_entries_become_plain_attributes() -> None:
    device = Numpy("float64")
    entry = device.ops["tanh"]
    assert vars(device.ops)["tanh"] is entry
    assert device.ops.tanh is entry


def test_integers_that_do_not_fit_are_not_wrapped() -> None:
    class Small(Arrays):
        name = "small"
        dtypes = frozenset({pt.int8, pt.float32})
        default_float, default_int = pt.float32, pt.int8

        def entry(self, name: str) -> Any:
            return Numpy("float32", "int8").entry(name)

    assert pt.asarray([127, -128]).to_device(Small()).dtype is pt.int8
    with pytest.raises(DTypeError, match=r"got -129\.\.5, expected int8: -128\.\.127"):
        pt.asarray([5, -129]).to_device(Small())
    with pytest.raises(DTypeError, match="expected float32, int8"):
        pt.asarray([True]).to_device(Small())
    with pytest.raises(DTypeError):
        pt.random.randint((2,), 0, 300, device=Small())


def test_reading_waits_and_has_an_async_twin() -> None:
    x: Tensor[Any] = pt.arange(3)
    Numpy().sync()
    assert np.array_equal(asyncio.run(x.numpy_async()), [0, 1, 2])


def test_an_emptied_cache_is_that_of_the_device_named_or_of_all(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    trimmed: list[Backend] = []

    def trim(device: Backend) -> None:
        trimmed.append(device)

    monkeypatch.setattr(Numpy, "trim", trim)
    first, second = Numpy(), Numpy(float="float64")
    pt.empty_cache(first)
    pt.empty_cache(pt.Profile(first))  # a decorator keeps what its inner device keeps
    assert trimmed == [first, first]
    pt.empty_cache()
    assert trimmed.count(first) >= 3  # a WithHost of another test computes on it too
    assert second in trimmed
    with pytest.raises(ArgumentError, match=r"\[device\] no such backend is installed: got 'gpu'"):
        pt.empty_cache("gpu")


def test_a_setting_that_tells_no_two_devices_apart_is_refused() -> None:
    class Plain(pt.Decorator):
        name = "plain"

        def decorate(self, op: Any, inside: Any) -> Any:
            return inside

    class Scale(Plain):
        def __init__(self, backend: pt.Backend, scale: float = 1.0) -> None:
            super().__init__(backend)
            self.scale = scale

    with pytest.raises(TypeError, match=r"in scale .*\n.*__init__\(backend, scale\)"):
        Scale(pt.Numpy(), 2.0)
