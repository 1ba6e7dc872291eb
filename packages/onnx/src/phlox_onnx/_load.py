"""Files as modules: with parameters under the names of the file, or where its source has them."""

from __future__ import annotations

from typing import Literal, get_args

from phlox_tensor import Backend, as_device, default_device

from ._errors import refuse_other_words
from .read._limits import Limits
from .read._read import Source
from .run._model import OnnxModel, built, model_of
from .run._quantized import Quantized
from .source import Options, package, tied

Paths = Literal["file", "source"]


def load(
    source: Source,
    *,
    device: Backend | str | None = None,
    quantized: Quantized = "fake",
    paths: Paths = "file",
    limits: Limits | None = None,
) -> OnnxModel:
    """Return the module of an ONNX file; nothing of the file is executed as code.

    Weights are trained by default, state such as running statistics is not: ``params`` of the
    module tells them apart, ``freeze`` and ``train`` change what is trained where.

    Args:
        source: the path of a file, or its bytes; data beside the file is only read with a path.
        device: where the parameters shall be; the default device by default.
        quantized: what becomes of whole numbers that stand for floats. ``"fake"`` rounds floats as
            the file does, with gradients that pass within the range, and weights become floats;
            ``"learned"`` trains the scales of that rounding too; ``"float"`` does not round;
            ``"exact"`` computes as it is written, without gradients.
        paths: what parameters are called. ``"file"`` takes the names of the file; ``"source"``
            those of the package that ``write`` makes of it without options, whose records fit
            then, at the price of the time that ``source`` takes.
        limits: what the file may ask for.

    Raises:
        ArgumentError: when ``quantized`` or ``paths`` is none of these.
        OnnxError: when the file is malformed, or has ops without a row; all of them are named.
        OSError: when the file cannot be read.

    Example:
        >>> import onnx
        >>> text = '<ir_version: 8, opset_import: ["" : 18]> f (float[2] x) => (float[2] y)'
        >>> file = onnx.parser.parse_model(text + " { y = Relu(x) }")
        >>> load(file.SerializeToString())([-1.0, 2.0]).tolist()
        [0.0, 2.0]
    """
    refuse_other_words("load", "quantized", quantized, get_args(Quantized))
    refuse_other_words("load", "paths", paths, get_args(Paths))
    limits = Limits() if limits is None else limits
    target = default_device() if device is None else as_device(device)
    if paths == "file":
        return model_of(source, target, quantized, limits)
    made = package(source, Options(quantized=quantized, limits=limits))
    found = tied(made.graph, made.params, made.forms)
    params = {name: made.params[path] for name, path in found.items()}
    places = {name: tuple(path.split(".")) for name, path in found.items()}
    return built(made.graph, params, places, target, limits.elements)
