"""The tests of nodes that the onnx wheel brings, run on any device.

``node_cases()`` gives them, ``run_case(case, device)`` runs one, and ``expected_failure(name)``
says why one cannot pass.
"""

from __future__ import annotations

from collections.abc import Sequence
from fnmatch import fnmatchcase
from functools import cache
from typing import Any, Final

import numpy as np
import onnx
from onnx.backend.test.loader import load_model_tests

from phlox_tensor import Backend, Tensor, asarray

from ._model import load

_STEPS = "training steps are those of phlox.optim"
_TYPES = "an element type that phlox lacks"
_TEXT = "strings are no tensors here"
_DRAWN = "asks for the random numbers of NumPy's own stream"
_NARROW = "asks for sums that are rounded to 16 bits after each step"

# Names of cases with why they fail; each pattern has to match a case, and each match has to fail.
EXPECTED: Final[dict[str, str]] = {
    "test_adagrad*": _STEPS,
    "test_adam*": _STEPS,
    "test_ai_onnx_ml_*": "an op of trees and tables, of another domain",
    "test_attention_*_causal*_bf16*": _NARROW,
    "test_attention_4d_causal_fp16*": _NARROW,
    "test_attention_4d_padded_kv_bf16*": _NARROW,
    "test_bernoulli*": _DRAWN,
    "test_cast*FLOAT4E2M1*": _TYPES,
    "test_cast*FLOAT8E*": _TYPES,
    "test_cast*INT2*": _TYPES,
    "test_cast*INT4*": _TYPES,
    "test_dequantizelinear_*int2": _TYPES,
    "test_dequantizelinear_*int4": _TYPES,
    "test_dequantizelinear_e4m3fn*": _TYPES,
    "test_dequantizelinear_e5m2": _TYPES,
    "test_dequantizelinear_float4e2m1": _TYPES,
    "test_dft_inverse*": "asks for the rounding of a fast transform in float32, where 0 is 2e-7",
    "test_equal_string*": _TEXT,
    "test_image_decoder_*": "pictures in files are read by other libraries",
    "test_momentum*": _STEPS,
    "test_nesterov_momentum": _STEPS,
    "test_quantizelinear_*int2": _TYPES,
    "test_quantizelinear_*int4": _TYPES,
    "test_quantizelinear_e4m3fn": _TYPES,
    "test_quantizelinear_e5m2": _TYPES,
    "test_quantizelinear_float4e2m1": _TYPES,
    "test_regex_full_match_*": _TEXT,
    "test_string_*": _TEXT,
    "test_strnormalizer_*": _TEXT,
    "test_tfidfvectorizer_*": "counts of words belong in front of a model",
    "test_training_dropout": _DRAWN,
    "test_training_dropout_default*": _DRAWN,
    "test_training_dropout_mask": _DRAWN,
}


@cache
def node_cases() -> dict[str, Any]:
    """The cases of single nodes by name; making them takes some seconds."""
    return {case.name: case for case in load_model_tests(kind="node")}


def expected_failure(name: str) -> str | None:
    """Why a case cannot pass, or None."""
    return next((why for pattern, why in EXPECTED.items() if fnmatchcase(name, pattern)), None)


def run_case(case: Any, device: Backend, *, frozen: bool = False) -> None:
    """Load the model of a case and compare what it gives.

    Args:
        case: one of ``node_cases``.
        device: where it shall run.
        frozen: puts all inputs but the first into the file, so that they become parameters or
            literals; the results are the same.

    Raises:
        AssertionError: when number, shape, type or values differ.
        PhloxError: when the model cannot be loaded or run.
    """
    for given, wanted in case.data_sets:
        file, rest = _frozen(case.model, given) if frozen else (case.model, given)
        model = load(file.SerializeToString(), device=device)
        found = model(*(on_device(v, device) for v in rest))
        results: Sequence[Any] = found if isinstance(found, tuple) else (found,)
        assert len(results) == len(wanted), f"{len(results)} outputs, expected {len(wanted)}"
        for result, reference in zip(results, wanted, strict=True):
            compare(result, reference, case.rtol, case.atol)


def _frozen(model: Any, given: Sequence[Any]) -> tuple[Any, list[Any]]:
    """The model with its inputs but the first as constants, and the inputs that are left."""
    made = onnx.ModelProto()
    made.CopyFrom(model)
    graph = made.graph
    kept, rest = [], []
    for i, (info, value) in enumerate(zip(list(graph.input), given, strict=False)):
        plain = info.type.HasField("tensor_type") and not isinstance(value, list)
        if i and plain and value is not None:
            graph.initializer.append(onnx.numpy_helper.from_array(_array(value), info.name))
        else:
            kept.append(info)
            rest.append(value)
    del graph.input[:]
    graph.input.extend(kept)
    return made, rest


def _array(value: Any) -> Any:
    if isinstance(value, onnx.TensorProto):
        return onnx.numpy_helper.to_array(value)
    return np.asarray(value)


def on_device(value: Any, device: Backend) -> Any:
    """A value of a case as a tensor, a list of them, or None."""
    if value is None:
        return None
    if isinstance(value, list):
        return [on_device(item, device) for item in value]
    return asarray(_array(value), device=device)


def compare(found: Any, wanted: Any, rtol: float, atol: float) -> None:
    """Compare a result with that of a case.

    Raises:
        AssertionError: when they differ.
    """
    if isinstance(wanted, list):
        assert isinstance(found, list)
        assert len(found) == len(wanted), f"{len(found)} items, expected {len(wanted)}"
        for one, other in zip(found, wanted, strict=True):
            compare(one, other, rtol, atol)
        return
    if wanted is None:
        assert found is None
        return
    assert isinstance(found, Tensor)
    array, reference = found.numpy(), _array(wanted)
    assert array.shape == reference.shape, f"shape {array.shape}, expected {reference.shape}"
    assert array.dtype == reference.dtype, f"type {array.dtype}, expected {reference.dtype}"
    if array.dtype.kind not in "biufO":  # bfloat16, for which NumPy has no comparison
        array, reference = array.astype(np.float32), reference.astype(np.float32)
    np.testing.assert_allclose(array, reference, rtol=rtol, atol=atol)
