"""Values of ops beside those of PyTorch's functions of the same names, over the declared samples.

An op is compared as soon as PyTorch has its name: as it takes operands and attributes there, or as
``pytorch_calls`` says. One of which no sample is compared fails.
"""

from __future__ import annotations

import warnings
from typing import Any, Final

import numpy as np
import pytest

import phlox as px
from phlox import nn
from phlox_tensor import Op
from phlox_tensor._op.declaration import REGISTRY
from phlox_tensor.testing._samples import samples
from tests.backends.pytorch_calls import APART, CALLS, FEWER, FIRST, NAMES, OWN

torch: Any = pytest.importorskip("torch", reason="PyTorch comes with ./x test --long")
pytestmark = pytest.mark.long

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


def _twin(name: str) -> Any:
    rooms = (torch.linalg, torch, torch.special, torch.nn.functional)  # torch.qr is deprecated
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


def _wanted(name: str, operands: tuple[Any, ...], attributes: dict[str, Any]) -> Any:
    """What PyTorch gives; None where it does not take these arguments."""
    names = OWN.get(name, {}) if name in CALLS else NAMES
    named = {names.get(each, each): value for each, value in attributes.items()}
    function = CALLS.get(name) or _twin(name)
    try:
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")
            out = function(*[_theirs(operand) for operand in operands], **named)
    except (IndexError, NotImplementedError, RuntimeError, TypeError, ValueError):
        return None
    return [np.asarray(part) for part in (out if isinstance(out, (tuple, list)) else (out,))]


def _compared(op: Op) -> int:
    """How many samples agree; one that does not is an error."""
    count = 0
    defaults = {a.name: a.default for a in op.signature.attributes if a.name == "correction"}
    for sample in samples(op, px.float32, px.Cpu()):
        if "dtype" in sample.attributes:
            continue
        wanted = _wanted(op.name, sample.operands, defaults | sample.attributes)
        if wanted is None:
            continue
        out = op(*[_ours(operand) for operand in sample.operands], **sample.attributes)
        got = list(out) if isinstance(out, (tuple, list)) else [out]
        if op.name in FIRST:
            got, wanted = got[: FIRST[op.name][0]], wanted[: FIRST[op.name][0]]
        what = f"{op.name} {sample.attributes}"
        assert len(got) == len(wanted), what
        for mine, theirs in zip(got, wanted, strict=True):
            fewer = op.name in FEWER and 1 in (*mine.shape, *theirs.shape)
            other = theirs.reshape(mine.shape) if fewer else theirs
            assert mine.shape == other.shape, what
            np.testing.assert_allclose(mine.numpy(), other, rtol=1e-4, atol=1e-5, err_msg=what)
        count += 1
    return count


TWINS: Final = sorted(n for n, op in REGISTRY.items() if _twin(n) is not None and n not in OTHERS)


@pytest.mark.parametrize("name", [name for name in TWINS if name not in APART])
def test_values_are_those_of_pytorch(name: str) -> None:
    assert _compared(REGISTRY[name]) > 0, "no sample was compared: a row of CALLS or APART"


def test_tables_of_exceptions_name_ops_of_both() -> None:
    for table in (CALLS, APART, FIRST, FEWER):
        assert set(table) <= set(TWINS), set(table) - set(TWINS)
    assert set(OWN) <= set(CALLS)
    assert not set(APART) & set(CALLS)


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


def test_the_sign_of_a_negative_tensor_is_kept() -> None:
    there = torch.tensor([1 + 2j, 3 - 4j]).conj().imag
    assert there.is_neg()
    assert px.asarray(there).tolist() == px.from_dlpack(there).tolist() == [-2.0, 4.0]
    assert px.asarray(there[1:]).tolist() == [4.0]
    assert nn.Linear(1, 2, bias=False).load_record(
        {"weight": there[:, None]}
    ).weight.value.tolist() == [[-2.0, 4.0]]


def _lends_none() -> dict[str, Any]:
    jax = pytest.importorskip("jax", reason="JAX is no part of every set of peers")
    return {
        "conjugated": torch.tensor([1 + 2j]).conj(),
        "float8": torch.ones(3).to(torch.float8_e4m3fn),
        "float8 of JAX": jax.numpy.ones(3, "float8_e4m3fn"),
        "int4 of JAX": jax.numpy.ones(3, "int4"),
        "key": jax.random.key(0),
        "meta": torch.ones(3, device="meta"),
        "nested": torch.nested.nested_tensor([torch.ones(2), torch.ones(3)]),
        "other byte order": np.arange(3, dtype=">f4"),
        "parameter": torch.nn.Parameter(torch.ones(3)),
        "quantized": torch.quantize_per_tensor(torch.ones(3), 0.1, 0, torch.qint8),
        "sparse": torch.eye(3).to_sparse(),
    }


@pytest.mark.filterwarnings("ignore")  # that quantized and nested tensors are to go
def test_the_hint_for_an_array_that_lends_no_data_takes_it_over() -> None:
    import jax  # pyright: ignore[reportMissingImports] - in .x/peers

    for name, x in _lends_none().items():
        with pytest.raises((px.SharingError, px.WrongTypeError)) as caught:
            px.from_dlpack(x)
        hint = str(caught.value.hint).partition("), which")[0]
        hint += ")" * (hint.count("(") - hint.count(")"))
        names = {"px": px, "np": np, "jax": jax, "torch": torch, "x": x, "z": x}
        made = eval(hint, names)
        assert isinstance(made, px.Tensor | px.fft.Spectrum), name
        if name != "other byte order":
            with pytest.raises(px.SharingError):
                px.asarray(x)
