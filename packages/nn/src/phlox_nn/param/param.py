"""A parameter: a tensor with an identity, made when it is first needed."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from functools import partial
from threading import Lock, RLock
from typing import Any, Final, Never, final

from phlox_tensor import (
    ArgumentError,
    Backend,
    DType,
    Float,
    Proposed,
    Tensor,
    WrongTypeError,
    is_inside,
    tree,
)
from phlox_tensor.capture import Number, plain, recording, unrecorded, wrap
from phlox_tensor.no_operand import NoOperand, hint_at_members, refused_operand

from ..ids import CopiedIds, new_id
from .errors import no_gradient, no_tensor, tracked
from .leaf import Role, as_leaf, check_weight

# The one lock of all parameters that a replay returned: the data exists, the tensor object is made
# at the first use. A thread may take it twice: a finalizer, run by a collection, may use one too.
_REPLAYED: Final = RLock()


@final
class Param(NoOperand):
    """A tensor with an id, by which optimizers and records find it again.

    The value may be lazy: shape, type and device are known, the numbers are made at the first use.
    A parameter does not change; methods return new ones with the same id. An id belongs to one
    parameter of a module: two that differ under one id are an error when the module steps or is
    saved.

    Attributes:
        id: the identity; a record keeps it, ``map`` and devices do not change it.
        role: a ``"weight"`` is trained, unless frozen; ``"state"``, such as a running mean, is
            moved by what a forward in training proposes, and never by gradients.
        frozen: a weight that stays as it is.

    Raises:
        ArgumentError: when the value is no tensor.
        DTypeError: when a weight that is trained is no Float.
        GradientError: when the value has a history, which a parameter would lose.

    Example:
        >>> import phlox_nn as nn, phlox_tensor as pt
        >>> nn.Param(pt.zeros((2, 3)))
        Param(float32[2, 3])
    """

    __slots__ = (
        "__weakref__",
        "_frozen",
        "_lock",
        "_make",
        "_of_tree",
        "_proposed",
        "_value",
        "device",
        "dtype",
        "id",
        "role",
        "shape",
    )

    tensor_code = "param.value"

    id: str
    role: Role
    _frozen: bool
    shape: tuple[int, ...]
    dtype: DType
    device: Backend
    _value: Any
    _make: Callable[[], Tensor[Any]] | None
    _of_tree: bool  # what a transform put there, such as a gradient; False for a value
    _proposed: Tensor[Any] | None
    _lock: Lock | RLock | None  # where the value is to be made

    def __init__(
        self,
        value: Tensor[Any],
        *,
        id: str | None = None,
        trainable: bool = True,
        role: Role = "weight",
    ) -> None:
        """Hold a tensor."""
        if not isinstance(value, Tensor):
            raise no_tensor(value, own=isinstance(value, Param))
        check_weight(value.dtype, trainable and role == "weight")
        if value.requires_grad and role == "state":
            raise tracked(role)
        self.id = id or new_id()
        self.role = role
        self._frozen = not trainable
        self.shape, self.dtype, self.device = value.shape, value.dtype, value.device
        self._make = self._proposed = self._lock = None
        self._of_tree = False
        self._value = as_leaf(value, self.trainable)

    @classmethod
    def lazy(
        cls,
        make: Callable[[], Tensor[Any]],
        shape: tuple[int, ...],
        dtype: DType,
        device: Backend,
        *,
        id: str | None = None,
        trainable: bool = True,
        role: Role = "weight",
    ) -> Param:
        """Return a parameter whose tensor ``make`` gives at the first use.

        Raises:
            ArgumentError: for a shape of other numbers than ints.
        """
        given: tuple[Any, ...] = shape  # numbers of a compiled function are sizes, too
        shape = tuple([n.ask(plain) if type(n) is Number else n for n in given])
        if any(type(size) is not int for size in shape):
            raise ArgumentError("param", "sizes are ints", got=shape, expected="(3, 4)")
        check_weight(dtype, trainable and role == "weight")
        param = cls.__new__(cls)
        param.id, param.role, param._frozen = id or new_id(), role, not trainable
        param.shape, param.dtype, param.device = shape, dtype, device
        param._value = param._proposed = None
        param._of_tree = False
        param._wait(make)
        return param

    @property
    def trainable(self) -> bool:
        """Whether gradients are wanted: a weight that is not frozen."""
        return not self._frozen and self.role == "weight"

    @property
    def frozen(self) -> bool:
        """Whether it is a weight that stays as it is."""
        return self._frozen

    @frozen.setter
    def frozen(self, value: Never) -> None:
        raise AttributeError(
            "[param] parameters do not change: got an assignment to 'frozen'\n"
            'hint: model = model.freeze("encoder.*"), or param.with_trainable(False)'
        )

    @property
    def value(self) -> Tensor[Float]:
        """The tensor; a lazy one is made now.

        Raises:
            ArgumentError: when a lazy one turns out to be of another shape, type or device.
            GradientError: in the gradient of a module, where there is none: the parameter is not
                trained, or the loss does not depend on it.
        """
        value: Any = self._value
        if value is None:
            if self._lock is None:
                raise no_gradient(self.role, trainable=self.trainable)
            with self._lock:
                if self._value is None:
                    assert self._make is not None
                    made = self._make()
                    late = self._lock is _REPLAYED
                    self._value = made if late else as_leaf(self._promised(made), self.trainable)
                    self._make = None
                value = self._value
        return value

    @value.setter
    def value(self, value: Never) -> None:
        raise AttributeError(
            "[param] parameters do not change: got an assignment to 'value'\n"
            "hint: model = model.map(lambda path, param: param.with_value(x))"
        )

    def _promised(self, value: Tensor[Any]) -> Tensor[Any]:
        got = (value.shape, value.dtype, value.device)
        if got != (self.shape, self.dtype, self.device):
            raise ArgumentError(
                "param",
                "the first values are not what was promised",
                got=f"{value.dtype}{list(value.shape)} on {value.device!r}",
                expected=f"{self.dtype}{list(self.shape)} on {self.device!r}",
            )
        return value

    @property
    def is_initialized(self) -> bool:
        """Whether the numbers exist already."""
        return self._value is not None or self._lock is _REPLAYED

    @property
    def has_first_values(self) -> bool:
        """Whether the numbers are those that an initializer makes, or made."""
        return self._lock is not None and self._lock is not _REPLAYED

    @property
    def holds_value(self) -> bool:
        """Whether it is a parameter of a model, not what a transform made of it: a gradient."""
        return not self._of_tree

    @property
    def proposed(self) -> Tensor[Any] | None:
        """In the gradient of a module: the new value that a forward proposed for state."""
        return self._proposed

    def with_value(self, value: Tensor[Any]) -> Param:
        """Return a parameter of the same identity that holds ``value``.

        A value from a device inside that of the parameter is lifted to it.

        Raises:
            ArgumentError: when shape, element type or device differ.
            GradientError: when the value has a history.
        """
        if is_inside(value.device, self.device):
            value = value.to_device(self.device)
        if (value.shape, value.dtype, value.device) != (self.shape, self.dtype, self.device):
            raise ArgumentError(
                "with_value",
                "the value does not fit the parameter",
                got=f"{value.dtype}{list(value.shape)} on {value.device!r}",
                expected=f"{self.dtype}{list(self.shape)} on {self.device!r}",
                hint="nn.Param(value, id=param.id) for a parameter of another form",
            )
        return self._with(value)

    def _with(self, value: Tensor[Any], id: str | None = None) -> Param:
        """A parameter like this one with a value of any form."""
        made = Param(value, id=id or self.id, trainable=not self.frozen, role=self.role)
        made._of_tree = self._of_tree
        return made

    @staticmethod
    def stepped(params: Sequence[Param], values: Sequence[Tensor[Any]]) -> list[Param]:
        """Return parameters of the same identities that hold values from the inner device.

        Parameters are trainable Floats of one device that records; values have their shapes and
        element types.
        """
        device, inner = params[0].device, values[0].device
        after = []
        for param, value in zip(params, values, strict=True):
            made = param._like()
            made._of_tree = False
            if inner.records:
                made._value = as_leaf(value.detach().to_device(device), trainable=True)
            else:
                made._value = wrap(device.leaf(inner.detach(value.primitive)), device)
            after.append(made)
        return after

    def _like(self) -> Param:
        """This parameter without a value."""
        made = Param.__new__(Param)
        made.id, made.role, made._frozen = self.id, self.role, self._frozen
        made.shape, made.dtype, made.device = self.shape, self.dtype, self.device
        made._make = made._value = made._proposed = made._lock = None
        made._of_tree = self._of_tree
        return made

    def _wait(self, make: Callable[[], Tensor[Any]]) -> None:
        """Make the value at the first use.

        Where a function is recorded by then, the value is one from outside of it, as it was before.
        """
        self._make = partial(_outside, make) if recording() is None else make
        self._lock = Lock()

    def with_trainable(self, trainable: bool) -> Param:
        """Return the parameter frozen or not; the values are shared.

        State stays as it is, and so does what has no gradients: integers, bools.
        """
        if self.role == "state" or trainable != self.frozen or self.dtype.kind != "Float":
            return self
        made = self._like()
        made._frozen = not trainable
        if self.is_initialized:
            made._value = as_leaf(self.value.detach(), made.trainable)
        else:
            made._wait(lambda: self.value.detach())  # noqa: PLW0108 - .value itself must wait
        return made

    def to_device(self, device: Backend) -> Param:
        """Return the parameter on another device; a lazy one stays lazy."""
        if device is self.device:
            return self
        return self.moved(lambda value: value.to_device(device), device)

    def moved(
        self, move: Callable[[Tensor[Any]], Tensor[Any]], device: Backend, *, id: str | None = None
    ) -> Param:
        """Return the parameter with ``move`` applied, now or, to a lazy one, when it is made."""
        if self.is_initialized:
            return self._with(move(self.value.detach()), id)
        made = self._like()
        made.id, made.device = id or self.id, device
        if self._make is not None:
            made._wait(lambda: move(self.value.detach()))
        return made

    def __getitem__(self, index: object) -> Never:
        del index
        raise refused_operand("getitem", self)

    def __bool__(self) -> Never:
        """Refuse: whether there is a parameter, or what it holds, are two questions."""
        raise WrongTypeError(
            "param",
            "a Param is neither true nor false",
            got="a truth test",
            expected="a test for None, or of its value",
            hint="if param is not None: ..., or if param.value.any(): ...",
        )

    def __copy__(self) -> Param:
        return self  # which never changes

    def __deepcopy__(self, memo: dict[int, Any]) -> Param:
        """Return another parameter: the same numbers under an id of its own."""
        return self.moved(lambda value: value, self.device, id=CopiedIds.of(memo)[self.id])

    def __reduce__(self) -> Any:
        """Pickle by value; where nobody computed with it, a lazy one is made now."""
        if self._value is None and self._make is None:
            return _restore_absent, (
                (self.id, not self.frozen, self.role),
                (self.shape, self.dtype, self.device),
                self._proposed,
            )
        return restore, (self.value.detach(), self.id, not self.frozen, self.role, self._of_tree)

    def __repr__(self) -> str:
        state = ", state" if self.role == "state" else ", frozen" if self.frozen else ""
        return f"Param({self.dtype.name}{list(self.shape)}{state}{self._inside()})"

    def _inside(self) -> str:
        """Words for the tree that a transform put in the place of the value; none for a tensor."""
        held = self._value
        tree_of = held is not None and not isinstance(held, Tensor)
        return f", each element of which has a {type(held).__name__}" if tree_of else ""


def State(value: Tensor[Any], *, id: str | None = None) -> Param:
    """Return a parameter that is state: saved and moved with the module, never trained.

    Raises:
        ArgumentError: when the value is no tensor.
        GradientError: when a gradient flows to the value.
    """
    return Param(value, id=id, role="state")


def _outside(make: Callable[[], Tensor[Any]]) -> Tensor[Any]:
    with unrecorded():
        return make()


def check_field(name: str, before: Any, given: Any) -> None:
    """Refuse a tensor in the place of a parameter: it would be a constant, which nobody trains."""
    if isinstance(before, Param) and isinstance(given, Tensor):
        raise ArgumentError(
            "replace",
            f"{name} is a parameter, and would be a constant",
            got="a Tensor",
            expected="a Param",
            hint=f"model.replace({name}=model.{name}.with_value(x)), or nn.Param(x) for a new one",
        )


def restore(
    value: Tensor[Any], id: str, trainable: bool, role: Role, of_tree: bool = False
) -> Param:
    """Make the parameter that ``__reduce__`` described."""
    made = Param(value, id=id, trainable=trainable, role=role)
    made._of_tree = of_tree
    return made


def _restore_absent(
    identity: tuple[str, bool, Role],
    form: tuple[tuple[int, ...], DType, Backend],
    proposed: Tensor[Any] | None,
) -> Param:
    """Make the parameter without a gradient that ``__reduce__`` described."""
    id, trainable, role = identity
    shape, dtype, device = form
    made = Param.__new__(Param)
    made.id, made.role, made._frozen = id, role, not trainable
    made.shape, made.dtype, made.device = shape, dtype, device
    made._value = made._make = made._lock = None
    made._proposed, made._of_tree = proposed, True
    return made


# To transforms a parameter is a container of its value, whatever stands there: a leaf of their
# graph, a gradient, nothing, or a tree of second derivatives. It keeps no more than it is given.


def _flatten(param: Param) -> tuple[list[Any], Param]:
    absent = param._value is None and param._make is None
    like = param._like()
    like._proposed = param._proposed  # of a gradient, which may be mapped before the step
    return [None if absent else param.value], like


def _whole_parts(param: Param) -> tuple[list[Any], Param]:
    """What is to be seen in a compiled function, to which a proposal is a tensor like any other."""
    children, like = _flatten(param)
    proposed, like._proposed = like._proposed, None
    return children if proposed is None else [None, proposed], like


def _rebuild(children: list[Any], like: Param) -> Param:
    if len(children) == 2:
        made = like._like()
        made._of_tree = True
        made._proposed = children[1]
        return made
    (value,) = children
    if type(value) is Tensor:  # the way of compiled functions, attribute by attribute
        made = Param.__new__(Param)
        made.id, made.role, made._frozen = like.id, like.role, like._frozen
        made.device = device = value.device
        made.shape, made.dtype = device.spec_of(value.primitive)
        made._make = made._proposed = made._lock = None
        made._of_tree = True
        trained = like.role == "weight" and not like._frozen
        made._value = value if trained or not value.requires_grad else value.detach()
        return made
    made = like._like()
    made._of_tree = True
    if isinstance(value, Proposed):
        made._proposed = value.value
    else:
        made._value, made._proposed = value, like._proposed if value is None else None
    return made


def _static(like: Param) -> Any:
    return like.id, like.role, like.frozen, like.shape, like.dtype, like.device


def _late(like: Param, coming: tree.Coming) -> Callable[[Any], Param] | None:
    """What ``_rebuild`` does, for a value that is made when somebody asks for it."""
    identity, role, frozen, make = like.id, like.role, like._frozen, coming.make
    (shape, dtype), device = coming.spec, coming.device
    if coming.leaf and (role != "weight" or frozen):
        return None

    def made_of(primitive: Any) -> Param:
        made = Param.__new__(Param)
        made.id, made.role, made._frozen = identity, role, frozen
        made.shape, made.dtype, made.device = shape, dtype, device
        made._value = made._proposed = None
        made._of_tree = True
        made._make, made._lock = partial(make, primitive), _REPLAYED
        return made

    return made_of


hint_at_members(Param)
tree.register(
    Param,
    _flatten,
    _rebuild,
    _static,
    shared=True,
    whole=True,
    late=_late,
    whole_parts=_whole_parts,
)
