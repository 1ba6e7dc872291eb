"""The rule for one tensor: what the author of an optimizer writes."""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Callable, Sequence
from functools import wraps
from typing import Any, ClassVar, Generic, TypeVar, get_args

from phlox_tensor import DType, Float, ShapeError, Tensor, WrongTypeError

C = TypeVar("C")
State = Any
"""A tree of dicts with text keys, lists and tuples that holds tensors and plain values, or None."""


class SimpleOptimizer(ABC):
    """The rule for one tensor; an author of an optimizer writes ``step`` and nothing else."""

    @abstractmethod
    def step(
        self, lr: float, tensor: Tensor[Float], grad: Tensor[Float], state: State
    ) -> tuple[Tensor[Float], State]:
        """Return the tensor after a step, and the state for the next.

        Args:
            lr: the learning rate.
            tensor: the parameter, without history.
            grad: its gradient, on the same device.
            state: what the last step returned, on that device too; None at first. Dicts with text
                keys, lists and tuples, however nested, of tensors, numbers, text and None.
        """

    def step_list(
        self,
        lr: float,
        tensors: Sequence[Tensor[Float]],
        grads: Sequence[Tensor[Float]],
        states: Sequence[State],
    ) -> tuple[list[Tensor[Float]], list[State]]:
        """Return many tensors after a step, and their states: by default one after the other.

        Raises:
            ShapeError: when a tensor after a step does not have the shape of the one before.

        For rules that are cheaper for many tensors in one go. All are on one device. The tensors,
        the gradients, and what the states have at one place are of one element type each; the
        states have the same structure and equal numbers, and so must those that are returned.
        """
        pairs = [self.step(lr, *each) for each in zip(tensors, grads, states, strict=True)]
        for tensor, (value, _) in zip(tensors, pairs, strict=True):
            if value.shape != tensor.shape:
                raise misfit("the new value", value.shape, tensor.shape)
        return [value for value, _ in pairs], [state for _, state in pairs]

    def __init_subclass__(cls, **options: Any) -> None:
        """Let ``step`` say what steps modules, where one is given."""
        super().__init_subclass__(**options)
        if "step" in vars(cls):
            cls.step = _of_one_tensor(cls.step)  # type: ignore[method-assign]

    def __repr__(self) -> str:
        return f"{type(self).__name__}({', '.join(map(repr, vars(self).values()))})"


class ConfiguredRule(SimpleOptimizer, Generic[C]):
    """A rule whose settings are those of a config: ``class Lion(ConfiguredRule[LionConfig])``.

    ``LionConfig().rule()`` makes it then.
    """

    _config: C
    _defaults: ClassVar[Any]

    def __init__(self, config: C | None = None) -> None:
        """Take the settings; by default those of the config."""
        self._config = self._defaults() if config is None else config

    def __init_subclass__(cls, **options: Any) -> None:
        """Belong to the config that is the type argument."""
        super().__init_subclass__(**options)
        arguments = [a for base in vars(cls).get("__orig_bases__", ()) for a in get_args(base)]
        for config in arguments:
            if isinstance(config, type):
                cls._defaults = config
                config._rule = cls  # type: ignore[attr-defined]


def _of_one_tensor(step: Callable[..., Any]) -> Callable[..., Any]:
    """The step of a rule, which says what steps modules; a call that works pays for the ``try``."""

    @wraps(step)
    def run(self: Any, *args: Any, **kwargs: Any) -> Any:
        try:
            return step(self, *args, **kwargs)
        except TypeError as error:
            given = kwargs.get("tensor", args[1] if len(args) > 1 else None)
            if given is None or isinstance(given, Tensor):
                raise
            name = type(self).__name__
            raise WrongTypeError(
                "step",
                f"{name} is the rule for one tensor",
                got=f"a {type(given).__name__}",
                expected="a tensor, its gradient and a state",
                hint=f"optim.{name}Config().init().step(lr, model, grads)",
            ) from error

    return run


def primitives(tensors: Sequence[Tensor[Float]], dtype: DType) -> tuple[Any, ...]:
    """What an op over lists takes: the primitives of tensors of one element type, in ``dtype``."""
    if tensors and tensors[0].dtype is not dtype:
        tensors = [t.astype(dtype) for t in tensors]
    return tuple([t.primitive for t in tensors])


def misfit(what: str, got: tuple[int, ...], expected: tuple[int, ...]) -> ShapeError:
    """The error of a shape that is not the parameter's."""
    return ShapeError("step", f"{what} does not fit the parameter", got=got, expected=expected)
