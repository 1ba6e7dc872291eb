"""Weights by length and direction, and weights over their largest singular value."""

from __future__ import annotations

from collections.abc import Callable
from functools import cache
from math import prod
from typing import Any, ClassVar, TypeVar

from phlox_tensor import ArgumentError, Float, Tensor, linalg

from .. import initializers as init
from ..module.module import Module
from ..module.updates import propose
from ..module.visit import modules
from ..param.param import Param
from ..parts.dropped import kept
from ..where import Where, chosen, no_weight
from .computed import ComputedWeight
from .swap import is_conv_transposed, map_fields, plain_again

M = TypeVar("M", bound=Module)
_FIRST = 15  # steps of the power method before the first use, as in PyTorch


class NormedWeight(ComputedWeight):
    """A weight by direction and length: ``length · direction / ‖direction‖``, 0 for zeros.

    direction: as the weight; length: the same with sizes of 1 in the place of all axes but one, or
    () for a length of the whole.

    Attributes:
        axis: the axis of the weight along which lengths differ; None for one length.
    """

    beside_in_pytorch: ClassVar = {
        "length": ("parametrizations.{}.original0", "{}_g"),
        "direction": ("parametrizations.{}.original1", "{}_v"),
    }

    direction: Param
    length: Param
    axis: int | None

    @property
    def source(self) -> Param:
        """The direction."""
        return self.direction

    @property
    def value(self) -> Tensor[Float]:
        """The weight."""
        direction = self.direction.value
        lengths = _lengths(direction, self.axis)
        return direction * (self.length.value / (lengths == 0).where(1.0, lengths))

    def into_param(self) -> Param:
        """Return a parameter of the same identity with the value."""
        return _plain(self.value, self.direction)


class SpectralWeight(ComputedWeight):
    """A weight over its largest singular value, as far as the power method knows it.

    The weight is seen as a matrix whose rows are one of its axes. Of each forward in training
    ``iterations`` steps of the method go on from what the last update left, and are proposed for
    the next; in inference the value is that of the vectors as they are.

    original: the weight; left: (rows,) and right: (columns,), the singular vectors.

    Attributes:
        axis: the axis of the weight that is the rows.
        iterations: steps of the power method at each forward in training.
        epsilon: the least length that a vector is divided by.
        training: whether the vectors move.
    """

    beside_in_pytorch: ClassVar = {
        "original": ("parametrizations.{}.original", "{}_orig"),
        "left": ("parametrizations.{}.0._u", "{}_u"),
        "right": ("parametrizations.{}.0._v", "{}_v"),
    }

    original: Param
    left: Param
    right: Param
    axis: int
    iterations: int
    epsilon: float
    training: bool

    @property
    def source(self) -> Param:
        """The weight as it is trained."""
        return self.original

    @property
    def value(self) -> Tensor[Float]:
        """The weight over the singular value."""
        if not self.training:
            return self._over(self.left.value.detach(), self.right.value.detach())
        matrix = _matrix(self.original.value.detach(), self.axis)
        right = self.right.value.detach()
        left, right = _powered(matrix, right, self.iterations, self.epsilon)
        value = propose(self._over(left, right), self.left, left)
        return propose(value, self.right, right)

    def into_param(self) -> Param:
        """Return a parameter of the same identity with the value, by the vectors as they are."""
        return _plain(self.with_training(False).value, self.original)

    def _over(self, left: Tensor[Float], right: Tensor[Float]) -> Tensor[Float]:
        weight = self.original.value
        return weight / (left * (_matrix(weight, self.axis) @ right)).sum()


@kept("model = nn.weight_norm(model)")
def weight_norm(model: M, *where: Where, axis: int | None = 0) -> M:
    """Return the model with weights as lengths and directions, which are trained apart.

    At first the weights are the same. What was lazy stays lazy; weights that layers share stay
    shared. Salimans and Kingma, 2016, https://arxiv.org/abs/1602.07868

    Args:
        model: any module.
        where: paths of weights or layers, in which ``*`` stands for anything, or functions of path
            and parameter; none for all weights of at least two axes.
        axis: along which axis lengths differ, counted in PyTorch's layout, where 0 are the outputs
            of linear layers and of convolutions; None for one length of the whole.

    Raises:
        ArgumentError: when a path is that of no such weight, or a weight lacks the axis.

    Example:
        >>> import phlox_nn as nn
        >>> model = nn.weight_norm(nn.Linear(5, 3))
        >>> model.weight.length, nn.remove_weight_norm(model).weight
        (Param(float32[1, 3]), Param(float32[5, 3]))
    """

    def normed(path: str, param: Param, owner: Module) -> ComputedWeight:
        place = None if axis is None else _place("weight_norm", path, param, axis, owner)
        sizes = tuple(n if i == place else 1 for i, n in enumerate(param.shape))
        shape = () if place is None else sizes
        length = _made(param, shape, lambda: _lengths(param.value.detach(), place))
        return NormedWeight(param, length, place)

    return _remade("weight_norm", model, where, normed)


@kept("model = nn.spectral_norm(model)")
def spectral_norm(
    model: M, *where: Where, iterations: int = 1, epsilon: float = 1e-12, axis: int | None = None
) -> M:
    """Return the model with weights divided by their largest singular value.

    The value is known by the power method, which goes on at each forward in training and whose
    vectors move as running statistics do: ``optimizer.step`` takes them over. Several forwards
    before a step start from the same vectors. Miyato et al., 2018, https://arxiv.org/abs/1802.05957

    Args:
        model: any module.
        where: paths of weights or layers, in which ``*`` stands for anything, or functions of path
            and parameter; none for all weights of at least two axes.
        iterations: steps of the power method at each forward in training.
        epsilon: the least length that a vector is divided by.
        axis: which axis makes the rows of the matrix, counted in PyTorch's layout; None for the
            outputs, as PyTorch has it.

    Raises:
        ArgumentError: when a path is that of no such weight, a weight lacks the axis, or there are
            no iterations.

    Example:
        >>> import phlox_nn as nn
        >>> model = nn.spectral_norm(nn.Linear(5, 3))
        >>> model.weight.left, model.weight.right
        (Param(float32[3], state), Param(float32[5], state))
    """
    for name, given, holds, least in (
        ("iterations", iterations, iterations >= 1, "at least 1"),
        ("epsilon", epsilon, epsilon > 0, "above 0"),
    ):
        if not holds:
            raise ArgumentError("spectral_norm", name, got=given, expected=least)

    def normed(path: str, param: Param, owner: Module) -> ComputedWeight:
        rows = int(is_conv_transposed(owner)) if axis is None else axis
        place = _place("spectral_norm", path, param, rows, owner)
        size = param.shape[place]
        columns = prod(param.shape) // max(size, 1)
        start = init.Normal().param((columns,), param.device, role="state")

        @cache
        def both() -> tuple[Tensor[Float], Tensor[Float]]:
            matrix = _matrix(param.value.detach(), place)
            first = start.value.detach().astype(param.dtype)
            return _powered(matrix, first, _FIRST, epsilon)

        left = _made(param, (size,), lambda: both()[0], state=True)
        right = _made(param, (columns,), lambda: both()[1], state=True)
        trains = param.device.records
        return SpectralWeight(param, left, right, place, iterations, epsilon, trains)

    return _remade("spectral_norm", model, where, normed)


def remove_weight_norm(model: M) -> M:
    """Return the model with parameters in the place of weights by length and direction.

    Raises:
        ArgumentError: when the model has none.

    Example:
        >>> import phlox_nn as nn
        >>> nn.remove_weight_norm(nn.weight_norm(nn.Linear(4, 4))).weight.shape
        (4, 4)
    """
    return plain_again(model, NormedWeight, "remove_weight_norm", "of it", "weight_norm")


def remove_spectral_norm(model: M) -> M:
    """Return the model with parameters in the place of weights over their singular value.

    Raises:
        ArgumentError: when the model has none.

    Example:
        >>> import phlox_nn as nn
        >>> nn.remove_spectral_norm(nn.spectral_norm(nn.Linear(4, 4))).weight.shape
        (4, 4)
    """
    return plain_again(model, SpectralWeight, "remove_spectral_norm", "of it", "spectral_norm")


def _remade(
    op: str,
    model: M,
    where: tuple[Where, ...],
    make: Callable[[str, Param, Module], ComputedWeight],
) -> M:
    """The model with what ``make`` gives for the weights that are meant."""
    computed = [path for path, m in modules(model) if isinstance(m, ComputedWeight)]
    inside = [f"{path}." * bool(path) for path in computed]
    able = {
        path: param
        for path, param in model.params(role="weight").items()
        if len(param.shape) > 1
        and param.dtype.kind == "Float"
        and not path.startswith(tuple(inside))
    }
    lacking = "a model with weights of two axes that are parameters"
    paths = chosen(op, where, able, lacking)
    if not paths:
        raise no_weight(op, "none", able, lacking)
    meant = {id(able[path]) for path in paths}
    made: dict[int, ComputedWeight] = {}

    def one(path: str, leaf: Any, owner: Module) -> Any:
        if not isinstance(leaf, Param) or id(leaf) not in meant:
            return leaf
        if id(leaf) not in made:
            made[id(leaf)] = make(path, leaf, owner)
        return made[id(leaf)]

    return map_fields(model, one)


def _place(op: str, path: str, param: Param, axis: int, owner: Module) -> int:
    """The axis of the weight as it lies here, for one in PyTorch's layout."""
    count = len(param.shape)
    if not -count <= axis < count:
        raise ArgumentError(
            op,
            f"{path} has no such axis",
            got=axis,
            expected=f"{-count} to {count - 1}",
            hint=f"nn.{op}(model, {path!r}, axis=0)",
        )
    turned = path.rpartition(".")[2] in getattr(type(owner), "transposed_in_pytorch", ())
    return (count - 1 - axis % count) if turned else axis % count


def _made(
    param: Param, shape: tuple[int, ...], make: Callable[[], Tensor[Float]], *, state: bool = False
) -> Param:
    """A parameter beside another one, lazy as long as that is."""
    lazy = Param.lazy(
        make,
        shape,
        param.dtype,
        param.device,
        trainable=not (state or param.frozen),
        role="state" if state else "weight",
    )
    if param.is_initialized:
        _ = lazy.value
    return lazy


def _plain(value: Tensor[Float], like: Param) -> Param:
    return Param(value.detach(), id=like.id, trainable=not like.frozen)


def _lengths(direction: Tensor[Float], axis: int | None) -> Tensor[Float]:
    if axis is None:
        return linalg.vector_norm(direction)
    others = [i for i in range(direction.ndim) if i != axis]
    return linalg.vector_norm(direction, axis=others, keepdims=True)


def _matrix(weight: Tensor[Float], axis: int) -> Tensor[Float]:
    """The weight with one axis as rows, and all others as columns."""
    order = [axis, *(i for i in range(weight.ndim) if i != axis)]
    return weight.permute_dims(order).reshape(weight.shape[axis], -1)


def _powered(
    matrix: Tensor[Float], right: Tensor[Float], steps: int, epsilon: float
) -> tuple[Tensor[Float], Tensor[Float]]:
    """Singular vectors after some steps of the power method."""
    left = right
    for _ in range(steps):
        left = _unit(matrix @ right, epsilon)
        right = _unit(left @ matrix, epsilon)
    return left, right


def _unit(vector: Tensor[Float], epsilon: float) -> Tensor[Float]:
    return vector / linalg.vector_norm(vector).clip(epsilon, None)
