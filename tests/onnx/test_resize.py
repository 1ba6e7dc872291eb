"""Resize with drawn settings beside the reference evaluator of the onnx wheel."""

from __future__ import annotations

import os
from typing import Any, Final

import numpy as np
import pytest
from onnx import TensorProto, helper
from onnx.reference import ReferenceEvaluator

import phlox as px
from phlox import Cpu, Numpy

# Without half_pixel_symmetric, whose places on elements the evaluator finds with an error, so that
# it reads weights and elements that do not belong together; the nodes of the wheel have it.
COORDINATES: Final = (
    "align_corners", "asymmetric", "half_pixel", "pytorch_half_pixel", "tf_crop_and_resize",
)  # fmt: skip
ROUNDINGS: Final = ("ceil", "floor", "round_prefer_ceil", "round_prefer_floor")
# Where these count on the whole size, the evaluator counts on the fraction that a scale leads to.
CORNERS: Final = ("align_corners", "pytorch_half_pixel", "tf_crop_and_resize")
DRAWS: Final = 400 if os.environ.get("PHLOX_TEST_EXAMPLES") == "long" else 40


def drawn(rng: np.random.Generator, mode: str) -> tuple[Any, list[Any], dict[str, Any]]:
    """A tensor, the further inputs of the node, its attributes."""
    rank = int(rng.integers(1, 4))
    shape = rng.integers(1, 8, rank)
    words: dict[str, Any] = {
        "coordinate_transformation_mode": str(rng.choice(COORDINATES)),
        "mode": mode,
    }
    if mode == "nearest":
        words["coordinate_transformation_mode"] = str(rng.choice(["asymmetric", "half_pixel"]))
    crop = words["coordinate_transformation_mode"] == "tf_crop_and_resize"
    roi = rng.uniform(-0.3, 1.3, 2 * rank).astype(np.float32) if crop else None
    scales: Any = np.maximum(rng.uniform(0.3, 2.5, rank), 1.01 / shape).astype(np.float32)
    sizes = None
    # Nearest of exact quotients is a matter of rounding there.
    corners = words["coordinate_transformation_mode"] in CORNERS
    if mode != "nearest" and (corners or rng.random() < 0.5):
        scales, sizes = None, rng.integers(1 + corners, 12, rank)
        policies = ["stretch", "not_larger", "not_smaller"][: 1 if corners else 3]
        words["keep_aspect_ratio_policy"] = str(rng.choice(policies))
    if mode == "nearest":
        words["nearest_mode"] = str(rng.choice(ROUNDINGS))
    else:
        # Ratios kept put whole filters outside, where nothing says what is read.
        inside = words.get("keep_aspect_ratio_policy", "stretch") == "stretch" and not crop
        words["exclude_outside"] = int(inside and rng.integers(2))
        words["antialias"] = int(not crop and rng.integers(2))
    if mode == "cubic":
        words["cubic_coeff_a"] = float(rng.choice([-0.75, -0.5]))
    if crop:
        words["extrapolation_value"] = 2.5
    return rng.standard_normal(shape), [roi, scales, sizes], words


def model(inputs: list[Any], words: dict[str, Any]) -> Any:
    named = {n: a for n, a in zip(("roi", "scales", "sizes"), inputs, strict=True) if a is not None}
    listed = ["x", *(n if n in named else "" for n in ("roi", "scales", "sizes"))]
    node = helper.make_node("Resize", listed, ["y"], **words)
    known = [
        helper.make_tensor(
            n, helper.np_dtype_to_tensor_dtype(a.dtype), a.shape, a.reshape(-1).tolist()
        )
        for n, a in named.items()
    ]
    x = helper.make_tensor_value_info("x", TensorProto.DOUBLE, None)
    y = helper.make_tensor_value_info("y", TensorProto.DOUBLE, None)
    graph = helper.make_graph([node], "resize", [x], [y], known)
    return helper.make_model(graph, opset_imports=[helper.make_opsetid("", 19)], ir_version=9)


@pytest.mark.filterwarnings("ignore")
@pytest.mark.parametrize("mode", ["cubic", "linear", "nearest"])
@pytest.mark.parametrize("device", [Cpu(), Numpy()], ids=["cpu", "numpy"])
def test_drawn_settings_give_the_values_of_the_reference(device: Any, mode: str) -> None:
    rng = np.random.default_rng(7)
    for _ in range(DRAWS):
        x, inputs, words = drawn(rng, mode)
        made = model(inputs, words)
        wanted: Any = next(iter(ReferenceEvaluator(made).run(None, {"x": x})))
        found = px.onnx.load(made.SerializeToString(), device=device)(px.asarray(x, device=device))
        message = f"{x.shape} {inputs} {words}"
        assert found.shape == wanted.shape, message
        np.testing.assert_allclose(found.numpy(), wanted, rtol=1e-5, atol=1e-5, err_msg=message)


def test_sizes_follow_from_scales_in_float32() -> None:
    """As in ONNX Runtime, whose values these are."""
    words = {"coordinate_transformation_mode": "asymmetric", "nearest_mode": "floor"}
    scales = np.array([0.7, 0.6], np.float32)
    made = model([None, scales, None], {"mode": "nearest", **words})
    x = np.arange(100.0).reshape(10, 10)
    found = px.onnx.load(made.SerializeToString())(px.asarray(x)).numpy()
    rows, columns = [0, 1, 2, 4, 5, 7, 8], [0, 1, 3, 5, 6, 8]
    np.testing.assert_array_equal(found, x[np.ix_(rows, columns)])


# What ONNX Runtime 1.32 makes of 0, 1, 2.828427, 5.196152, 8, 11.18034 times a scale.
WHOLE: Final = {
    ("align_corners", "linear", 1.7): [
        0, 0.5555556, 1.2031586, 2.2189512, 3.3545885, 4.6699905, 6.130768, 7.6884613, 9.413485,
        11.18034,
    ],
    ("align_corners", "nearest", 0.6): [0, 2.828427, 11.18034],
    ("align_corners", "cubic", 0.45): [0, 11.18034],
    ("pytorch_half_pixel", "cubic", 0.2): [0],
}  # fmt: skip


@pytest.mark.parametrize(("how", "wanted"), WHOLE.items(), ids=str)
@pytest.mark.parametrize("device", [Cpu(), Numpy()], ids=["cpu", "numpy"])
def test_corners_are_those_of_the_whole_size(device: Any, how: Any, wanted: list[float]) -> None:
    where, mode, scale = how
    words = {"coordinate_transformation_mode": where, "mode": mode}
    made = model([None, np.array([scale], np.float32), None], words)
    x = px.asarray(np.arange(6.0) ** 1.5, device=device)
    found = px.onnx.load(made.SerializeToString(), device=device)(x)
    assert found.shape == (len(wanted),)
    np.testing.assert_allclose(found.numpy(), wanted, rtol=1e-5, atol=1e-6)


@pytest.mark.parametrize("dtype", [np.int64, np.uint8])
def test_whole_numbers_are_read_as_they_are(dtype: Any) -> None:
    node = helper.make_node("Resize", ["x", "", "", "s"], ["y"], nearest_mode="ceil")
    kind = helper.np_dtype_to_tensor_dtype(np.dtype(dtype))
    x, y = (helper.make_tensor_value_info(n, kind, [2, 2]) for n in "xy")
    known = helper.make_tensor("s", TensorProto.INT64, [2], [3, 2])
    graph = helper.make_graph([node], "resize", [x], [y], [known])
    opsets = [helper.make_opsetid("", 19)]
    made = helper.make_model(graph, opset_imports=opsets, ir_version=9)
    high = np.iinfo(dtype).max
    given = px.asarray(np.array([[high, high - 1], [3, high - 2]], dtype))
    found = px.onnx.load(made.SerializeToString())(given)
    assert found.tolist() == [[high, high - 1], [3, high - 2], [3, high - 2]]
