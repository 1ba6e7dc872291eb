"""The conformance suite itself: a backend that is wrong is caught, and told how to repeat it."""

from __future__ import annotations

from collections.abc import Callable
from types import SimpleNamespace
from typing import Any, final

import numpy as np
import pytest

import phlox_tensor as pt
import phlox_tensor.testing as pt_testing
from phlox_tensor import REGISTRY, Numpy
from phlox_tensor._device.numpy_backend import Arrays
from phlox_tensor.testing import (
    LAYOUTS,
    check,
    checks,
    conformance,
    disagreement,
    draw,
    samples,
    special_values,
)
from phlox_tensor.testing._special import placed_samples

Array = np.ndarray[Any, Any]


@final
class Wrong(Arrays):
    """The reference with one entry replaced: what users build their own backend from."""

    name = "wrong"
    dtypes = frozenset({pt.bool_, pt.float32, pt.int64})

    def __init__(self, op: str, replace: Callable[[Any], Any]) -> None:
        self.settings = (op, replace)

    def entry(self, name: str) -> Any:
        op, replace = self.settings
        entry = Numpy().entry(name)
        if name != op or entry is None:
            return entry
        changed = replace(entry)
        return None if changed is None else lambda *args: np.asarray(changed(*args))


def where_bad(entry: Any, bad: Callable[[Array], Any], value: Any) -> Any:
    """An entry whose result is ``value`` where ``bad`` is True of the first operand."""

    def run(x: Any, *rest: Any) -> Array:
        out = np.array(entry(x, *rest))
        out[np.broadcast_to(bad(np.asarray(x)), out.shape)] = value
        return out

    return run


FAULTS: dict[str, tuple[str, Callable[[Any], Any]]] = {
    "off by a hair": ("exp", lambda e: lambda x: e(x) * np.float32(1 + 2e-6)),
    "nan lost": ("sqrt", lambda e: where_bad(e, np.isnan, 0.0)),
    "sign of zero lost": ("negative", lambda e: lambda x: np.where(x == 0, np.abs(x), e(x))),
    "denormals flushed": ("abs", lambda e: where_bad(e, lambda x: np.abs(x) < 1e-38, 0.0)),
    "overflow": ("sigmoid", lambda e: lambda x: np.exp(x) / (np.exp(x) + np.float32(1))),
    "integers through floats": (
        "multiply",
        lambda e: (
            lambda a, b: (
                (np.multiply(a, b, dtype=np.float64)).astype(e(a, b).dtype)
                if e(a, b).dtype.kind == "i"
                else e(a, b)
            )
        ),
    ),
    "strides ignored": (
        "square",
        lambda e: (
            lambda x: e(
                np.lib.stride_tricks.as_strided(
                    x, x.shape, _dense(x)
                )  # reads on from the first element
            )
        ),
    ),
    "a stale axis": ("sum", lambda e: lambda x, axis, *rest: e(x, axis[:1], *rest)),
    "keepdims ignored": ("max", lambda e: lambda x, axis, keepdims: e(x, axis, False)),
    "wrong type": ("argmax", lambda e: lambda *a: e(*a).astype(np.int32)),
    "unstable": (
        "argsort",
        lambda e: lambda x, axis, d: np.flip(e(np.flip(x, axis), axis, d), axis),
    ),
    "last of equals": (
        "argmin",
        lambda e: (
            lambda x, axis, k: (
                e(x, axis, k)
                if axis is None or x.shape[axis] == 0
                else x.shape[axis] - 1 - e(np.flip(x, axis), axis, k)
            )
        ),
    ),
    "negative steps": (
        "slice",
        lambda e: lambda x, start, size, step: e(x, start, size, tuple(map(abs, step))),
    ),
    "empty not handled": ("mean", lambda e: lambda x, *a: _raise() if x.size == 0 else e(x, *a)),
    "bits swapped": ("random_bits", lambda e: lambda *a: e(*a)[::-1].copy()),
    "repeats lost": (
        "index_add",
        lambda e: _assigned,
    ),
}


def _dense(x: Array) -> tuple[int, ...]:
    return tuple(x.itemsize * int(np.prod(x.shape[i + 1 :])) for i in range(x.ndim))


def _raise() -> Any:
    raise ZeroDivisionError("empty")


def _assigned(x: Array, indices: Array, values: Array, axis: int) -> Array:
    out = x.copy()
    place: Any = (slice(None),) * axis + (indices,)
    out[place] += values
    return out


@pytest.mark.parametrize("fault", sorted(FAULTS))
def test_a_wrong_entry_is_caught(fault: str) -> None:
    op, replace = FAULTS[fault]
    backend = Wrong(op, replace)
    with pytest.raises(AssertionError, match=rf"of \d+ failed\n{op}-") as caught:
        conformance(backend, [op, "add" if op != "add" else "exp"])
    text = str(caught.value)
    assert "\nadd-" not in text
    line = next(part for part in text.splitlines() if "paste: " in part).split("paste: ")[1]
    assert line.startswith("from phlox_tensor.testing import check; check(Wrong(")
    assert line.endswith(("'float32')", "'int64')", "'bool')"))


def test_the_line_to_paste_repeats_the_failure() -> None:
    with pytest.raises(AssertionError) as caught:
        conformance(Wrong("exp", FAULTS["off by a hair"][1]), ["exp"])
    line = str(caught.value).split("paste: ")[1].splitlines()[0]
    names: dict[str, Any] = {"Wrong": lambda op, _: Wrong(op, FAULTS["off by a hair"][1])}
    start = line.index("check(Wrong(") + len("check(Wrong(")
    end = line.index("), 'exp'")
    program = f"{line[:start]}'exp', None{line[end:]}"
    with pytest.raises(AssertionError, match="exp float32 contiguous"):
        exec(program, names)


def test_a_right_backend_passes_and_says_how_much_ran() -> None:
    backend = Wrong("exp", lambda entry: entry)
    suite = checks(backend, ["exp", "add", "where"])
    assert [str(c) for c in suite] == [
        "exp-float32",
        "add-float32",
        "add-int64",
        "where-bool",
        "where-float32",
        "where-int64",
    ]
    assert conformance(backend, ["exp", "add", "where"]) == len(suite)
    check(backend, "exp", "float32")
    names = {c.op.name for c in checks(backend)}
    assert names == set(REGISTRY)


def test_an_entry_that_takes_tensors_of_a_decorator_for_numbers_is_caught() -> None:
    def blind(entry: Any) -> Any:
        def run(condition: Array, *values: Any) -> Any:
            return entry(condition, *(x if isinstance(x, np.ndarray) else float(x) for x in values))

        return run

    backend = Wrong("where", blind)
    backend.checks_operands = lambda op: op.name == "where"  # type: ignore[method-assign]
    with pytest.raises(AssertionError, match=r"operands apart \(iio\)"):
        conformance(backend, ["where"])


def test_a_missing_op_is_named() -> None:
    with pytest.raises(AssertionError, match=r"the call: BackendUnavailableError: \[exp\]"):
        conformance(Wrong("exp", lambda entry: None), ["exp"])


def test_slack_widens_tolerances() -> None:
    @final
    class Lax(Arrays):
        name = "lax"
        slack = 40.0
        dtypes = Wrong.dtypes

        def entry(self, name: str) -> Any:
            return Wrong("exp", FAULTS["off by a hair"][1]).entry(name)

    assert conformance(Lax(), ["exp"]) == 1


@pytest.mark.parametrize("op", REGISTRY.values(), ids=lambda op: op.name)
def test_every_op_has_samples_that_do_not_change(op: pt.Op) -> None:
    for dtype in (pt.float32, pt.int64, pt.bool_):
        first, second = (list(samples(op, dtype, Numpy())) for _ in range(2))
        assert len(first) > 0
        for a, b in zip(first, second, strict=True):
            assert a.attributes == b.attributes
            assert all(
                np.array_equal(x, y) for x, y in zip(a.operands, b.operands, strict=True)
                if isinstance(x, np.ndarray)
            )  # fmt: skip


@pytest.mark.parametrize("name", sorted(LAYOUTS))
def test_layouts_show_the_values_that_they_are_given(name: str) -> None:
    array = np.arange(24, dtype=np.float32).reshape(2, 3, 4)
    placed = LAYOUTS[name](array, pt.float32, Numpy())
    want = np.broadcast_to(array[:1], array.shape) if name == "broadcast" else array
    assert np.array_equal(placed.numpy(), want)
    if name != "contiguous":
        assert not placed.primitive.flags.c_contiguous
    for odd in (np.full((), 3, np.float32), np.zeros((0, 2), np.float32)):
        assert np.array_equal(LAYOUTS[name](odd, pt.float32, Numpy()).numpy(), odd)


def test_disagreement() -> None:
    one = np.ones(2, np.float32)
    hair = one * np.float32(1 + 3e-7)
    assert disagreement(one, one, ulp=0, atol=0) is None
    assert disagreement(hair, one, ulp=4, atol=0) is None
    assert disagreement(hair, one, ulp=1, atol=0) is not None
    assert disagreement(one, one[:1], ulp=0, atol=0) == "shape (2,), expected (1,)"
    nan, inf = one * np.float32(np.nan), one * np.float32(np.inf)
    assert disagreement(nan, nan, ulp=0, atol=0) is None
    assert disagreement(nan, one, ulp=9, atol=9) is not None
    assert disagreement(inf, -inf, ulp=9, atol=9) is not None
    assert disagreement(-one * 0, one * 0, ulp=0, atol=0) is None
    assert disagreement(-one * 0, one * 0, ulp=0, atol=0, signed_zeros=True) is not None
    denormal = one * np.float32(1e-45)
    assert disagreement(one * 0, denormal, ulp=0, atol=0) is not None
    assert disagreement(one * 0, denormal, ulp=0, atol=0, denormals=False) is None
    assert disagreement(one * 0, one, ulp=0, atol=0, denormals=False) is not None
    largest = one * np.finfo(np.float32).max
    assert disagreement(inf, largest, ulp=2, atol=0) is None
    assert disagreement(inf, largest, ulp=0, atol=0) is not None
    assert "1 of 2 differ; at (1,)" in str(
        disagreement(np.array([1, 2]), np.array([1, 3]), ulp=0, atol=0)
    )


def test_special_values_and_draws() -> None:
    floats = special_values(pt.float32, extremes=True)
    assert np.isnan(floats).any()
    assert np.isinf(floats).sum() == 2
    assert np.signbit(floats[floats == 0]).any()
    assert np.finfo(np.float32).smallest_subnormal in floats
    assert len(special_values(pt.float32, extremes=False)) < len(floats)
    assert {-128, 127} <= set(special_values(pt.int8, extremes=True).tolist())
    rng = np.random.default_rng(0)
    assert draw(pt.uint8, (50,), (-3, 3), rng).min() >= 0
    assert len(np.unique(draw(pt.float32, (99,), (-3, 3), rng, few=True))) <= 7


# What takes every shape and value, or whose settings are no tensors.
TAKE_ALL = {
    "all_reduce",
    "argwhere",
    "contiguous",
    "full",
    "isin",
    "kron",
    "nonzero",
    "quantize",
    "quantized_linear",
}


def test_every_op_that_refuses_a_call_says_which() -> None:
    public = [op for op in REGISTRY.values() if not op.internal]
    silent = {op.name for op in public if not op.tested.refuses and op.op_class.refuses is None}
    assert silent == TAKE_ALL


def test_a_call_that_is_not_refused_is_caught() -> None:
    def wrapped(entry: Any) -> Any:
        return lambda x, indices, axis: np.take(x, indices, axis=axis, mode="wrap")

    with pytest.raises(AssertionError, match=r"take .* a wrong call, the call: not refused"):
        conformance(Wrong("take", wrapped), ["take"])


def test_another_error_is_caught() -> None:
    def raw(entry: Any) -> Any:
        return lambda x, indices, axis: np.take(x, indices, axis=axis)

    text = r"a wrong call, the call: IndexError: .*expected \[take\] IndexOutOfRangeError"
    with pytest.raises(AssertionError, match=text):
        conformance(Wrong("take", raw), ["take"])


def test_an_error_that_names_another_op_is_caught() -> None:
    def wrapped(entry: Any) -> Any:
        def named(x: Any, indices: Any, axis: int) -> Any:
            try:
                return entry(x, indices, axis)
            except pt.IndexOutOfRangeError as error:
                raise pt.IndexOutOfRangeError("inner", error.what, got=error.got) from None

        return named

    with pytest.raises(AssertionError, match=r"\[inner\] .*expected \[take\] IndexOutOfRangeError"):
        conformance(Wrong("take", wrapped), ["take"])


@pytest.mark.parametrize("thorough", [False, True])
def test_a_lost_nan_is_caught_in_ops_that_are_not_elementwise(thorough: bool) -> None:
    def blind(entry: Any) -> Any:
        return lambda x, *rest: entry(np.nan_to_num(x, posinf=np.inf, neginf=-np.inf), *rest)

    found = ""
    for check_ in checks(Wrong("softmax", blind), ["softmax"], thorough=thorough):
        try:
            check_()
        except AssertionError as error:
            found = str(error)
    assert "nan in x, result 0" in found
    assert (", thorough=True)" in found) is thorough


def test_every_special_value_comes_to_every_operand_in_turn() -> None:
    drawn = list(samples(REGISTRY["matmul"], pt.float32, Numpy()))
    few = list(placed_samples(REGISTRY["matmul"], drawn, every=False))
    many = list(placed_samples(REGISTRY["matmul"], drawn, every=True))
    assert {place for place, _, _ in few} == {place for place, _, _ in many} == {0, 1}
    assert len({str(value) for _, value, _ in few}) == len({str(v) for _, v, _ in many}) == 4
    assert len(many) == 8 * len(few)


def test_what_is_not_promised_is_compared_where_it_is_finite() -> None:
    def shifted(entry: Any) -> Any:
        return lambda x, weight, *rest: entry(x, weight, *rest) + np.isnan(weight).any()

    backend = Wrong("conv2d", shifted)
    with pytest.raises(AssertionError, match="nan in weight, result 0"):
        check(backend, "conv2d", "float32", thorough=True)


@pytest.mark.parametrize("name", ["assert_allclose", "assert_array_equal", "assert_equal"])
def test_a_check_of_another_library_says_what_it_is_here(name: str) -> None:
    with pytest.raises(pt.UnknownNameError) as caught:
        getattr(pt_testing, name)
    code = str(caught.value.hint)
    given = {"px": SimpleNamespace(testing=pt_testing), "got": pt.ones(2)}
    eval(code, {**given, "want": np.ones(2, np.float32)})
    with pytest.raises(AssertionError):
        eval(code, {**given, "want": np.full(2, 1.01, np.float32)})
    unknown = "no_such_name"
    with pytest.raises(AttributeError, match=r"no such name in px\.testing"):
        getattr(pt_testing, unknown)
