"""Arguments of wrong types: errors that name the one that does not fit."""

from __future__ import annotations

import inspect
import pickle
from collections.abc import Callable
from contextlib import suppress
from typing import Any

import numpy as np
import pytest

import phlox_tensor as pt
from phlox_tensor import Numpy, PhloxError, WrongTypeError
from phlox_tensor._op.signature import REQUIRED
from phlox_tensor.arguments import explained

X = pt.ones((2, 3), device="numpy")
WRONG: list[Any] = ["text", None, [1.0, "a"], 2.5, object(), {"a": 1}, b"x", np.ones(3)]
NAMESPACES = [pt, pt.fft, pt.linalg, pt.random, pt.tree]
LEFT_OUT = {"register", "register_leaf"}  # whose effect would stay


def functions() -> list[Any]:
    found = {}
    for space in NAMESPACES:
        for name in dir(space):
            member = getattr(space, name)
            own = inspect.isfunction(member) and member.__module__.startswith("phlox")
            if own and not name.startswith("_") and name not in LEFT_OUT:
                found[f"{space.__name__}.{name}"] = member
    return [pytest.param(f, id=name) for name, f in sorted(found.items())]


def calls(function: Callable[..., Any]) -> list[tuple[list[Any], dict[str, Any]]]:
    """Calls with one wrong argument each, in place of the first ones or by keyword."""
    parameters = [*inspect.signature(function).parameters.values()]
    missing = (inspect.Parameter.empty, REQUIRED)  # the latter where words of others are told apart
    needed = [p for p in parameters if p.default in missing and p.kind < p.VAR_POSITIONAL]
    out: list[tuple[list[Any], dict[str, Any]]] = []
    for wrong in WRONG:
        out += [
            ([wrong if i == place else X for i in range(len(needed))], {})
            for place in range(len(needed))
        ]
        optional = [p for p in parameters if p.default not in missing]
        out += [([X] * len(needed), {p.name: wrong}) for p in optional if p.kind > 0]
    return out


@pytest.mark.filterwarnings("ignore:.*the block was never entered:RuntimeWarning")
@pytest.mark.parametrize("function", functions())
def test_no_public_function_fails_in_words_of_python(function: Callable[..., Any]) -> None:
    for args, kwargs in calls(function):
        with suppress(PhloxError):
            function(*args, **kwargs)


def test_the_error_names_the_argument_and_what_it_takes() -> None:
    with pytest.raises(WrongTypeError) as caught:
        pt.tril("text")  # type: ignore[arg-type]
    error = caught.value
    assert (error.op, error.got, error.expected) == ("tril", "'text' (str)", "Tensor")
    with pytest.raises(WrongTypeError, match="k is not of the type that it takes: got 'a'"):
        pt.tril(X, k="a")  # type: ignore[arg-type]
    with pytest.raises(WrongTypeError) as caught:
        pt.linalg.trace(np.ones(2))  # type: ignore[arg-type]
    assert caught.value.hint == "px.asarray(x)"
    assert isinstance(caught.value, TypeError)


def test_errors_of_functions_that_are_given_stay_as_they_are() -> None:
    def fails(_: Any) -> Any:
        raise KeyError("mine")

    with pytest.raises(KeyError, match="mine"):
        pt.tree.map(fails, [1])


def test_a_wrong_number_of_arguments_is_said_by_python() -> None:
    @explained
    def twice(x: int) -> int:
        return 2 * x

    assert twice(4) == 8
    with pytest.raises(TypeError, match="positional argument"):
        twice(1, 2)  # type: ignore[call-arg]


def test_functions_pickle_and_show_their_signature() -> None:
    assert pickle.loads(pickle.dumps(pt.tril)) is pt.tril
    assert list(inspect.signature(pt.linspace).parameters)[:3] == ["start", "stop", "num"]


def test_a_device_for_gradients_is_asked_for_tensors() -> None:
    wrong: list[Any] = [{}, "text"]
    for given in wrong:
        with pytest.raises(WrongTypeError, match="not the gradients of a pass"):
            X.grad(given)
    assert Numpy() is X.device
