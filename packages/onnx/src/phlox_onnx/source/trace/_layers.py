"""Nodes whose weights are constants, as layers of phlox: settings, weights, and the call."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import Any, Final, final

import numpy as np

from ..._graph import OWN, Array, Key, Node

Settings = list[tuple[str, Any]]
# Settings that are as layers have them by themselves are not written.
DEFAULTS: Final[dict[str, Any]] = {
    "activation": "tanh",
    "bias": True,
    "bidirectional": False,
    "dilation": 1,
    "epsilon": 1e-5,
    "groups": 1,
    "momentum": 0.1,
    "stride": 1,
}


@final
@dataclass(frozen=True)
class Layer:
    """A layer and what it is made of.

    Attributes:
        kind: its name in ``phlox.nn``.
        settings: arguments of its constructor; those without a name come first.
        arrays: its parameters, by their path in the layer.
        sources: the names of the constants that it takes.
        inputs: which inputs of the node it is called with.
        default: what the layer is called where the file has no name.
    """

    kind: str
    settings: Settings
    arrays: dict[str, Array]
    sources: tuple[str, ...]
    inputs: tuple[int, ...] = (0,)
    default: str = ""


Constants = Mapping[str, Array]


def layer_of(node: Node, constants: Constants) -> Layer | None:
    """The layer of a node, or None."""
    make = LAYERS.get(node.key)
    if make is None or node.graphs:
        return None
    found = make(node, constants)
    if found is None or any(a.dtype != np.float32 for a in found.arrays.values()):
        return None
    return found


# Layers of whole tensors, and where along these the weight lies.
_AXES: Final = {
    "BatchNorm": 1,
    "GroupNorm": 1,
    "InstanceNorm": 1,
    "LayerNorm": -1,
    "PRelu": 1,
    "RmsNorm": -1,
}
_RANKS: Final = {"PRelu": 4}  # of what a layer takes that looks for the axis of its weight


def fits(layer: Layer, values: list[Any], specs: Any) -> bool:
    """Whether a layer does with these inputs what the op does, which broadcasts."""
    if layer.kind not in _AXES:
        return True
    x, weight = values[0], layer.arrays["weight"]
    shapes = [s.shape for s in x.specs] if getattr(x, "specs", None) else []
    if any(a.shape != weight.shape for a in layer.arrays.values()) or not (
        specs or weight.size > 1
    ):
        return False
    rank = _RANKS.get(layer.kind)
    if rank is not None and (not shapes or any(len(shape) != rank for shape in shapes)):
        return False
    axis = _AXES[layer.kind]
    return all(len(s) > axis and s[axis] == weight.size for s in shapes if s)


def _given(node: Node, constants: Constants, *places: int) -> list[Array | None] | None:
    """The constants at some inputs, None for absent ones; None when one is no constant."""
    out: list[Array | None] = []
    for i in places:
        name = node.inputs[i] if i < len(node.inputs) else ""
        if name and name not in constants:
            return None
        out.append(constants[name] if name else None)
    return out


def _sources(node: Node, *places: int) -> tuple[str, ...]:
    return tuple(node.inputs[i] for i in places if i < len(node.inputs) and node.inputs[i])


def _one(values: Any) -> Any:
    """One number where all are the same."""
    values = tuple(int(v) for v in values)
    return values[0] if len(set(values)) == 1 else values


def _weights(node: Node, constants: Constants) -> dict[str, Array] | None:
    """Weight and bias at the inputs 1 and 2, if both are constants; the bias may be absent."""
    found = _given(node, constants, 1, 2)
    if found is None or found[0] is None:
        return None
    return {k: v for k, v in zip(("weight", "bias"), found, strict=True) if v is not None}


def linear(node: Node, constants: Constants) -> Layer | None:
    arrays = _weights(node, constants)
    if arrays is None or arrays["weight"].ndim != 2:
        return None
    rows, columns = arrays["weight"].shape
    if "bias" in arrays and arrays["bias"].shape != (columns,):
        return None
    settings: Settings = [("", rows), ("", columns), ("bias", "bias" in arrays)]
    return Layer("Linear", settings, arrays, _sources(node, 1, 2), (0,), "linear")


def _pads(node: Node, rank: int) -> Any:
    """The padding as layers write it, or None where they cannot."""
    words = node.attributes
    auto = words.get("auto_pad", "NOTSET")
    if auto == "VALID":
        return 0
    if auto == "SAME_UPPER":
        return "same"
    if auto not in ("NOTSET", ""):
        return None
    pads = words.get("pads") or (0,) * (2 * rank)
    pairs = [(int(pads[i]), int(pads[i + rank])) for i in range(rank)]
    if any(a < 0 or b < 0 for a, b in pairs):
        return None
    if all(a == b for a, b in pairs):
        found = _one(a for a, _ in pairs)
        return found if rank > 1 or isinstance(found, int) else pairs[0]
    return pairs[0] if rank == 1 else tuple(pairs)


def _windows_fit(node: Node, weight: Array) -> bool:
    """Whether lists of the node have a number for each axis, and its window is the weights'."""
    words, rank = node.attributes, weight.ndim - 2
    counts = {"strides": rank, "dilations": rank, "pads": 2 * rank, "output_padding": rank}
    long = [k for k, n in counts.items() if words.get(k) and len(words[k]) != n]
    return not long and tuple(words.get("kernel_shape") or weight.shape[2:]) == weight.shape[2:]


def _convolution(transposed: bool) -> Callable[[Node, Constants], Layer | None]:
    """Convolutions, or those turned round, that layers can be."""

    def make(node: Node, constants: Constants) -> Layer | None:
        arrays, words = _weights(node, constants), node.attributes
        if arrays is None or arrays["weight"].ndim not in (3, 4, 5):
            return None
        weight = arrays["weight"]
        rank, groups = weight.ndim - 2, int(words.get("group", 1))
        padding = _pads(node, rank) if _windows_fit(node, weight) else None
        if padding is None:
            return None
        kind, channels = f"Conv{rank}d", [weight.shape[1] * groups, weight.shape[0]]
        if transposed:
            kind, channels = f"ConvTranspose{rank}d", channels[::-1]
            flat = padding if isinstance(padding, tuple) else (padding,)
            more = words.get("output_shape") or any(words.get("output_padding") or ())
            if more or not all(isinstance(p, int) for p in flat):
                return None
        settings: Settings = [*(("", n) for n in channels), ("", _one(weight.shape[2:]))]
        for word, key in (("stride", "strides"), ("dilation", "dilations")):
            settings.append((word, _one(words.get(key) or (1,) * rank)))
        settings += [("groups", groups), ("padding", padding), ("bias", "bias" in arrays)]
        return Layer(kind, settings, arrays, _sources(node, 1, 2), (0,), "conv")

    return make


def batch_norm(node: Node, constants: Constants) -> Layer | None:
    found = _given(node, constants, 1, 2, 3, 4)
    many = len([o for o in node.outputs if o]) > 1
    if found is None or many or node.attributes.get("training_mode", 0):
        return None
    names = ("weight", "bias", "running_mean", "running_var")
    arrays = {k: v for k, v in zip(names, found, strict=True) if v is not None}
    if len(arrays) < 4 or arrays["weight"].ndim != 1:
        return None
    momentum = round(1 - float(node.attributes.get("momentum", 0.9)), 6)
    settings = [("", arrays["weight"].size), *_epsilon(node), ("momentum", momentum)]
    return Layer("BatchNorm", settings, arrays, _sources(node, 1, 2, 3, 4), (0,), "norm")


def _epsilon(node: Node) -> Settings:
    epsilon = float(str(np.float32(node.attributes.get("epsilon", 1e-5))))
    return [("epsilon", epsilon)]


def _norm(kind: str) -> Callable[[Node, Constants], Layer | None]:
    """Normalizations whose weights are vectors."""

    def make(node: Node, constants: Constants) -> Layer | None:
        arrays, words = _weights(node, constants), node.attributes
        many = len([o for o in node.outputs if o]) > 1
        if arrays is None or many or words.get("axis", -1) != -1:
            return None
        if any(v.ndim != 1 for v in arrays.values()):
            return None
        size, both = arrays["weight"].size, "bias" in arrays
        groups = int(words.get("num_groups", 0))
        # Before version 21 there was one weight for each group.
        if groups == size or (kind in ("GroupNorm", "InstanceNorm") and not both):
            return None
        settings: Settings = [*([("", groups)] if groups else []), ("", size), *_epsilon(node)]
        settings += {"LayerNorm": [("bias", both)], "InstanceNorm": [("affine", True)]}.get(
            kind, []
        )
        return Layer(kind, settings, arrays, _sources(node, 1, 2), (0,), "norm")

    return make


def embedding(node: Node, constants: Constants) -> Layer | None:
    table = constants.get(node.inputs[0])
    whole = table is not None and table.ndim == 2 and table.dtype.kind == "f"
    if table is None or not whole or node.attributes.get("axis", 0) or node.inputs[1] in constants:
        return None
    settings: Settings = [("", table.shape[0]), ("", table.shape[1])]
    return Layer("Embedding", settings, {"weight": table}, _sources(node, 0), (1,), "embedding")


def prelu(node: Node, constants: Constants) -> Layer | None:
    slope = constants.get(node.inputs[1])
    if slope is None or slope.ndim != 3 or slope.shape[1:] != (1, 1):
        return None
    settings: Settings = [("", slope.size)]
    arrays = {"weight": slope.reshape(-1)}
    return Layer("PRelu", settings, arrays, _sources(node, 1), (0,), "prelu")


def recurrent(kind: str) -> Callable[[Node, Constants], Layer | None]:
    """Those that importing made one weight for each use of, behind sequence, lengths and states."""

    def make(node: Node, constants: Constants) -> Layer | None:
        names = node.inputs[4:]
        paths = [f"layers.{i // 4}.{_RECURRENT[i % 4]}" for i in range(len(names))]
        given = {path: name for path, name in zip(paths, names, strict=True) if name}
        if not all(name in constants for name in given.values()):
            return None
        arrays = {path: constants[name] for path, name in given.items()}
        size, columns = arrays["layers.0.weight_input"].shape[0], arrays["layers.0.weight_hidden"]
        two = node.attributes.get("direction") == "bidirectional"
        settings: Settings = [("", size), ("", columns.shape[0]), ("bidirectional", two)]
        settings.append(("bias", any("bias" in path for path in given)))
        if kind == "Rnn":
            settings.append(("activation", node.attributes.get("activation", "tanh")))
        sources = tuple(given.values())
        return Layer(kind, settings, arrays, sources, (0, 1, 2, 3), kind.lower())

    return make


_RECURRENT: Final = ("weight_input", "weight_hidden", "bias_input", "bias_hidden")


LAYERS: Final[dict[Key, Callable[[Node, Constants], Layer | None]]] = {
    ("", "BatchNormalization"): batch_norm,
    ("", "Conv"): _convolution(transposed=False),
    ("", "ConvTranspose"): _convolution(transposed=True),
    ("", "Gather"): embedding,
    ("", "GroupNormalization"): _norm("GroupNorm"),
    ("", "InstanceNormalization"): _norm("InstanceNorm"),
    ("", "LayerNormalization"): _norm("LayerNorm"),
    ("", "PRelu"): prelu,
    ("", "RMSNormalization"): _norm("RmsNorm"),
    ("", "SimplifiedLayerNormalization"): _norm("RmsNorm"),
    (OWN, "GRU"): recurrent("Gru"),
    (OWN, "LSTM"): recurrent("Lstm"),
    (OWN, "Linear"): linear,
    (OWN, "RNN"): recurrent("Rnn"),
}
