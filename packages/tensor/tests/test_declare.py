"""Ops declared in user code, the signature's little language, and what both refuse."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import numpy as np
import pytest

import phlox_tensor as pt
from phlox_tensor import (
    REGISTRY,
    ArgumentError,
    KindError,
    Numpy,
    ShapeError,
    Spec,
    Tensor,
    UnknownOpError,
    WrongTypeError,
)
from phlox_tensor._device.numpy_backend import Arrays
from phlox_tensor._op.checks import FIELDS, check_fields
from phlox_tensor._op.declaration import declare
from phlox_tensor._op.records import case
from phlox_tensor._op.signature import REQUIRED, parse
from phlox_tensor.ops import _families as families
from phlox_tensor.ops import elementwise
from phlox_tensor.shapes._equal import same
from phlox_tensor.testing import conformance


@pytest.fixture(autouse=True)
def _undeclare() -> Iterator[None]:
    """Forget what a test declares: registry, methods, and what backends looked up."""
    before, methods = dict(REGISTRY), set(vars(Tensor))
    yield
    for name in set(REGISTRY) - set(before):
        del REGISTRY[name]
        vars(Numpy()).pop(name, None)
    for name in set(vars(Tensor)) - methods:
        delattr(Tensor, name)


def test_an_op_by_its_formula_alone() -> None:
    op = elementwise(
        "square_plus",
        "x: Float -> Float",
        expand=lambda x: (x + (x * x + 4).sqrt()) / 2,
        ulp=8,
        doc="A smooth relu.",
    )
    x: Any = pt.asarray([0.0, 1.5])
    assert op(x).tolist() == x.square_plus().tolist() == [1.0, 2.0]
    assert type(x).square_plus.__doc__ == "A smooth relu."
    assert conformance(Numpy(), ["square_plus"]) == 4
    with pytest.raises(KindError, match=r"\[square_plus\] x is of a kind"):
        op(pt.asarray([1]))
    assert "square_plus" in repr(op)


def test_an_op_by_numpy_with_attributes() -> None:
    op = elementwise(
        "scaled",
        "x1: Num, x2: Num; factor: float = 2.0 -> Num",
        numpy=lambda a, b, factor: (a * b * factor).astype(a.dtype),
        doc="A product and a factor.",
    )
    x: Any = pt.asarray([1.0, 2.0])
    assert op(x, 3.0).tolist() == [6.0, 12.0]
    assert x.scaled(pt.asarray([[1.0], [2.0]]), factor=1.0).shape == (2, 2)
    with pytest.raises(ArgumentError, match="factor is not a number"):
        op(x, x, factor="a")
    with pytest.raises(ShapeError):
        op(x, pt.ones(3))
    assert conformance(Numpy(), ["scaled"]) > 8


def test_an_op_of_another_class_with_two_results() -> None:
    op = families.row(
        "min_max",
        "x: Num; axis: Axis = -1 -> low: Num, high: Num",
        expand=lambda x, axis: (x.min(axis=axis), x.max(axis=axis)),
        shape=lambda op, specs, attributes: [specs[0].shape[:-1]] * 2,
        cases=(case((3, 4), axis=1),),
        method=False,
        doc="Both ends.",
    )
    low, high = op(pt.asarray([3, 1, 2]))
    assert (low.item(), high.item()) == (1, 3)
    assert not hasattr(Tensor, "min_max")
    assert conformance(Numpy(), ["min_max"]) > 8


def test_an_op_of_many_tensors() -> None:
    op = families.movement(
        "interleave",
        "*xs: Any -> Any",
        expand=lambda xs: pt.stack(list(xs), axis=1).flatten(),
        shape=lambda op, specs, attributes: [(-1,)],
        cases=(case([(3,), (3,)]),),
        doc="First elements first.",
    )
    assert op([pt.asarray([1, 2]), pt.asarray([3, 4])]).tolist() == [1, 3, 2, 4]
    assert conformance(Numpy(), ["interleave"]) > 8


def test_an_op_with_an_operand_that_may_be_absent() -> None:
    op = families.row(
        "scaled_row",
        "x: Float, scale: Float? -> Float",
        expand=lambda x, scale: x if scale is None else x * scale,
        shape=same,
        cases=(case((2, 3), None), case((2, 3), (3,))),
        method=False,
        doc="A product, or not.",
    )
    assert op(pt.ones(2)).tolist() == [1, 1]
    assert op(pt.ones(2), pt.asarray([2.0, 3.0])).tolist() == [2, 3]
    assert conformance(Numpy(), ["scaled_row"]) == 4


FORMULA: Any = {"expand": lambda x: x, "doc": "Nothing."}


@pytest.mark.parametrize(
    ("name", "signature", "fields", "text"),
    [
        ("exp", "x: Float -> Float", FORMULA, "taken"),
        ("Upper", "x: Float -> Float", FORMULA, "malformed"),
        ("1st", "x: Float -> Float", FORMULA, "malformed"),
        ("new_op", "x: Float -> Float", {"doc": "Nothing."}, "needs numpy= or expand="),
        ("new_op", "x: Float", FORMULA, "without '->'"),
        ("new_op", "x: Float ->", FORMULA, "without a result"),
        ("new_op", "x: Complex -> Float", FORMULA, "operand 'x: Complex'"),
        ("new_op", "x -> Float", FORMULA, "operand 'x'"),
        ("new_op", "x: Float -> Complex", FORMULA, "result 'Complex'"),
        ("new_op", "x: Float; n -> Float", FORMULA, "attribute 'n'"),
        ("new_op", "x: Float; n: integer -> Float", FORMULA, "attribute 'n: integer'"),
        ("new_op", "x: Float; n: int = a b -> Float", FORMULA, "not a literal"),
        ("new_op", "x: Float, x: Float -> Float", FORMULA, "twice"),
        ("new_op", "x: Float; x: int -> Float", FORMULA, "twice"),
        ("new_op", "1x: Float -> Float", FORMULA, "malformed"),
        ("new_op", "lambda: Float -> Float", FORMULA, "malformed"),
        ("new_op", "x: Float,, y: Float -> Float", FORMULA, "operand ''"),
        ("shape", "x: Float -> Float", FORMULA, "method 'shape' already"),
        ("at", "x: Float -> Float", FORMULA, "method 'at' already"),
    ],
)
def test_a_bad_declaration_is_refused_and_leaves_no_trace(
    name: str, signature: str, fields: Any, text: str
) -> None:
    before = dict(REGISTRY)
    with pytest.raises(ValueError, match=text):
        elementwise(name, signature, **fields)
    assert before == REGISTRY


WRONG: dict[str, Any] = {
    "atol": None,
    "cases": 3,
    "compares": 1,
    "derive": 4,
    "doc": 3,
    "domain": (3, 1),
    "example": 3,
    "expand": 3,
    "folds": "no",
    "function": None,
    "internal": 3,
    "linear": "yes",
    "measured": "no",
    "method": "no",
    "multilinear": 0,
    "numpy": "np.exp",
    "positive": "scale",
    "prepare": 6,
    "refuses": (3,),
    "rounded": -1.0,
    "shape": (2, 3),
    "signed_zeros": "some",
    "source": "some",
    "truths": "all",
    "ulp": -1,
    "unpromised": {"x": 3},
    "with_tensors": 3,
    "work": 5,
}


@pytest.mark.parametrize("field", FIELDS)
def test_a_field_of_another_type_is_refused(field: str) -> None:
    given = {**FORMULA, field: WRONG[field]}
    with pytest.raises(WrongTypeError, match=rf"\[declare\] {field} of 'new_op' is not what"):
        elementwise("new_op", "x: Float; slope: float = 1.0 -> Float", **given)
    assert "new_op" not in REGISTRY


@pytest.mark.parametrize(
    ("fields", "text"),
    [
        ({"domain": {"y": (0, 1)}}, "domain of 'new_op' names what the signature has not: got 'y'"),
        ({"unpromised": {"y": "."}}, "unpromised of 'new_op' names what the signature has not"),
        ({"expand": lambda x: x}, r"expand of 'new_op' does not take .* expected .*\(x, slope\)"),
        ({"numpy": lambda x, y, z: x}, "numpy of 'new_op' does not take"),
        ({"slopes": 3}, r"no such field: new_op: got slopes"),
        ({"domains": (0, 1)}, r"got domains(.|\n)*hint: domain=\.\.\."),
    ],
)
def test_fields_that_do_not_fit_the_signature_are_refused(fields: Any, text: str) -> None:
    formula = {"expand": lambda x, slope: x * slope, "doc": "."}
    with pytest.raises(ArgumentError, match=text):
        elementwise("new_op", "x: Float; slope: float = 1.0 -> Float", **{**formula, **fields})
    assert "new_op" not in REGISTRY


def test_names_signatures_and_classes_of_other_types_are_refused() -> None:
    wrong: Any = elementwise
    with pytest.raises(ArgumentError, match="malformed: got 3"):
        wrong(3, "x: Float -> Float", **FORMULA)
    with pytest.raises(WrongTypeError, match="signature of 'new_op' is no text: got 3"):
        wrong("new_op", 3, **FORMULA)
    other: Any = declare
    with pytest.raises(WrongTypeError, match="not a class of ops: got 'elementwise'"):
        other("elementwise", "new_op", "x: Float -> Float", **FORMULA)


@pytest.mark.parametrize("op", REGISTRY.values(), ids=list(REGISTRY))
def test_the_declarations_of_the_package_keep_the_rules_of_users(op: pt.Op) -> None:
    owners: dict[str, Any] = dict.fromkeys(FIELDS, op) | dict.fromkeys(
        op.traits.__slots__, op.traits
    )
    owners |= dict.fromkeys(op.tested.__slots__, op.tested)
    check_fields(op.name, op.signature, {name: getattr(of, name) for name, of in owners.items()})


@pytest.mark.parametrize("table", [REGISTRY, Numpy().ops], ids=["registry", "device"])
def test_an_unknown_op_is_an_error_that_names_the_nearest(table: Any) -> None:
    with pytest.raises(UnknownOpError, match=r"no such op: got 'con2d'(.|\n)*hint: .*conv2d"):
        _ = table["con2d"]
    with pytest.raises(KeyError):
        _ = table[3]
    assert "con2d" not in REGISTRY
    assert REGISTRY.get("con2d") is None


@pytest.mark.parametrize("shape", [3, "ab", (2.5,), (-2,), (True,), None])
def test_a_spec_without_a_shape_is_refused(shape: Any) -> None:
    with pytest.raises(
        ArgumentError, match=r"\[infer\] a Spec has no shape: got .*(.|\n)*hint: Spec"
    ):
        pt.ops.exp.infer(Spec(shape, pt.float32))


def test_a_name_of_a_tensor_is_free_for_a_function() -> None:
    op = elementwise("item", "x: Float -> Float", method=False, **FORMULA)
    assert op(pt.ones(1)).item() == 1.0


def test_the_parts_of_a_signature() -> None:
    made = parse("*xs: Any, w: Float?; axis: Axis = -1, pads: Sides = ((0, 1), 2) -> y: Num, Int")
    xs, w = made.operands
    assert (xs.name, xs.kind, xs.variadic, xs.optional) == ("xs", "Any", True, False)
    assert (w.name, w.kind, w.variadic, w.optional) == ("w", "Float", False, True)
    axis, pads = made.attributes
    assert (axis.name, axis.type, axis.default) == ("axis", "Axis", -1)
    assert (pads.name, pads.type, pads.default) == ("pads", "Sides", ((0, 1), 2))
    assert [(r.name, r.kind) for r in made.results] == [("y", "Num"), ("y", "Int")]
    assert parse("; count: int -> Int").attributes[0].default is REQUIRED
    assert parse("; count: int -> Int").operands == ()


@pytest.mark.parametrize("op", REGISTRY.values(), ids=lambda op: op.name)
def test_every_declaration_is_whole(op: pt.Op) -> None:
    assert op.doc.endswith("."), op.doc
    assert op.numpy is not None or op.expand is not None
    assert parse(op.signature.text) == op.signature
    kinds = {o.kind for o in op.signature.operands}
    bound = kinds | {"Bool", "Float", "Int"}
    unbound = {r.kind for r in op.signature.results} - bound
    # A kind that no operand gives follows from the attribute dtype.
    assert not unbound or "dtype" in op.attribute_names


@pytest.mark.parametrize(
    "op", [o for o in REGISTRY.values() if o.expand and o.numpy], ids=lambda op: op.name
)
def test_expansions_agree_with_their_references(op: pt.Op) -> None:
    """The formula runs on a backend that has every entry but the op's own."""

    class Without(Arrays):
        name = "without"
        dtypes = frozenset({pt.float64, pt.int64, pt.uint32, pt.uint64, pt.bool_})
        default_float, default_int = pt.float64, pt.int64
        slack = 4.0  # a formula rounds at every step; the tolerance is that of a fused entry
        strict = False

        def entry(self, name: str) -> Any:
            return None if name == op.name else Numpy("float64").entry(name)

    assert conformance(Without(), [op.name]) > 0


def test_declare_wants_a_class() -> None:
    op = declare(families.scan, "running", "x: Num; axis: Axis = 0 -> Num", numpy=_running, doc=".")
    assert op(pt.asarray([1, 2, 3])).tolist() == [1, 3, 6]
    assert conformance(Numpy(), ["running"]) > 8


def _running(x: np.ndarray[Any, Any], axis: int) -> np.ndarray[Any, Any]:
    return np.cumsum(x, axis, dtype=x.dtype)


def test_an_op_of_a_user_is_declared_anew_and_one_of_the_package_is_not() -> None:
    ns: Any = pt
    x: Any = pt.asarray([1.0, 2.0])
    try:
        old = elementwise("again_op", "x: Float -> Float", expand=lambda x: x + 1, doc="A test.")
        assert x.again_op().tolist() == old(x).tolist() == [2.0, 3.0]
        new = elementwise("again_op", "x: Float -> Float", expand=lambda x: x * 10, doc="A test.")
        assert x.again_op().tolist() == new(x).tolist() == ns.ops.again_op(x).tolist() == [10, 20]
        with pytest.raises(pt.ArgumentError, match=r"declared anew.*\nhint: px.ops.again_op"):
            old(x)
        elementwise(
            "again_op", "x: Float -> Float", expand=lambda x: x - 1, doc="A test.", method=False
        )
        assert not hasattr(x, "again_op")
        assert ns.ops.again_op(x).tolist() == [0.0, 1.0]
    finally:
        pt.REGISTRY.pop("again_op", None)
    with pytest.raises(ValueError, match="name is taken: got 'exp'"):
        elementwise("exp", "x: Float -> Float", expand=lambda x: x, doc="A test.")


# What a formula gives


def test_a_formula_is_held_to_its_declaration() -> None:
    cases: dict[str, tuple[Any, Any, str]] = {
        "gives_nothing": (lambda x: None, WrongTypeError, "something else: got NoneType"),
        "gives_two": (lambda x: (x, x), WrongTypeError, "expected a tensor"),
        "gives_a_sum": (lambda x: x.sum(), ShapeError, r"another shape: got \(\), expected \(2,\)"),
        "gives_bools": (lambda x: x > 0, ArgumentError, "another element type: got bool"),
        "gives_doubles": (lambda x: x.astype(pt.float64), ArgumentError, "expected float32"),
        "gives_meta": (lambda x: x.to_device(pt.Meta()), ArgumentError, "leaves the device"),
    }
    for name, (formula, error, text) in cases.items():
        op = elementwise(name, "x: Float -> Float", expand=formula, doc="Wrong.")
        with pytest.raises(error, match=rf"\[{name}\] expand .*{text}"):
            op(pt.asarray([1.0, 2.0], dtype=pt.float32))
