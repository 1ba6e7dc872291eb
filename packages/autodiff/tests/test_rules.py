"""Every derivative rule against central differences, and the tables against the registry."""

from __future__ import annotations

from collections.abc import Iterator
from functools import partial
from typing import Any, NamedTuple

import numpy as np
import pytest

import phlox_autodiff as ad
import phlox_tensor as pt
from phlox_autodiff import _forward as forward
from phlox_autodiff._plan import OpRule
from phlox_autodiff._rule import ByAttribute, Joint, NoDerivative
from phlox_autodiff.rules import RULES, SECOND, TABLES
from phlox_tensor import REGISTRY, Numpy, Tensor, tree
from phlox_tensor.testing import draw, samples

DEVICE = Numpy(float="float64")
# Central differences call an op twice for each element, and once more for each order.
FIRST, SECOND_ORDER = 300, 60

DIFFERENTIABLE = sorted(n for n, op in REGISTRY.items() if not ad.rule_kind(op).startswith("none"))
FLAT = sorted(
    name
    for name, op in REGISTRY.items()
    if ad.rule_kind(op).startswith("none")
    and any(o.kind in ("Any", "Float", "Num") for o in op.signature.operands)
)
PAIRS = sorted(
    name
    for name in DIFFERENTIABLE
    if REGISTRY[name].op_class.broadcasts
    and [o.name for o in REGISTRY[name].signature.operands] == ["x1", "x2"]
)


class Call(NamedTuple):
    """Arguments of an op."""

    operands: tuple[Any, ...]
    attributes: dict[str, Any]

    def floats(self) -> list[Tensor[Any]]:
        return [t for t in tree.leaves(self.operands) if is_float(t)]


def is_float(item: object) -> bool:
    return isinstance(item, Tensor) and item.dtype.kind == "Float"


def calls(name: str) -> Iterator[Call]:
    """Arguments in float64, made up from the declaration; the same in every run."""
    op = REGISTRY[name]
    for sample in samples(op, pt.float64, DEVICE):
        target = sample.attributes.get("dtype", pt.float64)
        if target is not pt.float64:
            continue  # differences in a narrower type show its rounding, not the derivative

        def tensor(array: Any) -> Any:
            if array is None:
                return None
            if op.op_class.orders and array.dtype.kind == "f":
                # Ties have no derivative; sorting is sampled with many of them.
                order = np.random.default_rng(array.size).permutation(array.size)
                array = (order * 0.1 + 0.05).reshape(array.shape)
            return pt.asarray(array, device=DEVICE)

        yield Call(tree.map(tensor, tuple(sample.operands)), sample.attributes)


@pytest.mark.parametrize("name", DIFFERENTIABLE)
def test_a_rule_agrees_with_central_differences(name: str) -> None:
    op = REGISTRY[name]
    sized = [(sum(t.size for t in call.floats()), call) for call in calls(name)]
    smallest = min(size for size, _ in sized if size)
    assert smallest <= FIRST
    for size, call in sized:
        if size <= FIRST:
            order = 2 if size <= max(SECOND_ORDER, smallest) else 1
            ad.gradcheck(partial(op, **call.attributes), call.operands, order=order)


@pytest.mark.parametrize("name", DIFFERENTIABLE)
def test_forward_mode_agrees_with_reverse_mode(name: str) -> None:
    """The tangent weighted by a cotangent is the cotangent pulled back, weighted by the tangent."""
    op = REGISTRY[name]
    random = np.random.default_rng(5)

    def weights(item: Any) -> Any:
        return pt.asarray(random.standard_normal(item.shape)) if is_float(item) else None

    def dot(a: Any, b: Any) -> float:
        pairs = zip(tree.leaves(a), tree.leaves(b), strict=True)
        return sum(float((x * y).sum()) for x, y in pairs if x is not None and y is not None)

    checked = 0
    for call in calls(name):
        tangents = tree.map(weights, call.operands)
        function = partial(op, **call.attributes)
        value, moved = ad.jvp(function, call.operands, tangents)
        same, pull = ad.vjp(function, *call.operands)
        for x, y in zip(tree.leaves(value), tree.leaves(same), strict=True):
            # Forward mode may follow an expansion, which rounds a few times more.
            np.testing.assert_allclose(x.numpy(), y.numpy(), rtol=1e-13, atol=1e-13)
        cotangent = tree.map(weights, value)
        one, other = dot(cotangent, moved), dot(pull(cotangent), tangents)
        # Both sum the same few thousand products, in another order.
        assert one == pytest.approx(other, rel=1e-9, abs=1e-9, nan_ok=True)
        checked += 1
    assert checked


@pytest.mark.parametrize("number", [0.7, 2, -1.5])
@pytest.mark.parametrize("name", PAIRS)
def test_one_operand_may_be_a_number(name: str, number: float) -> None:
    op = REGISTRY[name]
    random = np.random.default_rng(3)
    first, second = (
        pt.asarray(draw(pt.float64, (2, 3), op.tested.interval(o), random)) for o in ("x1", "x2")
    )
    positive = number > 0
    ad.gradcheck(lambda x: op(x, number), (first,), order=2)
    if positive or name != "pow":  # a negative base has no real powers
        ad.gradcheck(lambda x: op(number, x), (second,), order=2)


@pytest.mark.parametrize("name", FLAT)
def test_an_op_without_a_derivative_gives_constants(name: str) -> None:
    op = REGISTRY[name]
    for sample in samples(op, pt.float64, DEVICE):
        device = ad.Autodiff(DEVICE)
        operands: list[Any] = [
            None if a is None else pt.asarray(a, device=device) for a in sample.operands
        ]
        tracked = [t.require_grad() if is_float(t) else t for t in operands]
        out = op(*tracked, **sample.attributes)
        assert not any(t.requires_grad for t in tree.leaves(out))


@pytest.mark.parametrize("name", sorted(REGISTRY))
def test_every_op_has_a_rule_an_expansion_or_a_reason(name: str) -> None:
    kind = ad.rule_kind(REGISTRY[name])
    assert kind in ("rule", "expansion") or len(kind) > len("none: ")
    assert kind != "none: no rule and no expansion"


def test_every_rule_has_an_op() -> None:
    assert sorted(set(RULES) - set(REGISTRY)) == []


def test_tables_are_sorted_and_do_not_overlap() -> None:
    for table in TABLES:
        assert list(table) == sorted(table)
    assert sum(map(len, TABLES)) == len(RULES)


@pytest.mark.parametrize("name", sorted(RULES))
def test_rules_name_what_their_op_has(name: str) -> None:
    op, rule = REGISTRY[name], RULES[name]
    if isinstance(rule, NoDerivative):
        assert rule.reason
        return
    cases = list(rule.rules.values()) if isinstance(rule, ByAttribute) else [rule]
    for case in cases:
        made = OpRule(op, case, DEVICE)
        tracked = tuple(o.kind in ("Any", "Float", "Num") for o in op.signature.operands)
        assert made.plan(tracked).steps
        differentiable = [made.uses(i) for i, t in enumerate(tracked) if t]
        assert isinstance(case, Joint) or all(differentiable)


def test_a_rule_with_an_unknown_name_is_refused() -> None:
    with pytest.raises(ValueError, match="rule of tanh: unknown name 'z', expected one of g, x"):
        OpRule(REGISTRY["tanh"], lambda g, z: g * z, DEVICE)


def test_a_rule_with_a_function_too_few_is_refused() -> None:
    with pytest.raises(ValueError, match="got 1 functions, expected 2"):
        OpRule(REGISTRY["add"], lambda g: g, DEVICE)


def test_forward_mode_knows_every_op_with_a_rule() -> None:
    lacking = [
        name
        for name in RULES
        if forward._derivative(REGISTRY[name]) is None and REGISTRY[name].expand is None
    ]
    assert lacking == []
    linear = {name for name, op in REGISTRY.items() if op.traits.linear or op.traits.multilinear}
    assert {name for name in linear if REGISTRY[name].expand is None} <= set(RULES)
    assert set(SECOND) <= set(RULES) - linear


@pytest.mark.parametrize(
    ("name", "tracked", "kept"),
    [
        ("add", (True, True), ()),
        ("matmul", (True, True), (0, 1)),
        ("matmul", (False, True), (0,)),
        ("multiply", (True, True), (0, 1)),
        ("multiply", (True, False), (1,)),
        ("multiply", (False, True), (0,)),
        ("reshape", (True,), ()),
        ("softmax", (True,), (1, 2)),
        ("subtract", (True, True), ()),
        ("where", (False, True, True), (0,)),
    ],
)
def test_a_node_keeps_no_more_than_its_tracked_operands_need(
    name: str, tracked: tuple[bool, ...], kept: tuple[int, ...]
) -> None:
    rule = RULES[name]
    assert not isinstance(rule, NoDerivative | ByAttribute)
    plan = OpRule(REGISTRY[name], rule, DEVICE).plan(tracked)
    assert plan.pool == kept
    assert plan.shapes == plan.dtypes == ()


def test_the_kinds_of_rules_are_told() -> None:
    assert ad.rule_kind(REGISTRY["tanh"]) == "rule"
    assert ad.rule_kind(REGISTRY["fused_linear"]) == "expansion"
    assert ad.rule_kind(REGISTRY["floor"]) == "none: constant between jumps"


def test_the_slope_of_a_length_of_0_is_0() -> None:
    rows = pt.asarray([[0.0, 0.0], [3.0, -4.0]])
    slopes = ad.grad(lambda x: x.vector_norm(axis=1).sum())(rows)
    np.testing.assert_allclose(slopes.numpy(), [[0.0, 0.0], [0.6, -0.8]], rtol=1e-6)
    _, moved = ad.jvp(lambda x: x.vector_norm(axis=1), (rows,), (rows,))
    np.testing.assert_allclose(moved.numpy(), [0.0, 5.0], rtol=1e-6)
    ad.gradcheck(lambda x: x.vector_norm(axis=1, keepdims=True), (rows + 1.0,), order=2)
    origin = pt.zeros(1)
    slopes = ad.grad(lambda y, x: y.atan2(x).sum(), (0, 1))(origin, origin)
    assert [slope.tolist() for slope in slopes] == [[0.0], [0.0]]


@pytest.mark.parametrize(
    ("function", "at", "wanted"),
    [
        (lambda x: x.vector_norm(), [90.0, -90.0, 150.0], [0.4575, -0.4575, 0.7625]),
        (lambda x: x.asinh().sum(), [300.0, -1000.0], [1 / 300, 1 / 1000]),
        (lambda x: x.acosh().sum(), [300.0, 1000.0], [1 / 300, 1 / 1000]),
        (lambda x: x.atan().sum(), [300.0, -20.0], [1.111e-5, 1 / 401]),
        (lambda x: x.atan2(x.detach()).sum(), [300.0, 2e-3], [1 / 600, 250.0]),
    ],
)
def test_slopes_hold_in_float16_where_squares_do_not(
    function: Any, at: list[float], wanted: list[float]
) -> None:
    found = ad.grad(function)(pt.asarray(at, dtype="float16"))
    np.testing.assert_allclose(found.numpy().astype(np.float64), wanted, rtol=6e-3)


def test_a_float64_of_numpy_is_a_number_to_derivatives() -> None:
    two = np.float64(2)
    x = pt.asarray([1.0, 3.0], device=Numpy())
    assert ad.grad(lambda x: (x**two).sum())(x).tolist() == [2.0, 6.0]
    assert np.allclose(ad.grad(lambda x: (two**x).sum())(x).numpy(), np.log(2) * 2 ** x.numpy())
    assert ad.jvp(lambda x: x**two, (x,), (x,))[1].tolist() == [2.0, 18.0]
    assert ad.vmap(lambda x: pt.copysign(x, -two))(x).tolist() == [-1.0, -3.0]
