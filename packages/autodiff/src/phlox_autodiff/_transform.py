"""Functions from functions to their derivatives: ``grad`` and its relatives."""

from __future__ import annotations

from collections.abc import Callable
from functools import wraps
from typing import Any, Final, Literal, TypeVar, overload

from phlox_tensor import Float, GradientError, ShapeError, Tensor, WrongTypeError, tree
from phlox_tensor.arguments import require_callable

from ._levels import describe, require_fit
from ._recorded import ArgNums, Function, Recorded, numbers
from ._typed import Gradient, GradientAndAux, ValueAndGradient

# What to type for a function of several elements, by transform.
_SMALLER: Final = {
    "grad": "grad(lambda x: f(x).sum()), or jacobian(f)",
    "hessian": "px.hessian(lambda x: f(x).sum())(x), or px.jacobian(px.jacobian(f))(x)",
    "hvp": "px.hvp(lambda x: f(x).sum(), (x,), (v,))",
}


R = TypeVar("R")
X = TypeVar("X")


@overload
def value_and_grad(
    function: Callable[..., Tensor[Float]],
    argnums: Literal[0] = 0,
    *,
    has_aux: Literal[False] = False,
) -> ValueAndGradient[Tensor[Float]]: ...
@overload
def value_and_grad(
    function: Callable[..., tuple[Tensor[Float], X]],
    argnums: Literal[0] = 0,
    *,
    has_aux: Literal[True],
) -> ValueAndGradient[tuple[Tensor[Float], X]]: ...
@overload
def value_and_grad(
    function: Function, argnums: ArgNums, *, has_aux: bool = False
) -> Callable[..., tuple[Any, Any]]: ...
def value_and_grad(function: Function, argnums: ArgNums = 0, *, has_aux: bool = False) -> Function:
    """Return a function that gives the value of ``function`` and its gradient.

    ``function`` gives a tensor of one element; arguments may be tuples, lists and dicts of
    tensors. The gradient has the structure of the argument, or is a tuple for several ``argnums``.
    It lives on the device of the arguments, and may be differentiated again.

    Args:
        function: a function that gives one loss.
        argnums: the arguments to differentiate, by place.
        has_aux: ``function`` gives a pair, the loss and anything else, which is not
            differentiated; the result is then ``((value, aux), gradient)``.

    A value that depends only on other arguments has a gradient of zeros.

    Raises:
        GradientError: from the call, when there is no Float tensor to differentiate, or the value
            can be of no argument: it is of tensors that the function has from elsewhere, or of
            what ``x.numpy()`` gave.
        ShapeError: from the call, when the value is not one element.

    Example:
        >>> import phlox_tensor as pt
        >>> loss = lambda w, x: ((w * x).sum(), {"size": x.size})
        >>> run = value_and_grad(loss, has_aux=True)
        >>> (value, aux), slope = run(pt.asarray([1.0, 2.0]), pt.asarray([3.0, 4.0]))
        >>> float(value), aux, slope.tolist()
        (11.0, {'size': 2}, [3.0, 4.0])
    """
    require_callable("value_and_grad", function, "px.value_and_grad(loss_of)(model)")
    return both("grad", function, argnums, has_aux=has_aux)


def both(name: str, function: Function, argnums: ArgNums, *, has_aux: bool) -> Function:
    """What ``value_and_grad`` gives, for the transform that errors name."""
    places = numbers(name, argnums)

    @wraps(function, updated=())
    def run(*args: Any, **kwargs: Any) -> tuple[Any, Any]:
        call = Recorded(name, function, args, places, kwargs, has_aux=has_aux)
        value = call.output
        if not isinstance(value, Tensor) or value.dtype.kind != "Float":
            several = isinstance(value, tuple) and not has_aux
            raise GradientError(
                name,
                "the value is not a Float tensor",
                got=describe(value),
                expected="a loss",
                hint=f"px.{name}(f, has_aux=True) of a loss and what is beside it"
                if several
                else None,
            )
        if value.size != 1:
            raise ShapeError(
                name,
                "the value is not one element",
                got=f"shape {value.shape}",
                expected="one element",
                hint=_SMALLER[name],
            )
        value = call.lower(value)
        seed = value.zeros() + 1
        gradients = call.pull([seed], retain_graph=False)
        found = gradients[0] if isinstance(argnums, int) else gradients
        return ((value, call.aux) if has_aux else value), found

    return run


@overload
def grad(
    function: Callable[..., Tensor[Float]],
    argnums: Literal[0] = 0,
    *,
    has_aux: Literal[False] = False,
) -> Gradient: ...
@overload
def grad(
    function: Callable[..., tuple[Tensor[Float], X]],
    argnums: Literal[0] = 0,
    *,
    has_aux: Literal[True],
) -> GradientAndAux[X]: ...
@overload
def grad(function: Function, argnums: ArgNums, *, has_aux: bool = False) -> Function: ...
def grad(function: Function, argnums: ArgNums = 0, *, has_aux: bool = False) -> Function:
    """Return a function that gives the gradient of ``function``; see ``value_and_grad``.

    With ``has_aux`` it gives ``(gradient, aux)``.

    Example:
        >>> import phlox_tensor as pt
        >>> grad(lambda x: (x**3).sum())(pt.asarray([1.0, 2.0])).tolist()
        [3.0, 12.0]
    """
    require_callable("grad", function, "px.grad(loss_of)(model)")
    return gradient("grad", function, argnums, has_aux=has_aux)


def gradient(name: str, function: Function, argnums: ArgNums, *, has_aux: bool) -> Function:
    """What ``grad`` gives, for the transform that errors name."""
    run_both = both(name, function, argnums, has_aux=has_aux)

    @wraps(function, updated=())
    def run(*args: Any, **kwargs: Any) -> Any:
        value, found = run_both(*args, **kwargs)
        return (found, value[1]) if has_aux else found

    return run


@overload
def vjp(
    function: Callable[..., R],
    *xs: Any,
    has_aux: Literal[False] = False,
    kwargs: dict[str, Any] | None = None,
) -> tuple[R, Callable[[Any], tuple[Any, ...]]]: ...
@overload
def vjp(
    function: Callable[..., tuple[R, X]],
    *xs: Any,
    has_aux: Literal[True],
    kwargs: dict[str, Any] | None = None,
) -> tuple[R, Callable[[Any], tuple[Any, ...]], X]: ...
def vjp(
    function: Function, *xs: Any, has_aux: bool = False, kwargs: dict[str, Any] | None = None
) -> Any:
    """Return ``function(*xs)`` and a function from a cotangent of it to the cotangents of ``xs``.

    The cotangent has the structure of the value; the result is a tuple, one for each of ``xs``.
    The function may be called many times; it holds the graph. With ``has_aux``, for a function
    that gives a pair, ``aux`` comes third. ``kwargs`` are further arguments by name, which are
    constants.

    Raises:
        GradientError: when there is no Float tensor to differentiate.
        ShapeError: from the function, when a cotangent does not fit its value.

    Example:
        >>> import phlox_tensor as pt
        >>> value, pull = vjp(lambda x: x * x, pt.asarray([1.0, 2.0]))
        >>> (back,) = pull(pt.asarray([1.0, 10.0]))
        >>> back.tolist()
        [2.0, 40.0]
    """
    require_callable("vjp", function, "px.vjp(f, x)")
    call = Recorded("vjp", function, xs, tuple(range(len(xs))), kwargs or {}, has_aux=has_aux)
    value = tree.map(call.lower, call.output)

    def pull(cotangent: Any) -> tuple[Any, ...]:
        values, structure = tree.flatten(call.output)
        given = structure.leaves_of(cotangent, "vjp")
        for leaf, part in zip(values, given, strict=True):
            _require_cotangent(leaf, part)
        return call.pull(given, retain_graph=True)

    return (value, pull, call.aux) if has_aux else (value, pull)


def _require_cotangent(value: Any, cotangent: Any) -> None:
    """Refuse what is no cotangent of a value; None is one, of zeros."""
    if cotangent is None or not isinstance(value, Tensor):
        return
    instead = ", or None for zeros"
    if not isinstance(cotangent, Tensor):
        hint = f"px.full({value.shape}, 1.0)"
        got, expected = type(cotangent).__name__, f"{value.shape} of {value.dtype}{instead}"
        raise WrongTypeError(
            "vjp", "a cotangent is no tensor", got=got, expected=expected, hint=hint
        )
    require_fit("vjp", "a cotangent", cotangent, value, instead)


def stop_gradient(values: Any) -> Any:
    """Return a tensor, or a tree of them, through which no derivative flows, in either mode.

    Example:
        >>> import phlox_tensor as pt
        >>> grad(lambda x: (x * stop_gradient(x)).sum())(pt.asarray([2.0, 3.0])).tolist()
        [2.0, 3.0]
    """
    return tree.map(lambda leaf: leaf.detach() if isinstance(leaf, Tensor) else leaf, values)
