"""The backward pass: nodes in reverse order of their numbers, and the gradients as a value."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from copy import copy
from math import prod
from numbers import Real
from operator import attrgetter, itemgetter
from threading import Lock
from typing import Any, Final, Never, TypeVar, final

from phlox_tensor import Backend, GradientError, Ready, ShapeError, Tensor, WrongTypeError, tree
from phlox_tensor.capture import Number, wrap
from phlox_tensor.no_operand import NoOperand

from . import _nan
from ._checkpoint_strategies import Memo
from ._graph import LEAF, USED, Node, Pending, Plan
from ._levels import brought, require_fit
from ._propose import NO_PROPOSALS, PROPOSED, Proposals
from ._slices import Slices, whole

Told = list[tuple[list["Node | None"], Callable[[list["Tensor[Any] | None"]], object]]]

_by_id = attrgetter("id")

T = TypeVar("T")


@final
class Gradients(NoOperand):
    """The gradients of the leaves that one backward pass reached, as a value.

    They live on the inner backend. Where the same leaf is used several times, they are summed.
    Those of several passes are added and subtracted, ``grads_a + grads_b``, and scaled by a number
    or a tensor of no axes, ``grads * 0.5``; all else is ``grads.map(function)``. Iterating gives
    the gradients.

    Example:
        >>> import phlox_tensor as pt
        >>> from phlox_autodiff import Autodiff
        >>> w = pt.asarray([1.0, 2.0], device=Autodiff("numpy")).require_grad()
        >>> grads = (w * w).sum().backward() + (w * 3.0).sum().backward()
        >>> (grads * 0.5).get(w).tolist()
        [2.5, 3.5]
    """

    __slots__ = ("_device", "_found", "_proposals")

    tensor_code = "grads.map(lambda g: g.abs()); grads[param.value] for one of them"

    def __init__(
        self,
        found: dict[Node, Tensor[Any]],
        device: Backend,
        proposals: Proposals = NO_PROPOSALS,
    ) -> None:
        """Keep the tensors that a pass left at the leaves, and the values it found on its way."""
        self._found = found
        self._device = device
        self._proposals = proposals

    def get(self, tensor: Tensor[Any]) -> Tensor[Any] | None:
        """Return the gradient of a leaf, or of a tensor that ``retain_grad`` gave.

        None when no gradient flowed to it, or it is another tensor; ``grads[tensor]`` says why.

        Raises:
            WrongTypeError: for what is no tensor.
        """
        if not isinstance(tensor, Tensor):
            raise _no_tensor(tensor)
        own = tensor.device is self._device
        node = tensor.primitive.node if own else self._node(tensor)
        return None if node is None else self._found.get(node)  # None for a constant

    def __getitem__(self, tensor: Tensor[Any]) -> Tensor[Any]:
        """Return the gradient of a leaf as ``get`` does, where there must be one.

        Raises:
            GradientError: when there is none, with the reason.
            WrongTypeError: for what is no tensor.
        """
        found = self.get(tensor)
        if found is None:
            raise self._absent(tensor)
        return found

    def of(self, values: T) -> T:
        """Return a tree with the gradient of each leaf in its place, None where there is none.

        Of a module it is what ``px.grad`` gives: a module that holds gradients.

        Raises:
            WrongTypeError: for what holds no tensor.
        """
        if not any(isinstance(leaf, Tensor) for leaf in tree.leaves(values)):
            raise WrongTypeError(
                "of",
                "nothing that a gradient could belong to",
                got=f"{type(values).__name__} without tensors",
                expected="a model, a leaf, or a tree of them",
                hint="grads.of(model)",
            )
        return tree.map(lambda x: self.get(x) if isinstance(x, Tensor) else None, values)

    def proposed(self, tensor: Tensor[Any]) -> Tensor[Any] | None:
        """Return the new value for a constant that the loss came by.

        Of several it is the mean; of whole numbers, which count, all changes together.

        Layers propose how their running statistics move; ``optimizer.step`` takes these values.
        """
        constant = self._own(tensor)
        return None if constant is None else self._proposals.get(constant.primitive)

    def proposals(self, tensor: Tensor[Any]) -> tuple[Tensor[Any], ...]:
        """Return all new values for a constant that the loss came by, in the order they came in."""
        constant = self._own(tensor)
        return () if constant is None else self._proposals.of(constant.primitive)

    def _own(self, tensor: Tensor[Any]) -> Tensor[Any] | None:
        """A tensor as the device of the pass has it; None where it lies on others."""
        while tensor.device is not self._device:
            if tensor.device.inner is None:
                return None
            tensor = tensor.inner()
        return tensor

    def pop(self, tensor: Tensor[Any]) -> Tensor[Any] | None:
        """Return the gradient of a leaf as ``get`` does, and forget it to free its memory.

        Raises:
            WrongTypeError: for what is no tensor.
        """
        if not isinstance(tensor, Tensor):
            raise _no_tensor(tensor)
        node = self._node(tensor)
        return None if node is None else self._found.pop(node, None)

    def map(self, function: Callable[[Tensor[Any]], Tensor[Any]]) -> Gradients:
        """Return the gradients after ``function``, which gives a tensor of the same shape.

        Raises:
            GradientError: when it gives something else.
        """
        found = {n: _mapped(function, g) for n, g in self._found.items()}
        return Gradients(found, self._device, self._proposals)

    def nodes(self) -> Iterator[Node]:
        """The leaves, as nodes."""
        return iter(self._found)

    def _node(self, tensor: Tensor[Any]) -> Node | None:
        device: Backend = tensor.device
        primitive = tensor.primitive
        while device is not self._device:  # another device, or a decorator around this one
            if device.inner is None:
                return None
            device, primitive = device.inner, device.lower(primitive)
        return primitive.node

    def _absent(self, tensor: Tensor[Any]) -> GradientError:
        """Why there is no gradient of a tensor, and what to type."""
        levels = [tensor.device]
        while levels[-1] is not self._device and levels[-1].inner is not None:
            levels.append(levels[-1].inner)
        node = self._node(tensor)
        if levels[-1] is not self._device:
            got, hint = f"a tensor on {tensor.device!r}", f"x.to_device({self._device!r})"
            hint += ".require_grad() before the loss"
        elif node is None:
            got, hint = "a constant", "x = x.require_grad() before the loss"
        elif node.plan is not LEAF:
            got, hint = "a result of other tensors", "x = px.retain_grad(x) before the loss"
        else:
            got = "a leaf on which this loss does not depend"
            hint = "grads.get(x), which is None there; x in grads"
        return GradientError(
            "grad",
            "no gradient of this tensor was found",
            got=got,
            expected="a leaf that the loss was computed with",
            hint=hint,
        )

    def __copy__(self) -> Gradients:
        return Gradients(dict(self._found), self._device, self._proposals)

    def __deepcopy__(self, memo: dict[int, Any]) -> Gradients:
        return copy(self)  # of tensors, which never change

    def __reduce__(self) -> Never:
        raise GradientError(
            "gradients",
            "gradients belong to tensors of this process",
            got="a pickle",
            expected="gradients by the ids or paths of parameters",
            hint="nn.gradients_of(grads.of(model)), a dict that optimizer.step takes too",
        )

    def __radd__(self, other: object) -> Gradients:
        if type(other) is int and not other:  # where ``sum`` starts from
            return self
        raise _unlike("+", other)

    def __add__(self, other: object) -> Gradients:
        if not isinstance(other, Gradients):
            raise _unlike("+", other)
        if other._device is not self._device:
            raise GradientError(
                "gradients",
                "gradients of two devices do not add up",
                got=f"{self._device!r} and {other._device!r}",
                expected="passes on one device",
            )
        found = dict(self._found)
        for node, gradient in other._found.items():
            found[node] = found[node] + gradient if node in found else gradient
        return Gradients(found, self._device, self._proposals + other._proposals)

    def __neg__(self) -> Gradients:
        return self.map(lambda gradient: -gradient)

    def __sub__(self, other: object) -> Gradients:
        if not isinstance(other, Gradients):
            raise _unlike("-", other)
        return self + -other

    def __mul__(self, factor: object) -> Gradients:
        _require_number("*", factor)
        return self.map(lambda gradient: gradient * _beside(gradient, factor))

    __rmul__ = __mul__

    def __truediv__(self, divisor: object) -> Gradients:
        _require_number("/", divisor)
        return self.map(lambda gradient: gradient / _beside(gradient, divisor))

    def __iter__(self) -> Iterator[Tensor[Any]]:
        return iter(self._found.values())

    def __contains__(self, tensor: object) -> bool:
        return isinstance(tensor, Tensor) and self._node(tensor) in self._found

    def __len__(self) -> int:
        return len(self._found)

    def __repr__(self) -> str:
        return f"Gradients(of {len(self._found)} tensors on {self._device!r})"


def _no_tensor(given: object) -> WrongTypeError:
    return WrongTypeError(
        "gradients",
        "not a tensor",
        got=type(given).__name__,
        expected="a leaf, or a tensor that retain_grad gave",
        hint="grads.get(param.value); grads.of(model) for all of them",
    )


def _unlike(sign: str, other: object) -> WrongTypeError:
    return WrongTypeError(
        sign,
        "gradients stand beside gradients here",
        got=type(other).__name__,
        expected="what another backward() gave",
        hint=f"grads.map(lambda g: g {sign} 1.0)",
    )


def _require_number(sign: str, given: object) -> None:
    """Refuse to scale gradients by what is not one number."""
    if isinstance(given, Real | Number) or (isinstance(given, Tensor) and not given.shape):
        return
    shape = getattr(given, "shape", None)
    raise WrongTypeError(
        sign,
        "gradients are scaled by one number",
        got=type(given).__name__ + ("" if shape is None else f" of shape {shape}"),
        expected="a number, or a tensor of shape ()",
        hint=f"grads.map(lambda g: g {sign} x), where x fits each gradient",
    )


def _beside(gradient: Tensor[Any], factor: Any) -> Any:
    """A number as an operand of a gradient's device and element type."""
    if isinstance(factor, Tensor):
        return brought(factor, gradient.device).astype(gradient.dtype)
    return factor if isinstance(factor, int | float | Number) else float(factor)


def _mapped(function: Callable[[Tensor[Any]], Any], gradient: Tensor[Any]) -> Tensor[Any]:
    out = function(gradient)
    if not isinstance(out, Tensor) or out.shape != gradient.shape:
        raise GradientError(
            "gradients",
            "the function does not give a gradient",
            got=f"shape {out.shape}" if isinstance(out, Tensor) else type(out).__name__,
            expected=f"a tensor of shape {gradient.shape}",
        )
    return out


def backward(
    device: Backend,
    tensor: Tensor[Any],
    seed: Tensor[Any] | None,
    retain_graph: bool,
    ready: Ready | None = None,
) -> Gradients:
    """Run the pass of a Tensor and return its gradients.

    Raises:
        ShapeError: without a seed, when there is more than one element.
    """
    node = tensor.primitive.node
    if node is None:
        raise GradientError(
            "backward",
            "nothing was recorded for this tensor",
            expected="a result of a tensor on which require_grad() was called",
            hint="w = w.require_grad(); a model that is frozen: model = model.unfreeze(); one made "
            f"elsewhere: model = model.train({device!r})",
        )
    pending = {node: start(device, tensor, seed)}
    told = None
    if ready is not None:
        of = Gradients({}, device)._node
        told = [([of(leaf) for leaf in leaves], function) for leaves, function in ready]
    found = run(pending, retain_graph=retain_graph, told=told)
    return Gradients(found, device, found.pop(PROPOSED, NO_PROPOSALS))


def start(device: Backend, tensor: Tensor[Any], seed: Tensor[Any] | None) -> Tensor[Any]:
    """The cotangent that a pass starts from, on the inner backend."""
    inner = device.inner
    assert inner is not None
    if seed is None:
        shape = tensor.shape
        if prod(shape) != 1:
            raise ShapeError(
                "backward",
                "not one element",
                got=f"shape {shape}",
                expected="one element, or a seed of that shape",
                hint="x.sum().backward()",
            )
        return wrap(inner.ops.full(shape, 1, tensor.dtype), inner)
    if not isinstance(seed, Tensor):
        raise WrongTypeError(
            "backward",
            "the seed is no tensor",
            got=type(seed).__name__,
            expected="a tensor of the shape of the one to go back from, or none for 1",
            hint=f"x.backward(px.full({tensor.shape}, 2.0))",
        )
    require_fit("backward", "the seed", seed, tensor)
    return seed.to_device(inner)


# Held while a pass looks for its nodes and takes them, so that no two threads walk one graph.
_TAKING: Final = Lock()
# The nodes of the passes under way that keep their graph.
_READING: Final[list[set[Node]]] = []


def reachable(roots: list[Node], after: int) -> tuple[list[Node], set[Node]]:
    """All nodes behind ``roots`` but leaves and those up to number ``after``, later ones first."""
    found = [node for node in roots if node.plan is not LEAF and node.id > after]
    seen = set(found)
    for node in found:  # which grows meanwhile
        if node.plan is USED:
            raise GradientError(
                "backward",
                "the graph was used by an earlier backward pass and freed, or is being used by "
                "one in another thread",
                hint="the earlier one as backward(retain_graph=True)",
            )
        for parent in node.parents:
            if (
                parent is not None
                and parent.plan is not LEAF
                and parent not in seen
                and parent.id > after
            ):
                seen.add(parent)
                found.append(parent)
    found.sort(key=_by_id, reverse=True)
    return found, seen


def run(
    pending: Pending, *, retain_graph: bool, after: int = -1, told: Told | None = None
) -> Pending:
    """Carry cotangents from the nodes in ``pending`` to the leaves, which stay in it.

    Nodes with numbers up to ``after`` count as leaves. Proposals stay in it too. ``told`` has
    leaves, and a function that is called when the cotangents of all of them are there.
    """
    with _TAKING:
        nodes, seen = reachable(list(pending), after)
        steps = [(node, node.plan) for node in nodes]
        # A leaf has all of its cotangent after the last step that passes one to it.
        ends = {} if told is None else {p: k for k, n in enumerate(nodes, 1) for p in n.parents}
        if retain_graph:
            _READING.append(seen)
        else:
            if _READING:
                _refuse_shared(seen)
            for node in nodes:
                node.plan = USED
    memo = Memo(node.saved for node in nodes) if retain_graph else None
    try:
        begin = 0
        for end, leaves, function in _ended(told or [], ends):
            _carry(steps[begin:end], pending, memo)
            begin = end
            function([_final(pending, leaf) for leaf in leaves])
        _carry(steps[begin:], pending, memo)
    finally:
        if retain_graph:
            with _TAKING:
                _READING.remove(seen)
    if Slices in map(type, pending.values()):
        pending.update({node: whole(cotangent) for node, cotangent in pending.items()})
    return pending


def _ended(told: Told, ends: dict[Node | None, int]) -> list[Any]:
    """For each of ``told``, in their order, behind how many steps it has all of its leaves."""
    found = [
        (max((ends.get(leaf, 0) for leaf in leaves), default=0), leaves, function)
        for leaves, function in told
    ]
    return sorted(found, key=itemgetter(0))


def _final(pending: Pending, leaf: Node | None) -> Tensor[Any] | None:
    """The whole cotangent of a leaf; None where there is none."""
    if leaf is None or leaf not in pending:
        return None
    pending[leaf] = whole(pending[leaf])
    return pending[leaf]


def _refuse_shared(seen: set[Node]) -> None:
    """Refuse to free nodes that another pass reads."""
    if not all(map(seen.isdisjoint, _READING)):
        raise GradientError(
            "backward",
            "another backward pass with retain_graph=True is using the graph",
            hint="wait for its thread, or pass retain_graph=True here too",
        )


def _carry(steps: list[tuple[Node, Plan]], pending: Pending, memo: Memo | None) -> None:
    watched, again = _nan.MODE.blocks > 0, bool(memo)
    for node, plan in steps:
        cotangent = pending.pop(node, None)
        if cotangent is not None:
            if type(cotangent) is Slices:
                cotangent = cotangent.tensor()
            if watched:
                _nan.push(plan, node, cotangent, pending, memo)
            else:
                plan.push(node, cotangent, pending, memo)
        if memo is None:
            node.saved = node.parents = ()
        elif again:
            memo.used(node.saved)
