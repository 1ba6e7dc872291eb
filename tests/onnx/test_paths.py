"""Paths of parameters: those of the file, in what `load` makes of it and in its source."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np
import onnx
import pytest

import phlox as px
from phlox import Autodiff, Cpu
from phlox_onnx._load import Paths
from phlox_onnx.run._paths import words_of
from phlox_onnx.source._verify import imported
from phlox_onnx.source.text._module_paths import ModulePaths
from phlox_onnx.source.trace._values import Field
from tests.onnx.test_source import body, f, file


@pytest.mark.parametrize(
    ("name", "words"),
    [
        ("encoder.layer.0.weight", ("encoder", "layer", "0", "weight")),
        ("/model/conv-2/W:0", ("model", "conv_2", "W_0")),
        ("0.weight", ("n_0", "weight")),
        ("a.forward.class.self", ("a", "n_forward", "n_class", "self")),
        ("inputs.px.Tensor", ("n_inputs", "n_px", "n_Tensor")),
        ("..//", ("value",)),
        ("fc.weight_DequantizeLinear_Output", ("fc", "weight")),
        ("fc.weight_Q4/unpacked/fc.weight_scales", ("fc", "weight")),
        ("ä.ö", ("value",)),
    ],
)
def test_a_name_becomes_words(name: str, words: tuple[str, ...]) -> None:
    assert words_of(name) == words


def layers(*names: str) -> list[Field]:
    return [Field("Linear", [], {}, (f"{name}.weight", "node", "linear")) for name in names]


def test_what_holds_layers_alone_is_their_home() -> None:
    fields = layers("net.0.a.x", "net.0.a.y", "net.1.a.x", "net.1.a.y", "head")
    places = ModulePaths(fields)
    assert places.homes([[0, 1], [2, 3]]) == [("net", "0"), ("net", "1")]
    assert places.homes([[0], [2]]) is None  # another layer is there, too
    assert places.homes([[0, 1], [2, 4]]) is None
    assert places.homes([[0, 1], [3, 2]]) is None  # in another order
    assert places.home([4]) is None


def test_a_path_is_given_once_and_holds_no_other() -> None:
    fields = layers("a.b", "a.b", "a.b.c", "a")
    assert ModulePaths(fields).paths == [("a", "b"), None, None, None]


def exchanged(data: bytes, folder: Path, *given: Any, paths: Paths = "file") -> Any:
    """Load a record of `load` into the source and back, with other numbers, and compare."""
    made = px.onnx.write(data, folder)
    loaded = px.onnx.load(data, device=Cpu(), paths=paths)
    roles = {path: param.role for path, param in loaded.params().items()}
    assert roles == {path: role for path, (_, role) in made.params.items()}
    changed = loaded.map(lambda path, param: param.with_value(param.value * 0.5))
    changed.save_file(folder / "half")
    model = imported(folder).load(Cpu())
    assert not np.allclose(model(*given).numpy(), changed(*given).numpy())
    model = model.load_file(folder / "half")
    np.testing.assert_allclose(model(*given).numpy(), changed(*given).numpy(), rtol=1e-5, atol=1e-6)
    model.save_file(folder / "other")
    again = loaded.load_file(folder / "other")
    np.testing.assert_array_equal(again(*given).numpy(), changed(*given).numpy())
    return made


def test_one_record_fits_both_where_products_read_their_matrix_transposed(tmp_path: Path) -> None:
    text = """(float[n, 4] x) => (float[n, 4] y) {
        a = Gemm<transB = 1>(x, w, b) r = Tanh(a) y = Gemm<transB = 1>(r, v, c) }"""
    constants = {"w": f(4, 4), "b": f(4), "v": f(4, 4) * 2, "c": f(4) * 3}
    rename = {"w": "net.0.weight", "b": "net.0.bias", "v": "net.2.weight", "c": "net.2.bias"}
    made = exchanged(file(text, constants, rename), tmp_path, px.asarray(f(3, 4)))
    assert list(made.params) == list(rename.values())
    assert "net: dict[str, nn.Linear]" in made.model
    assert 'self.net["0"](x)' in made.model


def test_weights_that_an_exporter_numbers_stand_in_their_layers(tmp_path: Path) -> None:
    text = """(float[n, 4] x) => (float[n, 4] y) {
        m = MatMul(x, w) a = Add(b, m) r = Tanh(a) y = MatMul(r, v) }"""
    rename = {"w": "onnx::MatMul_12", "b": "stem.fc.bias", "v": "onnx::MatMul_13"}
    proto = onnx.load_from_string(file(text, {"w": f(4, 4)}))
    for name, array in (("b", f(4)), ("v", f(4, 4) * 2)):
        proto.graph.initializer.append(onnx.numpy_helper.from_array(array, name))
    proto.graph.node[-1].name = "/head/fc/MatMul"
    for node in proto.graph.node:
        node.input[:] = [rename.get(name, name) for name in node.input]
    for each in proto.graph.initializer:
        each.name = rename[each.name]
    made = exchanged(proto.SerializeToString(), tmp_path, px.asarray(f(3, 4)))
    assert set(made.params) == {"stem.fc.weight", "stem.fc.bias", "head.fc.weight"}


def test_a_matrix_that_is_also_read_as_it_is_stays_so() -> None:
    text = """(float[n, 4] x) => (float[n, 4] y) {
        a = Gemm<transB = 1>(x, w) r = Tanh(a) y = MatMul(r, w) }"""
    w = f(4, 4)
    model = px.onnx.load(file(text, {"w": w}), device=Cpu())
    np.testing.assert_array_equal(model.params()["w"].value.numpy(), w)
    x = f(3, 4)
    np.testing.assert_allclose(model(x).numpy(), np.tanh(x @ w.T) @ w, rtol=1e-5, atol=1e-6)


def test_names_part_what_is_repeated(tmp_path: Path) -> None:
    lines, constants, rename = "", {}, {}
    for i in range(6):
        lines += f"m{i} = MatMul(x{i}, w{i}) x{i + 1} = Tanh(m{i})\n"
        constants[f"w{i}"], rename[f"w{i}"] = f(4, 4), f"enc.{i}.fc.weight"
    data = file(f"(float[n, 4] x0) => (float[n, 4] x6) {{ {lines} }}", constants, rename)
    made = exchanged(data, tmp_path, px.asarray(f(3, 4)))
    assert list(made.params) == list(rename.values())
    assert "Block1" not in made.model


def test_a_module_called_like_a_layer_is_a_class_of_another_name(tmp_path: Path) -> None:
    lines, constants, rename = "", {}, {}
    for i in range(3):
        lines += f"""h{i} = MatMul(x{i}, w{i}) g{i} = Tanh(h{i}) s{i} = Sigmoid(g{i})
            x{i + 1} = Add(s{i}, x{i})\n"""
        constants[f"w{i}"], rename[f"w{i}"] = f(4, 4), f"linear.{i}.fc.weight"
    data = file(f"(float[n, 4] x0) => (float[n, 4] x3) {{ {lines} }}", constants, rename)
    made = exchanged(data, tmp_path, px.asarray(f(3, 4)))
    assert "class Linear2(nn.Module)" in made.model
    assert "linear: tuple[Linear2, ...]" in made.model


def test_what_inputs_alone_make_does_not_stand_between_modules(tmp_path: Path) -> None:
    lines, constants, rename = "", {}, {}
    for i in range(3):
        shared = "k = Neg(mask) l = Exp(k)" if not i else ""
        lines += f"""h{i} = MatMul(x{i}, w{i}) {shared} g{i} = Mul(h{i}, l) s{i} = Sigmoid(g{i})
            x{i + 1} = Add(s{i}, x{i})\n"""
        constants[f"w{i}"], rename[f"w{i}"] = f(4, 4), f"blocks.{i}.fc.weight"
    head = "(float[n, 4] x0, float[n, 4] mask) => (float[n, 4] x3)"
    data = file(f"{head} {{ {lines} }}", constants, rename)
    made = exchanged(data, tmp_path, px.asarray(f(3, 4)), px.asarray(f(3, 4)))
    assert "class Block(nn.Module)" in made.model
    assert "self.blocks[2](" in body(made)
    assert list(made.params) == list(rename.values())


def test_one_record_fits_both_by_the_paths_of_the_source(tmp_path: Path) -> None:
    text = """(float[n, 3, 6, 6] x) => (float[n, 4] y) {
        a = Conv<pads = [1, 1, 1, 1]>(x, w, b)
        c = BatchNormalization(a, scale, shift, mean, var)
        d = PRelu(c, slope)
        e = ReduceMean<keepdims = 0>(d, axes)
        g = Gemm<transB = 1>(e, head, bias)
        h = MatMul(g, head)
        y = Gemm<transB = 1>(h, other, one) }"""
    constants = {"w": f(5, 3, 3, 3), "b": f(5), "scale": f(5) + 2, "shift": f(5), "mean": f(5)}
    constants |= {"var": np.abs(f(5)) + 1, "slope": f(5, 1, 1), "axes": np.array([2, 3])}
    constants |= {"head": f(3, 5), "bias": f(3), "other": f(4, 5), "one": f(4)}
    data = file(text, constants, {name: f"n{i}" for i, name in enumerate(constants)})
    assert set(px.onnx.load(data).params()) != set(px.onnx.load(data, paths="source").params())
    exchanged(data, tmp_path, px.asarray(f(2, 3, 6, 6)), paths="source")


def test_a_model_by_the_paths_of_the_source_trains_what_its_source_trains(tmp_path: Path) -> None:
    text = """(float[n, 4] x) => (float[n, 4] y) {
        a = Gemm<transB = 1>(x, w, b) r = Relu(a) y = MatMul(r, w) }"""
    data = file(text, {"w": f(4, 4), "b": f(4)}, {"w": "n1", "b": "n2"})
    px.onnx.write(data, tmp_path / "made")
    x, grads = f(3, 4), []
    device = Autodiff(Cpu())
    for model in (px.onnx.load(data, device=device, paths="source"),
                  imported(tmp_path / "made").load(device)):  # fmt: skip
        taken = model(px.asarray(x, device=device)).square().sum().backward()
        grads.append({p: taken.get(w.value).numpy() for p, w in model.params().items()})
    assert grads[0].keys() == grads[1].keys()
    for path, gradient in grads[0].items():
        np.testing.assert_allclose(gradient, grads[1][path], rtol=1e-5, atol=1e-6)


def test_what_is_no_way_of_paths_is_refused() -> None:
    with pytest.raises(px.ArgumentError, match="unknown paths: got 'names', expected 'file', 'so"):
        px.onnx.load(b"", paths="names")  # type: ignore[arg-type]


def test_a_constant_that_sizes_move_is_no_vector_of_itself() -> None:
    text = """(float[2, 4] x) => (float[4, 2] y) {
        s = Shape(x) r = Reshape(beta, s) t = Transpose(r) u = Transpose(x) y = Mul(u, t) }"""
    data, x = file(text, {"beta": f(8)}), f(2, 4)
    found = px.onnx.load(data, paths="source")(x)
    np.testing.assert_allclose(found.numpy(), (x * f(8).reshape(2, 4)).T, rtol=1e-6)
