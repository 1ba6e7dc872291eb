"""Tensors, element types, ops and errors cross process borders."""

from __future__ import annotations

import copy
import io
import pickle
import subprocess
import sys
from typing import Any

import numpy as np
import pytest

import phlox_tensor as pt
from phlox_tensor import DType, Tensor
from phlox_tensor._pickle import Place, restore_tensor

ns: Any = pt


def again(value: Any, protocol: int = pickle.DEFAULT_PROTOCOL) -> Any:
    return pickle.loads(pickle.dumps(value, protocol))


@pytest.mark.parametrize("name", sorted(pt.DTYPES))
def test_an_element_type_comes_back_as_the_one_object(name: str) -> None:
    for protocol in range(2, pickle.HIGHEST_PROTOCOL + 1):
        assert again(pt.DTYPES[name], protocol) is pt.DTYPES[name]
    assert copy.deepcopy(pt.DTYPES[name]) is pt.DTYPES[name]


def test_an_error_that_carries_an_element_type_comes_back() -> None:
    with pytest.raises(pt.KindError) as caught:
        ns.exp(pt.asarray([True]))
    made = pt.DTypeError("exp", "lacks the element type", got=pt.bool, expected=pt.float32)
    for error in (caught.value, made):
        back = again(error)
        assert type(back) is type(error)
        assert str(back) == str(error)
    assert again(made).got is pt.bool_


@pytest.mark.parametrize("name", ["add", "softmax", "concat"])
def test_an_op_comes_back_as_the_registered_one(name: str) -> None:
    assert again(pt.REGISTRY[name]) is pt.REGISTRY[name]
    assert copy.copy(pt.REGISTRY[name]) is pt.REGISTRY[name]
    assert copy.deepcopy(pt.REGISTRY[name]) is pt.REGISTRY[name]


def test_an_op_that_is_not_declared_here_is_named() -> None:
    data = pickle.dumps(pt.REGISTRY["add"], 2).replace(
        b"\x03\x00\x00\x00add", b"\x03\x00\x00\x00xyz"
    )
    with pytest.raises(pt.ArgumentError, match=r"no op of this name is declared here: got xyz"):
        pickle.loads(data)


def layouts(dtype: DType) -> list[Tensor[Any]]:
    base = pt.asarray(np.arange(24).reshape(2, 3, 4) % 2, dtype=dtype)
    other = pt.asarray(np.arange(24).reshape(2, 3, 4) % 7 % 2, dtype=dtype)
    return [
        base,
        base.permute_dims(2, 0, 1),
        other[:, ::2, 1:],
        base[0, 0, 0],
        base[:, :0],
        base.mT,
    ]


@pytest.mark.parametrize("name", sorted(pt.DTYPES))
def test_a_tensor_comes_back_with_the_same_bits(name: str) -> None:
    for protocol in range(2, pickle.HIGHEST_PROTOCOL + 1):
        for x in layouts(pt.DTYPES[name]):
            back = again(x, protocol)
            assert back.shape == x.shape
            assert back.dtype is x.dtype
            assert back.device is x.device
            assert back.numpy().tobytes() == x.numpy().tobytes()


def test_special_values_keep_their_bits() -> None:
    x = pt.asarray(np.array([np.nan, -np.nan, np.inf, -0.0, 1e-45], np.float32))
    assert again(x).numpy().tobytes() == x.numpy().tobytes()


def test_a_device_comes_back_with_its_settings() -> None:
    x = pt.zeros((2,), device=pt.Numpy(float="float64"))
    assert again(x).device is pt.Numpy(float="float64")
    assert again(pt.Numpy(float="float64")) is pt.Numpy(float="float64")


class Scaled(pt.Decorator):
    """A device with a setting that is taken by keyword."""

    name = "scaled"

    def __init__(self, backend: pt.Backend | str, *, scale: float) -> None:
        super().__init__(backend, scale)

    def decorate(self, op: pt.Op, inside: Any) -> Any:
        return inside


def test_a_device_with_settings_by_keyword_comes_back() -> None:
    device = Scaled(pt.Numpy(), scale=2.0)
    assert again(device) is copy.deepcopy(device) is device
    assert again(pt.ones(2, device=device)).device is device
    assert device.without_recording() is device


def test_a_backend_that_is_not_installed_is_named_with_what_to_install() -> None:
    hints = {"cpu": "pip install phlox-kernels", "wgpu": 'pip install "phlox[wgpu]"'}
    for name, hint in hints.items():
        with pytest.raises(
            pt.ArgumentError, match=f"no such backend is installed: got '{name}'"
        ) as e:
            restore_tensor(b"\x00" * 4, "float32", (), Place(name, ()))
        assert e.value.hint == hint


def test_a_backend_that_nobody_knows_has_no_package_to_install() -> None:
    with pytest.raises(pt.ArgumentError, match="no such backend is installed: got 'tpu'") as caught:
        restore_tensor(b"\x00" * 4, "float32", (), Place("tpu", ()))
    assert caught.value.hint is None


def test_bytes_that_do_not_fit_the_shape_are_refused() -> None:
    with pytest.raises(pt.RecordError, match="got 3 bytes, expected 8 for float32 of shape"):
        restore_tensor(b"abc", "float32", (2,), Place("numpy", ()))


def test_a_tensor_pickled_in_another_process_is_the_same() -> None:
    code = (
        "import pickle, sys, phlox_tensor as pt\n"
        "x = pt.asarray([[1.5, 2.5], [3.5, 4.5]], device='numpy').T\n"
        "sys.stdout.buffer.write(pickle.dumps(x))\n"
    )
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, check=True)
    assert pickle.loads(done.stdout).tolist() == [[1.5, 3.5], [2.5, 4.5]]


def test_loading_calls_only_constructors_of_the_package() -> None:
    called: list[str] = []

    class Watched(pickle.Unpickler):
        def find_class(self, module: str, name: str) -> Any:
            called.append(f"{module}.{name}")
            return super().find_class(module, name)

    Watched(io.BytesIO(pickle.dumps(pt.ones((2, 2))))).load()
    assert called == ["phlox_tensor._pickle.restore_tensor", "phlox_tensor._pickle.Place"]
