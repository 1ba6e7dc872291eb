"""``checkpoint``: part of a program keeps only its operands, and the backward pass reruns it."""

from __future__ import annotations

from collections.abc import AsyncIterator, Awaitable, Callable, Iterator
from contextvars import Context, copy_context
from functools import partial, wraps
from typing import Any, NamedTuple, ParamSpec, TypeVar, final

from phlox_tensor import Backend, GradientError, Tensor, WrongTypeError, tree
from phlox_tensor.arguments import require_callable
from phlox_tensor.random import Generator, generator, use_generator

from . import _backward
from ._checkpoint_strategies import Memo
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
from ._lanes import Lanes, unwrapped
from ._mode import Recording
from ._part import refuse_retained
from ._propose import PROPOSED

P = ParamSpec("P")
R = TypeVar("R")


class _Call(NamedTuple):
    """A call that can be made again as it was made first.

    Attributes:
        run: the function with its arguments.
        context: what contexts held, such as the device of a transform.
        random: seed and counter of the random numbers before.
        after: seed and counter after it.
        places: which leaves of the value the step computes, by index.
        steps: the ops that were recorded, with their shapes and the numbers in them, as a hash.
    """

    run: Callable[[], Any]
    context: Context
    random: tuple[int, int]
    after: tuple[int, int]
    places: tuple[int, ...]
    steps: int

    def again(self) -> list[Any] | None:
        """Record the call and return the results of the step; None for other random numbers."""
        numbers = Generator(*self.random)

        def recorded() -> Any:
            with Recording(off=False), use_generator(numbers):
                return self.run()

        leaves = tree.leaves(self.context.copy().run(recorded))
        if numbers.state() != self.after:
            return None
        return [unwrapped(leaves[i]) if i < len(leaves) else None for i in self.places]


@final
class _Rerun(Plan):
    """The plan of one decorated function; what its nodes keep is the call."""

    __slots__ = ("name",)

    def __init__(self, name: str) -> None:
        self.name = name

    def push(self, node: Node, cotangent: Any, pending: Pending, memo: Memo | None) -> None:
        """Run the function again, and go back through what it records."""
        del memo
        call: _Call
        call, device, specs = node.saved
        given = cotangent if isinstance(cotangent, list) else [cotangent]
        first = next_id()
        inside: Pending = {}
        results = call.again()
        if results is None:
            raise self._differs("a value of other random numbers")
        if not all(_is_result(result, device, first) for result in results):
            raise self._differs("another value")
        for result, spec in zip(results, specs, strict=True):
            if (result.shape, result.dtype) != spec:
                raise self._differs(f"a value of {result.dtype}{list(result.shape)}")
        if _recorded([r.primitive.node for r in results], first)[1] != call.steps:
            raise self._differs("a value of other steps")
        for result, part in zip(results, given, strict=True):
            if part is not None:
                accumulate(inside, result.primitive.node, part)
        gradients = _backward.run(inside, retain_graph=False, after=first)
        what = f"{self.name} runs again"
        refuse_retained(gradients, first, what, "the function of checkpoint")
        for parent, found in gradients.items():
            if parent not in node.parents and parent is not PROPOSED:
                raise self._differs("a value that depends on another tensor")
            accumulate(pending, parent, found)

    def _differs(self, what: str) -> GradientError:
        return GradientError(
            "checkpoint",
            f"{self.name} gave {what} when it ran again",
            expected="the same steps each time",
            hint="pass what changes as an argument",
        )


def _is_result(leaf: Any, device: Backend | None, first: int) -> bool:
    """Whether a leaf was recorded after number ``first``, on ``device`` where one is given."""
    if not isinstance(leaf, Tensor) or type(leaf.primitive) is not Primitive:
        return False
    node = leaf.primitive.node
    return node is not None and node.id > first and (device is None or leaf.device is device)


def _rewrapped(result: Primitive, like: Tensor[Any]) -> Any:
    """Put a primitive into the ``vmap`` levels of ``like``: the inverse of ``unwrapped``."""
    if type(like.primitive) is not Lanes:
        return result
    assert like.device.inner is not None
    inside = _rewrapped(result, Tensor(like.primitive.value, like.device.inner))
    return Lanes(inside, mapped=like.primitive.mapped)


def checkpoint(function: Callable[P, R]) -> Callable[P, R]:
    """Let a function keep nothing but its operands for the backward pass, and run again there.

    Saves the memory of everything inside for the time of one more call. Arguments and value are
    what the function takes and gives: keywords, trees, modules; tensors that it closes over count
    as operands. Random numbers are the same in both runs; threads beside each other need generators
    of their own (``use_generator``). A call that initializes parameters, at their first use, runs
    twice, with the same random numbers. Derivatives of any order pass. Of nested devices the one
    that the value is on keeps only the operands; those inside it keep their graph.

    The ops of both runs, their shapes, numbers and operands are compared, the elements of constant
    tensors are not: where they change in between, the gradient is that of the new ones.

    Raises:
        GradientError: from the backward pass, when the function takes other steps the second time;
            from the call, when it makes leaves of its own.
        WrongTypeError: from the call, when it gives a generator or a coroutine.

    Example:
        >>> import phlox_tensor as pt
        >>> from phlox_autodiff import Autodiff
        >>> x = pt.asarray([1.0, 2.0], device=Autodiff("numpy")).require_grad()
        >>> block = checkpoint(lambda x: (x.exp() * x.sin()).tanh())
        >>> x.grad(block(x).sum().backward()).shape
        (2,)
    """
    require_callable("checkpoint", function, "px.checkpoint(block)(x)")
    plan = _Rerun(getattr(function, "__name__", type(function).__name__))

    @wraps(function, updated=())
    def run(*args: P.args, **kwargs: P.kwargs) -> R:
        call = partial(function, *args, **kwargs)
        before = generator().state()
        output, made = _first(plan, call)
        if isinstance(output, Iterator | Awaitable | AsyncIterator):
            getattr(output, "close", lambda: None)()  # nobody awaits it
            raise WrongTypeError(
                "checkpoint",
                f"{plan.name} would do its work after its call, and keep all of it",
                got=type(output).__name__,
                expected="a function that gives tensors",
                hint="list(...) around the generator, in the function",
            )
        if made:  # parameters, at their first use, from random numbers of their own
            generator().set_state(*before)
            output, made = _first(plan, call)
        if made:
            raise GradientError(
                "checkpoint",
                f"{plan.name} makes a leaf of its own in each call",
                hint="require_grad() outside, and pass the tensor",
            )
        return output

    return run


def _first(plan: _Rerun, function: Callable[[], R]) -> tuple[R, bool]:
    """Make a call whose results are those of one step; or say that it made leaves."""
    random, first, context = generator().state(), next_id(), copy_context()
    output = function()
    leaves, structure = tree.flatten(output)
    inner = [unwrapped(leaf) for leaf in leaves]
    device = next((t.device for t in inner if _is_result(t, None, first)), None)
    if device is None:
        return output, False
    places = tuple(i for i, t in enumerate(inner) if _is_result(t, device, first))
    results = [inner[i] for i in places]
    parents, steps = _recorded([t.primitive.node for t in results], first)
    if any(node.id > first for node in parents):
        return output, True
    call = _Call(function, context, random, generator().state(), places, steps)
    for i, result in zip(places, _as_one_step(plan, call, results, parents), strict=True):
        leaves[i] = Tensor(_rewrapped(result, leaves[i]), leaves[i].device)
    remade: R = structure.rebuild(leaves)
    return remade, False


def _recorded(results: list[Node], first: int) -> tuple[tuple[Node, ...], int]:
    """Walk back from results to leaves and to nodes up to ``first``: these, a hash of the steps."""
    parents: dict[Node, None] = {}
    steps: list[Any] = []
    found, seen = [*results], set(results)
    for node in found:  # which grows meanwhile
        if node.id <= first or node.plan is LEAF:
            parents[node] = None
            continue
        steps.append((node.plan.name, node.shape, *_numbers(node.saved)))
        for parent in node.parents:
            if parent is not None and parent not in seen:
                seen.add(parent)
                found.append(parent)
    return tuple(parents), hash(tuple(steps))


def _numbers(saved: tuple[Any, ...]) -> list[Any]:
    """The numbers among what a node keeps, which decide what a step does; each NaN is the same."""
    plain = [x for x in saved if isinstance(x, bool | float | int | str)]
    return [None if x != x else x for x in plain]  # noqa: PLR0124 - only NaN differs from itself


def _as_one_step(
    plan: _Rerun, call: _Call, results: list[Tensor[Any]], parents: tuple[Node, ...]
) -> tuple[Primitive, ...]:
    """The results as those of one step."""
    shapes = [t.shape for t in results]
    specs = [(t.shape, t.dtype) for t in results]
    step = make_node(plan, parents, (call, results[0].device, specs), shapes[0])
    values = [t.primitive.value for t in results]
    if len(values) == 1:
        return (primitive(values[0], step),)
    return ports(step, values, shapes, [True] * len(values))
