"""The rule for one tensor: what the author of an optimizer writes."""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Callable, Sequence
from functools import wraps
from inspect import cleandoc
from operator import is_
from typing import Any, ClassVar, Final, Generic, Never, TypeAlias, TypeVar, get_args

from phlox_tensor import CompileError, DType, Float, ShapeError, Tensor, WrongTypeError, tree
from phlox_tensor.capture import run_together
from phlox_tensor.shown import hide_refused

C = TypeVar("C")
State = Any
"""A tree of dicts with text keys, lists, tuples, named tuples and dataclasses, or None."""
Stepped: TypeAlias = tuple[Tensor[Float], State]
Tensors: TypeAlias = Sequence[Tensor[Float]]
SteppedAll: TypeAlias = tuple[list[Tensor[Float]], list[State]]


class SimpleOptimizer(ABC):
    """The rule for one tensor; an author of an optimizer writes ``step`` and nothing else."""

    # Which steps of a class cannot be one kernel: True for first steps, False for later ones.
    _one_by_one: ClassVar[set[bool]]

    @abstractmethod
    def step(self, lr: float, tensor: Tensor[Float], grad: Tensor[Float], state: State) -> Stepped:
        """Return the tensor after a step, and the state for the next.

        Args:
            lr: the learning rate.
            tensor: the parameter, without history. That of a float16 or bfloat16 parameter comes as
                float32, since squares leave the range of narrow types; what is returned for it is
                rounded to the parameter's type.
            grad: its gradient, on the same device and of the same element type.
            state: what the last step returned, on that device too; None at first. Dicts with text
                keys, lists, tuples, named tuples and dataclasses, however nested, of tensors,
                numbers, text and None. Classes stand in the module of the rule, where a record
                finds them again.
        """

    def step_list(
        self, lr: float, tensors: Tensors, grads: Tensors, states: Sequence[State]
    ) -> SteppedAll:
        """Return many tensors after a step, and their states, bit by bit what ``step`` gives.

        By default, where ``step`` is elementwise ops and keeps nothing in the rule itself, large
        tensors are stepped by one kernel, for which it runs once, without data; else it runs for
        each.

        Raises:
            ShapeError: when a tensor after a step does not have the shape of the one before.
            WrongTypeError: when ``step`` gives no pair of a tensor and a state.

        Override it where many tensors have a cheaper way in one go. All are on one device. Tensors
        have one element type, gradients too, and so has each leaf of the states. States have the
        same structure and equal numbers, and so must those that are returned.
        """
        rows = list(zip(tensors, grads, states, strict=True))
        made = _by_one_kernel(self, lr, rows) if rows else None
        if made is None:
            made = [self.step(lr, *each) for each in rows]
        pairs = [_checked_pair(self, pair) for pair in made]
        for tensor, (value, _) in zip(tensors, pairs, strict=True):
            if value.shape != tensor.shape:
                raise misfit("the new value", value.shape, tensor.shape)
        return [value for value, _ in pairs], [state for _, state in pairs]

    def __init_subclass__(cls, **options: Any) -> None:
        """Wrap ``step``: float32 for narrow parameters, and an error that helps for modules."""
        super().__init_subclass__(**options)
        cls._one_by_one = set()
        if "step" in vars(cls):
            cls.step = _of_one_tensor(cls.step)  # type: ignore[method-assign]
        if "step_list" in vars(cls):
            cls.step_list = _of_lists(cls.step_list)  # type: ignore[method-assign]

    def __repr__(self) -> str:
        return f"{type(self).__name__}({', '.join(map(repr, vars(self).values()))})"


_EXAMPLE: Final = """Example:
    >>> import phlox as px
    >>> model = px.nn.Linear(2, 2, bias=False, initializer=px.nn.initializers.Ones())
    >>> optimizer = px.optim.{}Config().init()
    >>> grads = {{model.weight.id: px.asarray([[1.0, -1.0], [0.0, 2.0]])}}
    >>> model = optimizer.step(0.1, model, grads)
    >>> optimizer.steps
    1
"""


class ConfiguredRule(SimpleOptimizer, Generic[C]):
    """A rule whose settings are those of a config: ``class Lion(ConfiguredRule[LionConfig])``.

    ``LionConfig().rule()`` makes it then.
    """

    _config: C
    _defaults: ClassVar[Any]

    def __init__(self, config: C | None = None, *more: Never, **settings: Never) -> None:
        """Take the settings; by default those of the config.

        Raises:
            WrongTypeError: for what is no config of the rule, such as a learning rate.
        """
        if more or settings or not isinstance(config, self._defaults | None):
            name, given = self._defaults.__name__, (config, *more)
            raise WrongTypeError(
                type(self).__name__,
                "a rule is made of its config alone",
                got=", ".join(settings) or " and ".join(type(x).__name__ for x in given),
                expected=name,
                hint=f"optimizer = optim.{name}().init(), then optimizer.step(0.1, model, grads)",
            )
        self._config = self._defaults() if config is None else config

    hide_refused([__init__])

    def __init_subclass__(cls, **options: Any) -> None:
        """Take the config that is the type argument as the one of this rule."""
        super().__init_subclass__(**options)
        if (
            cls.__module__.partition(".")[0] == __name__.partition(".")[0]
            and cls.__name__[0] != "_"
        ):
            cls.__doc__ = f"{cleandoc(cls.__doc__ or '')}\n\n{_EXAMPLE.format(cls.__name__)}"
        arguments = [a for base in vars(cls).get("__orig_bases__", ()) for a in get_args(base)]
        for config in arguments:
            if isinstance(config, type):
                cls._defaults = config
                config._rule = cls  # type: ignore[attr-defined]


def _attributes(rule: SimpleOptimizer) -> dict[str, Any]:
    """What a rule keeps in itself, in slots or not."""
    names = tree.slots_of(type(rule))
    return {**vars(rule), **{name: getattr(rule, name) for name in names if hasattr(rule, name)}}


def _by_one_kernel(rule: SimpleOptimizer, lr: float, rows: list[Any]) -> list[Any] | None:
    """What one kernel gives for all rows; None where the step has to run for each."""
    first = rows[0][2] is None
    if first in rule._one_by_one:
        return None
    before = _attributes(rule)
    try:
        made = run_together(lambda row: _checked_pair(rule, rule.step(lr, *row)), rows)
    except CompileError:
        made = None
        rule._one_by_one.add(first)
    after = _attributes(rule)
    if after.keys() != before.keys() or not all(map(is_, after.values(), before.values())):
        vars(rule).clear()  # such as a count of its calls: one kernel for all would count one
        for name, value in before.items():
            object.__setattr__(rule, name, value)  # of a frozen dataclass too
        rule._one_by_one.add(first)
        return None
    return made


def _of_one_tensor(step: Callable[..., Any]) -> Callable[..., Any]:
    """The step of a rule, which says what steps modules; a call that works pays for the ``try``."""

    @wraps(step)
    def run(self: Any, *args: Any, **kwargs: Any) -> Any:
        try:
            return _in_full_precision(step, self, *args, **kwargs)
        except TypeError as error:
            given = kwargs.get("tensor", args[1] if len(args) > 1 else None)
            if given is None or isinstance(given, Tensor):
                raise
            name = type(self).__name__
            raise WrongTypeError(
                "step",
                f"{name} is the rule for one tensor",
                got=type(given).__name__,
                expected="a tensor, its gradient and a state",
                hint=f"optim.{name}Config().init().step(lr, model, grads)",
            ) from error

    return run


def _in_full_precision(
    step: Callable[..., Any], rule: Any, lr: float, tensor: Any, grad: Any, state: State
) -> tuple[Tensor[Float], State]:
    """A step, for which narrow floats are widened and the gradient gets the tensor's type."""
    if not (isinstance(tensor, Tensor) and isinstance(grad, Tensor) and _changes(tensor, grad)):
        return step(rule, lr, tensor, grad, state)
    wide = tensor.to_full_precision()
    given = step(rule, lr, wide, grad.astype(wide.dtype), _wide(state))
    value, after = _checked_pair(rule, given)
    return value.astype(tensor.dtype), after


def _checked_pair(rule: object, made: Any) -> tuple[Tensor[Float], State]:
    """What a step gives, a pair: a tensor alone would come apart along its first axis."""
    if type(made) is tuple and len(made) == 2 and isinstance(made[0], Tensor):
        return made
    parts = ", ".join(type(part).__name__ for part in made) if isinstance(made, tuple) else ""
    raise WrongTypeError(
        "step",
        f"{type(rule).__name__}.step gives no pair of a tensor and a state",
        got=f"({parts})" if parts else type(made).__name__,
        expected="the tensor after the step, and the state for the next or None",
        hint="return tensor, state",
    )


def _of_lists(step_list: Callable[..., Any]) -> Callable[..., Any]:
    """The same for steps over lists, whose tensors are of one type."""

    @wraps(step_list)
    def run(self: Any, lr: Any, tensors: Any, grads: Any, states: Any) -> Any:
        if not tensors or not _changes(tensors[0], grads[0]):
            return step_list(self, lr, tensors, grads, states)
        narrow = tensors[0].dtype
        wide = [tensor.to_full_precision() for tensor in tensors]
        grads = [grad.astype(wide[0].dtype) for grad in grads]
        values, after = step_list(self, lr, wide, grads, [_wide(state) for state in states])
        return [value.astype(narrow) for value in values], after

    return run


def _changes(tensor: Tensor[Float], grad: Tensor[Float]) -> bool:
    """Whether a step is taken in another type than that of the tensor or of its gradient."""
    dtype = tensor.dtype
    return dtype is not grad.dtype or (dtype.kind == "Float" and dtype.itemsize < 4)


def _wide(state: State) -> State:
    return tree.map(lambda x: x.to_full_precision() if isinstance(x, Tensor) else x, state)


def primitives(tensors: Sequence[Tensor[Float]], dtype: DType) -> tuple[Any, ...]:
    """What an op over lists takes: the primitives of tensors of one element type, in ``dtype``."""
    if tensors and tensors[0].dtype is not dtype:
        tensors = [t.astype(dtype) for t in tensors]
    return tuple([t.primitive for t in tensors])


def misfit(what: str, got: tuple[int, ...], expected: tuple[int, ...]) -> ShapeError:
    """The error of a shape that is not the parameter's."""
    return ShapeError("step", f"{what} does not fit the parameter", got=got, expected=expected)
