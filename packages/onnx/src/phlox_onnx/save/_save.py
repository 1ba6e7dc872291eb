"""Modules as files: runs are recorded, of one batch or of several, and each op is spelled."""

from __future__ import annotations

import inspect
import os
from collections.abc import Iterable, Sequence
from pathlib import Path
from typing import Any

import numpy as np

from phlox_nn import Module
from phlox_tensor import (
    ArgumentError,
    Backend,
    PhloxError,
    Tensor,
    asarray,
    default_device,
    use_device,
)

from .._errors import OnnxError
from ._batched import BATCHES
from ._check import refuse_unfit, verified
from ._file import written
from ._graph import model_of
from ._run import Run, refuse_unlike, run
from ._spelled import Spelled
from ._writer import EVERY, ONE

# The file is compared with the module at these, too: 1 is where sizes vanish, 12 is beyond all.
_OTHERS = (1, 12)


def save(
    module: Module,
    inputs: Any,
    path: str | os.PathLike[str],
    *,
    names: Sequence[str] | None = None,
    output_names: Sequence[str] | None = None,
    dynamic_batch: bool = False,
    verify: bool = True,
) -> Path:
    """Write what a module computes for example inputs as a file of ONNX, opset 21.

    Parameters keep their paths as names. Results that stand in tuples, dicts and the like are
    outputs one after the other. Decisions of Python are those of the example: sizes are fixed, but
    with ``dynamic_batch`` the first axis of all inputs, which is told from runs with several
    batches; what then follows from the batch in another way than ``a * batch + b`` is refused.
    A file of more than 1 GiB has its weights in ``path`` + ``".data"``. Files take their place
    when they are whole.

    Args:
        module: is written as it computes in inference.
        inputs: a tensor or array, or several in a tuple, as the module is called with.
        path: where the file goes.
        names: of the inputs; ``x0``, ``x1`` … by default.
        output_names: likewise; ``y0``, ``y1`` … by default.
        dynamic_batch: whether the first axis may have any size.
        verify: whether the file is loaded again and must give what the module gives, for the
            inputs and, with ``dynamic_batch``, for other batches of their rows.

    Raises:
        ArgumentError: for what is no module, and names or inputs that do not fit it.
        OnnxError: for an op that ONNX has no word for, named with the module that asks; for what
            follows from the batch in another way; for a file that gives something else.

    Example:
        >>> import tempfile, phlox_nn as nn
        >>> from phlox_tensor import zeros
        >>> with tempfile.TemporaryDirectory() as folder:
        ...     path = save(nn.Linear(4, 2), zeros((1, 4)), f"{folder}/linear.onnx")
        ...     path.name
        'linear.onnx'
    """
    target, given = _path(path), _inputs(inputs)
    _refuse_module(module, given)
    net = module.valid()
    own = next((param.device for param in net.param_list()), default_device())
    device = Spelled(own.base)
    net = net.to_device(device)
    params = {path: param.value for path, param in net.params().items()}
    tensors = [None if v is None else _on(v, device) for v in given]
    words = _names(names, "x", sum(t is not None for t in tensors), "inputs", params)
    batches = _batches(tensors) if dynamic_batch else ()
    with use_device(device):
        net(*tensors)  # what a module computes once and keeps is no part of what it does
        runs = [_run(net, _rows(tensors, n), params, device, n) for n in batches]
        runs = runs or [run(net, tensors, params, device)]
    refuse_unlike(runs, batches)
    outputs = _names(output_names, "y", len(runs[0].graph.outputs), "outputs", [*params, *words])
    model, places = model_of(runs, batches, words, outputs)
    refuse_unfit(model, places)
    own_size = next((t.shape[0] for t in tensors if t is not None), 0) if dynamic_batch else 0
    sizes = sorted({own_size, *_OTHERS}) if dynamic_batch else [None]
    feeds = [tensors if n is None else _rows(tensors, n) for n in sizes]
    with written(model, target) as fresh:
        verified(fresh, net, feeds, outputs, device, asked=verify)
    return target


def _path(path: Any) -> Path:
    if not isinstance(path, str | os.PathLike) or not os.fspath(path):
        expected = "save(module, inputs, path)"
        raise ArgumentError("save", "no path of a file", got=repr(path), expected=expected)
    if Path(path).is_dir() or not Path(path).parent.is_dir():
        what = "the path is a folder" if Path(path).is_dir() else "there is no such folder"
        raise ArgumentError("save", what, got=str(path), expected="a file in a folder")
    return Path(path)


def _inputs(inputs: Any) -> tuple[Any, ...]:
    """A list of tensors stands for several as a tuple does; one of numbers is an array."""
    several = isinstance(inputs, tuple) or (
        isinstance(inputs, list) and any(isinstance(v, Tensor | np.ndarray) for v in inputs)
    )
    return tuple(inputs) if several else (inputs,)


def _refuse_module(module: Any, given: tuple[Any, ...]) -> None:
    if not isinstance(module, Module):
        got = f"the class {module.__name__}" if isinstance(module, type) else type(module).__name__
        hint = "class Net(nn.Module) with def forward(self, x); an instance, Net()"
        raise ArgumentError("save", "no module", got=got, expected="an nn.Module", hint=hint)
    forward = getattr(module, "forward", None)
    if forward is None:
        raise ArgumentError("save", "a module that cannot be called", got=type(module).__name__)
    try:
        inspect.signature(forward).bind(*given)
    except TypeError as error:
        got, expected = f"{len(given)}: {error}", f"forward{inspect.signature(forward)}"
        raise ArgumentError("save", "the inputs do not fit", got=got, expected=expected) from None


def _names(given: Any, letter: str, count: int, what: str, taken: Iterable[str]) -> list[str]:
    """Names of inputs or outputs, which nothing else has."""
    words = [f"{letter}{i}" for i in range(count)]
    if given is not None:
        if isinstance(given, str) or not all(isinstance(n, str) and n for n in given):
            expected = "a list of words that are not empty"
            raise ArgumentError("save", f"names of {what}", got=repr(given), expected=expected)
        words = list(given)
    if len(words) != count or len(set(words)) < len(words):
        expected = f"{count} names that differ"
        raise ArgumentError("save", f"names do not fit the {what}", got=words, expected=expected)
    twice = sorted(set(words) & set(taken))
    if twice:
        hint = "names=[...] of the inputs, output_names=[...] of the outputs"
        raise ArgumentError("save", f"names of {what} that are taken", got=twice, hint=hint)
    return words


def _on(value: Any, device: Backend) -> Tensor[Any]:
    while isinstance(value, Tensor) and value.device.records:
        value = value.inner()
    if isinstance(value, Tensor):
        return value.to_device(device)
    return asarray(value, device=device)


def _batches(tensors: list[Any]) -> tuple[int, ...]:
    """The batches to run with, for inputs that have one and the same."""
    shapes = [t.shape for t in tensors if t is not None]
    if not shapes or not all(s and s[0] for s in shapes) or len({s[0] for s in shapes}) > 1:
        expected = "inputs with one size of the first axis"
        raise ArgumentError("save", "inputs without a batch", got=shapes, expected=expected)
    return BATCHES


def _rows(tensors: list[Any], count: int) -> list[Any]:
    """The first rows of each, again and again."""
    return [None if t is None else _first(t, count) for t in tensors]


def _first(x: Tensor[Any], count: int) -> Tensor[Any]:
    return asarray(x.numpy()[np.arange(count) % x.shape[0]], device=x.device)


def _run(net: Module, tensors: list[Any], params: Any, device: Backend, batch: int) -> Run:
    try:
        return run(net, tensors, params, device)
    except OnnxError:
        raise
    except PhloxError as error:
        what = f"the module does not run with a batch of {batch}"
        raise OnnxError("save", what, got=str(error), expected=EVERY, hint=ONE) from error
