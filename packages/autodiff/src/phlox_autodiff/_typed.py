"""What type checkers see of the functions that ``grad`` and its relatives return.

The argument decides the type of its gradient at the call, where it is known for lambdas too.
"""

from __future__ import annotations

from typing import Any, Protocol, TypeVar, overload

from phlox_tensor import Float, Tensor

A = TypeVar("A")
X_co = TypeVar("X_co", covariant=True)


class Gradient(Protocol):
    """Gives a gradient, which has the structure of the first argument."""

    def __call__(self, x: A, /, *args: Any, **kwargs: Any) -> A: ...


class GradientAndAux(Protocol[X_co]):
    """Gives a gradient, and what else the function gave than the loss."""

    def __call__(self, x: A, /, *args: Any, **kwargs: Any) -> tuple[A, X_co]: ...


class ValueAndGradient(Protocol[X_co]):
    """Gives a loss, with what else the function gave, if it did, and the gradient."""

    def __call__(self, x: A, /, *args: Any, **kwargs: Any) -> tuple[X_co, A]: ...


class Derivatives(Protocol):
    """Gives all derivatives: a tensor for a tensor, trees of such for a tree."""

    @overload
    def __call__(self, x: Tensor[Float], /, *args: Any, **kwargs: Any) -> Tensor[Float]: ...
    @overload
    def __call__(self, x: Any, /, *args: Any, **kwargs: Any) -> Any: ...
