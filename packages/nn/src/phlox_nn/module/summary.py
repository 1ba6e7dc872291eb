"""What a model is made of and what a call of it costs, found out without computing anything."""

from __future__ import annotations

from collections.abc import Callable
from contextvars import ContextVar
from dataclasses import dataclass
from math import prod
from typing import Any, NamedTuple, final

from phlox_tensor import (
    ArgumentError,
    Backend,
    Decorator,
    Meta,
    Op,
    Spec,
    Tensor,
    default_device,
    empty,
    tree,
    use_device,
)
from phlox_tensor.arguments import RAW
from phlox_tensor.scope import watching

from ..param.param import Param
from .module import Module


class SummaryRow(NamedTuple):
    """One call of a layer.

    Attributes:
        path: where the layer is in the model; empty for the model itself.
        layer: its class.
        outputs: shape and element type of each tensor that the call gave.
        parameters: values in weights of the layer and of layers inside it, frozen ones too, shared
            ones once.
        multiply_adds: multiplications with an addition of the call, those of layers inside too.
        bytes: what all parameters of the layer and its outputs take.
    """

    path: str
    layer: str
    outputs: tuple[Spec, ...]
    parameters: int
    multiply_adds: int
    bytes: int


@final
@dataclass(frozen=True, slots=True)
class Summary:
    """What ``summary`` found; prints as a table.

    Attributes:
        rows: a row for each call of a layer, the outer before the inner.
        parameters: values in weights of the model, frozen ones too, shared ones once.
        multiply_adds: of one call of the model.
        bytes: what all parameters take, and the outputs of layers without layers inside.
    """

    rows: tuple[SummaryRow, ...]
    parameters: int
    multiply_adds: int
    bytes: int

    def __str__(self) -> str:
        """The rows as a table, and the totals."""
        head = ("path", "layer", "output", "parameters", "multiply-adds", "bytes")
        lines = [head, *map(_cells, self.rows)]
        totals = (self.parameters, self.multiply_adds, self.bytes)
        lines.append(("total", "", "", *(f"{n:,}" for n in totals)))
        widths = [max(map(len, column)) for column in zip(*lines, strict=True)]
        texts = [_line(cells, widths) for cells in lines]
        rule = "-" * max(map(len, texts))
        return "\n".join([texts[0], rule, *texts[1:-1], rule, texts[-1]])

    __repr__ = __str__  # notebooks show it


def _cells(row: SummaryRow) -> tuple[str, ...]:
    outputs = ", ".join(f"{spec.dtype.name}{list(spec.shape)}" for spec in row.outputs)
    numbers = (row.parameters, row.multiply_adds, row.bytes)
    return (row.path or "(model)", row.layer, outputs, *(f"{n:,}" if n else "" for n in numbers))


def _line(cells: tuple[str, ...], widths: list[int]) -> str:
    pairs = enumerate(zip(cells, widths, strict=True))
    texts = [c.ljust(w) if i < 3 else c.rjust(w) for i, (c, w) in pairs]
    return "  ".join(texts).rstrip()


class _Call:
    """A call under way: what was counted in it, and in the calls inside."""

    __slots__ = ("inside", "layer", "multiply_adds", "outputs", "path")

    def __init__(self, layer: Module, path: str) -> None:
        self.layer = layer
        self.path = path
        self.inside = False
        self.multiply_adds = 0
        self.outputs: tuple[Spec, ...] = ()


@final
class _Record:
    """The calls of one run, finished or under way."""

    def __init__(self) -> None:
        self.calls: list[_Call] = []
        self.open: list[_Call] = []

    def run(self, layer: Any, path: str, run: Callable[[], Any]) -> Any:
        """Run a layer and keep what it gave and cost."""
        call = _Call(layer, path if self.calls else "")
        for outer in self.open:
            outer.inside = True
        self.calls.append(call)
        self.open.append(call)
        try:
            out = run()
        finally:
            self.open.pop()
        tensors = [x for x in tree.leaves(out) if isinstance(x, Tensor)]
        call.outputs = tuple(Spec(x.shape, x.dtype) for x in tensors)
        return out


_record: ContextVar[_Record | None] = ContextVar("phlox_summary", default=None)


@final
class _Counted(Decorator):
    """Adds the work of each op to the calls that are under way."""

    name = "counted"

    def decorate(self, op: Op, inside: Callable[..., Any]) -> Callable[..., Any] | None:
        """Count an op that declares its work; what is made of others is counted by them."""
        count = len(op.signature.operands)
        work = op.work
        if work is None:
            return inside if op.expand is None else None

        def run(*args: Any) -> Any:
            record = _record.get()
            if record is not None:
                done = work(args[:count], args[count:])
                for call in record.open:
                    call.multiply_adds += done
            return inside(*args)

        return run


def summary(model: Module, *inputs: Any) -> Summary:
    """Return what each layer gives and costs in one call of ``model(*inputs)``.

    The model runs on ``Meta()`` in inference: its parameters are not read, nothing is computed or
    allocated, and layers whose parameters are lazy stay so.

    Args:
        model: any module.
        inputs: what the model is called with; a ``Spec(shape, dtype)`` may stand for a tensor.

    Raises:
        ArgumentError: when the model gives no tensor, as one whose ``forward`` is a generator, and
            when it fails for inputs that are in a tuple or a list.
        DeviceError: when the model asks for a value, of which there are none.

    Example:
        >>> import phlox_nn as nn
        >>> from phlox_tensor import Spec, float32
        >>> model = nn.Linear(784, 10)
        >>> nn.summary(model, Spec((32, 784), float32)).multiply_adds
        250880
    """
    device: Backend = _Counted(_meta(model))
    # A lazy parameter is not made for it: its shape is known.
    bare = model.with_training(False).map(lambda _, p: _bare(p, device))
    moved = bare.to_device(device)
    record = _Record()
    token = _record.set(record)
    try:
        with watching(record.run), use_device(device):  # what forward makes has no data either
            out = moved(*tree.map(lambda x: _on(device, x), inputs, leaf=Spec))
    except RAW as error:
        wrong = _one_container(inputs)
        if wrong is None:
            raise
        raise wrong from error
    finally:
        _record.reset(token)
    if not record.calls[0].outputs:
        raise _no_result(model, out)
    rows = tuple(map(_row, record.calls))
    held = sum(_size(spec) for call in record.calls if not call.inside for spec in call.outputs)
    return Summary(rows, rows[0].parameters, rows[0].multiply_adds, _params_size(moved) + held)


def _one_container(inputs: tuple[Any, ...]) -> ArgumentError | None:
    """The error for inputs that are in one container, or for a shape; None for others."""
    if len(inputs) != 1 or not isinstance(inputs[0], tuple | list) or isinstance(inputs[0], Spec):
        return None
    (given,) = inputs
    shape = all(isinstance(n, int) for n in given)
    return ArgumentError(
        "summary",
        "the model does not take these inputs",
        got=repr(given) if shape else f"{type(given).__name__} of {len(given)}",
        expected="what the model is called with, each an argument",
        hint=f"nn.summary(model, px.Spec({tuple(given)}, px.float32))"
        if shape
        else "nn.summary(model, *inputs)",
    )


def _no_result(model: Module, out: Any) -> ArgumentError:
    return ArgumentError(
        "summary",
        f"{type(model).__name__} gives no tensor, so that nobody knows what it computes",
        got=type(out).__name__,
        expected="tensors, or containers of them",
        hint="list(...) around a generator, in forward",
    )


def _meta(model: Module) -> Meta:
    """A device without data with the element types of the model's own."""
    params = model.params().values()
    like = next(iter(params)).device if params else default_device()
    return Meta(like.default_float, like.default_int, like.dtypes)


def _bare(param: Param, device: Backend) -> Param:
    """A parameter of the same shape and id, without values."""
    value: Tensor[Any] = empty(param.shape, dtype=param.dtype, device=device)
    return Param(value, id=param.id, trainable=not param.frozen, role=param.role)


def _on(device: Backend, item: Any) -> Any:
    """What stands for an input there; what is no tensor stays as it is."""
    if isinstance(item, Spec):
        return empty(item.shape, dtype=item.dtype, device=device)
    return item.detach().to_device(device) if isinstance(item, Tensor) else item


def _row(call: _Call) -> SummaryRow:
    layer = call.layer
    outputs = sum(map(_size, call.outputs))
    return SummaryRow(
        call.path,
        type(layer).__name__,
        call.outputs,
        layer.num_params(),
        call.multiply_adds,
        _params_size(layer) + outputs,
    )


def _params_size(module: Module) -> int:
    """Bytes of all parameters and state, shared ones once."""
    sizes = {p.id: prod(p.shape) * p.dtype.itemsize for p in module.params().values()}
    return sum(sizes.values())


def _size(spec: Spec) -> int:
    return prod(spec.shape) * spec.dtype.itemsize
