"""What a file would make too large is refused with its size, before there is any of it."""

from __future__ import annotations

import pickle
import subprocess
import sys
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from onnx import numpy_helper, parser

from phlox_onnx import Limits, OnnxError, load

BILLIONS = 3_000_000_000
X = np.ones((1, 1, 4, 4), np.float32)
W = np.ones((1, 1, 2, 2), np.float32)
N = np.array(BILLIONS)
CASES: dict[str, tuple[str, list[Any], str]] = {
    "constant": ("y = ConstantOfShape(n)", [N[None]], "3,000,000,000 elements"),
    "conv": ("y = Conv<pads = [0, {n}, 0, 0]>(x, w)", [X, W], "9,000,000,009 elements"),
    "expand": ("y = Expand(x, n)", [W[0, 0], np.array([BILLIONS, 1, 1])], "12,000,000,000"),
    "mel": ("y = MelWeightMatrix(n, n, n, a, b)", [N, N, N, X[0, 0, 0, 0], X[0, 0, 0, 0]], "by"),
    "one hot": ("y = OneHot(i, n, v)", [np.array([0]), N, X[0, 0, 0, :2]], "3,000,000,000"),
    "pad": ("y = Pad(x, p)", [X, np.array([0, 0, 0, BILLIONS, 0, 0, 0, 0])], "12,000,000,016"),
    "pad by edges": (
        'y = Pad<mode = "edge">(x, p)',
        [X, np.array([0, 0, 0, BILLIONS, 0, 0, 0, 0])],
        "3,000,000,004",
    ),
    "pool": ("y = MaxPool<kernel_shape = [2, 2], pads = [0, {n}, 0, 0]>(x)", [X], "9,000,000,009"),
    "random": ("y = RandomNormal<shape = [{n}]>()", [], "3,000,000,000 elements"),
    "range": ("y = Range(a, b, c)", [np.array(0), N, np.array(1)], "3,000,000,000 elements"),
    "resize": ("y = Resize(x, , , s)", [X, np.array([1, 1, 4, BILLIONS])], "3,000,000,000"),
    "small steps": (
        "y = Range(a, b, c)",
        [np.float32(0), np.float32(1), np.float32(1e-10)],
        "9,999,999,867 elements",
    ),
    "tile": ("y = Tile(x, r)", [X, np.array([1, 1, 1, BILLIONS])], "48,000,000,000 elements"),
    "transposed": ("y = ConvTranspose<strides = [1, {n}]>(x, w)", [X, W], "45,000,000,010"),
    "window": ("y = HannWindow(n)", [N], "3,000,000,000"),
}


def model(text: str, values: list[Any], **options: Any) -> Any:
    names = [n for n in text.partition("(")[2].rstrip(")").replace(" ", "").split(",") if n]
    types = {"f": "float", "i": "int64"}
    given: dict[str, Any] = dict(zip(names, values, strict=False))
    inputs = ", ".join(
        f"{types[v.dtype.kind]}[{', '.join(map(str, v.shape))}] {k}" for k, v in given.items()
    )
    head = '<ir_version: 9, opset_import: ["" : 20]> g'
    body = text.format(n=BILLIONS)
    proto = parser.parse_model(f"{head} ({inputs}) => (float[?] y) {{ {body} }}")
    return load(proto.SerializeToString(), **options), list(given.values())


@pytest.mark.parametrize("name", CASES)
@pytest.mark.timeout(20)
def test_billions_are_refused_with_their_number(name: str) -> None:
    text, values, said = CASES[name]
    net, given = model(text, values)
    with pytest.raises(OnnxError, match="too large") as error:
        net(*given)
    assert said in str(error.value)


def test_the_limit_is_the_callers_and_stays_with_the_model() -> None:
    text, values = "y = Pad(x, p)", [X, np.array([0, 0, 0, 100, 0, 0, 0, 0])]
    net, given = model(text, values)
    assert net(*given).shape == (1, 1, 4, 104)
    net, given = model(text, values, limits=Limits(elements=415))
    for each in (net.program, pickle.loads(pickle.dumps(net.program))):
        assert each.elements == 415
    with pytest.raises(OnnxError, match=r"416 elements, \(1, 1, 4, 104\), of Pad 'y'") as error:
        net(*given)
    assert "Limits(elements=" in str(error.value)
    net, given = model(text, values, limits=Limits(elements=416))
    assert net(*given).shape == (1, 1, 4, 104)


_PEAK = """
import resource, sys
import phlox_tensor, phlox_onnx
before = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss
model = phlox_onnx.load(sys.argv[1], device=phlox_tensor.Numpy())
print(resource.getrusage(resource.RUSAGE_SELF).ru_maxrss - before)
"""


@pytest.mark.timeout(600)
@pytest.mark.skipif(sys.platform != "linux", reason="the peak is counted in kilobytes on Linux")
def test_reading_takes_little_more_than_twice_the_file(tmp_path: Path) -> None:
    text = '<ir_version: 9, opset_import: ["" : 20]> g (float[1, 4096] x) => (float[1, 4096] y)'
    proto = parser.parse_model(f"{text} {{ y = MatMul(x, w) }}")
    weight = np.ones((4096, 4096), np.float32)
    proto.graph.initializer.append(numpy_helper.from_array(weight, "w"))
    path = tmp_path / "large.onnx"
    path.write_bytes(proto.SerializeToString())
    words = [sys.executable, "-c", _PEAK, str(path)]
    peak = int(subprocess.run(words, capture_output=True, text=True, check=True).stdout)
    assert peak < 2.5 * weight.nbytes / 1024
