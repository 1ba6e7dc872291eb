"""Whether what was written does what the file says: both run on the same inputs."""

from __future__ import annotations

import importlib.util
import itertools
import subprocess
import sys
import tempfile
from collections.abc import Mapping, Sequence
from math import prod
from pathlib import Path
from typing import Any, Final, Literal, get_args

import numpy as np

from phlox_tensor import (
    DTYPES,
    ArgumentError,
    Backend,
    PhloxError,
    Tensor,
    asarray,
    default_device,
)
from phlox_tensor.random import Generator, use_generator

from .._difference import difference
from .._errors import OnnxError, refuse_other_words
from .._graph import Value
from ..read._limits import Limits
from ..read._read import Source, bytes_of
from ..run._model import OnnxModel, model_of
from ..run._quantized import Quantized
from ._options import names_of

Feeds = Mapping[str, Any]
Against = Literal["load", "onnxruntime"]
_NUMBERS: Final = itertools.count()
INSTALL: Final = "pip install onnxruntime"
_PATIENCE: Final = 600  # seconds, for another library
_ONNXRUNTIME: Final = """
import json, sys
import numpy as np
import onnxruntime
options = onnxruntime.SessionOptions()
options.log_severity_level = 4
# The formulas of the file: rewritten ones of quantized files differ from them by steps.
options.graph_optimization_level = onnxruntime.GraphOptimizationLevel.ORT_DISABLE_ALL
session = onnxruntime.InferenceSession(sys.argv[1], options, providers=["CPUExecutionProvider"])
feeds = np.load(sys.argv[2])
found = session.run(None, {k: feeds[k] for k in feeds.files})
np.savez(sys.argv[3], **{str(i): v for i, v in enumerate(found)})
"""


def imported(folder: Path) -> Any:
    """The module ``model`` of a folder that was written."""
    name = f"_phlox_onnx_{next(_NUMBERS)}"
    spec = importlib.util.spec_from_file_location(
        name, folder / "__init__.py", submodule_search_locations=[str(folder)]
    )
    assert spec is not None
    assert spec.loader is not None
    module = importlib.util.module_from_spec(spec)
    sys.modules[name] = module
    spec.loader.exec_module(module)
    return module


def forgotten(module: Any) -> None:
    """Let go of what ``imported`` gave."""
    for name in [n for n in sys.modules if f"{n}.".startswith(f"{module.__name__}.")]:
        del sys.modules[name]


def feeds_of(inputs: Sequence[Value], sizes: Mapping[str, int], seed: int = 0) -> dict[str, Any]:
    """Arrays for the inputs of a file: normal floats, small whole numbers, some that are true.

    Raises:
        ArgumentError: for an input whose type or rank the file does not tell.
    """
    rng = np.random.default_rng(seed)
    out: dict[str, Any] = {}
    for value in inputs:
        shape, kind = _shape(value, sizes), DTYPES[value.dtype]
        if kind.kind == "Float":
            out[value.name] = rng.normal(size=shape).astype(kind.numpy)
        elif kind.kind == "Bool":
            out[value.name] = rng.random(shape) < 0.5
        else:
            out[value.name] = rng.integers(0, 2, shape).astype(kind.numpy)
    return out


def elements_of(inputs: Sequence[Value], sizes: Mapping[str, int]) -> int:
    """How many elements these arrays have together.

    Raises:
        ArgumentError: as ``feeds_of``.
    """
    return sum(prod(_shape(value, sizes)) for value in inputs)


def _shape(value: Value, sizes: Mapping[str, int]) -> tuple[int, ...]:
    if value.shape is None or value.dtype not in DTYPES:
        raise ArgumentError(
            "verify",
            "an input that the file does not describe",
            got=repr(value.name),
            hint=f"feeds={{{value.name!r}: array}}",
        )
    return tuple(
        sizes.get(k, n if isinstance(n, int) and n > 0 else sizes.get("", 1))
        for k, n in zip(names_of(value), value.shape, strict=True)
    )


def verify(
    file: Source,
    folder: str | Path,
    feeds: Feeds,
    *,
    against: Against = "load",
    quantized: Quantized = "fake",
    device: Backend | None = None,
    limits: Limits | None = None,
) -> dict[str, float]:
    """Return, for each output, how far the source is from the file: a share of its largest value.

    A value below a thousandth counts as that, so that the rounding of tiny outputs is none.

    Args:
        file: the ONNX file.
        folder: what was written for it.
        feeds: arrays by the names of the inputs.
        against: ``"load"`` runs the graph as it is in the file, ``"onnxruntime"`` asks that library
            in a process of its own.
        quantized: as the source was written.
        device: where both run; the default device by default.
        limits: what the file may ask for.

    Raises:
        ArgumentError: when an input is missing, or there is no package in the folder.
        OnnxError: when the file is malformed, when one of the two does not run with these inputs,
            when ONNX Runtime fails, takes more than ten minutes or is not installed.

    Example:
        >>> import onnx, tempfile
        >>> from phlox_onnx import write
        >>> text = '<ir_version: 8, opset_import: ["" : 18]> f (float[2] x) => (float[2] y)'
        >>> file = onnx.parser.parse_model(text + " { y = Relu(x) }")
        >>> with tempfile.TemporaryDirectory() as folder:
        ...     made = write(file, folder, verify=False)
        ...     verify(file, folder, {"x": np.array([-1.0, 2.0], np.float32)})
        {'y': 0.0}
    """
    refuse_other_words("verify", "against", against, get_args(Against))
    refuse_other_words("verify", "quantized", quantized, get_args(Quantized))
    if not _by_name(feeds):
        hint = "{input: array for each input}"
        raise ArgumentError("verify", "no inputs", got=type(feeds).__name__, hint=hint)
    if not (Path(folder) / "model.py").is_file():
        raise ArgumentError("verify", "no package there", got=str(folder), hint="px.onnx.write")
    target = device or default_device()
    loaded = model_of(file, target, quantized, limits)
    feeds = in_order(loaded, feeds, "an input is missing")
    module = imported(Path(folder))
    try:
        return shares(file, loaded, module, feeds, against, target)
    finally:
        forgotten(module)


def shares(
    file: Source,
    loaded: OnnxModel,
    module: Any,
    feeds: Feeds,
    against: Against,
    device: Backend | None = None,
) -> dict[str, float]:
    """How far a package is from its file, or from ONNX Runtime; both draw the same numbers.

    Feeds are in the order of the inputs.

    The stream of random numbers goes on as if nothing had been drawn.
    """
    target = device or default_device()
    inputs = [*feeds.values()]
    if against == "onnxruntime":
        wanted = run_onnxruntime(file, feeds)
    else:
        with use_generator(Generator()):
            wanted = [_array(v) for v in _several(loaded(*inputs))]
    try:
        with use_generator(Generator()):
            found = module.load(target)(*(_on(v, target) for v in inputs))
    except PhloxError:
        raise
    except Exception as error:  # of text that was written, and is looked at here
        got = f"{type(error).__name__}: {error}"
        raise OnnxError("verify", "the package does not run with these inputs", got=got) from error
    pairs = zip(loaded.outputs, map(_array, _several(found)), wanted, strict=True)
    return {name: difference(a, b) for name, a, b in pairs}


def in_order(loaded: OnnxModel, feeds: Feeds, what: str) -> Feeds:
    """The arrays for the inputs of a file, in their order.

    Raises:
        ArgumentError: when one is missing.
    """
    if not feeds.keys() >= set(loaded.inputs):
        got, expected = ", ".join(feeds) or "none", ", ".join(loaded.inputs)
        raise ArgumentError("verify", what, got=got, expected=expected)
    return {name: feeds[name] for name in loaded.inputs}


def _by_name(feeds: object) -> bool:
    return isinstance(feeds, Mapping)


def _on(value: Any, device: Backend) -> Any:
    return (
        [_on(v, device) for v in value]
        if isinstance(value, list)
        else asarray(value, device=device)
    )


def _several(found: Any) -> Sequence[Any]:
    return found if isinstance(found, tuple) else (found,)


def _array(value: Any) -> Any:
    if isinstance(value, list):
        return [_array(v) for v in value]
    return value.numpy() if isinstance(value, Tensor) else value


def run_onnxruntime(file: Source, feeds: Feeds) -> list[Any]:
    """What ONNX Runtime gives, in a process of its own."""
    with tempfile.TemporaryDirectory() as folder:
        place = Path(folder)
        data = bytes_of(file)
        path = str(file if data is None else place / "model.onnx")
        if data is not None:
            Path(path).write_bytes(data)
        arrays: dict[str, Any] = {k: np.asarray(v) for k, v in feeds.items()}
        np.savez(place / "feeds.npz", **arrays)
        words = [
            sys.executable,
            "-c",
            _ONNXRUNTIME,
            path,
            str(place / "feeds.npz"),
            str(place / "out.npz"),
        ]
        try:
            done = subprocess.run(
                words, capture_output=True, text=True, check=False, timeout=_PATIENCE
            )
        except subprocess.TimeoutExpired:
            got = f"no answer after {_PATIENCE} seconds"
            raise OnnxError("verify", "ONNX Runtime failed", got=got) from None
        if done.returncode:
            last = (done.stderr.strip().splitlines() or ["no message"])[-1]
            hint = INSTALL if "No module named" in last else None
            raise OnnxError("verify", "ONNX Runtime failed", got=last, hint=hint)
        with np.load(place / "out.npz") as out:
            return [out[str(i)] for i in range(len(out.files))]
