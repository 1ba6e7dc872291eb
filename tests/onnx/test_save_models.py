"""Models as people make them, written with open sizes, and what their files give for others."""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable
from pathlib import Path
from typing import Any, Final

import numpy as np
import onnx
import pytest

import phlox as px
from phlox import Cpu, nn
from phlox.nn import models
from tests.onnx.exported import Of, drawn, onnxruntime

DEVICE: Final = Cpu()
BATCH: Final = {"x": {0: "batch"}}
SEQUENCE: Final = {"x": {0: "batch", 1: "length"}}
COUNTED: Final = {**SEQUENCE, "lengths": {0: "batch"}}


class Counted(nn.Module):
    """A recurrent layer over sequences of several lengths."""

    layer: Any

    def forward(self, x: Any, lengths: Any) -> Any:
        """Return all that the layer gives."""
        return self.layer(x, lengths=lengths)


class Continued(nn.Module):
    """A recurrent layer that goes on from a state."""

    layer: nn.Lstm

    def forward(self, x: Any, hidden: Any, cell: Any) -> Any:
        """Return all that the layer gives."""
        return self.layer(x, nn.LstmState(hidden, cell))


class Encoder(nn.Module):
    """Words behind which some are missing."""

    words: nn.Embedding
    places: nn.SinusoidalEncoding
    blocks: nn.TransformerEncoder

    def forward(self, x: Any, padding: Any) -> Any:
        """Return the first place."""
        return self.blocks(self.places(self.words(x)), padding=padding)[:, 0]


class Named(nn.Module):
    """Several results by name."""

    layer: nn.Linear

    def forward(self, x: Any) -> Any:
        """Return a dict with one inside."""
        y = self.layer(x).relu()
        return {"hidden": y, "found": {"mean": y.mean(-1), "best": y.topk(2)[1]}}


def tokens(n: int, length: int) -> Any:
    return np.arange(n * length).reshape(n, length) * 7 % 20


def lengths(n: int, length: int) -> Any:
    """From all steps down, one sequence without any where there are three."""
    return np.array([length, length // 2, 0, 1][:n])


def missing(n: int, length: int) -> Any:
    return np.arange(length) >= np.maximum(lengths(n, length), 1)[:, None]


def encoder() -> nn.Module:
    blocks = nn.TransformerEncoderLayerConfig(16, 4, 32)
    return Encoder(
        nn.Embedding(20, 16), nn.SinusoidalEncoding(16), nn.TransformerEncoder(blocks, 1)
    )


def coder() -> nn.Module:
    down = (
        nn.Conv2d(1, 4, 3, stride=2, padding=1),
        nn.Activation("relu"),
        nn.Conv2d(4, 8, 3, stride=2, padding=1),
    )
    up = nn.ConvTranspose2d(8, 4, 3, stride=2, padding=1, padding_out=1)
    return nn.Sequential(
        *down, up, nn.Activation("silu"), nn.ConvTranspose2d(4, 1, 4, stride=2, padding=1)
    )


def line() -> nn.Module:
    back = nn.ConvTranspose1d(8, 2, 4, stride=2, padding=1)
    return nn.Sequential(
        nn.Conv1d(2, 8, 4, stride=2, padding=1), nn.PRelu(8), back, nn.Activation("mish")
    )


def pictures() -> nn.Module:
    parts = (
        nn.Conv2d(3, 4, 3, padding="same"),
        nn.BatchNorm(4),
        nn.Activation("gelu"),
        nn.MaxPool2d(2),
    )
    return nn.Sequential(*parts, nn.AdaptiveAvgPool2d(1), nn.Flatten(), nn.Linear(4, 5))


def four_bits() -> nn.Module:
    net = nn.Sequential(nn.Linear(16, 8), nn.Activation("relu"), nn.Linear(8, 4))
    return nn.quantize_weights(net, bits=4, group=8)


def shifted(x: Any) -> Any:
    return x << 2, x >> 1, x >> 99, (x & 7) >> (x & 3), (x & 7) << (x & 3)


def counted(n: int, length: int) -> Any:
    return drawn(n, length, 4), lengths(n, length)


def continued(n: int, length: int) -> Any:
    return drawn(n, length, 4), drawn(1, n, 3), drawn(1, n, 3) * 2


def sized(*rest: int) -> Callable[[int, int], Any]:
    return lambda n, _: (drawn(n, *rest),)


def steps(n: int, length: int) -> Any:
    return (drawn(n, length, 4),)


STATES: Final = {"x": SEQUENCE["x"], "hidden": {1: "batch"}, "cell": {1: "batch"}}
WORDS: Final = {"x": SEQUENCE["x"], "padding": SEQUENCE["x"]}
SMALL: Final = models.GptConfig(words=20, positions=32, d_model=16, n_layers=1, n_heads=2)
CLIP: Final = models.ClipConfig(
    20, 12, 16, 1, 2, 24, 8, 4, d_image=12, n_layers_image=1, n_heads_image=2, d_ff_image=20
)
WHISPER: Final = models.WhisperConfig(20, 12, 8, 10, 16, 1, 1, 2, 24)
HEARD: Final = {"frames": {0: "batch"}, "tokens": SEQUENCE["x"]}


def heard(n: int, length: int) -> Any:
    return np.random.default_rng(0).normal(size=(n, 8, 20)).astype("f"), tokens(n, length)


def seen(n: int, length: int) -> Any:
    """Two texts for some images."""
    return tokens(2, length), np.random.default_rng(0).normal(size=(n, 3, 8, 8)).astype("f")


# A model, what it is called with for a batch and a length, and what stays open.
MODELS: Final[dict[str, tuple[Callable[[], nn.Module], Callable[[int, int], Any], Any]]] = {
    "autoencoder": (coder, sized(1, 8, 8), BATCH),
    "autoencoder of lines": (line, sized(2, 8), BATCH),
    "bag": (lambda: nn.EmbeddingBag(20, 4), lambda n, k: (tokens(n, k),), SEQUENCE),
    "clip": (CLIP.init, seen, {"tokens": {1: "length"}, "images": {0: "batch"}}),
    "convnext": (models.ConvNextConfig(3, 2, (4, 6), (1, 1), 5).init, sized(3, 8, 8), BATCH),
    "efficientnet": (models.EfficientNetLiteConfig(0.1, classes=5).init, sized(3, 33, 32), BATCH),
    "encoder": (encoder, lambda n, k: (tokens(n, k), missing(n, k)), WORDS),
    "four bits": (four_bits, sized(16), BATCH),
    "gpt": (SMALL.init, lambda n, k: (tokens(n, k),), SEQUENCE),
    "gru": (lambda: nn.Gru(4, 3), steps, SEQUENCE),
    "gru, both ways, counted": (
        lambda: Counted(nn.Gru(4, 3, 2, bidirectional=True)), counted, COUNTED,
    ),
    "lstm": (lambda: nn.Lstm(4, 3), steps, SEQUENCE),
    "lstm, backwards": (lambda: nn.Lstm(4, 3, bias=False, reverse=True), steps, SEQUENCE),
    "lstm, both ways, counted": (
        lambda: Counted(nn.Lstm(4, 3, 2, bidirectional=True)), counted, COUNTED,
    ),
    "lstm, continued": (lambda: Continued(nn.Lstm(4, 3)), continued, STATES),
    "named": (lambda: Named(nn.Linear(4, 6)), sized(4), BATCH),
    "pictures": (pictures, sized(3, 8, 8), BATCH),
    "rnn": (lambda: nn.Rnn(4, 3, activation="relu"), steps, SEQUENCE),
    "rnn, counted": (lambda: Counted(nn.Rnn(4, 3, reverse=True)), counted, COUNTED),
    "shifts": (lambda: Of(shifted), lambda n, k: (tokens(n, k) - 20,), SEQUENCE),
    "unet": (models.UNetConfig(channels_in=3, width=4).init, sized(3, 16, 16), BATCH),
    "whisper": (WHISPER.init, heard, HEARD),
}  # fmt: skip


def saved(name: str, folder: Path) -> tuple[Path, nn.Module]:
    make, inputs, dynamic = MODELS[name]
    net, path = make().to_device(DEVICE).valid(), folder / "x.onnx"
    px.onnx.save(net, inputs(2, 6), path, names=[*dynamic], dynamic=dynamic)
    return path, net


def wanted(net: nn.Module, given: Any) -> list[Any]:
    found = net(*(px.asarray(each, device=DEVICE) for each in given))
    return [each.numpy() for each in px.tree.leaves(found)]


@pytest.mark.parametrize("name", MODELS)
def test_a_file_gives_what_the_model_gives_for_other_sizes(name: str, tmp_path: Path) -> None:
    path, net = saved(name, tmp_path)
    back = px.onnx.load(path, device=DEVICE)
    for size in ((1, 1), (3, 9)):
        given = MODELS[name][1](*size)
        found = px.tree.leaves(back(*given))
        for a, b in zip(found, wanted(net, given), strict=True):
            np.testing.assert_allclose(a.numpy(), b, rtol=1e-4, atol=1e-5)


@pytest.mark.long
@pytest.mark.parametrize("name", MODELS)
def test_onnxruntime_gives_what_the_model_gives(name: str, tmp_path: Path) -> None:
    path, net = saved(name, tmp_path)
    for size in ((1, 1), (3, 9)):
        given = MODELS[name][1](*size)
        for a, b in zip(onnxruntime(path, *given), wanted(net, given), strict=True):
            assert (a.shape, a.dtype) == (b.shape, b.dtype)
            np.testing.assert_allclose(a, b, rtol=1e-4, atol=1e-5)


@pytest.mark.parametrize(("layer", "op"), [(nn.Gru, "GRU"), (nn.Lstm, "LSTM"), (nn.Rnn, "RNN")])
def test_a_recurrent_layer_is_one_node_that_is_read_as_a_layer(
    layer: Any, op: str, tmp_path: Path
) -> None:
    net = layer(4, 3, device=DEVICE)
    path = px.onnx.save(net, drawn(2, 6, 4), tmp_path / "x.onnx")
    assert Counter(node.op_type for node in onnx.load(path).graph.node)[op] == 1
    assert f"nn.{layer.__name__}(" in px.onnx.source(path)


def test_a_narrow_recurrent_layer_runs_in_float32_inside(tmp_path: Path) -> None:
    def gru(x: Any, weight: Any, hidden: Any) -> Any:
        return px.ops.gru(x, weight, hidden, None, None, None, None, False)

    shapes = (2, 6, 4), (4, 9), (3, 9)
    given = [px.asarray(drawn(*s), device=DEVICE).astype("bfloat16") for s in shapes]
    path = px.onnx.save(Of(gru), tuple(given), tmp_path / "x.onnx")
    for a, b in zip(px.onnx.load(path, device=DEVICE)(*given), gru(*given), strict=True):
        assert a.dtype == b.dtype == px.bfloat16
        np.testing.assert_allclose(
            a.astype("float32").numpy(), b.astype("float32").numpy(), atol=2**-7
        )


def test_a_loop_over_the_steps_says_which_size_has_to_stay(tmp_path: Path) -> None:
    net, path = nn.Lstm(4, 3, clip=1.0, device=DEVICE), tmp_path / "x.onnx"
    with pytest.raises(
        px.onnx.OnnxError, match=r"unstack into 5 in Lstm.*for batch 2, length 6"
    ) as e:
        px.onnx.save(net, drawn(2, 6, 4), path, dynamic=SEQUENCE)
    hint = e.value.hint
    assert hint == "px.onnx.save(module, inputs, path, dynamic={'x': {0: 'batch'}})"
    exec(hint, {"px": px, "module": net, "inputs": drawn(2, 6, 4), "path": path})
    assert px.onnx.load(path, device=DEVICE)(drawn(5, 6, 4))[0].shape == (5, 6, 3)


def test_a_size_that_is_halved_is_left_out_by_the_hint(tmp_path: Path) -> None:
    net = nn.Sequential(nn.Conv2d(3, 4, 3, padding=1), nn.MaxPool2d(2))
    x, path = drawn(2, 3, 8, 8), tmp_path / "x.onnx"
    for axes in ({0: "batch", 2: "rows", 3: "columns"}, {0: "batch", 3: "columns"}):
        with pytest.raises(px.onnx.OnnxError, match="max_pool2d") as e:
            px.onnx.save(net, x, path, names=["x"], dynamic={"x": axes})
        hint = "px.onnx.save(module, inputs, path, dynamic={'x': {0: 'batch'}})"
        assert e.value.hint == hint
