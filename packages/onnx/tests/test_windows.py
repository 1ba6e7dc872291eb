"""Windows that are wide, dilated or padded far: in time of their axes, not of their places."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest
from onnx import parser

import phlox_tensor as px
from phlox_onnx import OnnxError, load
from phlox_onnx.table import window


def model(body: str) -> Any:
    head = '<ir_version: 9, opset_import: ["" : 22]> g (float[1, 1, h, w] x) => (float[?] y)'
    return load(parser.parse_model(f"{head} {{ {body} }}").SerializeToString())


def windows(x: Any, kernel: tuple[int, int], pads: int, fill: float) -> Any:
    padded = np.pad(x, [(0, 0), (0, 0), (pads, pads), (pads, pads)], constant_values=fill)
    return np.lib.stride_tricks.sliding_window_view(padded, kernel, axis=(2, 3))


X = np.random.default_rng(0).normal(size=(1, 1, 5, 7)).astype(np.float32)
POOLS: dict[str, tuple[str, Any]] = {
    "AveragePool": ("count_include_pad = 1", lambda w: w.mean((-2, -1))),
    "LpPool": ("p = 2", lambda w: np.sqrt(np.square(w).sum((-2, -1)))),
    "MaxPool": ("ceil_mode = 0", lambda w: w.max((-2, -1))),
}


@pytest.mark.parametrize("op", POOLS)
def test_paddings_may_be_wider_than_half_a_window(op: str) -> None:
    word, wanted = POOLS[op]
    made = model(f"y = {op}<kernel_shape = [3, 2], pads = [2, 2, 2, 2], {word}>(x)")
    fill = -np.inf if op == "MaxPool" else 0.0
    found = made(X).numpy()
    np.testing.assert_allclose(found, wanted(windows(X, (3, 2), 2, fill)), rtol=2e-6, atol=2e-6)


@pytest.mark.parametrize("op", POOLS)
def test_a_window_costs_a_slice_for_each_place_of_an_axis(
    op: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    taken = 0

    def counted(how: Any, parts: Any) -> Any:
        nonlocal taken
        every = list(parts)
        taken += len(every)
        out = every[0]
        for each in every[1:]:
            out = how(out, each)
        return out

    monkeypatch.setattr(window, "reduce", counted)
    made = model(f"y = {op}<kernel_shape = [40, 30], pads = [39, 29, 39, 29]>(x)")
    assert made(X).shape == (1, 1, 44, 36)
    assert 0 < taken <= 4 * (40 + 30)


def test_windows_that_nobody_slides_are_refused() -> None:
    far = ", ".join(["99999"] * 4)
    made = model(f"y = LpPool<kernel_shape = [99999, 2], pads = [{far}]>(x)")
    with pytest.raises(OnnxError, match="is too large"):
        made(X)
    columns = """z = Constant<value_ints = [9, 9]>() k = Constant<value_ints = [300, 300]>()
        y = Col2Im(x, z, k)"""
    with pytest.raises(px.PhloxError, match="a window is too large"):
        model(columns)(np.ones((1, 90000, 1, 1), np.float32).reshape(1, 1, 90000, 1))
