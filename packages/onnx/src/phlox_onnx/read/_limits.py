"""What a file may ask for before anything is believed or allocated."""

from __future__ import annotations

from dataclasses import dataclass
from math import prod
from typing import Final, final

from phlox_tensor import ArgumentError

from .._errors import OnnxError

# Places and weights that a row computes on the host, before there is a tensor of them.
HOST: Final = 1 << 24


def refuse_long(op: str, *sizes: int) -> None:
    """Refuse what would be too much for the host.

    Raises:
        OnnxError: when there are more than 16 million of them.
    """
    if prod(sizes) > HOST:
        got = " by ".join(f"{n:,}" for n in sizes)
        raise OnnxError(op, "a result is too large", got=got, expected=f"at most {HOST:,} places")


@final
@dataclass(frozen=True)
class Limits:
    """Caps on what a file may hold; a file beyond one of them is refused.

    Attributes:
        file_bytes: size of the model file without external data.
        nodes: nodes of all graphs together, functions inlined.
        depth: how deep graphs and functions may nest.
        name: characters of a name.
        rank: axes of a tensor.
        attributes: attributes of a node.
        elements: what a node may make out of numbers in the file, such as paddings and sizes.

    Example:
        >>> import onnx
        >>> from phlox_onnx import load
        >>> text = '<ir_version: 8, opset_import: ["" : 18]> f (float[2] x) => (float[2] y)'
        >>> file = onnx.parser.parse_model(text + " { a = Relu(x) y = Neg(a) }")
        >>> load(file, limits=Limits(nodes=1))
        Traceback (most recent call last):
        phlox_onnx._errors.OnnxError: [onnx] too many nodes: got 2, expected 1
    """

    file_bytes: int = 2 << 30  # what protobuf can hold
    nodes: int = 1_000_000
    depth: int = 64
    name: int = 1000
    rank: int = 32
    attributes: int = 1000
    elements: int = 1 << 30  # 4 GiB of float32

    def __post_init__(self) -> None:
        """Look at each of them.

        Raises:
            ArgumentError: for one that is no whole number above 0.
        """
        for name, value in vars(self).items():
            if not isinstance(value, int) or isinstance(value, bool) or value < 1:
                got, expected = f"{name}={value!r}", "a whole number above 0"
                raise ArgumentError("Limits", "no limit", got=got, expected=expected)
