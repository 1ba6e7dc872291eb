"""All that is written for a file: the module, what stands beside it, the parameters."""

from __future__ import annotations

from collections import Counter
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any, Final, final

import numpy as np

from phlox_nn.where import fits_path
from phlox_tensor import ArgumentError

from .._graph import Array, Graph, Value, copied, graphs_of, walk
from ..read._limits import Limits
from ..read._read import Source
from ..read._types import CODES
from ..run._model import prepared, refuse_unsupported
from ..run._quantized import Quantized, without_whole_numbers
from ..run._recurrent import with_recurrent_layers
from ..run._roles import roles
from ._options import Options, Precision, Sizes, freed_sizes, names_of, refuse_unknown
from .graph._patterns import recognised
from .graph._probe import Cases, collapsed, shapes_of
from .graph._simplify import Forms, in_several_ways, simplified
from .text._structure import Structure
from .text._write import Writer
from .trace._emit import Emitter
from .trace._expr import wide_numbers
from .trace._traced import Traced

# Attributes that say of which type something is.
_TYPES: Final = ("dtype", "output_datatype", "output_dtype", "precision", "to")


@final
@dataclass
class Package:
    """A file as source.

    Attributes:
        model: the text of ``model.py``.
        ops: that of ``_ops.py``, if it is needed.
        params: every parameter by its path, with its role.
        report: what became of the file.
        inputs: names, types and sizes of the inputs.
        precision: how the record keeps floats.
        proof: what verifying said, if that was done.
        freed: the numbers that the file has where sizes were freed.
        graph: what the text was made of; a type of no public module.
        forms: constants of it in other forms than those of the file; likewise.

    Example:
        >>> import onnx, tempfile
        >>> from phlox_onnx import write
        >>> text = '<ir_version: 8, opset_import: ["" : 18]> f (float[2] x) => (float[2] y)'
        >>> file = onnx.parser.parse_model(text + " { y = Relu(x) }")
        >>> with tempfile.TemporaryDirectory() as folder:
        ...     made = write(file, folder)
        >>> made.ops is None, list(made.params), made.report["classes"]
        (True, [], 1)
    """

    model: str
    ops: str | None
    params: dict[str, tuple[Array, str]]
    report: dict[str, Any]
    inputs: list[Value]
    graph: Graph
    forms: Forms
    precision: Precision = "keep"
    proof: list[str] = field(default_factory=list)
    freed: dict[str, int] = field(default_factory=dict)


def package(file: Source, options: Options) -> Package:
    """Return the source of a file, with what belongs to it; see ``write``.

    Raises:
        ArgumentError: when a size or a path of an option is none of the file.
        OnnxError: when the file is malformed, or holds what cannot be written.
    """
    graph = prepared(file, options.limits)
    freed = freed_sizes(graph, options.free)
    refuse_unknown(graph, options.bind)
    without_whole_numbers(graph, options.quantized)
    refuse_unsupported(graph)
    _refuse_counted_on(graph, options.bind, freed)
    best = _best(graph, options)
    best.freed = freed
    return best


def _refuse_counted_on(graph: Graph, bind: Sizes, freed: Sizes) -> None:
    """Refuse sizes that were freed and that nodes want to be the number of the file."""
    for name, size in freed.items():
        known = [
            set(shapes_of(graph, _cases(graph, {**bind, **freed, name: n}, SCALES[0])))
            for n in (size, 2 * size, max(1, size // 2))
        ]
        if known[0] - known[1] and known[0] - known[2]:
            got = f"{name!r}, which is {size} there"
            raise ArgumentError("write", "other parts of the file count on a size", got=got)


def _best(graph: Graph, options: Options) -> Package:
    """The source that sizes of one scale lead to: none that look constant there and are not."""
    small, large = (_cases(graph, options.bind, scale) for scale in SCALES)
    if small == large:
        return _package(graph, options, small)
    wrong = collapsed(graph, small, large)
    if wrong[0] != wrong[1]:
        return _package(graph, options, large if wrong[0] else small)
    best = _package(copied(graph), options, small)
    if _unknown(best):  # perhaps the sizes were too small for it
        other = _package(copied(graph), options, large)
        best = other if _unknown(other) < _unknown(best) else best
    return best


def _unknown(made: Package) -> int:
    """Nodes that were written without knowing sizes."""
    return sum(made.report["called"].values()) + int(made.report["unsized"])


def _package(graph: Graph, options: Options, cases: Cases) -> Package:
    nodes = len(list(walk(graph)))
    ops = Counter(n.op for n in walk(graph))
    forms = Forms()
    with_recurrent_layers(graph, forms.origins)
    counts = simplified(graph, forms)
    inputs = list(graph.inputs)
    kept = with_recurrent_layers(graph, forms.origins)  # of weights that were computed, too
    found = recognised(graph, forms)
    forms.several = in_several_ways(graph)
    trained = set(roles(graph).trained)
    title = f"A model of {nodes} nodes of ONNX, as phlox writes it."
    with wide_numbers(_is_wide(graph)):
        emitter = Emitter(trained, forms, cases)
        numbers, block = emitter.model(graph)
        structure = Structure(numbers, block, emitter.fields)
        structure.divide(whole=options.flat)
        typed = [isinstance(v, Traced) and v.specs is not None for v in emitter.results]
        writer = Writer(structure, emitter.trace.kinds, [v.name for v in inputs], typed, title)
        copies = emitter.copies if emitter.copies.names else None
        params = {path: (array, role) for path, array, role in writer.arrays()}
        frozen = _frozen(params, options.freeze)
        model = writer.source(copies is not None, options.freeze)
    report = {
        "nodes": nodes,
        "ops": dict(sorted(ops.items())),
        "simplified": counts,
        "recognised": dict(found),
        "layers": dict(sorted(_layers(emitter, structure).items())),
        "called": dict(sorted(emitter.called.items())),
        "unsized": sum(emitter.unsized.values()),
        "kept": dict(sorted(kept.items())),
        "classes": len(structure.parts) + 1,
        "lines": model.count("\n"),
        "trained": _sized(params, "weight") - sum(params[path][0].size for path in frozen),
        "frozen": sum(params[path][0].size for path in frozen),
        "state": _sized(params, "state"),
        "lost": _lost(ops),
    }
    text = copies.source() if copies else None
    return Package(model, text, params, report, inputs, graph, forms, options.precision)


def _is_wide(graph: Graph) -> bool:
    """Whether a value has 64 bits, beside which a float of 32 bits needs all its digits."""
    code = CODES["float64"]
    nodes = list(walk(graph))
    used = {name for node in nodes for name in node.inputs}
    arrays = [v for each in graphs_of(graph) for k, v in each.constants.items() if k in used]
    words = [node.attributes.get(word) for node in nodes for word in _TYPES]
    wide = any(v.dtype == np.float64 for v in arrays) or any(v.code == code for v in graph.inputs)
    return wide or any(type(word) is int and word == code for word in words)


def _frozen(params: Mapping[str, tuple[Array, str]], freeze: Sequence[str]) -> set[str]:
    """Paths of the weights that are not trained."""
    weights = [path for path, (_, role) in params.items() if role == "weight"]
    out: set[str] = set()
    for where in freeze:
        found = {path for path in weights if fits_path(where, path)}
        if not found:
            expected = ", ".join(weights[:4]) or "a file with weights"
            raise ArgumentError(
                "write", "no weight has such a path", got=repr(where), expected=expected
            )
        out |= found
    return out


def source(
    file: Source,
    *,
    bind: Sizes | None = None,
    free: Mapping[str, str] | None = None,
    freeze: str | Sequence[str] = (),
    flat: bool = False,
    quantized: Quantized = "fake",
    limits: Limits | None = None,
) -> str:
    """Return the text of ``model.py`` that ``write`` would write, with the same options.

    Args:
        file: the path of a file, or its bytes.
        bind: sizes that become numbers, as in ``write``.
        free: numbers of the file that become sizes, as in ``write``.
        freeze: paths of what ``load`` of the source does not train.
        flat: makes one class of it all.
        quantized: what becomes of whole numbers that stand for floats, as in ``load``.
        limits: what the file may ask for.

    Raises:
        ArgumentError: when a size, a path or a word of an option is none of the file.
        OnnxError: when the file is malformed, or holds what cannot be written.

    Example:
        >>> import onnx
        >>> text = '<ir_version: 8, opset_import: ["" : 18]> f (float[2] x) => (float[2] y)'
        >>> "return x.relu()" in source(onnx.parser.parse_model(text + " { y = Relu(x) }"))
        True
    """
    asked = Options(bind, free, freeze, flat, quantized, limits=limits)
    return package(file, asked).model


def _layers(emitter: Emitter, structure: Structure) -> Counter[str]:
    parts = {p.name for p in structure.parts}
    return Counter(f.kind for f in emitter.fields if f.kind not in parts)


def _sized(params: Mapping[str, tuple[Array, str]], role: str) -> int:
    return sum(array.size for array, r in params.values() if r == role)


def _lost(ops: Counter[str]) -> list[str]:
    """What exporters leave out, which limits how far a model trains on."""
    out = []
    if not ops["Dropout"]:
        out.append("dropout, if there was any: the file has none")
    if ops["Conv"] and not ops["BatchNormalization"]:
        out.append("norms behind convolutions, if there were any: folded into the weights")
    return out


# Sizes that nobody gave are multiples of these: of pictures and words, and of sound.
SCALES: Final = (64, 5120)
# For the first axis small ones, so that no two names have the same.
_SMALL: Final = ((2, 3), (5, 7), (11, 13), (17, 19))


def _cases(graph: Graph, bind: Sizes, scale: int) -> Cases:
    """Two shapes for each input; sizes of one name are equal."""
    known: dict[str, tuple[int, int]] = {}
    out: Cases = {}
    for value in graph.inputs:
        if value.shape is None:
            out[value.name] = None
            continue
        pairs = []
        for axis, (n, name) in enumerate(zip(value.shape, names_of(value), strict=True)):
            if name in bind:
                pairs.append((bind[name], bind[name]))
            elif isinstance(n, int) and n > 0:
                pairs.append((n, n))
            else:
                pairs.append(known.setdefault(name, _pair(axis, known, scale)))
        out[value.name] = tuple(p[0] for p in pairs), tuple(p[1] for p in pairs)
    return out


def _pair(axis: int, known: dict[str, tuple[int, int]], scale: int) -> tuple[int, int]:
    if axis == 0:
        return next((p for p in _SMALL if p not in known.values()), (23, 29))
    k = 2 * (1 + sum(p[0] % scale == 0 for p in known.values()))
    return scale * k, scale * (k + 1)
