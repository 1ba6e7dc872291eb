"""What users type: keywords, wrong keywords, and the hints of calls that other libraries allow."""

from __future__ import annotations

import gc
import pickle
import sys
from functools import partial
from types import FunctionType
from typing import Any

import pytest

import phlox_tensor as pt
from phlox_tensor import ArgumentError, DeviceError, KindError, UnknownArgumentError

ns: Any = pt  # type checkers would refuse most of these calls


def x() -> Any:
    return pt.asarray([[1.0, 2.0, 3.0], [4.0, 5.0, 6.0]])


def message(call: Any, error: type[pt.PhloxError]) -> str:
    with pytest.raises(error) as caught:
        call()
    assert type(pickle.loads(pickle.dumps(caught.value))) is type(caught.value)
    return str(caught.value)


def test_operands_behind_the_first_go_by_name() -> None:
    image, weight = pt.ones((1, 2, 4, 4)), pt.ones((3, 2, 1, 1))
    bias = pt.asarray([1.0, 2.0, 3.0])
    assert pt.conv2d(image, weight, bias=bias)[0, :, 0, 0].tolist() == [3.0, 4.0, 5.0]
    assert pt.conv2d(image, weight=weight, bias=bias).shape == (1, 3, 4, 4)
    assert pt.layer_norm(x(), weight=pt.zeros(3)).tolist() == [[0.0] * 3] * 2
    q = pt.ones((2, 3, 4))
    hidden = pt.asarray([[False, True, True]] * 3)
    assert pt.attention(q, key=q, value=q, mask=hidden).shape == (2, 3, 4)
    assert x().maximum(x2=pt.asarray(4.0)).max().item() == 6.0
    assert x().take(indices=pt.asarray([0]), axis=1).tolist() == [[1.0], [4.0]]


METHODS = sorted(n for n, f in vars(pt.Tensor).items() if n[0] != "_" and type(f) is FunctionType)


@pytest.mark.parametrize("name", METHODS)
def test_a_method_refuses_what_it_does_not_have_as_the_function_does(name: str) -> None:
    function = vars(pt).get(name)
    own = getattr(function, "__module__", "").endswith("_functions.functions")
    calls: list[tuple[tuple[int, ...], dict[str, Any]]] = [((), {"approximate": False})]
    if name not in ("reshape", "broadcast_to", "permute_dims"):  # which take all places
        calls.append(((1,) * 9, {}))
    for args, wrong in calls:
        said = message(partial(getattr(x(), name), *args, **wrong), pt.ArgumentError)
        if own and function is not None:
            assert said == message(partial(function, x(), *args, **wrong), pt.ArgumentError)


@pytest.mark.parametrize(
    ("call", "text"),
    [
        (
            lambda: x().gelu(approximate=False),
            "[gelu] unknown argument: got approximate\nhint: x.gelu()",
        ),
        (lambda: x().numpy(force=True), "got force, expected none\nhint: x.numpy()"),
        (lambda: x().astype(dtype="int8"), 'got dtype, expected copy\nhint: x.astype("float32")'),
        (
            lambda: x().astype(),
            "[astype] missing argument: expected dtype\nhint: px.astype(x, dtype)",
        ),
        (lambda: x().to_device(device="cpu"), "got device\nhint: x.to_device(device)"),
        (x().at[0].set, "[AtIndex.set] missing a required argument: 'values'"),
        (
            lambda: ns.embedding_bag(x(), pt.asarray([0, 1]), pt.asarray([0])),
            "[embedding_bag] scale is of a kind that the op does not take: got Int (int64), "
            "expected Float\nhint: px.embedding_bag(weight, indices)  # a row of indices a bag; ",
        ),
        (
            lambda: ns.embedding_bag(pt.asarray([0, 1]), x(), pt.asarray([0])),
            "hint: px.embedding_bag(weight, indices), in this order",
        ),
        (
            lambda: ns.layer_norm(x(), None, pt.asarray([1])),
            "bias is of a kind that the op does not",
        ),
        (lambda: ns.einsum(x(), [0, 1], x(), [2, 1], [0, 2]), "hint: px.einsum('ab,cb->ac', x, y)"),
        (lambda: ns.einsum(x(), [0, ...]), "hint: px.einsum('a...', x)"),
        (lambda: ns.einsum("ij,kj", [x(), x()]), "hint: px.einsum('ij,kj', *tensors)"),
        (lambda: x()[(0, 1),], "[getitem] not an index: got tuple"),
        (lambda: x()[range(2)], "hint: x[[0, 1]]"),
        (lambda: ns.linalg.norm(x(), 2), "hint: px.linalg.matrix_norm(x, ord=2)"),
    ],
)
def test_a_wrong_call_blames_what_is_wrong(call: Any, text: str) -> None:
    assert text in message(call, pt.PhloxError)


def test_the_first_operand_has_no_name() -> None:
    with pytest.raises(TypeError):
        ns.exp(x=x())


@pytest.mark.parametrize(
    ("call", "text"),
    [
        (
            lambda: x().sum(dim=1),
            "[sum] unknown argument: got dim, expected axis, keepdims, dtype\nhint: axis=1",
        ),
        (
            lambda: ns.softmax(x(), dim=-1),
            "[softmax] unknown argument: got dim, expected axis\nhint: axis=-1",
        ),
        (
            lambda: x().max(axis=1, keepdim=True),
            "[max] unknown argument: got keepdim, expected axis, keepdims\nhint: keepdims=True",
        ),
        (
            lambda: x().mean(axes=0),
            "[mean] unknown argument: got axes, expected axis, keepdims\nhint: axis=0",
        ),
        (
            lambda: ns.layer_norm(x(), eps=1e-3),
            "[layer_norm] unknown argument: got eps, expected weight, bias, epsilon\n"
            "hint: epsilon=0.001",
        ),
        (
            lambda: pt.ops.sum(x(), dim=1),
            "[sum] unknown argument: got dim, expected x, axis, keepdims, dtype\nhint: axis=1",
        ),
    ],
)
def test_a_wrong_keyword_names_the_right_ones(call: Any, text: str) -> None:
    assert message(call, UnknownArgumentError) == text
    assert issubclass(UnknownArgumentError, (TypeError, ArgumentError))


def test_the_truth_of_several_elements_says_what_to_type() -> None:
    for call in (lambda: bool(x() > 0), lambda: 1 if x() > 0 else 2, lambda: not x()):
        assert message(call, ArgumentError) == (
            "[bool] the truth value of a tensor of several elements: got shape (2, 3), "
            "expected one element\nhint: x.any() or x.all()"
        )
    assert "[bool] the truth value of a tensor of no elements" in message(
        lambda: bool(pt.zeros((0,))), ArgumentError
    )
    assert message(lambda: float(x()), ArgumentError).startswith("[float] not one number")
    assert message(lambda: int(x()), ArgumentError).startswith("[int] not one number")
    assert message(lambda: complex(x()), ArgumentError).startswith("[complex] not one number")


def test_one_tensor_where_many_are_taken() -> None:
    assert message(lambda: ns.concat(x()), ArgumentError) == (
        "[concat] xs is not a list of tensors: got a tensor of shape (2, 3), "
        "expected a list or tuple of at least one tensor\nhint: px.concat([x, y])"
    )
    assert message(lambda: ns.concat([]), ArgumentError).startswith("[concat] xs is not a list")
    assert message(lambda: ns.concat(3), ArgumentError).startswith("[concat] xs is not a list")


def test_the_hint_of_mixed_kinds_loses_nothing() -> None:
    n: Any = pt.asarray([1, 2])
    b, f = pt.asarray([True, False]), pt.asarray([0.5, 1.5])
    assert message(lambda: n + f, KindError).endswith('hint: x.astype("float32")')
    assert message(lambda: f + n, KindError).endswith('hint: y.astype("float32")')
    assert message(lambda: ns.equal(b, n), KindError).endswith('hint: x.astype("int64")')
    assert message(lambda: ns.where(b, f, b), KindError).endswith('hint: y.astype("float32")')


def test_a_fraction_beside_integers_says_both_ways_out() -> None:
    n: Any = pt.asarray([1, 2])
    assert message(lambda: n * 1.0, KindError).endswith(
        'hint: 1 in place of 1.0, or x.astype("float32")'
    )
    assert message(lambda: n * 1.5, KindError).endswith('hint: x.astype("float32")')
    assert (n / 2).tolist() == [0.5, 1.0]


def test_settings_of_one_device_are_told_from_two_devices() -> None:
    y = pt.ones((2, 3), device=pt.Numpy(float="float64"))
    assert message(lambda: x() + y, DeviceError) == (
        "[add] tensors on different settings of one device: got Numpy() and "
        "Numpy(float='float64'), expected one device\nhint: y.to_device(Numpy())"
    )


def test_round_and_divmod() -> None:
    y = pt.asarray([-1.5, 0.5, 2.6])
    assert round(y).tolist() == y.round().tolist() == [-2.0, 0.0, 3.0]
    n = pt.asarray([7, -7])
    quotient, rest = divmod(n, 3)
    assert (quotient.tolist(), rest.tolist()) == ([2, -3], [1, 2])
    quotient, rest = divmod(7, pt.asarray([2, 4]))
    assert (quotient.tolist(), rest.tolist()) == ([3, 1], [1, 3])
    assert "hint: (x * 1e2).round() / 1e2" in message(lambda: round(ns.ones(2), 2), ArgumentError)


@pytest.mark.parametrize("name", ["ones", "zeros", "empty"])
def test_sizes_outside_one_tuple(name: str) -> None:
    assert message(lambda: getattr(ns, name)(2, 3), ArgumentError) == (
        f"[{name}] more than one argument for the shape: got 2, 3, expected one tuple of sizes; "
        f"other arguments by name\nhint: px.{name}((2, 3))"
    )
    assert f"hint: px.{name}((2,), dtype=" in message(
        lambda: getattr(ns, name)((2,), "float64"), ArgumentError
    )


def test_the_order_of_other_libraries_in_randint() -> None:
    assert message(lambda: ns.random.randint(0, 10, (3,)), ArgumentError) == (
        "[randint] the shape comes first: got 0, 10, (3,), expected shape, low, high\n"
        "hint: px.random.randint((3,), 0, 10)"
    )


def test_a_tensor_that_is_not_printed_whole_prints_its_shape() -> None:
    assert "shape=(40, 50)" in repr(pt.zeros((40, 50)))
    assert "shape" not in repr(pt.zeros((2, 3)))
    assert "shape=(0, 3)" in repr(pt.zeros((0, 3)))


def test_a_device_has_a_name_for_annotations() -> None:
    assert pt.Device is pt.Backend


def calls_of(program: Any) -> int:
    """Python functions entered while ``program`` runs."""
    count = 0

    def seen(frame: Any, event: str, argument: Any) -> None:
        nonlocal count
        del frame, argument
        count += event == "call"

    gc.disable()  # what listens to collections would be counted
    sys.setprofile(seen)
    try:
        program()
    finally:
        sys.setprofile(None)
        gc.enable()
    return count


def test_a_number_on_the_left_costs_what_it_costs_on_the_right() -> None:
    y: Any = pt.ones(3)
    programs: list[tuple[Any, Any]] = [
        (lambda: y + 1, lambda: 1 + y),
        (lambda: y - 1.5, lambda: 1.5 - y),
        (lambda: y * 2, lambda: 2 * y),
        (lambda: y / 2.0, lambda: 2.0 / y),
    ]
    for right, left in programs:
        for once in (right, left):  # looks the entry up
            once()
        assert calls_of(left) <= calls_of(right)


def test_what_stands_elsewhere_in_pytorch_is_given_by_name() -> None:
    ns: Any = pt
    image, line = ns.ones((1, 1, 4, 4)), ns.ones((1, 1, 3))
    calls: list[tuple[Any, str]] = [
        (lambda: ns.unfold(image, 2, 1, 0, 2), "dilation=1, padding=0, stride=2"),
        (lambda: ns.conv_transpose1d(line, line, None, 2, 1, 0, 3), "groups=3"),
        (lambda: ns.lp_pool2d(image, 1, 2), "kernel=2, p=1"),
        (lambda: line.isin(line, True), "invert=True"),
    ]
    for call, hint in calls:
        with pytest.raises(pt.UnknownArgumentError, match="more arguments by place") as caught:
            call()
        assert caught.value.hint == hint
