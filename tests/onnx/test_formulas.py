"""Layers and formulas as source give what the file gives, whatever the ranks and bounds."""

from __future__ import annotations

import ast
import itertools
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from onnx import numpy_helper, parser

import phlox as px
from phlox import Cpu
from phlox_onnx._graph import OWN
from phlox_onnx.source._verify import imported
from phlox_onnx.source.graph._patterns import PATTERNS
from phlox_onnx.source.text._wrap import wrapped
from phlox_onnx.source.trace._layers import LAYERS
from phlox_onnx.table import TABLE

HEAD = '<ir_version: 9, opset_import: ["" : 23, "com.microsoft" : 1]> g '
TYPES = {"float": np.float32, "float16": np.float16, "double": np.float64}


def f(*shape: int, dtype: Any = np.float32) -> Any:
    return np.random.default_rng(sum(shape)).normal(size=shape).astype(dtype)


def file(text: str, constants: dict[str, Any]) -> bytes:
    proto = parser.parse_model(HEAD + text)
    for name, value in constants.items():
        proto.graph.initializer.append(numpy_helper.from_array(np.asarray(value), name))
    return bytes(proto.SerializeToString())


def same(data: bytes, folder: Path, *inputs: Any, atol: float = 1e-5) -> Any:
    """The package of a file gives what the file gives; return what was written."""
    made = px.onnx.write(data, folder, verify=False)
    given = [px.asarray(x, device=Cpu()) for x in inputs]
    wanted = px.onnx.load(data, device=Cpu())(*given)
    found = imported(folder).load(Cpu())(*given)
    assert found.shape == wanted.shape
    assert found.dtype is wanted.dtype
    np.testing.assert_allclose(found.numpy(), wanted.numpy(), rtol=atol, atol=atol)
    return made


def net(
    body: str, shape: tuple[int, ...], constants: dict[str, Any], dtype: str = "float"
) -> bytes:
    sizes = ", ".join(map(str, shape))
    out = ", ".join(f"o{i}" for i in range(len(shape)))
    return file(f"({dtype}[{sizes}] x) => ({dtype}[{out}] y) {{ {body} }}", constants)


@pytest.mark.parametrize("bias", [(), (1,), (3,), (1, 1), (1, 3), (3, 1), (3, 3)])
@pytest.mark.parametrize("turned", [0, 1])
def test_a_gemm_is_a_layer_only_where_its_bias_is_a_row(
    bias: tuple[int, ...], turned: int, tmp_path: Path
) -> None:
    constants = {"w": f(3, 4) if turned else f(4, 3), "b": f(*bias)}
    data = net(f"y = Gemm<transB = {turned}>(x, w, b)", (3, 4), constants)
    made = same(data, tmp_path, f(3, 4))
    assert (made.report["layers"].get("Linear") == 1) == (bias in ((3,), (1, 3)))


@pytest.mark.parametrize("columns", [1, 3])
@pytest.mark.parametrize("dtype", TYPES)
@pytest.mark.parametrize(
    "body", ["y = Gemm(x, w, b)", "y = MatMul(x, w)", "a = MatMul(x, w) y = Add(a, b)"]
)
def test_products_are_written_in_every_type_of_floats(
    body: str, dtype: str, columns: int, tmp_path: Path
) -> None:
    kind = TYPES[dtype]
    constants = {"w": f(4, columns, dtype=kind), "b": f(columns, dtype=kind)}
    atol = 2e-3 if dtype == "float16" else 1e-6
    made = same(net(body, (2, 4), constants, dtype), tmp_path, f(2, 4, dtype=kind), atol=atol)
    assert all(role == "weight" for _, role in made.params.values())
    assert columns == 1 or made.report["called"] == {}


SLOPES = [((2, 2, 3), (2, 1, 1)), ((2, 2, 3, 4), (2, 1, 1)), ((2, 5, 3), (5, 1)), ((2, 3), (3,))]


@pytest.mark.parametrize(("shape", "slope"), SLOPES)
def test_a_slope_lies_where_the_file_has_it(
    shape: tuple[int, ...], slope: tuple[int, ...], tmp_path: Path
) -> None:
    made = same(net("y = PRelu(x, s)", shape, {"s": f(*slope)}), tmp_path, f(*shape))
    assert (made.report["layers"] == {"PRelu": 1}) == (len(shape) == 4)


LAYER = """last = Constant<value_ints = [-1]>() two = Constant<value_float = 2.0>()
    tiny = Constant<value_float = 0.001>()"""
NORM = f"""{LAYER} m = ReduceMean(x, last) o = Sub(x, m) q = Pow(o, two)
    v = ReduceMean(q, last) ve = Add(v, tiny) r = Sqrt(ve) n = Div(o, r) s = Mul(n, w)
    y = Add(s, b)"""
RMS = f"""{LAYER} q = Pow(x, two) v = ReduceMean(q, last) ve = Add(v, tiny) r = Sqrt(ve)
    n = Div(x, r) y = Mul(n, w)"""
NORMS = [NORM, RMS, "y = LayerNormalization(x, w, b)", "y = RMSNormalization(x, w)"]


@pytest.mark.parametrize("body", NORMS, ids=["norm", "rms", "layer", "layer_rms"])
@pytest.mark.parametrize("rank", [1, 3])
@pytest.mark.parametrize("sizes", [(4, 4, 4), (1, 4, 4), (4, 1, 4), (4, 4, 1)])
def test_norms_broadcast_as_in_the_file(
    body: str, rank: int, sizes: tuple[int, int, int], tmp_path: Path
) -> None:
    last, weight, bias = sizes
    shape = (2, 3, 2, last)[-rank:]
    constants = {"w": f(weight), "b": f(bias)}
    made = same(net(body, shape, constants), tmp_path, f(*shape))
    if sizes == (4, 4, 4):
        assert set(made.report["layers"]) & {"LayerNorm", "RmsNorm"}


HALVES = {
    "gelu": """s = Constant<value_float = 1.41421354>() ga = Div(x, s) gb = Erf(ga)
        gc = Add(gb, one) gd = Mul(x, gc) y = Mul(gd, half)""",
    "hard_swish": "a = Add(x, three) b = Clip(a, zero, six) c = Mul(x, b) y = Div(c, six6)",
}
NUMBERS = {"one": 1.0, "half": 0.5, "three": 3.0, "six6": 6.0}


@pytest.mark.parametrize("name", HALVES)
@pytest.mark.parametrize("shape", [(), (4,), (2, 4)])
@pytest.mark.parametrize("number", [(), (1,), (1, 1)])
def test_numbers_of_formulas_may_add_axes(
    name: str, shape: tuple[int, ...], number: tuple[int, ...], tmp_path: Path
) -> None:
    constants: dict[str, Any] = {k: np.full(number, v, np.float32) for k, v in NUMBERS.items()}
    constants |= {"zero": np.float32(0), "six": np.float32(6)}
    same(net(HALVES[name], shape, constants), tmp_path, f(*shape))


FAR = (1 << 63) - 1
BOUNDS = (-FAR, -9, -4, -3, -1, 0, 1, 3, 4, 9, FAR)


@pytest.mark.parametrize("step", [-2, -1, 1, 3])
def test_slices_end_where_those_of_the_file_end(step: int, tmp_path: Path) -> None:
    x = f(4)
    constants: dict[str, Any] = {"step": [step]}
    lines, outs = [], []
    for i, (start, end) in enumerate(itertools.product(BOUNDS, BOUNDS)):
        constants |= {f"a{i}": np.array([start]), f"b{i}": np.array([end])}
        lines.append(f"z{i} = Slice(x, a{i}, b{i}, axis, step)")
        outs.append(f"float[n{i}] z{i}")
    constants |= {"axis": [0]}
    data = file(f"(float[k] x) => ({', '.join(outs)}) {{ {' '.join(lines)} }}", constants)
    px.onnx.write(data, tmp_path)
    found = imported(tmp_path).load(Cpu())(px.asarray(x, device=Cpu()))
    for each, (start, end) in zip(found, itertools.product(BOUNDS, BOUNDS), strict=True):
        # ONNX: negative bounds count from the end, then all are clamped to the axis.
        a, b = (n + 4 if n < 0 else n for n in (start, end))
        low, high = (0, 4) if step > 0 else (-1, 3)
        places = range(min(max(a, 0), high), min(max(b, low), 4), step)
        np.testing.assert_array_equal(each.numpy(), x[list(places)], err_msg=f"{start} {end}")


@pytest.mark.parametrize("where", ["half_pixel", "pytorch_half_pixel"])
def test_a_picture_of_one_row_is_resized_as_in_the_file(where: str, tmp_path: Path) -> None:
    words = f'mode = "linear", coordinate_transformation_mode = "{where}"'
    body = f"y = Resize<{words}>(x, , , sizes)"
    data = net(body, (1, 1, 4, 4), {"sizes": np.array([1, 1, 3, 1])})
    same(data, tmp_path, f(1, 1, 4, 4))


TIED = {
    "embedding and head": ("e = Gather(w, i) y = Gemm<transB = 1>(x, w, b)", "w b"),
    "embedding and folded": (
        "e = Gather(w, i) t = Transpose<perm = [1, 0]>(w) y = MatMul(x, t)",
        "w",
    ),
    "head twice": (
        "e1 = Gemm<transB = 1>(x, w, b) e2 = Gemm<transB = 1>(e1, v) "
        "y = Gemm<transB = 1>(e2, w) e = Identity(e2)",
        "w b v",
    ),
    "with and without bias": ("e = MatMul(x, v) e1 = MatMul(x, v) y = Add(e1, c)", "v c"),
    "scale and norm": ("e = Mul(x, c) y = LayerNormalization(x, c, c1)", "c c1"),
    "norm and scale": ("y = LayerNormalization(x, c, c1) e = Mul(y, c)", "c c1"),
}


@pytest.mark.parametrize("name", TIED)
def test_what_is_one_weight_in_the_file_is_one_in_the_package(name: str, tmp_path: Path) -> None:
    body, words = TIED[name]
    made = {"w": f(5, 4), "v": f(4, 5)[:4], "b": f(5), "c": f(4), "c1": f(4) + 1}
    made["v"] = f(4, 4) if "without" in name else f(4, 5)
    constants = {k: made[k] for k in words.split()}
    text = f"(int64[2] i, float[n, 4] x) => (float[n, k] y, float[m, l] e) {{ {body} }}"
    data = file(text, constants)
    package = px.onnx.write(data, tmp_path)
    sizes = {k: v.size for k, v in constants.items()}
    loaded = px.onnx.load(data, device=Cpu())
    assert sum(p.value.size for p in loaded.params().values()) == sum(sizes.values())
    assert sum(a.size for a, _ in package.params.values()) == sum(sizes.values())
    assert all(role == "weight" for _, role in package.params.values())
    feeds = {"i": np.array([0, 3]), "x": f(3, 4)}
    assert max(px.onnx.verify(data, tmp_path, feeds, device=Cpu()).values()) < 1e-6


def test_convolutions_of_one_weight_share_it(tmp_path: Path) -> None:
    text = "a = Conv(x, w) b = Conv<strides = [2]>(x, w) y = Concat<axis = 2>(a, b)"
    made = same(net(text, (2, 3, 9), {"w": f(4, 3, 2)}), tmp_path, f(2, 3, 9))
    assert [a.size for a, _ in made.params.values()] == [24]


def test_what_a_pattern_makes_has_a_row() -> None:
    own = {key for key in LAYERS if key[0] == OWN}
    assert own <= set(TABLE)
    assert (OWN, "Attention") in TABLE
    assert "attention" in PATTERNS


def test_brackets_that_hold_together_stay_what_they_are_where_lines_are_cut() -> None:
    line = f"y = ({' + '.join(f'self.part_{i}.value.mean()' for i in range(6))}).astype(px.float32)"
    for indent in (4, 8, 40):
        text = "\n".join(wrapped(line, indent))
        assert ast.dump(ast.parse(text)) == ast.dump(ast.parse(line))
    one = f"y = ({line[4:]},)"
    assert ast.dump(ast.parse("\n".join(wrapped(one, 8)))) == ast.dump(ast.parse(one))


# Keys that PyTorch's exporter turns as a stack of matrices, by their sizes.
STACK = """n = Shape(x) r = Slice(n, m2, m1) c = Slice(n, m1, end) front = Slice(n, start, m2)
    flat = Concat<axis = 0>(m1, r, c) back = Concat<axis = 0>(front, {ends})
    s = Reshape(x, flat) t = Transpose<perm = [0, 2, 1]>(s) k = Reshape(t, back)
    qs = Mul(x, half) ks = Mul(k, half) p = MatMul(qs, ks) w = Softmax<axis = -1>(p)
    nan = IsNaN(w) g = Where(nan, zero, w) y = MatMul(g, x)"""


@pytest.mark.parametrize(("ends", "found"), [("c, r", 1), ("r, c", 0)])
def test_keys_that_are_turned_as_a_stack_are_keys(ends: str, found: int, tmp_path: Path) -> None:
    constants: dict[str, Any] = {"m1": np.array([-1]), "m2": np.array([-2])}
    constants |= {"end": np.array([2**63 - 1]), "start": np.array([-(2**63)])}
    constants |= {"half": np.float32(0.5), "zero": np.float32(0)}
    made = same(net(STACK.format(ends=ends), (2, 3, 4, 4), constants), tmp_path, f(2, 3, 4, 4))
    assert made.report["recognised"].get("attention", 0) == found
    assert ("px.attention(" in made.model) == bool(found)


@pytest.mark.parametrize("first", [[0], [1], [0, 2], [1, 2]])
@pytest.mark.parametrize("then", [[0], [2], [0, 1], [1, 4]])
def test_axes_in_two_steps_are_the_same_in_one(
    first: list[int], then: list[int], tmp_path: Path
) -> None:
    constants = {"a": np.array(first), "b": np.array(then)}
    text = "(float[n, 3] x) => (float[o, p, q] y) { s = Unsqueeze(x, a) y = Unsqueeze(s, b) }"
    made = same(file(text, constants), tmp_path, f(2, 3))
    assert made.model.count("expand_dims") == 1


def test_an_end_that_jax_writes_for_the_last_element_is_none(tmp_path: Path) -> None:
    constants = {"start": np.zeros(1, np.int64), "end": np.array([10**9]), "axis": np.array([1])}
    text = "(float[n, 3] x) => (float[n, 3] y) { s = Slice(x, start, end, axis) y = Relu(s) }"
    assert "return x.relu()" in same(file(text, constants), tmp_path, f(2, 3)).model
