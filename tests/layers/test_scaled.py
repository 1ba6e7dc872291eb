"""Folders whose weights are few bits beside scales, as ``quantization_config`` describes them."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import ml_dtypes
import numpy as np
import pytest
from safetensors.numpy import save_file

import phlox as px
from phlox.nn import models
from tests.layers.causal_rows import ROWS
from tests.layers.test_causal import DEVICE, arrays, decoder

NAME = "Qwen3"
E2M1 = np.array([0, 0.5, 1, 1.5, 2, 3, 4, 6, 0, -0.5, -1, -1.5, -2, -3, -4, -6], "f")


def packed(said: dict[str, Any]) -> dict[str, Any]:
    groups = {"group_0": {"targets": ["Linear"], "weights": said.pop("weights")}}
    return {"quant_method": "compressed-tensors", "config_groups": groups, **said}


def by_blocks(weight: Any, size: tuple[int, int]) -> Any:
    """The largest of each block, (rows / size, columns / size), the last ones cut."""
    high, wide = (-(-a // b) for a, b in zip(weight.shape, size, strict=True))
    rows = [slice(i * size[0], (i + 1) * size[0]) for i in range(high)]
    columns = [slice(i * size[1], (i + 1) * size[1]) for i in range(wide)]
    return np.array([[np.abs(weight[r, c]).max() for c in columns] for r in rows], "f")


def spread(scale: Any, shape: tuple[int, ...], size: tuple[int, int]) -> Any:
    return np.repeat(np.repeat(scale, size[0], 0), size[1], 1)[: shape[0], : shape[1]]


def floats(weight: Any) -> tuple[dict[str, Any], Any]:
    """8-bit floats beside scales of blocks of 20 and 12, as folders of DeepSeek and Qwen are."""
    scale = by_blocks(weight, (20, 12)) / 448
    wide = spread(scale, weight.shape, (20, 12))
    few = (weight / wide).astype(ml_dtypes.float8_e4m3fn)
    return {"weight": few, "weight_scale_inv": scale}, few.astype("f") * wide


def rows(weight: Any) -> tuple[dict[str, Any], Any]:
    """The same with a scale for each output."""
    scale = np.abs(weight).max(axis=1, keepdims=True) / 448
    few = (weight / scale).astype(ml_dtypes.float8_e4m3fn)
    return {"weight": few, "weight_scale": scale}, few.astype("f") * scale


def integers(weight: Any) -> tuple[dict[str, Any], Any]:
    """Integers of 4 bits, eight in a word, a scale for 16."""
    scale = by_blocks(weight, (1, 16)) / 7
    few = np.rint(weight / np.repeat(scale, 16, 1)).astype(np.int64)
    words = np.zeros((len(weight), weight.shape[1] // 8), np.int64)
    for i in range(8):
        words |= (few[:, i::8] + 8) << (4 * i)
    stored = {"weight_packed": words.astype(np.uint32).view(np.int32), "weight_scale": scale}
    stored["weight_shape"] = np.array(weight.shape)
    return stored, (few * np.repeat(scale, 16, 1)).astype("f")


def microscaled(weight: Any) -> tuple[dict[str, Any], Any]:
    """MXFP4: numbers of 4 bits, two in a byte, a power of 2 for 16."""
    powers = np.floor(np.log2(by_blocks(weight, (1, 16)))).astype(int) - 2
    wide = np.repeat(2.0**powers, 16, 1)
    few = np.abs((weight / wide)[..., None] - E2M1).argmin(axis=-1).astype(np.uint8)
    stored = {"weight_packed": few[:, ::2] | few[:, 1::2] << 4}
    return {**stored, "weight_scale": (powers + 127).astype(np.uint8)}, E2M1[few] * wide


WAYS: dict[str, tuple[Any, dict[str, Any]]] = {
    "fp8": (floats, {"quant_method": "fp8", "weight_block_size": [20, 12]}),
    "float-quantized": (rows, packed({"format": "float-quantized", "weights": {"num_bits": 8}})),
    "mxfp4": (microscaled, packed({"format": "mxfp4-pack-quantized", "weights": {"num_bits": 4}})),
    "pack-quantized": (integers, packed({"format": "pack-quantized", "weights": {"num_bits": 4}})),
}


def stored(way: str, folder: Path) -> dict[str, Any]:
    """A folder with maps in few bits, and the weights that they stand for."""
    make, said = WAYS[way]
    held, meant = dict[str, Any](), dict[str, Any]()
    for name, weight in arrays(decoder(NAME)).items():
        held[name] = meant[name] = weight
        if "proj" in name:
            parts, meant[name] = make(weight)
            del held[name]
            held |= {name.replace("weight", part): each for part, each in parts.items()}
    held["model.layers.0.self_attn.q_proj.input_scale"] = np.ones(1, "f")
    save_file({k: np.ascontiguousarray(v) for k, v in held.items()}, folder / "model.safetensors")
    (folder / "config.json").write_text(json.dumps({**ROWS[NAME], "quantization_config": said}))
    return meant


@pytest.mark.parametrize("way", WAYS)
def test_weights_in_few_bits_are_widened(way: str, tmp_path: Path) -> None:
    meant = stored(way, tmp_path)
    report = models.load_report(tmp_path)
    assert report.complete
    assert len(report.applied) == len(meant)
    loaded: Any = models.load(tmp_path, DEVICE)
    for name, found in arrays(loaded).items():
        assert np.abs(found - meant[name]).max() <= 1e-6 * np.abs(meant[name]).max(), name


@pytest.mark.parametrize(
    ("said", "message"),
    [
        ({"quant_method": "awq"}, "quant_method is not built: got 'awq', expected compressed-te"),
        (packed({"format": "nvfp4-pack-quantized", "weights": {}}), "format is not built"),
        (
            packed({"format": "pack-quantized", "weights": {"num_bits": 4, "symmetric": False}}),
            "symmetric is not built: got False",
        ),
        (
            packed({"format": "pack-quantized", "weights": {"num_bits": 4, "actorder": "group"}}),
            "actorder is not built: got 'group'",
        ),
        (packed({"format": "pack-quantized", "weights": {"num_bits": 3}}), "num_bits is not built"),
        ({"quant_method": "fp8", "weight_block_size": [16, 16]}, "scales of .* do not fit"),
    ],
)
def test_ways_that_are_not_built_are_refused(
    said: dict[str, Any], message: str, tmp_path: Path
) -> None:
    stored("fp8", tmp_path)
    (tmp_path / "config.json").write_text(json.dumps({**ROWS[NAME], "quantization_config": said}))
    with pytest.raises(px.RecordError, match=message):
        models.load(tmp_path, DEVICE)
