"""Values of ops beside those of PyTorch's functions of the same names, over the declared samples.

An op is compared as soon as PyTorch has its name and takes its operands and attributes.
"""

from __future__ import annotations

import warnings
from typing import Any, Final

import numpy as np
import pytest

import phlox as px
from phlox_tensor import Op
from phlox_tensor._op import REGISTRY
from phlox_tensor.testing._samples import samples

torch: Any = pytest.importorskip("torch", reason="PyTorch comes with ./x test --long")
pytestmark = pytest.mark.long

# What PyTorch calls attributes.
NAMES: Final = {
    "axis": "dim",
    "keepdims": "keepdim",
    "kernel": "kernel_size",
    "size": "output_size",
}
# Ops that mean something else there, and what.
OTHERS: Final = {
    "argsort": "equal elements are in any order",
    "ctc_loss": "targets that hold the blank mean something there",
    "diagonal": "of the first two axes",
    "eigh": "reads one triangle",
    "equal": "compares whole tensors",
    "lu": "keeps both factors in one tensor",
    "median": "of an even number of elements the lower one",
    "mode": "the place of the last of equals",
    "nonzero": "one tensor of places",
    "svd": "signs, and a factor turned",
    "topk": "equal elements are in any order",
}
LEAST = 160


def _twin(name: str) -> Any:
    rooms = (torch, torch.special, torch.linalg, torch.nn.functional)
    found = (getattr(room, name, None) for room in rooms)
    return next((f for f in found if callable(f) and not isinstance(f, type)), None)


def _theirs(operand: Any) -> Any:
    if isinstance(operand, tuple):
        return [torch.from_numpy(np.array(part)) for part in operand]
    return None if operand is None else torch.from_numpy(np.array(operand))


def _ours(operand: Any) -> Any:
    if isinstance(operand, tuple):
        return tuple(px.asarray(part, device=px.Cpu()) for part in operand)
    return None if operand is None else px.asarray(operand, device=px.Cpu())


def _wanted(function: Any, operands: tuple[Any, ...], attributes: dict[str, Any]) -> Any:
    """What PyTorch gives; None where it takes other arguments."""
    named = {NAMES.get(name, name): value for name, value in attributes.items()}
    try:
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")
            out = function(*[_theirs(operand) for operand in operands], **named)
    except (IndexError, RuntimeError, TypeError, ValueError):
        return None
    return [np.asarray(part) for part in (out if isinstance(out, (tuple, list)) else (out,))]


def _compared(op: Op) -> int:
    """How many samples agree; one that does not is an error."""
    function, count = _twin(op.name), 0
    defaults = {a.name: a.default for a in op.signature.attributes if a.name == "correction"}
    for sample in samples(op, px.float32, px.Cpu()):
        if "dtype" in sample.attributes:
            continue
        wanted = _wanted(function, sample.operands, defaults | sample.attributes)
        if wanted is None:
            continue
        out = op(*[_ours(operand) for operand in sample.operands], **sample.attributes)
        got = out if isinstance(out, tuple) else (out,)
        for mine, theirs in zip(got, wanted, strict=False):
            what = f"{op.name} {sample.attributes}"
            np.testing.assert_allclose(mine.numpy(), theirs, rtol=1e-4, atol=1e-5, err_msg=what)
        count += 1
    return count


TWINS: Final = sorted(n for n, op in REGISTRY.items() if _twin(n) is not None and n not in OTHERS)


def test_most_ops_that_pytorch_has_are_compared() -> None:
    assert sum(_compared(REGISTRY[name]) > 0 for name in TWINS) >= LEAST


@pytest.mark.parametrize("name", TWINS)
def test_values_are_those_of_pytorch(name: str) -> None:
    _compared(REGISTRY[name])


@pytest.mark.parametrize("name", OTHERS)
def test_what_differs_is_an_op_of_both(name: str) -> None:
    assert name in REGISTRY
    assert _twin(name) is not None


@pytest.mark.parametrize(
    "dtype", ["bfloat16", "bool", "float16", "float32", "float64", "int64", "uint8"]
)
@pytest.mark.parametrize("shape", [(), (0, 3), (2, 3)])
def test_tensors_go_to_pytorch_and_come_back(dtype: str, shape: tuple[int, ...]) -> None:
    x = (px.arange(6).reshape(2, 3) % 2).astype(dtype)
    x = x[0, 1] if not shape else x[: shape[0]]
    there = torch.from_dlpack(x)
    assert (str(there.dtype), tuple(there.shape)) == (f"torch.{dtype}", shape)
    assert there.tolist() == x.tolist()
    back = px.from_dlpack(there)
    assert (back.dtype.name, back.shape, back.tolist()) == (dtype, shape, x.tolist())


def test_bfloat16_weights_cross_in_both_layouts() -> None:
    weight = torch.arange(6, dtype=torch.bfloat16).reshape(2, 3)
    for there in (weight, weight.T, weight[:, 1:]):
        here = px.asarray(there)
        assert (here.dtype, here.tolist()) == (px.bfloat16, there.tolist())
        assert torch.equal(torch.from_dlpack(here.T), there.T)


@pytest.mark.parametrize("dtype", ["bfloat16", "float32", "int32"])
def test_tensors_go_to_jax_and_come_back(dtype: str) -> None:
    jax = pytest.importorskip("jax", reason="JAX is no part of every set of peers")
    x = (px.arange(6).reshape(2, 3) - 2).astype(dtype)
    there = jax.dlpack.from_dlpack(x)
    assert (str(there.dtype), there.shape, there.tolist()) == (dtype, (2, 3), x.tolist())
    back = px.from_dlpack(there)
    assert (back.dtype.name, back.tolist()) == (dtype, x.tolist())


def test_a_tensor_that_records_is_refused_with_a_hint() -> None:
    with pytest.raises(px.SharingError, match="the array lends no data") as caught:
        px.asarray(torch.ones(2, requires_grad=True))
    assert "detach" in str(caught.value.hint)
