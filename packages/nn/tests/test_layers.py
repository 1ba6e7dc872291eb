"""Layers beside plain NumPy."""

from __future__ import annotations

from typing import Any, get_args

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

import phlox_nn as nn
import phlox_tensor as pt
from phlox_nn import Param, initializers
from phlox_nn.layers import activation
from phlox_tensor import Backend, IndexOutOfRangeError, KindError, Numpy, ShapeError

Array = np.ndarray[Any, Any]
DOUBLE = Numpy(float="float64")
RNG = np.random.default_rng(1)


def tensor(array: Array) -> Any:
    return pt.asarray(array, device=DOUBLE)


def close(got: Any, want: Array) -> None:
    assert got.shape == want.shape
    assert np.allclose(got.numpy(), want, rtol=1e-12, atol=1e-12)


def weights(module: nn.Module) -> dict[str, Array]:
    return {path: param.value.numpy() for path, param in module.params().items()}


@given(st.lists(st.integers(0, 4), max_size=3), st.booleans())
def test_linear(batch: list[int], bias: bool) -> None:
    layer = nn.Linear(5, 3, bias=bias, device=DOUBLE)
    x = RNG.normal(size=(*batch, 5))
    w = weights(layer)
    close(layer(tensor(x)), x @ w["weight"] + w.get("bias", 0))
    assert (layer.bias is not None) is bias
    with pytest.raises(ShapeError, match=r"\[linear\] inner sizes differ"):
        layer(tensor(x[..., :4]))


def test_embedding() -> None:
    layer = nn.Embedding(5, 2, device=DOUBLE)
    indices = np.array([[0, 4], [2, -1], [2, 2]])
    close(layer(tensor(indices)), weights(layer)["weight"][indices])
    with pytest.raises(IndexOutOfRangeError):
        layer(tensor(np.array([5])))
    with pytest.raises(KindError):
        layer(tensor(np.array([1.0])))


def plain_conv(
    x: Array, weight: Array, bias: Array, stride: Any, pads: Any, dilation: Any, groups: int
) -> Array:
    """Cross-correlation by its definition, one output at a time."""
    x = np.pad(x, ((0, 0), (0, 0), *pads))
    n, _, height, width = x.shape
    out, channels, kh, kw = weight.shape
    (sh, sw), (dh, dw) = stride, dilation
    rows = (height - dh * (kh - 1) - 1) // sh + 1
    columns = (width - dw * (kw - 1) - 1) // sw + 1
    y = np.zeros((n, out, rows, columns))
    for o in range(out):
        first = o // (out // groups) * channels
        for i in range(rows):
            for j in range(columns):
                part = x[
                    :,
                    first : first + channels,
                    i * sh : i * sh + dh * (kh - 1) + 1 : dh,
                    j * sw : j * sw + dw * (kw - 1) + 1 : dw,
                ]
                y[:, o, i, j] = (part * weight[o]).sum(axis=(1, 2, 3)) + bias[o]
    return y


CONVS: list[tuple[dict[str, Any], Any, Any, Any]] = [
    ({"kernel_size": 3}, (1, 1), ((0, 0), (0, 0)), (1, 1)),
    ({"kernel_size": (3, 2), "padding": "same"}, (1, 1), ((1, 1), (0, 1)), (1, 1)),
    ({"kernel_size": 3, "padding": 2, "stride": 2}, (2, 2), ((2, 2), (2, 2)), (1, 1)),
    ({"kernel_size": 2, "padding": (1, 0), "dilation": (2, 1)}, (1, 1), ((1, 1), (0, 0)), (2, 1)),
    ({"kernel_size": 2, "padding": ((0, 1), (2, 0))}, (1, 1), ((0, 1), (2, 0)), (1, 1)),
    ({"kernel_size": 3, "padding": "same", "stride": 2}, (2, 2), ((1, 1), (1, 1)), (1, 1)),
    ({"kernel_size": 3, "groups": 2}, (1, 1), ((0, 0), (0, 0)), (1, 1)),
    ({"kernel_size": 1, "bias": False, "padding": "valid"}, (1, 1), ((0, 0), (0, 0)), (1, 1)),
]


@pytest.mark.parametrize(("options", "stride", "pads", "dilation"), CONVS)
def test_conv2d(options: dict[str, Any], stride: Any, pads: Any, dilation: Any) -> None:
    layer = nn.Conv2d(4, 6, **options, device=DOUBLE)
    x = RNG.normal(size=(2, 4, 7, 5))
    w = weights(layer)
    bias = w.get("bias", np.zeros(6))
    groups = options.get("groups", 1)
    close(layer(tensor(x)), plain_conv(x, w["weight"], bias, stride, pads, dilation, groups))


@pytest.mark.parametrize("size", [(8, 8), (7, 9), (1, 1), (2, 5)])
@pytest.mark.parametrize("stride", [1, 2, 3])
@pytest.mark.parametrize("kernel", [1, 2, 3, 4])
def test_same_padding_gives_one_position_per_step(
    size: tuple[int, int], stride: int, kernel: int
) -> None:
    layer = nn.Conv2d(1, 1, kernel_size=kernel, stride=stride, padding="same")
    out = layer(pt.zeros((1, 1, *size)))
    assert out.shape[2:] == tuple(-(-n // stride) for n in size)


def test_settings_of_convolutions_are_checked() -> None:
    with pytest.raises(nn.ConfigError, match="groups that divide the channels 3 and 4"):
        nn.Conv2d(3, 4, 3, groups=2)
    with pytest.raises(nn.ConfigError, match="padding"):
        nn.Conv2d(3, 4, 3, padding="full")  # type: ignore[arg-type]
    with pytest.raises(ShapeError, match="not a batch of images"):
        nn.Conv2d(3, 4, 3)(pt.zeros((3, 8, 8)))
    with pytest.raises(ShapeError, match="channels do not fit"):
        nn.Conv2d(3, 4, 3)(pt.zeros((1, 2, 8, 8)))


def windows(x: Array, kernel: int, stride: int, pad: Any, value: float) -> Array:
    padded = np.pad(x, ((0, 0), (0, 0), *pad), constant_values=value)
    views = np.lib.stride_tricks.sliding_window_view(padded, (kernel, kernel), axis=(2, 3))
    return views[:, :, ::stride, ::stride]


@pytest.mark.parametrize(
    ("options", "kernel", "stride", "pad"),
    [
        ({"kernel_size": 2}, 2, 2, ((0, 0), (0, 0))),
        ({"kernel_size": 3, "stride": 1, "padding": 1}, 3, 1, ((1, 1), (1, 1))),
        ({"kernel_size": 3, "stride": 2, "padding": "same"}, 3, 2, ((1, 1), (0, 1))),
        ({"kernel_size": 3, "stride": 1, "padding": ((0, 1), (1, 0))}, 3, 1, ((0, 1), (1, 0))),
    ],
)
def test_pools(options: dict[str, Any], kernel: int, stride: int, pad: Any) -> None:
    x = RNG.normal(size=(2, 3, 7, 6))
    best = windows(x, kernel, stride, pad, -np.inf).max(axis=(4, 5))
    close(nn.MaxPool2d(**options)(tensor(x)), best)
    total = windows(x, kernel, stride, pad, 0).sum(axis=(4, 5))
    close(nn.AvgPool2d(**options)(tensor(x)), total / kernel**2)
    count = windows(np.ones_like(x), kernel, stride, pad, 0).sum(axis=(4, 5))
    apart = nn.AvgPool2d(**options, count_include_pad=False)
    close(apart(tensor(x)), total / count)


def test_pools_with_dilation_and_ceil_mode() -> None:
    x = RNG.normal(size=(1, 1, 6, 6))
    dilated = nn.MaxPool2d(2, stride=1, dilation=3)(tensor(x))
    close(
        dilated, np.maximum.reduce([x[..., i : i + 3, j : j + 3] for i in (0, 3) for j in (0, 3)])
    )
    assert nn.MaxPool2d(4, stride=4, ceil_mode=True)(tensor(x)).shape == (1, 1, 2, 2)


def batch_norm(x: Array, mean: Array, var: Array, w: dict[str, Array], epsilon: float) -> Array:
    shape = (1, -1, *(1,) * (x.ndim - 2))
    normal = (x - mean.reshape(shape)) / np.sqrt(var.reshape(shape) + epsilon)
    return normal * w["weight"].reshape(shape) + w["bias"].reshape(shape)


def drawn(module: Any) -> Any:
    """The module with values other than 0 and 1, so that a factor left out shows."""
    return module.map(
        lambda path, p: p.with_value(tensor(RNG.uniform(0.5, 2, p.shape)).to_device(p.device))
    )


@pytest.mark.parametrize("shape", [(6, 3), (4, 3, 5), (2, 3, 4, 5)])
def test_batch_norm_in_inference(shape: tuple[int, ...]) -> None:
    layer = drawn(nn.BatchNorm(3, epsilon=1e-3, device=DOUBLE))
    x = RNG.normal(size=shape)
    w = weights(layer)
    assert layer.training is False
    close(layer(tensor(x)), batch_norm(x, w["running_mean"], w["running_var"], w, 1e-3))
    close(layer(tensor(x)), batch_norm(x, w["running_mean"], w["running_var"], w, 1e-3))


@pytest.mark.parametrize("shape", [(6, 3), (4, 3, 5), (2, 3, 4, 5)])
def test_batch_norm_in_training_moves_its_statistics(shape: tuple[int, ...]) -> None:
    layer = drawn(nn.BatchNorm(3, momentum=0.25, device=DOUBLE)).with_training(True)
    w = weights(layer)
    mean, var = w["running_mean"], w["running_var"]
    for _ in range(2):
        x = RNG.normal(2.0, 3.0, size=shape)
        axes = (0, *range(2, x.ndim))
        y, updates = nn.with_updates(layer)(tensor(x))
        close(y, batch_norm(x, x.mean(axes), x.var(axes), w, 1e-5))
        close(layer.running_mean.value, mean)
        layer = updates.apply(layer)
        mean, var = 0.75 * mean + 0.25 * x.mean(axes), 0.75 * var + 0.25 * x.var(axes, ddof=1)
        close(layer.running_mean.value, mean)
        close(layer.running_var.value, var)


def test_batch_norm_follows_its_device(recording: Backend) -> None:
    assert nn.BatchNorm(2, device=recording).training is True
    assert nn.BatchNorm(2, device=Numpy()).training is False
    with pytest.raises(ShapeError):
        nn.BatchNorm(2)(pt.zeros((4, 3)))


@pytest.mark.parametrize("bias", [True, False])
def test_layer_norm(bias: bool) -> None:
    layer = drawn(nn.LayerNorm(5, epsilon=1e-4, bias=bias, device=DOUBLE))
    x = RNG.normal(size=(2, 3, 5))
    w = weights(layer)
    normal = (x - x.mean(-1, keepdims=True)) / np.sqrt(x.var(-1, keepdims=True) + 1e-4)
    close(layer(tensor(x)), normal * w["weight"] + w.get("bias", 0))
    with pytest.raises(ShapeError):
        layer(tensor(x[..., :4]))


def test_rms_norm() -> None:
    layer = drawn(nn.RmsNorm(5, epsilon=1e-4, device=DOUBLE))
    x = RNG.normal(size=(2, 3, 5))
    root = np.sqrt((x * x).mean(-1, keepdims=True) + 1e-4)
    close(layer(tensor(x)), x / root * weights(layer)["weight"])
    with pytest.raises(ShapeError):
        layer(tensor(x[..., :4]))


def test_dropout() -> None:
    x = pt.ones((100, 100))
    layer = nn.Dropout(0.25, device=Numpy())
    assert layer(x) is x
    training = layer.with_training(True)
    out = training(x).numpy()
    assert set(np.unique(out)) == {np.float32(0), np.float32(1 / 0.75)}
    assert abs((out == 0).mean() - 0.25) < 0.02
    pt.seed(5)
    first = training(x).numpy()
    assert not np.array_equal(first, training(x).numpy())
    pt.seed(5)
    assert np.array_equal(first, training(x).numpy())
    assert nn.Dropout(0.0).with_training(True)(x) is x
    assert training(x.astype("float16")).dtype is pt.float16
    assert not np.isnan(training(x * float("inf")).numpy()).any()
    for prob in (-0.1, 1.5):
        with pytest.raises(nn.ConfigError, match="a probability"):
            nn.Dropout(prob)
    every: list[Any] = [nn.Dropout(1.0), nn.ChannelDropout(1.0), nn.AlphaDropout(1.0)]
    for all_dropped in (*every, nn.FeatureAlphaDropout(1.0)):
        assert not all_dropped.with_training(True)(x * float("inf")).numpy().any()


@pytest.mark.parametrize("name", ["elu", "gelu", "leaky_relu", "relu", "silu", "tanh"])
def test_activations(name: Any) -> None:
    x = pt.asarray([-2.0, 0.0, 3.0])
    function = getattr(nn, name)
    assert nn.Activation(name)(x).tolist() == function(x).tolist() == getattr(x, name)().tolist()
    with pytest.raises(nn.ConfigError, match=r"ActivationConfig.name"):
        nn.Activation("sign")  # type: ignore[arg-type]


def test_every_named_activation_is_there() -> None:
    make: Any = nn.Activation
    for name in activation.FUNCTIONS:
        assert make(name)(pt.ones(2)).shape == (2,)
    assert set(activation.FUNCTIONS) == set(get_args(activation.Name))


def test_shared_weights_between_layers() -> None:
    """An embedding and the output layer of a language model may share their table."""
    embedding = nn.Embedding(7, 3, initializer=initializers.Normal())
    head = nn.Linear(3, 7, bias=False).replace(weight=Param(embedding.weight.value.T))
    x = embedding(pt.asarray([1, 2]))
    assert head(x).shape == (2, 7)
