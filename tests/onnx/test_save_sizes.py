"""Files with open sizes by name: text models of any length, and steps with a cache."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import Any, Final

import numpy as np
import onnx
import pytest
from onnx.reference import ReferenceEvaluator

import phlox as px
from phlox import Cpu, nn
from phlox.nn import models
from tests.onnx.exported import Of, drawn, onnxruntime

DEVICE: Final = Cpu()
TOKENS: Final = {"tokens": {0: "batch", 1: "length"}}


class Text(nn.Module):
    """Words, positions, layers that look back, and the words that follow."""

    words: nn.Embedding
    places: Any
    blocks: nn.TransformerEncoder

    def forward(self, tokens: Any) -> Any:
        """Map (N, length) to logits (N, length, words)."""
        x = self.words(tokens)
        x = x if self.places is None else self.places(x)
        return self.blocks(x, is_causal=True) @ self.words.weight.value.mT


class Step(nn.Module):
    """The next tokens beside a cache."""

    text: Any

    def forward(self, tokens: Any, cache: Any) -> Any:
        """Return logits, and the cache with the tokens too."""
        return self.text.extend(tokens, cache)


class Decoder(nn.Module):
    """As ``Text``, by pieces."""

    words: nn.Embedding
    blocks: nn.TransformerEncoder

    def extend(self, tokens: Any, cache: Any = None) -> Any:
        """Return logits, and the cache."""
        x, cache = self.blocks.extend(self.words(tokens), cache)
        return x @ self.words.weight.value.mT, cache


def layers(**words: Any) -> nn.TransformerEncoder:
    layer = nn.TransformerEncoderLayerConfig(16, 4, 32, dropout=0.0, **words)
    return nn.TransformerEncoderConfig(layer, 2).init(DEVICE)


def text(kind: str) -> Any:
    px.seed(3)
    words = nn.Embedding(50, 16, device=DEVICE)
    if kind == "rotary":
        rotary = nn.RotaryEncodingConfig(4)
        return Text(words, None, layers(rotary=rotary))
    if kind == "learned":
        return Text(words, nn.LearnedEncoding(40, 16, device=DEVICE), layers())
    if kind == "sinusoidal":
        return Text(words, nn.SinusoidalEncoding(16, device=DEVICE), layers())
    return models.GptConfig(50, 40, 16, 2, 4, dropout=0.0).init(DEVICE)


def tokens(*shape: int) -> Any:
    return np.random.default_rng(sum(shape)).integers(0, 50, shape)


TEXTS: Final = ("gpt", "learned", "rotary", "sinusoidal")


def same(found: Any, wanted: Any) -> None:
    assert found.shape == wanted.shape
    np.testing.assert_allclose(found, wanted, rtol=1e-4, atol=2e-5)


@pytest.mark.parametrize("kind", TEXTS)
def test_a_text_model_takes_any_batch_and_length(kind: str, tmp_path: Path) -> None:
    model = text(kind)
    path = px.onnx.save(model, tokens(2, 6), tmp_path / "m.onnx", dynamic=TOKENS)
    file = onnx.load(str(path))
    dims = [d.dim_param for d in file.graph.input[0].type.tensor_type.shape.dim]
    assert (file.graph.input[0].name, dims) == ("tokens", ["batch", "length"])
    out = file.graph.output[0].type.tensor_type.shape.dim
    assert [d.dim_param or d.dim_value for d in out] == ["batch", "length", 50]
    back, other = px.onnx.load(path, device=DEVICE), ReferenceEvaluator(file)
    for shape in ((1, 1), (3, 9), (2, 31)):
        wanted = model(px.asarray(tokens(*shape), device=DEVICE)).numpy()
        same(back(tokens(*shape)).numpy(), wanted)
        results: Any = other.run(None, {"tokens": tokens(*shape)})
        same(results[0], wanted)


@pytest.mark.parametrize("kind", TEXTS)
def test_onnxruntime_takes_any_batch_and_length(kind: str, tmp_path: Path) -> None:
    model = text(kind)
    path = px.onnx.save(model, tokens(2, 6), tmp_path / "m.onnx", dynamic=TOKENS)
    for shape in ((1, 1), (3, 9), (2, 31)):
        wanted = model(px.asarray(tokens(*shape), device=DEVICE)).numpy()
        same(onnxruntime(path, tokens(*shape))[0], wanted)


def stepping(kind: str) -> Any:
    if kind == "gpt":
        return text("gpt")
    made = text("rotary")
    return Decoder(made.words, made.blocks)


@pytest.mark.parametrize("run", ["load", "onnxruntime"])
@pytest.mark.parametrize("kind", ["gpt", "rotary"])
def test_a_step_with_a_cache_goes_on_from_any_length(kind: str, run: str, tmp_path: Path) -> None:
    """What was seen step by step is what is seen at once, whoever keeps the cache."""
    model = stepping(kind)
    _, cache = model.extend(px.asarray(tokens(2, 3), device=DEVICE))
    sizes = {"tokens": {0: "batch", 1: "length"}, "cache": {0: "batch", 2: "past"}}
    given = (px.asarray(tokens(2, 1), device=DEVICE), cache)
    path = px.onnx.save(Step(model), given, tmp_path / "m.onnx", dynamic=sizes)
    graph = onnx.load(str(path)).graph
    names = [value.name for value in graph.input]
    assert names == ["tokens", *(f"cache.{i}.{k}" for i in (0, 1) for k in ("keys", "values"))]
    shape = [d.dim_param or d.dim_value for d in graph.output[1].type.tensor_type.shape.dim]
    assert shape == ["batch", 4, "length+past", 4]
    back = px.onnx.load(path, device=DEVICE)
    for batch, past, more in ((1, 1, 1), (3, 8, 1), (2, 20, 5)):
        whole = px.asarray(tokens(batch, past + more), device=DEVICE)
        _, known = model.extend(whole[:, :past])
        fed = [whole[:, past:].numpy(), *(t.numpy() for t in px.tree.leaves(known))]
        found = onnxruntime(path, *fed) if run == "onnxruntime" else [
            t.numpy() for t in back(*fed)
        ]  # fmt: skip
        logits, cached = model.extend(whole)
        same(found[0], logits[:, past:].numpy())
        for one, two in zip(found[1:], px.tree.leaves(cached), strict=True):
            same(one, two.numpy())


def _places(rows: int, columns: int, x: Any) -> Any:
    every = px.arange(rows * columns, device=x.device).reshape(rows, columns, 1)
    return every.astype("float32")


FOLLOWING: Final[dict[str, Callable[[Any], Any]]] = {
    "a mean over the length": lambda x: x.sum(axis=1) / x.shape[1],
    "all places": lambda x: x * _places(x.shape[0], x.shape[1], x),
    "both in one row": lambda x: x.reshape(x.shape[0] * x.shape[1], 4) + 1,
    "each with each": lambda x: px.softmax(x @ x.mT, axis=-1),
    "filled": lambda x: x + px.full((x.shape[0], x.shape[1], 1), 2.5, device=x.device),
    "shared heads": lambda x: px.attention(
        px.stack([x, x], axis=1), x[:, None], x[:, None], is_causal=True
    ),
    "the last": lambda x: x[:, -1],
    "the number of pairs": lambda x: x * float(x.shape[0] * x.shape[1]) + x.shape[1] * 0.5,
    "the others": lambda x: x[:, 1:] - x[:, :-1],
    "turned": lambda x: px.flip(x.swapaxes(0, 1), axis=0),
}  # fmt: skip


@pytest.mark.parametrize("run", ["load", "onnxruntime"])
@pytest.mark.parametrize("what", FOLLOWING)
def test_what_follows_from_two_sizes_follows_them_in_the_file(
    what: str, run: str, tmp_path: Path
) -> None:
    net = Of(FOLLOWING[what])
    sizes = {"x0": {0: "batch", -2: "length"}}
    path = px.onnx.save(net, drawn(3, 5, 4), tmp_path / "m.onnx", names=["x0"], dynamic=sizes)
    back = px.onnx.load(path, device=DEVICE)
    for shape in ((2, 2, 4), (1, 9, 4), (5, 3, 4)):
        wanted = net(px.asarray(drawn(*shape), device=DEVICE)).numpy()
        given = drawn(*shape)
        found = back(given).numpy() if run == "load" else onnxruntime(path, given)[0]
        same(found, wanted)


REFUSED: Final[dict[str, tuple[Callable[[Any], Any], str]]] = {
    "a branch": (
        lambda x: x * 2 if x.shape[1] > 5 else x,
        r"differ from size to size: got .* for batch 2, length 5, multiply .* batch 2, length 6",
    ),
    "a half": (
        lambda x: x[:, : x.shape[1] // 2],
        r"no sum of products of sizes: 2 / 2 / 3 / 3 / 5",
    ),
    "a square": (lambda x: x * float(x.shape[1] ** 2), "no sum of products of sizes: 25.0 / "),
    "steps": (lambda x: px.stack(px.unstack(x, axis=1)), "unstack"),
}


@pytest.mark.parametrize("what", REFUSED)
def test_what_follows_otherwise_is_refused(what: str, tmp_path: Path) -> None:
    function, says = REFUSED[what]
    sizes = {"inputs.0": {0: "batch", 1: "length"}}
    with pytest.raises(px.onnx.OnnxError, match=says):
        px.onnx.save(Of(function), drawn(3, 5, 4), tmp_path / "m.onnx", dynamic=sizes)
    assert not list(tmp_path.iterdir())


WRONG: Final[dict[str, tuple[dict[str, Any], str]]] = {
    "a list": ({"dynamic": ["batch"]}, r'hint: dynamic=\{"tokens": \{0: "batch", 1: "length"\}\}'),
    "an axis beyond": (
        {"dynamic": {"x": {3: "n"}}},
        r"no such axis: got axis 3 of 'x' \(3, 5, 4\)",
    ),
    "an input that is none": ({"dynamic": {"y": {0: "n"}}}, "no input has such a name: got 'y'"),
    "as in PyTorch": (
        {"dynamic_axes": {"x": {0: "n"}}},
        r'got dynamic_axes, .*\nhint: dynamic=\{"tokens": \{0: "batch", 1: "length"\}\}',
    ),
    "names as in PyTorch": ({"input_names": ["x"]}, "got input_names, .*\nhint: names="),
    "no name": ({"dynamic": {"x": {0: "a b"}}}, "dynamic says no sizes"),
    "one name for two sizes": ({"dynamic": {"x": {0: "n", 1: "n"}}}, "'n' is 3, and 5"),
    "twice": ({"dynamic": {"x": {0: "n"}}, "dynamic_batch": True}, "open sizes are said twice"),
    "what is fixed": ({"opset_version": 17}, "hint: leave it out: files have opset 21"),
}


@pytest.mark.parametrize("what", WRONG)
def test_a_wrong_call_says_what_would_be_right(what: str, tmp_path: Path) -> None:
    words, says = WRONG[what]

    class Twice(nn.Module):
        def forward(self, x: Any) -> Any:
            return x * 2

    with pytest.raises(px.ArgumentError, match=says):
        px.onnx.save(Twice(), drawn(3, 5, 4), tmp_path / "m.onnx", **words)


def test_a_table_of_positions_has_the_rows_that_are_asked_for(tmp_path: Path) -> None:
    model = text("sinusoidal")
    given = tokens(2, 6)
    path = px.onnx.save(model, given, tmp_path / "m.onnx", dynamic=TOKENS, positions=24)
    sizes = [list(t.dims) for t in onnx.load(str(path)).graph.initializer]
    assert sizes.count([24, 8]) == 2
    fixed = px.onnx.save(model, given, tmp_path / "fixed.onnx")
    assert [24, 8] not in [list(t.dims) for t in onnx.load(str(fixed)).graph.initializer]


@pytest.mark.parametrize(
    ("name", "hint"),
    [
        ("export", r'hint: px.onnx.save\(model, \(x,\), "model.onnx", dynamic=\{"x": '),
        ("InferenceSession", 'hint: model = px.onnx.load\\("model.onnx"\\); model\\(x\\)'),
        ("lod", r"hint: onnx.load"),
    ],
)
def test_a_name_of_others_is_told(name: str, hint: str) -> None:
    with pytest.raises(px.UnknownNameError, match=hint):
        getattr(px.onnx, name)
