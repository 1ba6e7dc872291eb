"""The tests of nodes that the onnx wheel brings, run on any device.

``node_cases()`` gives them, ``run_case(case, device)`` runs one, ``wrong_of`` many,
``expected_failure(name)`` says why one cannot pass, and ``needs_host(name, device)`` why one runs
on ``WithHost(device)``: all others run on the device alone.
"""

from __future__ import annotations

import re
import tempfile
from collections.abc import Iterable, Sequence
from fnmatch import fnmatchcase
from functools import cache
from pathlib import Path
from typing import Any, Final, Literal

import numpy as np
import onnx
from onnx.backend.test.loader import load_model_tests

from phlox_tensor import Backend, Tensor, WithHost, asarray, use_device

from ._load import load
from .source import write
from .source._verify import forgotten, imported

Way = Literal["frozen", "frozen source", "load", "source"]


def _named(reasons: dict[str, str]) -> dict[str, str]:
    """Why a case fails, by each pattern of names that stands behind the reason."""
    return {name: why for why, names in reasons.items() for name in names.split()}


_FOREIGN: Final = re.compile(r"^(import|from) (onnx|phlox_)\w*", re.MULTILINE)
# Names of cases with why they fail; each pattern has to match a case, and each match has to fail.
EXPECTED: Final = _named(
    {
        "a table of words and numbers": "test_ai_onnx_ml_label_encoder_*",
        "an element type that phlox lacks": """
        test_cast*FLOAT4E2M1* test_cast*FLOAT8E* test_cast*INT2* test_dequantizelinear_*int2
        test_dequantizelinear_e4m3fn* test_dequantizelinear_e5m2 test_dequantizelinear_float4e2m1
        test_quantizelinear_*int2 test_quantizelinear_e4m3fn test_quantizelinear_e5m2
        test_quantizelinear_float4e2m1""",
        "asks for sums that are rounded to 16 bits after each step": """
        test_attention_*_causal*_bf16* test_attention_4d_causal_fp16*
        test_attention_4d_padded_kv_bf16*""",
        "asks for the random numbers of NumPy's own stream": """
        test_bernoulli* test_training_dropout test_training_dropout_default*
        test_training_dropout_mask""",
        "asks for the rounding of a fast transform, where 0 is 2e-7 in float32": """
        test_dft_inverse*""",
        "counts of words belong in front of a model": "test_tfidfvectorizer_*",
        "pictures in files are read by other libraries": "test_image_decoder_*",
        "strings are no tensors here": """
        test_equal_string* test_regex_full_match_* test_string_* test_strnormalizer_*""",
        "the corners of a fraction of a size, where text and exporters mean those of the size": """
        test_resize_downsample_scales_cubic_align_corners
        test_resize_downsample_scales_linear_align_corners""",
        "training steps are those of phlox.optim": """
        test_adagrad* test_adam* test_momentum* test_nesterov_momentum""",
    }
)

# Cases that want the host beside one kind of device, or in one way there, with why.
BESIDE_HOST: Final = {
    "Wgpu": _named(
        {
            "an element type that shaders lack": """
            test_attention_local_window_gqa_rank4_mask* test_bitcast_float64_to_int64
            test_bitcast_int64_to_float64 test_bitcast_int8_to_uint8 test_bitcast_uint16_to_int16
            test_cast_*DOUBLE* test_cast_*INT4_to_*INT8 test_cast_BFLOAT16_to_FLOAT
            test_cast_FLOAT_to_BFLOAT16 test_castlike_*DOUBLE*
            test_castlike_*INT4_to_*INT8_expanded test_castlike_BFLOAT16_to_FLOAT*
            test_castlike_FLOAT_to_BFLOAT16* test_celu_bfloat16* test_compress_bfloat16
            test_convinteger_* test_cumprod_1d test_cumprod_1d_exclusive test_cumprod_1d_reverse*
            test_cumprod_2d_[an]* test_cumsum_1d test_cumsum_1d_exclusive test_cumsum_1d_reverse*
            test_cumsum_2d_[an]* test_dynamicquantizelinear*_expanded test_einsum_*
            test_eyelike_with_dtype test_flexattention_double* test_max_float64 test_min_float64
            test_mod_*float64* test_onehot_with_bfloat16_values test_qlinearconv
            test_qlinearmatmul_* test_range_bfloat16* test_reduce_log_sum_exp_[dkn]*
            test_reduce_log_sum_exp_empty_set_expanded test_reversesequence_bfloat16
            test_unique_bfloat16*""",
            "whole numbers lose no bits where the device has 32 of them": """
            test_bitshift_left_int8_overflow test_bitshift_left_int8_shift_ge_width
            test_bitwise_not_[34]d""",
        }
    ),
    "Wgpu source": _named(
        {
            "the source names an element type that shaders lack": """
            test_cast*_FLOAT*_to_*INT4* test_castlike_*INT4_to_*INT8
            test_gathernd_example_int32_batch_dim1 test_hardmax_*
            test_maxpool_with_argmax_2d_precomputed_pads test_pow_types_int32_float32
            test_pow_types_int64_* test_quantizelinear_blocked_symmetric""",
        }
    ),
}


@cache
def node_cases() -> dict[str, Any]:
    """The cases of single nodes by name; making them takes some seconds."""
    return {case.name: case for case in load_model_tests(kind="node")}


def expected_failure(name: str) -> str | None:
    """Why a case cannot pass on any device, or None."""
    return _reason(name, EXPECTED)


def needs_host(name: str, device: Backend, way: Way = "load") -> str | None:
    """Why a case runs on ``WithHost(device)``, or None for one that the device runs alone."""
    kind = type(device).__name__
    both = kind, f"{kind} {way.removeprefix('frozen ')}"
    return next((why for each in both if (why := _reason(name, BESIDE_HOST.get(each, {})))), None)


def _reason(name: str, known: dict[str, str]) -> str | None:
    return next((why for pattern, why in known.items() if fnmatchcase(name, pattern)), None)


def run_case(case: Any, device: Backend, way: Way = "load") -> None:
    """Load the model of a case and compare what it gives.

    Args:
        case: one of ``node_cases``.
        device: where it shall run.
        way: ``"frozen"`` puts all inputs but the first into the file, so that they become
            parameters or literals; ``"source"`` writes a package and runs that; ``"frozen source"``
            does both, so that layers and formulas are found. The results are the same.

    Raises:
        AssertionError: when number, shape, type or values differ.
        PhloxError: when the model cannot be loaded or run.
    """
    for given, wanted in case.data_sets:
        frozen = way.startswith("frozen")
        file, rest = _frozen(case.model, given) if frozen else (case.model, given)
        read = _written if way.endswith("source") else load
        model = read(file.SerializeToString(), device=device)
        found = model(*(on_device(v, device) for v in rest))
        results: Sequence[Any] = found if isinstance(found, tuple) else (found,)
        assert len(results) == len(wanted), f"{len(results)} outputs, expected {len(wanted)}"
        for result, reference in zip(results, wanted, strict=True):
            compare(result, reference, case.rtol, case.atol)


def _written(file: bytes, *, device: Backend) -> Any:
    """The model of the package that is written for a file."""
    with tempfile.TemporaryDirectory() as folder:
        write(file, folder, verify=False)
        for each in Path(folder).glob("*.py"):
            foreign = _FOREIGN.search(each.read_text())
            assert foreign is None, f"{each.name} needs more than phlox: {foreign}"
        module = imported(Path(folder))
        try:
            return module.load(device)
        finally:
            forgotten(module)


def wrong_of(names: Iterable[str], device: Backend, way: Way = "load") -> list[str]:
    """What fails and should not, and what passes and is expected to fail, or to need the host."""
    wrong = []
    for name in names:
        why, beside = expected_failure(name), needs_host(name, device, way)
        target = device if why or not beside else WithHost(device)
        said = _failure(name, target, way)
        if why is None and said is not None:
            wrong.append(f"{name}: {said}")
        stale = _failure(name, device, way) if beside else said
        if (why or beside) and stale is None and not way.startswith("frozen"):
            wrong.append(f"{name} passes alone, but is expected not to: {why or beside}")
    return wrong


def _failure(name: str, device: Backend, way: Way) -> str | None:
    """What a case fails with, in few words."""
    try:
        with use_device(device):
            run_case(node_cases()[name], device, way)
    except Exception as error:
        return f"{type(error).__name__}: {' '.join(str(error).split())[:200]}"
    return None


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
    found = onnx.numpy_helper.to_array(value) if isinstance(value, onnx.TensorProto) else value
    return np.asarray(found)


def _in_bytes(array: Any) -> Any:
    """What has four bits in eight, as phlox holds it."""
    return array.astype(array.dtype.name[:-1] + "8") if array.dtype.name[-4:] == "int4" else array


def on_device(value: Any, device: Backend) -> Any:
    """A value of a case as a tensor, a list of them, or None."""
    if value is None:
        return None
    if isinstance(value, list):
        return [on_device(item, device) for item in value]
    return asarray(_in_bytes(_array(value)), device=device)


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
    array, reference = found.numpy(), _as_found(_in_bytes(_array(wanted)), found)
    assert array.shape == reference.shape, f"shape {array.shape}, expected {reference.shape}"
    assert array.dtype == reference.dtype, f"type {array.dtype}, expected {reference.dtype}"
    if array.dtype.kind not in "biufO":  # bfloat16, for which NumPy has no comparison
        array, reference = array.astype(np.float32), reference.astype(np.float32)
    np.testing.assert_allclose(array, reference, rtol=rtol, atol=atol)


def _as_found(wanted: Any, found: Tensor[Any]) -> Any:
    """The reference in the default integers of a device, where they stand for what it lacks."""
    device = found.device
    computing = device.computing if isinstance(device, WithHost) else device
    lacks = wanted.dtype.name not in {d.name for d in computing.dtypes}
    if wanted.dtype.kind in "iu" and lacks and found.dtype is device.default_int:
        own = wanted.astype(found.dtype.numpy)
        return own if (own == wanted).all() else wanted
    return wanted
