"""What an op would give, asked without running it."""

from __future__ import annotations

from typing import Any

import pytest

import phlox_tensor as pt
from phlox_tensor import REGISTRY, ArgumentError, KindError, Numpy, ShapeError, Spec
from phlox_tensor._device.numpy_backend import Arrays
from phlox_tensor.ops import _families as families
from phlox_tensor.testing import Check

F32, I32 = pt.float32, pt.int32


def test_shapes_broadcast_and_types_promote() -> None:
    add = REGISTRY["add"]
    assert add.infer(Spec((2, 1), F32), Spec((3,), pt.float64)) == Spec((2, 3), pt.float64)
    assert add.infer(Spec((2,), pt.int8), 3) == Spec((2,), pt.int8)
    assert REGISTRY["less"].infer(Spec((2,), F32), 0.5) == Spec((2,), pt.bool)


def test_tensors_stand_for_themselves() -> None:
    x = pt.ones((2, 3))
    assert REGISTRY["matmul"].infer(x, Spec((3, 4), F32)) == Spec((2, 4), F32)


def test_several_results_are_a_tuple() -> None:
    out = REGISTRY["topk"].infer(Spec((4, 9), F32), k=2)
    assert out == (Spec((4, 2), F32), Spec((4, 2), pt.int64))


def test_default_types_are_those_of_the_device() -> None:
    device = Numpy(float="float64", int="int32")
    x = Spec((3,), pt.int16)
    assert REGISTRY["divide"].infer(x, x, device=device) == Spec((3,), pt.float64)
    assert REGISTRY["argmax"].infer(Spec((3,), F32), device=device) == Spec((), I32)
    assert REGISTRY["sum"].infer(x, device=device) == Spec((), I32)


def test_an_attribute_may_name_the_type() -> None:
    assert REGISTRY["cast"].infer(Spec((3,), F32), pt.int8) == Spec((3,), pt.int8)
    full = REGISTRY["full"].infer(shape=(2, 3), value=1, dtype=F32)
    assert full == Spec((2, 3), F32)


def test_a_size_that_only_values_tell_is_unknown() -> None:
    mask = Spec((5,), pt.bool)
    assert REGISTRY["nonzero"].infer(mask) == Spec((-1,), pt.int64)
    assert REGISTRY["masked_select"].infer(Spec((5,), F32), mask) == Spec((-1,), F32)


def test_lists_of_operands_are_inferred() -> None:
    parts = [Spec((2, 3), F32), Spec((1, 3), F32)]
    assert REGISTRY["concat"].infer(parts, axis=0) == Spec((3, 3), F32)


def test_what_the_call_refuses_is_refused() -> None:
    with pytest.raises(ShapeError, match="inner sizes differ"):
        REGISTRY["matmul"].infer(Spec((2, 3), F32), Spec((4, 5), F32))
    with pytest.raises(KindError):
        REGISTRY["exp"].infer(Spec((2,), I32))
    with pytest.raises(ArgumentError, match="missing argument"):
        REGISTRY["matmul"].infer(Spec((2, 3), F32))
    with pytest.raises(pt.DTypeError, match="lacks the element type"):
        REGISTRY["cast"].infer(Spec((2,), F32), "float64", device=pt.Meta(dtypes=["float32"]))


class Wrong(Arrays):
    """NumPy, but for one op that gives what its declaration does not say."""

    name = "wrong"

    def __init__(self, spoil: Any, which: str) -> None:
        self.settings = (spoil, which)

    def entry(self, name: str) -> Any:
        right = Numpy().entry(name)
        spoil, which = self.settings
        if right is None or name != which:
            return right
        return lambda *args: spoil(right(*args))


@pytest.mark.parametrize(
    ("spoil", "problem"),
    [
        (lambda x: x.astype("float64"), "float64, inferred .* float32"),
        (lambda x: x[None], r"\(1,\) float32, inferred \(\)"),
    ],
)
def test_a_backend_that_gives_something_else_fails(spoil: Any, problem: str) -> None:
    with pytest.raises(AssertionError, match=problem):
        Check(Wrong(spoil, "exp"), REGISTRY["exp"], F32)()


@pytest.mark.parametrize("declare", [families.contraction, families.movement, families.view])
def test_an_op_without_a_shape_rule_is_refused(declare: Any) -> None:
    with pytest.raises(ValueError, match="'shapeless' needs shape="):
        declare("shapeless", "x: Float -> Float", expand=lambda x: x, doc="Nothing.")
    assert "shapeless" not in REGISTRY


def test_a_result_without_an_element_type_is_refused() -> None:
    with pytest.raises(ValueError, match="nothing says the element type of its Float result"):
        families.elementwise("typeless", "x: Int -> Float", expand=lambda x: x, doc="Nothing.")
    assert "typeless" not in REGISTRY


def test_an_op_without_cases_is_refused() -> None:
    with pytest.raises(ValueError, match="'caseless' needs cases="):
        families.row(
            "caseless",
            "x: Float -> Float",
            expand=lambda x: x,
            shape=lambda op, specs, attributes: [specs[0].shape],
            doc="Nothing.",
        )


def _arrays(name: str) -> list[Any]:
    from phlox_tensor.testing import samples

    return list(samples(REGISTRY[name], pt.float64, Numpy(float="float64")))


@pytest.mark.parametrize("name", sorted(n for n, op in REGISTRY.items() if op.traits.linear))
def test_linear_ops_are_linear(name: str) -> None:
    """f(2·x) = 2·f(x) and f(x + y) = f(x) + f(y), in all Float operands together."""
    op, device = REGISTRY[name], Numpy(float="float64")
    seen = 0
    for sample in _arrays(name):
        if sample.attributes.get("dtype", pt.float64) is not pt.float64:
            continue

        def scaled(factor: float, sample: Any = sample) -> list[Any]:
            def one(a: Any) -> Any:
                if a is None or isinstance(a, tuple):
                    return None if a is None else [one(x) for x in a]
                x: Any = pt.asarray(a, device=device)
                return x * factor if x.dtype.kind == "Float" else x

            return [one(o) for o in sample.operands]

        def results(factor: float, sample: Any = sample) -> list[Any]:
            out = op(*scaled(factor), **sample.attributes)
            return [x.numpy() for x in (out if isinstance(out, tuple) else (out,))]

        base = results(1.0)
        for factor in (2.0, -0.5, 0.0):
            for got, plain in zip(results(factor), base, strict=True):
                assert pt.allclose(pt.asarray(got), pt.asarray(plain * factor)), sample.attributes
        seen += 1
    assert seen


def test_bounds_without_data_are_tensors_too() -> None:
    device = pt.Meta()
    low = pt.asarray(0.0, device=device)
    assert pt.zeros((3, 2), device=device).clip(low, 1.0).shape == (3, 2)
