"""A call of a function on a device of its own, whose steps are recorded."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, final

import numpy as np

from phlox_tensor import GradientError, Proposed, Tensor, WrongTypeError, tree

from . import _backward
from ._autodiff import Autodiff
from ._batched import Batched
from ._graph import LEAF, Node, next_id
from ._levels import as_tensor, base_device, brought, check_level, check_result, describe, running
from ._propose import NO_PROPOSALS, PROPOSED, Proposals

Function = Callable[..., Any]
ArgNums = int | tuple[int, ...]


@final
class Recorded:
    """A call that was recorded.

    Attributes:
        base: the device that results are on.
        device: that of the transform, around it.
        output: what the function gave, on the device of the transform.
        aux: what else it gave, on the device of the results.
        inputs: the arguments to differentiate, as trees of leaves of the graph.
    """

    def __init__(
        self,
        op: str,
        function: Function,
        args: Any,
        argnums: tuple[int, ...],
        kwargs: Any,
        *,
        has_aux: bool = False,
    ) -> None:
        """Run ``function`` on a device of its own.

        Raises:
            GradientError: when an argument holds nothing to differentiate, or the value of a
                function with ``has_aux`` is no pair.
        """
        self._op = op
        since = next_id()
        self.base = base_device(op, (args, kwargs))
        self.device = Autodiff(self.base)
        places = [_place(op, n, len(args)) for n in argnums]
        given = list(args)
        for place in places:
            given[place] = tree.map(self._enter, args[place])
        self.inputs = tuple(given[place] for place in places)
        self._nodes = {t.primitive.node for t in self.tracked(self.inputs)}
        if not self._nodes:
            leaves = tree.leaves([args[place] for place in places])
            raise GradientError(
                op,
                "nothing to differentiate",
                got=", ".join(describe(args[place]) for place in places) or "no arguments",
                expected="Float tensors that are not frozen",
                hint=_to_differentiate(leaves),
            )
        with running(self.device, since) as read:
            self.output = function(*given, **kwargs)
        self.aux: Any = None
        if has_aux:
            self.output, aux = pair_of(op, self.output)
            check_result(op, aux, self.device)
            self.aux = tree.map(self.lower, aux)
        others = [arg for i, arg in enumerate(args) if i not in places], kwargs
        check_level(op, self.output, self.device, others=others, read=read)

    def _enter(self, leaf: Any) -> Any:
        leaf = as_tensor(leaf, self.base)
        if not isinstance(leaf, Tensor):
            return leaf
        # A count comes along too: the function may propose a value for it.
        leaf = leaf.to_device(self.device)
        return leaf.require_grad() if leaf.dtype.kind == "Float" else leaf

    def tracked(self, part: Any) -> list[Tensor[Any]]:
        """The tensors of a tree that belong to the graph."""
        return [
            leaf
            for leaf in tree.leaves(part)
            if isinstance(leaf, Tensor)
            and leaf.device is self.device
            and leaf.primitive.node is not None
        ]

    def lower(self, leaf: Any) -> Any:
        """A leaf of the output, on the device that results are on."""
        return brought(leaf, self.base) if isinstance(leaf, Tensor) else leaf

    def pull(self, cotangents: list[Any], *, retain_graph: bool) -> tuple[Any, ...]:
        """The gradients of the inputs, given one cotangent (or None) for each output leaf."""
        found = iter(self.pull_leaves(cotangents, retain_graph=retain_graph))
        return tuple(tree.map(lambda leaf: next(found), each) for each in self.inputs)

    def pull_leaves(self, cotangents: list[Any], *, retain_graph: bool) -> list[Any]:
        """The same for each leaf of the inputs; cotangents may have lanes on the base device.

        Raises:
            ShapeError: when a cotangent does not fit.
        """
        pending: dict[Node, Any] = {}
        for leaf, cotangent in zip(tree.leaves(self.output), cotangents, strict=True):
            if cotangent is None or not self.tracked(leaf):
                continue
            node = leaf.primitive.node
            lanes = cotangent.device is Batched(self.base)
            seed = cotangent if lanes else _backward.start(self.device, leaf, cotangent)
            pending[node] = pending[node] + seed if node in pending else seed
        found = _backward.run(pending, retain_graph=retain_graph)
        proposals = found.pop(PROPOSED, NO_PROPOSALS)
        if not {node for node in found if node.plan is LEAF} <= self._nodes:
            raise GradientError(
                self._op,
                "the function uses a tracked tensor that is not an argument, on the device of "
                "the transform",
                got=repr(self.device),
                hint=f"x.to_device({self.device!r}) for an argument x, or detach() the tensor; for "
                "a step inside, px.tree.map(lambda w, g: w - 0.1 * g, model, slopes)",
            )
        return [self._gradient(leaf, found, proposals) for leaf in tree.leaves(self.inputs)]

    def _gradient(self, leaf: Any, found: dict[Node, Tensor[Any]], proposals: Proposals) -> Any:
        if not self.tracked(leaf):
            here = isinstance(leaf, Tensor) and leaf.device is self.device
            value = proposals.get(leaf.primitive) if here else None
            return None if value is None else Proposed(value)
        gradient = found.get(leaf.primitive.node)
        return leaf.inner().zeros() if gradient is None else gradient


def _to_differentiate(leaves: list[Any]) -> str:
    """What to type where there is nothing to differentiate among the leaves of the arguments."""
    if any(isinstance(leaf, np.ndarray) for leaf in leaves):
        return "px.asarray(x)"
    if any(isinstance(leaf, Tensor) and leaf.dtype.kind == "Float" for leaf in leaves):
        return "model = model.unfreeze()"
    return 'x.astype("float32")'


def pair_of(op: str, output: Any) -> tuple[Any, Any]:
    """The value, and what else a function with ``has_aux`` gives."""
    if type(output) is not tuple or len(output) != 2:
        raise GradientError(
            op,
            "has_aux asks for a value and something beside it",
            got=describe(output),
            expected="a tuple of two",
            hint="return loss, predictions",
        )
    return output


def _place(op: str, number: int, count: int) -> int:
    if not -count <= number < count:
        names = ", ".join(map(str, range(count)))
        expected = f"one of {names}, by place" if count else "arguments by place"
        hint = None if count else f"px.{op}(f)(x): an argument by keyword has no derivative"
        got = f"argnums {number}"
        raise GradientError(op, "no such argument", got=got, expected=expected, hint=hint)
    return number % count


def _is_argument(given: Any) -> bool:
    """Whether somebody gives the argument of the function itself, not its place."""
    return isinstance(given, Tensor) or (tree.is_node(given) and type(given) not in (tuple, list))


def numbers(op: str, argnums: Any) -> tuple[int, ...]:
    """The places of arguments."""
    places = argnums if isinstance(argnums, tuple | list) else (argnums,)
    if any(type(place) is not int for place in places):
        own = f"px.{op}(f, argnums=(0, 1)); an argument by keyword has no derivative"
        raise WrongTypeError(
            op,
            "argnums says no places of arguments",
            got=type(argnums).__name__ if _is_argument(argnums) else repr(argnums),
            expected="an int, or a tuple of them",
            hint=f"px.{op}(f)(x)" if _is_argument(argnums) else own,
        )
    return tuple(places)
