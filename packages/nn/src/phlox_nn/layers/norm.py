"""Normalization of channels and rows."""

from __future__ import annotations

from functools import partial
from typing import Any

from phlox_tensor import (
    Backend,
    Float,
    Tensor,
    all_reduce,
    as_device,
    batch_norm,
    batch_norm_train,
    concat,
    float32,
    full,
    layer_norm,
    rms_norm,
)
from phlox_tensor.ops.special import moving_average

from .. import _signatures as takes
from .. import initializers as init
from ..module.layer import Layer, LayerConfig
from ..module.updates import propose
from ..param.param import Param
from .affine import affine, flat_rows, flat_value, row_shape
from .inputs import check_dtype, check_several


class BatchNormConfig(LayerConfig["BatchNorm"]):
    """Settings of ``BatchNorm``.

    Attributes:
        num_features: number of channels.
        epsilon: added to the variance.
        momentum: share of the batch in the running statistics; None for the mean of all batches.
        affine: whether there are factor and shift per channel.
        track_running_stats: whether there are running statistics; inference is by those of the
            batch without.
        bias: whether there is a shift, where ``affine``.
        synchronized: whether the statistics are those of all processes, or of all parts of a step,
            on a device ``Distributed(device, group)``.
    """

    num_features: int
    epsilon: float = 1e-5
    momentum: float | None = 0.1
    affine: bool = True
    track_running_stats: bool = True
    bias: bool = True
    synchronized: bool = False

    def validate(self) -> None:
        """Raise ConfigError unless ``momentum`` is a share."""
        share = self.momentum is None or 0.0 <= self.momentum <= 1.0
        self.require("momentum", share, "a share: 0 <= momentum <= 1, or None")

    def parts(self, device: Backend | str | None) -> dict[str, Any]:
        """Return parameters and statistics; the layer trains when the device records."""
        shape, kept = (self.num_features,), self.track_running_stats
        counted = kept and self.momentum is None
        return {
            **affine(shape, self.affine, self.bias, device),
            "running_mean": init.Zeros().param(shape, device, role="state") if kept else None,
            "running_var": init.Ones().param(shape, device, role="state") if kept else None,
            "num_batches_tracked": _counter(as_device(device)) if counted else None,
            "training": as_device(device).records,
        }


class BatchNorm(takes.BatchNorm, Layer[BatchNormConfig], init=False):
    """``(x - mean) / √(var + epsilon) · weight + bias`` of each channel (axis 1) over the batch.

    In training by the batch's own statistics, by which it proposes to move the running ones; in
    inference by the running ones. weight, bias, running_mean, running_var: (num_features,), or
    None. As in PyTorch the running variance is the unbiased one, n / (n - 1) times that of the
    batch; an empty batch moves nothing. num_batches_tracked: (), how many batches there were, where
    ``momentum`` is None. ``synchronized``: statistics are those of the batches of all processes.
    Ioffe and Szegedy, 2015, https://arxiv.org/abs/1502.03167
    """

    weight: Param | None
    bias: Param | None
    running_mean: Param  # as all but few have it; None without track_running_stats
    running_var: Param
    num_batches_tracked: Param | None
    training: bool

    def forward(self, x: Tensor[Float]) -> Tensor[Float]:
        """Map (N, num_features, …) to the same shape.

        Raises:
            ShapeError: for other channels; for one value of each by the statistics of the batch.
        """
        check_dtype(self, x, self.running_mean if self.weight is None else self.weight)
        weight, bias = self._vector(self.weight, x, 1.0), self._vector(self.bias, x, 0.0)
        mean, var, epsilon = self.running_mean, self.running_var, self.settings.epsilon
        if self.settings.track_running_stats and not self.training:
            return batch_norm(x, weight, bias, mean=mean.value, var=var.value, epsilon=epsilon)
        if self.settings.synchronized:
            y, new_mean, new_var, count = _synchronized(x, weight, bias, epsilon)
            unbiased = new_var * (count / (count - 1.0).clip(min=1.0))
            return self._moving(y, new_mean, unbiased)
        check_several(self, x)
        if not x.size:  # it has no mean: it moves nothing, and its slopes are 0
            zeros, ones = self._vector(None, x, 0.0), self._vector(None, x, 1.0)
            return batch_norm(x, weight, bias, mean=zeros, var=ones, epsilon=epsilon)
        y, new_mean, new_var = batch_norm_train(x, weight, bias, epsilon)
        size = x.size // x.shape[1]
        return self._moving(y, new_mean, new_var, size / (size - 1))

    def _moving(
        self, y: Tensor[Float], new_mean: Tensor[Float], new_var: Tensor[Float], factor: float = 1.0
    ) -> Tensor[Float]:
        """The result, by which the running statistics move; the variance times a factor."""
        if not self.settings.track_running_stats:
            return y
        y, share = self._share(y)
        y = propose(y, self.running_mean, _moved(self.running_mean, new_mean, share))
        return propose(y, self.running_var, _moved(self.running_var, new_var, share, factor))

    def _share(self, y: Tensor[Float]) -> tuple[Tensor[Float], float | Tensor[Float]]:
        """How much of the statistics the batch is; of a mean of all it counts, which y carries."""
        if self.num_batches_tracked is None:
            assert self.settings.momentum is not None
            return y, self.settings.momentum
        batches = self.num_batches_tracked.value.detach() + 1.0
        return propose(y, self.num_batches_tracked, batches), 1.0 / batches

    def _vector(self, param: Param | None, x: Tensor[Float], value: float) -> Tensor[Float]:
        if param is not None:
            return param.value
        return full((self.settings.num_features,), value, dtype=x.dtype, device=x.device)


def _synchronized(
    x: Tensor[Float], weight: Tensor[Float], bias: Tensor[Float], epsilon: float
) -> tuple[Tensor[Float], Tensor[Float], Tensor[Float], Tensor[Float]]:
    """Batch norm by the mean and variance of all processes; they, and how many values had them."""
    wide = x.to_full_precision()
    axes, shape = (0, *range(2, x.ndim)), (1, x.shape[1], *(1,) * (x.ndim - 2))
    size = full((1,), float(x.size // max(1, x.shape[1])), dtype=wide.dtype, device=x.device)
    sums = all_reduce(concat([wide.sum(axis=axes), size]))
    count = sums[-1].detach().clip(min=1.0)
    mean = sums[:-1] / count
    gaps = wide - mean.reshape(shape)
    var = all_reduce(gaps.square().sum(axis=axes)) / count
    scale = weight * (var + epsilon).rsqrt()
    y = gaps * scale.reshape(shape) + bias.reshape(shape)
    return y.astype(x.dtype), mean, var, count


def _counter(device: Backend) -> Param:
    """A number of batches, of which a narrow type could not hold many: bfloat16 ends at 256."""
    usual = device.default_float
    dtype = float32 if usual.itemsize < float32.itemsize else usual
    zero = partial(full, (), 0.0, dtype=dtype, device=device)
    return Param.lazy(zero, (), dtype, device, role="state")


def _moved(
    running: Param, batch: Tensor[Float], share: float | Tensor[Float], factor: float = 1.0
) -> Tensor[Float]:
    old, new = running.value.detach(), batch.detach()
    move = moving_average.or_formula
    if isinstance(share, Tensor) and moving_average.expand is not None:
        # A kernel takes numbers alone, and the share would be read from the device for each layer.
        move = moving_average.expand
    return move(old, new, share, factor).astype(old.dtype)


class LayerNormConfig(LayerConfig["LayerNorm"]):
    """Settings of ``LayerNorm``.

    Attributes:
        d_model: size of the last axis, or the sizes of several, normalized together.
        epsilon: added to the variance.
        affine: whether there are factor and bias for each element of a row.
        bias: whether a bias is added, where ``affine``.
    """

    d_model: int | tuple[int, ...]
    epsilon: float = 1e-5
    affine: bool = True
    bias: bool = True

    def validate(self) -> None:
        """Raise ConfigError for no axes."""
        self.require("d_model", self.d_model != (), "a size, or a tuple of sizes")

    def parts(self, device: Backend | str | None) -> dict[str, Any]:
        """Return weight and bias."""
        return affine(row_shape(self.d_model), self.affine, self.bias, device)


class LayerNorm(takes.LayerNorm, Layer[LayerNormConfig], init=False):
    """``(x - mean) / √(var + epsilon) · weight + bias`` of each row, over its last axis or axes.

    weight, bias: (d_model,), or the tuple that ``d_model`` is; or None.
    Ba et al., 2016, https://arxiv.org/abs/1607.06450
    """

    weight: Param | None
    bias: Param | None

    def forward(self, x: Tensor[Float]) -> Tensor[Float]:
        """Map (…, d_model) to the same shape.

        Raises:
            ShapeError: when the last axes are of other sizes.
        """
        check_dtype(self, x, self.weight)
        rows = flat_rows(self, x)
        weight, bias = flat_value(self.weight), flat_value(self.bias)
        y = layer_norm(rows, weight, bias, self.settings.epsilon)
        return y if rows is x else y.reshape(x.shape)


class RmsNormConfig(LayerConfig["RmsNorm"]):
    """Settings of ``RmsNorm``.

    Attributes:
        d_model: size of the last axis, or the sizes of several, taken together.
        epsilon: added to the mean square.
        affine: whether there is a factor for each element of a row.
    """

    d_model: int | tuple[int, ...]
    epsilon: float = 1e-5
    affine: bool = True

    def validate(self) -> None:
        """Raise ConfigError for no axes."""
        self.require("d_model", self.d_model != (), "a size, or a tuple of sizes")

    def parts(self, device: Backend | str | None) -> dict[str, Any]:
        """Return the weight."""
        shape = row_shape(self.d_model)
        return {"weight": init.Ones().param(shape, device) if self.affine else None}


class RmsNorm(takes.RmsNorm, Layer[RmsNormConfig], init=False):
    """Division of rows by their root mean square: ``x / √(mean x² + epsilon) · weight``.

    weight: (d_model,), or the tuple that ``d_model`` is; or None.
    Zhang and Sennrich, 2019, https://arxiv.org/abs/1910.07467
    """

    weight: Param | None

    def forward(self, x: Tensor[Float]) -> Tensor[Float]:
        """Map (…, d_model) to the same shape.

        Raises:
            ShapeError: when the last axes are of other sizes.
        """
        check_dtype(self, x, self.weight)
        rows = flat_rows(self, x)
        y = rms_norm(rows, flat_value(self.weight), self.settings.epsilon)
        return y if rows is x else y.reshape(x.shape)
