"""Graphs that people ship: beside ONNX Runtime, as source, and how that source reads."""

from __future__ import annotations

import ast
from collections import Counter
from pathlib import Path
from typing import Any, Final

import numpy as np
import onnx
import pytest

import phlox as px
from phlox import Cpu
from phlox_onnx._difference import difference
from tests.onnx.exported import onnxruntime
from tests.onnx.shipped import GRAPHS, floats, shipped

pytestmark = [pytest.mark.long, pytest.mark.timeout(900)]

CLOSE: Final = 1e-4
_LOGS: Final = "logarithms of frequencies that are nearly 0, by another Fourier transform"
_SIGMOIDS: Final = "sigmoids of deep sums, where float32 has five digits left"
_TINY: Final = "an output below a thousandth, which is measured by that"
# What is further apart than CLOSE, and why; what is a tenth of it apart is stale.
APART: Final = {
    "asr-gigaam_v2": (_LOGS, 1e-3),
    "asr-gigaam_v3": (_LOGS, 1e-3),
    "asr-whisper128": (_LOGS, 1e-2),
    "ocr-find": (_TINY, 1e-3),
    "u2net": (_SIGMOIDS, 1e-3),
    "u2netp": (_SIGMOIDS, 1e-3),
    "yunet": (_TINY, 1e-3),
}
# Functions of more than sixty lines: values cross everywhere, so that nothing is cut.
LONG: Final = {
    "nakdimon": "four loops, whose bodies stand in the function",
    "pitch": "a pyramid of shifted copies, all of which meet in one product",
    "pulsevad-int8": "each value is rounded by a call of five lines",
    "silero-15": "branches that stand in the function",
    "silero-half": "branches that stand in the function",
    "silero-if": "branches that stand in the function",
    "tashkeel": "three recurrent layers by hand, whose states all cross",
}
# Layers of ops, and how many of these have to become some.
LAYERS: Final = {
    "BatchNormalization": ("BatchNorm", 0.95),
    "Conv": ("Conv1d Conv2d", 0.95),
    "ConvTranspose": ("ConvTranspose2d", 0.95),
    "GRU": ("Gru", 0.35),  # those of tashkeel have lengths of sequences, which layers have not
    "Gemm": ("Linear", 0.95),
    "LSTM": ("Lstm", 0.35),  # four exports of silero make the weights of theirs in branches
    "LayerNormalization": ("LayerNorm", 0.95),
}
# Sizes that the file has as numbers, where training takes smaller ones.
WHOLE: Final = {"u2netp": (floats(1, 3, 320, 320),)}


def inputs(name: str) -> list[Any]:
    rng = np.random.default_rng(0)
    return [draw(rng) for draw in WHOLE.get(name, GRAPHS[name].inputs)]


@pytest.mark.parametrize("name", GRAPHS)
def test_a_graph_gives_what_onnx_runtime_gives(name: str) -> None:
    given = inputs(name)
    wanted = onnxruntime(shipped(name), *given, rewritten=False)
    model = px.onnx.load(shipped(name), device=Cpu())
    found = model(*(px.asarray(value, device=Cpu()) for value in given))
    arrays = [each.numpy() for each in (found if isinstance(found, tuple) else (found,))]
    off = max(difference(a, b) for a, b in zip(arrays, wanted, strict=True))
    _, most = APART.get(name, ("", CLOSE))
    assert off <= most
    assert name not in APART or off > CLOSE / 10, "as close as others: no deviation any more"
    for one, two in zip(arrays, wanted, strict=True):
        assert one.argmax() == two.argmax()


@pytest.mark.parametrize("name", GRAPHS)
def test_the_source_of_a_graph_does_what_the_graph_does(name: str, tmp_path: Path) -> None:
    feeds = dict(zip(px.onnx.load(shipped(name)).inputs, inputs(name), strict=True))
    made = px.onnx.write(shipped(name), tmp_path / "made", verify=feeds)
    sizes = [
        (node.end_lineno or 0) - node.lineno + 1
        for node in ast.walk(ast.parse(made.model))
        if isinstance(node, ast.FunctionDef)
    ]
    assert (max(sizes) > 60) == (name in LONG), f"{max(sizes)} lines"


@pytest.mark.parametrize("name", ["minilm", "ocr-find", "u2netp"])
def test_a_source_is_a_third_as_long_as_its_file_and_always_the_same(name: str) -> None:
    text = px.onnx.source(shipped(name))
    lines = sum(bool(line.strip()) for line in text.splitlines())
    assert lines <= 0.36 * len(onnx.load(str(shipped(name))).graph.node)
    assert text == px.onnx.source(shipped(name))


def test_nodes_with_weights_become_layers(tmp_path: Path) -> None:
    nodes: Counter[str] = Counter()
    layers: Counter[str] = Counter()
    for name in GRAPHS:
        made = px.onnx.write(shipped(name), tmp_path / name, verify=False)
        nodes.update(made.report["ops"])
        layers.update(made.report["layers"])
    for ops, (kind, least) in LAYERS.items():
        made_of = sum(layers[name] for name in kind.split())
        share = made_of / sum(nodes[op] for op in ops.split())
        assert share >= least, f"{ops}: {share:.2f}"
