"""Positions of a sequence: added to its rows, or turning queries and keys."""

from __future__ import annotations

from math import log, tau
from operator import index
from typing import TYPE_CHECKING, Any, Final, TypeAlias
from weakref import WeakKeyDictionary

from phlox_tensor import (
    ArgumentError,
    Backend,
    DType,
    Float,
    Numpy,
    ShapeError,
    Tensor,
    arange,
    asarray,
    concat,
    stack,
)
from phlox_tensor.capture import recording, unrecorded

from .. import initializers as init
from ..module.layer import Layer, LayerConfig
from ..param.param import Param
from ..settings.config import Config
from .inputs import check_dtype

_Settings: TypeAlias = "RotaryEncodingConfig | SinusoidalEncodingConfig"
_Pair = tuple[Tensor[Float], Tensor[Float]]

# Sines and cosines by settings, for layers of equal ones and as long as one has them: a table may
# be as large as a model, and in a cache for good it would stay on the device.
_TABLES: Final[WeakKeyDictionary[_Settings, dict[tuple[Backend, DType], _Pair]]] = (
    WeakKeyDictionary()
)


def _computed(settings: _Settings, positions: int, dtype: DType, device: Backend) -> _Pair:
    """Sines and cosines of position · base^(-i / pairs), for positions from 0 on.

    Computed by the host: the sines of a GPU are wrong for large angles.
    """
    if isinstance(settings, RotaryEncodingConfig):
        size, base, scaling = settings.d_head, settings.theta, settings.scaling
    else:
        size, base, scaling = settings.d_model, settings.max_timescale, None
    host, pairs = Numpy(float="float64"), size // 2
    rates = (arange(pairs, dtype="float64", device=host) * (-log(base) / pairs)).exp()
    rates = rates if scaling is None else scaling.scaled(rates)
    angles = arange(positions, dtype="float64", device=host)[:, None] * rates
    amplitude = 1.0 if scaling is None else scaling.amplitude
    sines, cosines = (
        asarray((found * amplitude).astype(dtype).numpy(), dtype=dtype, device=device)
        for found in (angles.sin(), angles.cos())
    )
    return sines, cosines


def _rows(settings: _Settings, offset: int, end: int, dtype: DType, device: Backend) -> _Pair:
    """Sines and cosines (length, pairs) of some positions; a larger table replaces a smaller."""
    kept = _TABLES.setdefault(settings, {})
    found = kept.get((device, dtype))
    if found is None or found[0].shape[0] < end:
        known = 1 << max(end - 1, 0).bit_length()  # decoding asks for one more each time
        found = kept[device, dtype] = _computed(settings, known, dtype, device)
    sines, cosines = found
    return sines[offset:end], cosines[offset:end]


def turns(
    x: Tensor[Float], settings: _Settings, offset: int = 0, length: int | None = None
) -> _Pair:
    """Return sines and cosines (length, pairs) from a position on, of the type and device of x.

    Without a length it is that of x, (…, length, d).
    """
    first, base, made = index(offset), x.device.base, recording()
    end = first + (x.shape[-2] if length is None else length)
    longest = made.positions if made is not None else 0
    with unrecorded():  # how they are made is no part of a program
        home = base if base.has_data else Numpy()
        rows = (0, max(end, longest)) if longest else (first, end)
        sines, cosines = _rows(settings, *rows, x.dtype, home)
    if longest:  # what is noted holds for other lengths too
        tables = (_constant(table, x.device) for table in (sines, cosines))
        sines, cosines = (table[first:end] for table in tables)
        return sines, cosines
    if home is base and made is None:
        return sines.to_device(x.device), cosines.to_device(x.device)
    return _constant(sines, x.device), _constant(cosines, x.device)


def _constant(rows: Tensor[Float], device: Backend) -> Tensor[Float]:
    """Rows as data of the host, which recordings compare by value, where tensors are others."""
    with unrecorded():
        array = rows.numpy()
    return asarray(array, dtype=rows.dtype, device=device)


def _check(layer: str, x: Tensor[Float], width: int, offset: int) -> None:
    if x.ndim < 2 or x.shape[-1] != width:
        raise ShapeError(
            layer, "no sequence of such rows", got=x.shape, expected=f"(…, length, {width})"
        )
    if offset < 0:
        raise ArgumentError(layer, "a position before the first", got=offset, expected=">= 0")


class SinusoidalEncodingConfig(LayerConfig["SinusoidalEncoding"]):
    """Settings of ``SinusoidalEncoding``.

    Attributes:
        d_model: size of the last axis; even.
        max_timescale: the longest wave is 2π times as long.
    """

    d_model: int
    max_timescale: float = 10000.0

    def validate(self) -> None:
        """Raise ConfigError unless sines and cosines come in pairs."""
        self.require("d_model", self.d_model > 0 and self.d_model % 2 == 0, "an even number")
        self.require("max_timescale", self.max_timescale > 0, "> 0")


class SinusoidalEncoding(Layer[SinusoidalEncodingConfig]):
    """Adds sines (even columns) and cosines (odd ones) of the position.

    Vaswani et al., 2017, https://arxiv.org/abs/1706.03762
    """

    # The constructor, generated by tools/gen.py from SinusoidalEncodingConfig; do not edit.
    if TYPE_CHECKING:

        def __init__(
            self,
            d_model: int,
            max_timescale: float = 10000.0,
            *,
            device: Backend | str | None = None,
        ) -> None: ...

    def forward(self, x: Tensor[Float], offset: int = 0) -> Tensor[Float]:
        """Map (…, length, d_model) to the same shape; the first row is at position ``offset``.

        Raises:
            ShapeError: when the last axis is not d_model.
        """
        s = self.settings
        _check("SinusoidalEncoding", x, s.d_model, offset)
        pair = turns(x, s, offset)
        return x + stack(pair, axis=-1).reshape(x.shape[-2], s.d_model)


class LearnedEncodingConfig(LayerConfig["LearnedEncoding"]):
    """Settings of ``LearnedEncoding``.

    Attributes:
        max_length: number of positions.
        d_model: size of the last axis.
        initializer: first values of the rows that are added.
    """

    max_length: int
    d_model: int
    initializer: init.Initializer = init.Normal(std=0.02)

    def parts(self, device: Backend | str | None) -> dict[str, Any]:
        """Return the weight."""
        return {"weight": self.initializer.param((self.max_length, self.d_model), device)}


class LearnedEncoding(Layer[LearnedEncodingConfig]):
    """Adds a learned row for each position.

    weight: (max_length, d_model).
    """

    weight: Param

    # The constructor, generated by tools/gen.py from LearnedEncodingConfig; do not edit.
    if TYPE_CHECKING:

        def __init__(
            self,
            max_length: int,
            d_model: int,
            initializer: init.Initializer = ...,
            *,
            device: Backend | str | None = None,
        ) -> None: ...

    def forward(self, x: Tensor[Float], offset: int = 0) -> Tensor[Float]:
        """Map (…, length, d_model) to the same shape; the first row is at position ``offset``.

        Raises:
            ShapeError: when the last axis is not d_model, or the sequence is too long.
        """
        s = self.settings
        _check("LearnedEncoding", x, s.d_model, offset)
        check_dtype(self, x, self.weight)
        end = offset + x.shape[-2]
        if end > s.max_length:
            raise ShapeError(
                "LearnedEncoding",
                "the sequence is too long",
                got=f"{end} positions",
                expected=f"at most {s.max_length}",
            )
        return x + self.weight.value[offset:end]


class RotaryScalingConfig(Config):
    """How rates of rotation are slowed down for sequences longer than those of training.

    Without a length each rate is divided by the factor (Chen et al., 2023). With one, waves that
    it holds more than ``high`` times stay as they are, those that it holds less than ``low`` times
    are slowed down, and those between by a part, as in Llama 3.1. With ``factors`` each rate is
    divided by its own, as in LongRoPE (Ding et al., 2024).

    Attributes:
        factor: how many times as long sequences may be.
        original_length: the length in training, or None.
        low: turns in that length below which a rate is divided by the factor.
        high: turns above which a rate stays.
        factors: what each rate is divided by, one for each pair of columns.
        amplitude: what turned pairs are multiplied by.
    """

    factor: float
    original_length: int | None = None
    low: float = 1.0
    high: float = 4.0
    factors: tuple[float, ...] | None = None
    amplitude: float = 1.0

    def validate(self) -> None:
        """Raise ConfigError for a scaling that makes no sense."""
        self.require("factor", self.factor > 0, "> 0")
        length = self.original_length
        self.require("original_length", length is None or length > 0, "a length, or None")
        self.require("high", 0 < self.low < self.high, "0 < low < high")
        self.require("factors", all(f > 0 for f in self.factors or ()), "each > 0")
        self.require("amplitude", self.amplitude > 0, "> 0")

    def scaled(self, rates: Tensor[Float]) -> Tensor[Float]:
        """Return the rates, slowed down where that is due."""
        if self.factors is not None:
            return rates / asarray(self.factors, dtype=rates.dtype, device=rates.device)
        if self.original_length is None:
            return rates / self.factor
        turns = rates * (self.original_length / tau)
        kept = ((turns - self.low) / (self.high - self.low)).clip(0.0, 1.0)
        return rates * (kept + (1.0 - kept) / self.factor)


class RotaryEncodingConfig(LayerConfig["RotaryEncoding"]):
    """Settings of ``RotaryEncoding``.

    Attributes:
        d_head: size of the last axis; even.
        theta: base of the rates, which go from 1 down to about 1 / theta.
        interleaved: whether neighbors are turned together, as the paper has it; else column i with
            column i + d_head / 2, as weights in the manner of Llama and GPT-NeoX want it.
        scaling: slows rates down for longer sequences than those of training.
    """

    d_head: int
    theta: float = 10000.0
    interleaved: bool = True
    scaling: RotaryScalingConfig | None = None

    def validate(self) -> None:
        """Raise ConfigError unless columns come in pairs."""
        self.require("d_head", self.d_head > 0 and self.d_head % 2 == 0, "an even number")
        self.require("theta", self.theta > 0, "> 0")
        factors = self.scaling.factors if self.scaling else None
        fits = factors is None or len(factors) == self.d_head // 2
        self.require("scaling", fits, f"{self.d_head // 2} factors")


class RotaryEncoding(Layer[RotaryEncodingConfig]):
    """Turns pairs of columns of queries and keys by their position.

    Su et al., 2021, https://arxiv.org/abs/2104.09864
    """

    # The constructor, generated by tools/gen.py from RotaryEncodingConfig; do not edit.
    if TYPE_CHECKING:

        def __init__(
            self,
            d_head: int,
            theta: float = 10000.0,
            interleaved: bool = True,
            scaling: RotaryScalingConfig | None = None,
            *,
            device: Backend | str | None = None,
        ) -> None: ...

    def forward(self, x: Tensor[Float], offset: int = 0) -> Tensor[Float]:
        """Map (…, length, d_head) to the same shape; the first row is at position ``offset``.

        Raises:
            ShapeError: when the last axis is not d_head.
        """
        s = self.settings
        _check("RotaryEncoding", x, s.d_head, offset)
        half = s.d_head // 2
        sine, cosine = turns(x, s, offset)
        if not s.interleaved:
            left, right = x[..., :half], x[..., half:]
            turned = (left * cosine - right * sine, right * cosine + left * sine)
            return concat(turned, axis=-1)
        pairs = x.reshape(*x.shape[:-1], half, 2)
        left, right = pairs[..., 0], pairs[..., 1]
        turned = (left * cosine - right * sine, right * cosine + left * sine)
        return stack(turned, axis=-1).reshape(x.shape)
