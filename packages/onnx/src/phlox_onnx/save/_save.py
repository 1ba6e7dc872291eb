"""Modules as files: runs are recorded, with one size or several, and each op is spelled."""

from __future__ import annotations

import inspect
import os
from collections.abc import Iterable, Mapping, Sequence
from pathlib import Path
from typing import Any, Final, Never

import numpy as np

from phlox_nn import Module
from phlox_tensor import (
    ArgumentError,
    Backend,
    PhloxError,
    Tensor,
    default_device,
    use_device,
)
from phlox_tensor.names import unknown_argument
from phlox_tensor.shown import hide_refused

from .._errors import OnnxError
from ._check import refuse_unfit, verified
from ._file import written
from ._graph import model_of
from ._open import HINT, Dynamic, Inputs, Opened, inputs_of, open_sizes
from ._run import Run, refuse_unlike, run
from ._sizes import ONE
from ._spelled import Spelled
from ._writer import EVERY

# The file is compared with the module at these, too: 1 is where sizes vanish, 12 is beyond all.
_ONE, _BEYOND = (1, 1, 1, 1), (12, 17, 24, 33)
POSITIONS: Final = 2048


def save(
    module: Module,
    inputs: Any,
    path: str | os.PathLike[str],
    *,
    names: Sequence[str] | None = None,
    output_names: Sequence[str] | None = None,
    dynamic: Dynamic | None = None,
    dynamic_batch: bool = False,
    positions: int = POSITIONS,
    verify: bool = True,
    **wrong: Never,
) -> Path:
    """Write what a module computes for example inputs as a file of ONNX, opset 21.

    Parameters keep their paths as names. Results that stand in tuples, dicts and the like are
    outputs one after the other; inputs may stand so, too. Decisions of Python are those of the
    example: sizes are fixed, but those that ``dynamic`` names. They are told from runs with several
    sizes; what then follows from them in another way than as a sum of products is refused.
    A file of more than 1 GiB has its weights in ``path`` + ``".data"``. Files take their place
    when they are whole.

    Args:
        module: is written as it computes in inference.
        inputs: a tensor or array, or several in a tuple, as the module is called with.
        path: where the file goes.
        names: of the inputs; ``x0``, ``x1`` … by default, with ``dynamic`` the parameters of
            ``forward``: ``cache.0.keys`` is a part of one.
        output_names: likewise; ``y0``, ``y1`` … by default.
        dynamic: a name for each axis that may have any size, by input:
            ``{"tokens": {0: "batch", 1: "length"}}``. Equal names are equal sizes; an input that
            holds several, such as a cache, is named as a whole.
        dynamic_batch: whether the first axis of all inputs may have any size.
        positions: with ``dynamic``, how many rows tables of positions have in the file: the longest
            sequence of rotary and sinusoidal layers.
        verify: whether the file is loaded again and must give what the module gives, for the
            inputs and for other sizes of what is open.

    Raises:
        ArgumentError: for what is no module, and names, axes or inputs that do not fit it.
        OnnxError: for an op that ONNX has no word for, named with the module that asks; for what
            follows from sizes in another way; for a file that gives something else.

    Example:
        >>> import tempfile, phlox_nn as nn
        >>> from phlox_tensor import zeros
        >>> with tempfile.TemporaryDirectory() as folder:
        ...     path = save(nn.Linear(4, 2), zeros((1, 4)), f"{folder}/linear.onnx")
        ...     path.name
        'linear.onnx'
    """
    _refuse_unknown(wrong)
    target, arguments = _path(path), _arguments(inputs)
    _refuse_module(module, arguments)
    net = module.valid()
    own = next((param.device for param in net.param_list()), default_device())
    device = Spelled(own.base)
    net = net.to_device(device)
    params = {path: param.value for path, param in net.params().items()}
    given = inputs_of(net.forward, arguments).on(device)
    paths = [given.paths[i] for i in given.places]
    words = _names(names, "x" if dynamic is None else paths, len(paths), "inputs", params)
    sizes = open_sizes(given, words, dynamic, dynamic_batch)
    rows = positions if dynamic else 0
    with use_device(device):
        net(*given.arguments(given.leaves))  # what is computed once and kept is no part of it
        runs, sizes = _noted(net, given, sizes, params, device, rows)
    refuse_unlike(runs, sizes.runs)
    outputs = _names(output_names, "y", len(runs[0].graph.outputs), "outputs", [*params, *words])
    model, places = model_of(runs, sizes.runs, sizes.first(words, given.places), words, outputs)
    refuse_unfit(model, places)
    count = len(sizes.own)
    beyond = tuple(map(max, _BEYOND, sizes.runs.points[-1]))
    tried = dict.fromkeys((tuple(sizes.own.values()), _ONE[:count], beyond))
    feeds = [sizes.resized(given.leaves, each) for each in tried]
    with written(model, target) as fresh:
        verified(fresh, net, given, feeds, outputs, device, asked=verify)
    return target


# What PyTorch calls the arguments, and what takes their place.
_ELSEWHERE: Final = {
    "f": ("path",),
    "args": ("inputs",),
    "input_names": ("names",),
}
_ADVICE: Final = {
    "do_constant_folding": "leave it out: constants are folded in any case",
    "dynamic_axes": HINT,
    "dynamic_shapes": HINT,
    "dynamo": "leave it out: there is one exporter",
    "export_params": "leave it out: parameters are in the file",
    "opset_version": "leave it out: files have opset 21",
    "verbose": "leave it out; print(onnx.printer.to_text(onnx.load(path)))",
}


hide_refused([save])


def _refuse_unknown(wrong: Mapping[str, object]) -> None:
    """Refuse arguments that a call does not have, some of which others have."""
    known = [*inspect.signature(save).parameters]
    unknown = unknown_argument("save", wrong, known, _ELSEWHERE, _ADVICE)
    if unknown is not None:
        raise unknown


def _path(path: Any) -> Path:
    if not isinstance(path, str | os.PathLike) or not os.fspath(path):
        expected = "save(module, inputs, path)"
        raise ArgumentError("save", "no path of a file", got=repr(path), expected=expected)
    if Path(path).is_dir() or not Path(path).parent.is_dir():
        what = "the path is a folder" if Path(path).is_dir() else "there is no such folder"
        raise ArgumentError("save", what, got=str(path), expected="a file in a folder")
    return Path(path)


def _arguments(inputs: Any) -> tuple[Any, ...]:
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


def _names(
    given: Any, usual: str | list[str], count: int, what: str, taken: Iterable[str]
) -> list[str]:
    """Names of inputs or outputs, which nothing else has."""
    words = [f"{usual}{i}" for i in range(count)] if isinstance(usual, str) else usual
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


def _noted(
    net: Module, inputs: Inputs, sizes: Opened, params: Any, device: Backend, positions: int
) -> tuple[list[Run], Opened]:
    """A run with each size; all above the inputs' own where their values fit no smaller ones."""
    failed: list[tuple[PhloxError, str]] = []
    for each in (sizes, sizes.above_own()):
        found: list[Run] = []
        try:
            for point in each.runs.points:
                tensors = each.resized(inputs.leaves, point)
                found.append(run(net, inputs, tensors, params, device, positions))
            return found, each
        except OnnxError:
            raise
        except PhloxError as error:
            if not sizes.runs.names:
                raise
            failed.append((error, each.runs.shown(len(found))))
    first, shown = failed[0]
    what = f"the module does not run with {shown}"
    raise OnnxError("save", what, got=str(first), expected=EVERY, hint=ONE) from first
