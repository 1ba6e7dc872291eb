"""Errors: one shape of text, typed fields behind it, raised by the call that is wrong."""

from __future__ import annotations

import pickle
import re
from typing import Any

import numpy as np
import pytest

import phlox_tensor as pt
from phlox_tensor import (
    ArgumentError,
    BackendUnavailableError,
    BatchingError,
    CompileError,
    DeviceError,
    DisagreementError,
    DTypeError,
    GradientError,
    IndexOutOfRangeError,
    KindError,
    PhloxError,
    RecordError,
    ShapeError,
    SharingError,
    TreeError,
    UnknownArgumentError,
    UnknownNameError,
    UnknownOpError,
    WrongTypeError,
)

BASES = {
    ArgumentError: ValueError,
    BackendUnavailableError: RuntimeError,
    BatchingError: RuntimeError,
    CompileError: RuntimeError,
    DeviceError: ValueError,
    DisagreementError: ArithmeticError,
    DTypeError: TypeError,
    GradientError: RuntimeError,
    IndexOutOfRangeError: IndexError,
    KindError: TypeError,
    RecordError: ValueError,
    ShapeError: ValueError,
    SharingError: BufferError,
    UnknownArgumentError: TypeError,
    TreeError: ValueError,
    UnknownNameError: AttributeError,
    UnknownOpError: KeyError,
    WrongTypeError: TypeError,
}
TEXT = re.compile(r"\[\w+\] [^\n]+(\nhint: [^\n]+)?")


ns: Any = pt  # type checkers would refuse most of these calls


def x() -> Any:
    return pt.asarray([[1.0, 2.0, 3.0], [4.0, 5.0, 6.0]])


def images() -> Any:
    return pt.ones((1, 2, 4, 4))


@pytest.mark.parametrize("error", BASES, ids=lambda e: e.__name__)
def test_each_error_is_one_of_python_too(error: type[PhloxError]) -> None:
    assert issubclass(error, (PhloxError, BASES[error]))
    made = error("op", "what failed", got=1, expected=(2, 3), hint="do this")
    assert str(made) == "[op] what failed: got 1, expected (2, 3)\nhint: do this"
    assert (made.op, made.what, made.got, made.expected) == ("op", "what failed", 1, (2, 3))
    again = pickle.loads(pickle.dumps(made))
    assert type(again) is error
    assert str(again) == str(made)
    assert again.hint == "do this"


def test_every_error_is_listed_above() -> None:
    assert set(PhloxError.__subclasses__()) >= set(BASES) - {
        SharingError,
        UnknownArgumentError,
        UnknownOpError,
        WrongTypeError,
    }
    ours = {e for e in vars(pt).values() if isinstance(e, type) and issubclass(e, PhloxError)}
    assert ours == {PhloxError, *BASES}


def test_the_text_of_the_usage_guide() -> None:
    with pytest.raises(ShapeError) as caught:
        _ = pt.ones((2, 3)) @ pt.ones((2, 3))
    assert str(caught.value) == (
        "[matmul] inner sizes differ: got (2, 3) @ (2, 3), expected (…, n, k) @ (…, k, m)\n"
        "hint: x @ y.T"
    )


def _scatter(update: Any) -> Any:
    return x().scatter(ns.asarray([[0, 0, 0]]), x()[:1], 0, update)


def _pool_backward(shape: tuple[int, ...]) -> Any:
    return ns.ops.max_pool2d_backward(images(), ns.zeros((1, 2, 4, 4), dtype="int64"), shape)


def _norm_backward() -> Any:
    return ns.ops.batch_norm_backward(x().T, x(), *[ns.ones(3)] * 3)


WRONG: list[tuple[str, Any, type[PhloxError]]] = [
    ("matmul", lambda: x() @ x(), ShapeError),
    ("matmul", lambda: x() @ 2.0, ShapeError),
    ("matmul", lambda: ns.ones((2, 3, 4)) @ ns.ones((3, 4, 5)), ShapeError),
    ("add", lambda: x() + ns.ones(2), ShapeError),
    ("reshape", lambda: x().reshape(4), ShapeError),
    ("reshape", lambda: x().reshape(-1, -1), ShapeError),
    ("reshape", lambda: x().reshape(-2, -3), ShapeError),
    ("reshape", lambda: x().reshape("ab"), ArgumentError),
    ("permute_dims", lambda: x().permute_dims(0, 0), ShapeError),
    ("permute_dims", lambda: ns.permute_dims(x(), 0), ArgumentError),
    ("broadcast_to", lambda: x().broadcast_to((2, 4)), ShapeError),
    ("broadcast_to", lambda: ns.ones(1).broadcast_to((-1,)), ShapeError),
    ("slice", lambda: ns.slice(x(), (0,), (1,), (1,)), ShapeError),
    ("slice", lambda: ns.slice(x(), (0, 0), (3, 1), (1, 1)), ShapeError),
    ("slice", lambda: ns.slice(x(), (0, 0), (1, 1), (1, 0)), ArgumentError),
    ("slice_scatter", lambda: ns.slice_scatter(x(), x(), (0, 0), (1, 3), (1, 1)), ShapeError),
    ("pad", lambda: x().pad(1), ArgumentError),
    ("pad", lambda: x().pad([(1,)]), ArgumentError),
    ("pad", lambda: x().pad([(-1, 0)]), ArgumentError),
    ("pad", lambda: x().pad([(0, 0)] * 3), ArgumentError),
    ("sum", lambda: x().sum(axis=2), ShapeError),
    ("sum", lambda: x().sum(axis=(0, 0)), ShapeError),
    ("sum", lambda: x().sum(axis="a"), ArgumentError),
    ("sum", lambda: x().sum(axis=0.5), ArgumentError),
    ("sum", lambda: x().sum(keepdims="no"), ArgumentError),
    ("sum", lambda: x().sum(dtype="float12"), DTypeError),
    ("sum", lambda: ns.sum("a"), ArgumentError),
    ("max", lambda: ns.ones((0, 2)).max(), ShapeError),
    ("argmax", lambda: ns.ones((2, 0)).argmax(axis=1), ShapeError),
    ("logsumexp", lambda: x().logsumexp(axis=2), ShapeError),
    ("softmax", lambda: x().softmax(axis=2), ShapeError),
    ("softmax_backward", lambda: ns.ops.softmax_backward(x(), x().T), ShapeError),
    ("leaky_relu", lambda: x().leaky_relu("0.5"), ArgumentError),
    ("clip", lambda: x().clip(min="a"), ArgumentError),
    ("clip", lambda: x().clip(min=x()[:, :1].T), ShapeError),
    ("take", lambda: ns.take(x(), ns.asarray([2]), axis=0), IndexOutOfRangeError),
    ("take", lambda: ns.take(x(), ns.asarray([-3]), axis=0), IndexOutOfRangeError),
    ("take", lambda: ns.take(x(), ns.asarray([0]), axis=2), ShapeError),
    ("take", lambda: ns.take(x(), ns.asarray([0.0])), KindError),
    ("take_along_axis", lambda: ns.take_along_axis(x(), ns.asarray([0])), ShapeError),
    ("scatter", lambda: x().scatter(ns.asarray([[0]]), x()), ShapeError),
    ("scatter", lambda: x().scatter(ns.asarray([[0, 0, 0]]), x()), ShapeError),
    ("scatter", lambda: _scatter("times"), ArgumentError),
    ("scatter", lambda: _scatter(5), ArgumentError),
    ("index_add", lambda: x().index_add(ns.asarray([[0]]), x()), ShapeError),
    ("nonzero", lambda: ns.nonzero(ns.asarray(1)), ShapeError),
    ("masked_select", lambda: x().masked_select(ns.asarray([True, False])), ShapeError),
    ("masked_select", lambda: x()[0].masked_select(x() > 1), ShapeError),
    ("conv2d", lambda: ns.conv2d(x(), images()), ShapeError),
    ("conv2d", lambda: ns.conv2d(images(), ns.ones((1, 3, 1, 1))), ShapeError),
    ("conv2d", lambda: ns.conv2d(images(), ns.ones((1, 2, 5, 5))), ShapeError),
    ("conv2d", lambda: ns.conv2d(images(), images(), ns.ones(3)), ShapeError),
    ("conv2d", lambda: ns.conv2d(images(), images(), stride=0), ArgumentError),
    ("conv2d", lambda: ns.conv2d(images(), images(), padding=-1), ArgumentError),
    ("conv2d", lambda: ns.conv2d(images(), images(), groups=3), ShapeError),
    ("conv2d", lambda: ns.conv2d(images(), images(), groups=0), ShapeError),
    (
        "conv2d_input_grad",
        lambda: ns.ops.conv2d_input_grad(images(), images(), (1, 2, 4, 4)),
        ShapeError,
    ),
    ("conv2d_weight_grad", lambda: ns.ops.conv2d_weight_grad(images(), images(), (9,)), ShapeError),
    ("max_pool2d", lambda: ns.max_pool2d(x(), 2), ShapeError),
    ("max_pool2d", lambda: ns.max_pool2d(images(), 5), ShapeError),
    ("max_pool2d", lambda: ns.max_pool2d(images(), 0), ArgumentError),
    ("max_pool2d", lambda: ns.max_pool2d(images(), 2, padding=2), ArgumentError),
    (
        "avg_pool2d_backward",
        lambda: ns.ops.avg_pool2d_backward(images(), (1, 2, 4, 4), 2),
        ShapeError,
    ),
    ("max_pool2d_backward", lambda: _pool_backward((1, 2)), ShapeError),
    ("max_pool2d_backward", lambda: _pool_backward((1, 3, 4, 4)), ShapeError),
    ("linear", lambda: ns.linear(x(), x()), ShapeError),
    ("linear", lambda: ns.linear(x(), x().T, ns.ones(3)), ShapeError),
    ("layer_norm", lambda: ns.layer_norm(x(), ns.ones(2)), ShapeError),
    ("layer_norm", lambda: ns.layer_norm(ns.ones(())), ShapeError),
    ("layer_norm_backward", lambda: ns.ops.layer_norm_backward(x().T, x()), ShapeError),
    ("rms_norm", lambda: ns.rms_norm(x(), ns.ones(2)), ShapeError),
    ("rms_norm_backward", lambda: ns.ops.rms_norm_backward(x().T, x()), ShapeError),
    ("cross_entropy", lambda: ns.cross_entropy(x(), ns.asarray([0])), ShapeError),
    ("cross_entropy", lambda: ns.cross_entropy(ns.ones(3), ns.asarray(3)), IndexOutOfRangeError),
    (
        "cross_entropy_backward",
        lambda: ns.ops.cross_entropy_backward(ns.ones(3), x(), ns.asarray([0, 1])),
        ShapeError,
    ),
    (
        "batch_norm",
        lambda: ns.batch_norm(x(), *[ns.ones(2)] * 2, mean=ns.ones(2), var=ns.ones(2)),
        ShapeError,
    ),
    ("batch_norm_train", lambda: ns.batch_norm_train(x()[0], *[ns.ones(3)] * 2), ShapeError),
    ("batch_norm_backward", _norm_backward, ShapeError),
    ("pow", lambda: ns.asarray([2]) ** -1, ArgumentError),
    ("pow", lambda: ns.asarray([2]) ** ns.asarray([-1]), ArgumentError),
    ("exp", lambda: ns.exp("a"), ArgumentError),
    ("exp", lambda: ns.exp(np.ones(2)), ArgumentError),
    ("exp", lambda: ns.exp(None), ArgumentError),
    ("asarray", lambda: ns.asarray(x(), dtype="nope"), DTypeError),
    ("at", lambda: x().at[0].set([1.0, 2.0, 3.0, 4.0]), ShapeError),
    ("bernoulli", lambda: ns.random.bernoulli((3,), ns.ones(3)), ArgumentError),
    ("categorical", lambda: ns.random.categorical(ns.ones(0)), ShapeError),
    ("embedding_bag", lambda: ns.embedding_bag(x(), ns.asarray([[9]])), IndexOutOfRangeError),
    ("getitem", lambda: x()[[0, 9]], IndexOutOfRangeError),
    ("hfft", lambda: ns.fft.hfft(ns.ones(1)), ShapeError),
    ("lp_pool2d", lambda: ns.lp_pool2d(ns.ones((1, 1, 4, 4)), 2, p=0), ArgumentError),
    ("lstsq", lambda: ns.linalg.lstsq(ns.eye(2), ns.ones(3)), ShapeError),
    ("matrix_rank", lambda: ns.linalg.matrix_rank(ns.ones(3)), ShapeError),
    ("max_pool2d", lambda: ns.max_pool2d(ns.ones((1, 1, 4, 4)), 2, padding=2), ArgumentError),
    ("normal", lambda: ns.random.normal((3,), mean=ns.ones(3)), ArgumentError),
    ("one_hot", lambda: ns.one_hot(ns.asarray([9]), 3), IndexOutOfRangeError),
    ("permutation", lambda: ns.random.permutation(x()), ArgumentError),
    ("trace", lambda: ns.trace(ns.ones(3)), ShapeError),
    ("uniform", lambda: ns.random.uniform((3,), low=ns.ones(3)), ArgumentError),
    ("vector_norm", lambda: ns.linalg.vector_norm(ns.asarray([1, 2]), ord=3), KindError),
    ("vector_norm", lambda: ns.linalg.vector_norm(ns.ones(0), ord=float("inf")), ShapeError),
]


@pytest.mark.parametrize(
    ("op", "call", "error"), WRONG, ids=[f"{op}-{i}" for i, (op, *_) in enumerate(WRONG)]
)
def test_a_wrong_call(op: str, call: Any, error: type[PhloxError]) -> None:
    with pytest.raises(error) as caught:
        call()
    assert caught.value.op == op
    assert TEXT.fullmatch(str(caught.value)), str(caught.value)
    assert caught.value.got is not None or caught.value.expected is not None


def test_arguments_by_name() -> None:
    op = pt.REGISTRY["clip"]
    assert op(x(), min=2.0).tolist() == op(x(), 2.0).tolist() == x().clip(min=2.0).tolist()
    wrong: list[Any] = [
        op,
        lambda: op(x(), 1, 2, 3),
        lambda: op(x(), low=1),
        lambda: op(x(), 1.0, min=2.0),
        lambda: pt.REGISTRY["reshape"](x()),
    ]
    for call in wrong:
        with pytest.raises(ArgumentError, match=r"^\[(clip|reshape)\] \w+"):
            call()
    with pytest.raises(ArgumentError, match="unknown argument: got low, expected min, max"):
        x().clip(low=1)
