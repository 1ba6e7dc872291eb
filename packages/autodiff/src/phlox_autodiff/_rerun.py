"""``checkpoint``: a part of a program that keeps its operands alone and runs again backwards."""

from __future__ import annotations

from collections.abc import Callable
from contextvars import Context, copy_context
from functools import partial, wraps
from typing import TYPE_CHECKING, Any, NamedTuple, ParamSpec, TypeVar, final

from phlox_tensor import GradientError, Tensor, tree
from phlox_tensor.random import Generator, generator, use_generator

from . import _backward
from ._graph import (
    LEAF,
    Node,
    Pending,
    Plan,
    Primitive,
    accumulate,
    make_node,
    next_id,
    ports,
    primitive,
)
from ._mode import Recording

if TYPE_CHECKING:
    from phlox_tensor import Backend

    from ._checkpoint import Memo

P = ParamSpec("P")
R = TypeVar("R")


class _Call(NamedTuple):
    """A call that can be made again as it was made first.

    Attributes:
        run: the function with its arguments.
        context: what contexts held, such as the device of a transform.
        random: seed and counter of the random numbers.
        places: which leaves of the value are results of the step.
    """

    run: Callable[[], Any]
    context: Context
    random: tuple[int, int]
    places: tuple[int, ...]

    def again(self) -> list[Any]:
        """Record the call and return the results of the step."""

        def recorded() -> Any:
            with Recording(off=False), use_generator(Generator(*self.random)):
                return self.run()

        leaves = tree.leaves(self.context.copy().run(recorded))
        return [leaves[i] if i < len(leaves) else None for i in self.places]


@final
class _Rerun(Plan):
    """The plan of one decorated function; what its nodes keep is the call."""

    __slots__ = ("_name",)

    def __init__(self, name: str) -> None:
        self._name = name

    @property
    def name(self) -> str:
        """The name of the function."""
        return self._name

    def push(self, node: Node, cotangent: Any, pending: Pending, memo: Memo | None) -> None:
        """Run the function again, and go back through what it records."""
        del memo
        call: _Call
        call, device, shapes = node.saved
        given = cotangent if isinstance(cotangent, list) else [cotangent]
        first = next_id()
        inside: Pending = {}
        for result, shape, part in zip(call.again(), shapes, given, strict=True):
            if not _is_result(result, device, first) or result.shape != shape:
                raise self._differs("another value")
            if part is not None:
                accumulate(inside, result.primitive.node, part)
        for parent, found in _backward.run(inside, retain_graph=False, after=first).items():
            if parent not in node.parents:
                raise self._differs("a value that depends on another tensor")
            accumulate(pending, parent, found)

    def _differs(self, what: str) -> GradientError:
        return GradientError(
            "checkpoint",
            f"{self._name} gave {what} when it ran again",
            expected="the same steps each time",
            hint="pass what changes as an argument",
        )


def _is_result(leaf: Any, device: Backend | None, first: int) -> bool:
    """Whether a leaf was recorded after number ``first``, on ``device`` where one is given."""
    if not isinstance(leaf, Tensor) or type(leaf.primitive) is not Primitive:
        return False
    node = leaf.primitive.node
    return node is not None and node.id > first and (device is None or leaf.device is device)


def checkpoint(function: Callable[P, R]) -> Callable[P, R]:
    """Let a function keep nothing but its operands for the backward pass, and run again there.

    Saves the memory of everything inside for the time of one more call. Arguments and value are
    what the function takes and gives: keywords, trees, modules; tensors that it closes over count
    as operands. Random numbers are the same in both runs, as long as no other thread draws from
    the generator meanwhile. Derivatives of any order pass; of devices inside the one that the
    value is on, the history is kept.

    Raises:
        GradientError: from the backward pass, when the function does something else the second
            time; from the call, when it makes leaves of its own.

    Example:
        >>> import phlox_tensor as pt
        >>> from phlox_autodiff import Autodiff
        >>> x = pt.asarray([1.0, 2.0], device=Autodiff("numpy")).require_grad()
        >>> block = checkpoint(lambda x: (x.exp() * x.sin()).tanh())
        >>> x.grad(block(x).sum().backward()).shape
        (2,)
    """
    plan = _Rerun(getattr(function, "__name__", type(function).__name__))

    @wraps(function, updated=())
    def run(*args: P.args, **kwargs: P.kwargs) -> R:
        random, first = generator().state(), next_id()
        context = copy_context()
        output = function(*args, **kwargs)
        leaves, structure = tree.flatten(output)
        device = next((t.device for t in leaves if _is_result(t, None, first)), None)
        if device is None:
            return output
        places = tuple(i for i, t in enumerate(leaves) if _is_result(t, device, first))
        call = _Call(partial(function, *args, **kwargs), context, random, places)
        results = [leaves[i] for i in places]
        for i, result in zip(places, _as_one_step(plan, call, results, first), strict=True):
            leaves[i] = Tensor(result, device)
        remade: R = structure.rebuild(leaves)
        return remade

    return run


def _as_one_step(
    plan: _Rerun, call: _Call, results: list[Tensor[Any]], first: int
) -> tuple[Primitive, ...]:
    """The results as those of one step, whose operands are what was there before ``first``."""
    parents: dict[Node, None] = {}
    found = [t.primitive.node for t in results]
    seen = set(found)
    for node in found:  # which grows meanwhile
        if node.id <= first:
            parents[node] = None
            continue
        if node.plan is LEAF:
            raise GradientError(
                "checkpoint",
                f"{plan.name} makes a leaf of its own",
                hint="require_grad() outside, and pass the tensor",
            )
        for parent in node.parents:
            if parent is not None and parent not in seen:
                seen.add(parent)
                found.append(parent)
    shapes = [t.shape for t in results]
    saved = (call, results[0].device, shapes)
    step = make_node(plan, tuple(parents), saved, shapes[0])
    values = [t.primitive.value for t in results]
    if len(values) == 1:
        return (primitive(values[0], step),)
    return ports(step, values, shapes, [True] * len(values))
