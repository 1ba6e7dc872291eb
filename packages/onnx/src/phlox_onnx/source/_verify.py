"""Whether what was written does what the file says: both run on the same inputs."""

from __future__ import annotations

import importlib.util
import itertools
import subprocess
import sys
import tempfile
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any, Final, Literal

import numpy as np

from phlox_tensor import DTYPES, ArgumentError, Backend, Tensor, asarray, default_device

from .._errors import OnnxError
from .._graph import Value
from .._model import Source, load
from .._quantized import Quantized

Feeds = Mapping[str, Any]
Against = Literal["load", "onnxruntime"]
_NUMBERS: Final = itertools.count()
_ONNXRUNTIME: Final = """
import json, sys
import numpy as np
import onnxruntime
options = onnxruntime.SessionOptions()
options.log_severity_level = 4
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


def feeds_of(inputs: Sequence[Value], sizes: Mapping[str, int], seed: int = 0) -> dict[str, Any]:
    """Arrays for the inputs of a file: normal floats, small whole numbers, some that are true.

    Raises:
        ArgumentError: for an input whose type or rank the file does not tell.
    """
    rng = np.random.default_rng(seed)
    out: dict[str, Any] = {}
    for value in inputs:
        if value.shape is None or value.dtype not in DTYPES:
            raise ArgumentError(
                "verify",
                "an input that the file does not describe",
                got=repr(value.name),
                hint=f"feeds={{{value.name!r}: array}}",
            )
        named = [
            n if isinstance(n, str) else f"{value.name}:{i}" for i, n in enumerate(value.shape)
        ]
        shape = tuple(
            sizes.get(k, n if isinstance(n, int) and n > 0 else sizes.get("", 1))
            for k, n in zip(named, value.shape, strict=True)
        )
        kind = DTYPES[value.dtype]
        if kind.kind == "Float":
            out[value.name] = rng.normal(size=shape).astype(kind.numpy)
        elif kind.kind == "Bool":
            out[value.name] = rng.random(shape) < 0.5
        else:
            out[value.name] = rng.integers(0, 2, shape).astype(kind.numpy)
    return out


def verify(
    file: Source,
    folder: str | Path,
    feeds: Feeds,
    *,
    against: Against = "load",
    quantized: Quantized = "fake",
    device: Backend | None = None,
) -> dict[str, float]:
    """Return, for each output, how far the source is from the file: a share of its largest value.

    Args:
        file: the ONNX file; a path where ONNX Runtime runs it.
        folder: what was written for it.
        feeds: arrays by the names of the inputs.
        against: ``"load"`` runs the graph as it is in the file, ``"onnxruntime"`` asks that library
            in a process of its own.
        quantized: as the source was written.
        device: where both run; the default device by default.

    Raises:
        ArgumentError: when an input is missing.
        OnnxError: when ONNX Runtime fails or is not installed.
    """
    target = device or default_device()
    loaded = load(file, device=target, quantized=quantized)
    found = run_source(Path(folder), [feeds[n] for n in loaded.inputs], target)
    if against == "onnxruntime":
        wanted = run_onnxruntime(file, feeds)
    else:
        wanted = [_array(v) for v in _several(loaded(**feeds))]
    return {n: difference(a, b) for n, a, b in zip(loaded.outputs, found, wanted, strict=True)}


def run_source(folder: Path, inputs: Sequence[Any], device: Backend) -> list[Any]:
    """What a written model gives."""
    model = imported(folder).load(device)
    return [_array(v) for v in _several(model(*(asarray(v, device=device) for v in inputs)))]


def _several(found: Any) -> Sequence[Any]:
    return found if isinstance(found, tuple) else (found,)


def _array(value: Any) -> Any:
    if isinstance(value, list):
        return [_array(v) for v in value]
    return value.numpy() if isinstance(value, Tensor) else value


def difference(found: Any, wanted: Any) -> float:
    """The largest difference, as a share of the largest value; infinite where shapes differ."""
    if isinstance(wanted, list):
        pairs = zip(found, wanted, strict=False)
        same = isinstance(found, list) and len(found) == len(wanted)
        return max((difference(a, b) for a, b in pairs), default=0.0) if same else float("inf")
    if wanted is None or found is None:
        return 0.0 if wanted is found else float("inf")
    if found.shape != wanted.shape or found.dtype.kind != wanted.dtype.kind:
        return float("inf")
    if not wanted.size:
        return 0.0
    one, two = np.asarray(found, np.float64), np.asarray(wanted, np.float64)
    same = (one == two) | (np.isnan(one) & np.isnan(two))
    finite = np.where(np.isfinite(two), np.abs(two), 0.0)
    with np.errstate(invalid="ignore"):
        off = np.where(same, 0.0, np.abs(one - two))
    worst = float(np.max(off))
    return float("inf") if np.isnan(worst) else worst / max(float(finite.max()), 1e-30)


def run_onnxruntime(file: Source, feeds: Feeds, python: str = sys.executable) -> list[Any]:
    """What ONNX Runtime gives, in a process of its own.

    Raises:
        OnnxError: when it fails, or is not installed.
    """
    with tempfile.TemporaryDirectory() as folder:
        place = Path(folder)
        path = str(file) if not isinstance(file, bytes) else str(place / "model.onnx")
        if isinstance(file, bytes):
            Path(path).write_bytes(file)
        arrays: dict[str, Any] = {k: np.asarray(v) for k, v in feeds.items()}
        np.savez(place / "feeds.npz", **arrays)
        done = subprocess.run(
            [python, "-c", _ONNXRUNTIME, path, str(place / "feeds.npz"), str(place / "out.npz")],
            capture_output=True,
            text=True,
            check=False,
        )
        if done.returncode:
            last = (done.stderr.strip().splitlines() or ["no message"])[-1]
            hint = "pip install onnxruntime" if "No module named" in last else None
            raise OnnxError("verify", "ONNX Runtime failed", got=last, hint=hint)
        with np.load(place / "out.npz") as out:
            return [out[str(i)] for i in range(len(out.files))]
