"""All that is written for a file: the module, what stands beside it, the parameters, the report."""

from __future__ import annotations

from collections import Counter
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from hashlib import blake2b
from pathlib import Path
from typing import Any, Final, Literal, final, get_args

import numpy as np

from phlox_nn import fits_path
from phlox_record import (
    FullPrecision,
    HalfPrecision,
    KeepPrecision,
    NamedMsgpackRecorder,
    ParamEntry,
)
from phlox_tensor import ArgumentError, Numpy, asarray

from .._graph import Array, Graph, Value, walk
from .._limits import Limits
from .._model import Source, prepared, refuse_unsupported
from .._quantized import Quantized, without_whole_numbers
from .._roles import roles
from ._emit import Emitter
from ._patterns import recognised
from ._simplify import simplified
from ._structure import Structure
from ._write import Writer

Sizes = Mapping[str, int]
Precision = Literal["keep", "full", "half"]
Cases = dict[str, tuple[tuple[int, ...], tuple[int, ...]] | None]


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
    """

    model: str
    ops: str | None
    params: dict[str, tuple[Array, str]]
    report: dict[str, Any]
    inputs: list[Value]
    precision: Precision = "keep"


@final
@dataclass(frozen=True)
class _Wanted:
    """What a caller asks of the source."""

    bind: Sizes
    free: Mapping[str, str]
    freeze: Sequence[str]
    flat: bool
    quantized: Quantized


def package(
    file: Source,
    *,
    bind: Sizes | None = None,
    free: Mapping[str, str] | None = None,
    precision: Precision = "keep",
    freeze: str | Sequence[str] = (),
    flat: bool = False,
    quantized: Quantized = "fake",
    limits: Limits | None = None,
) -> Package:
    """Return the source of a file, with what belongs to it; see ``write``.

    Raises:
        ArgumentError: when a size, a path or a word of an option is none of the file.
        OnnxError: when the file is malformed, or holds what cannot be written.
    """
    if precision not in get_args(Precision):
        expected = ", ".join(map(repr, get_args(Precision)))
        raise ArgumentError("write", "unknown precision", got=repr(precision), expected=expected)
    where = [freeze] if isinstance(freeze, str) else list(freeze)
    wanted = _Wanted(bind or {}, free or {}, where, flat, quantized)
    tries = (_package(file, wanted, limits or Limits(), scale) for scale in SCALES)
    best = next(tries)
    if best.report["called"]:  # perhaps the sizes were too small for it
        other = next(tries)
        fewer = sum(other.report["called"].values()) < sum(best.report["called"].values())
        best = other if fewer else best
    best.precision = precision
    return best


def _package(file: Source, wanted: _Wanted, limits: Limits, scale: int) -> Package:
    graph = prepared(file, limits)
    _opened(graph, wanted.free)
    _refuse_unknown(graph, wanted.bind)
    without_whole_numbers(graph, wanted.quantized)
    refuse_unsupported(graph)
    nodes = len(list(walk(graph)))
    ops = Counter(n.op for n in walk(graph))
    counts = simplified(graph)
    trained = set(roles(graph).trained)
    inputs = list(graph.inputs)
    found = recognised(graph)
    emitter = Emitter(trained, _cases(graph, wanted.bind, scale))
    numbers, block = emitter.model(graph)
    structure = Structure(numbers, block, emitter.fields)
    structure.divide(whole=wanted.flat)
    title = f"A model of {nodes} nodes of ONNX, as phlox writes it."
    writer = Writer(structure, emitter.trace.kinds, [v.name for v in inputs], title)
    copies = emitter.copies if emitter.copies.names else None
    params = {path: (array, role) for path, array, role in writer.arrays()}
    frozen = _frozen(params, wanted.freeze)
    model = writer.source(copies is not None, wanted.freeze)
    report = {
        "nodes": nodes,
        "ops": dict(sorted(ops.items())),
        "simplified": counts,
        "recognised": dict(found),
        "layers": dict(sorted(_layers(emitter, structure).items())),
        "called": dict(sorted(emitter.called.items())),
        "classes": len(structure.parts) + 1,
        "lines": model.count("\n"),
        "trained": _sized(params, "weight") - sum(params[path][0].size for path in frozen),
        "frozen": sum(params[path][0].size for path in frozen),
        "state": _sized(params, "state"),
        "lost": _lost(ops),
    }
    return Package(model, copies.source() if copies else None, params, report, inputs)


def _opened(graph: Graph, free: Mapping[str, str]) -> None:
    """Give sizes that are numbers in the file a name."""
    for place, word in free.items():
        name, _, axis = place.rpartition(":")
        value = next((v for v in graph.inputs if v.name == name), None)
        rank = len(value.shape) if value is not None and value.shape is not None else 0
        if value is None or value.shape is None or not axis.isdigit() or int(axis) >= rank:
            known = [v.name for v in graph.inputs if v.shape]
            hint = f"free={{'{known[0]}:0': 'batch'}}" if known else None
            got, expected = repr(place), "INPUT:AXIS of " + (", ".join(known) or "no input")
            raise ArgumentError("write", "no such size", got=got, expected=expected, hint=hint)
        shape = list(value.shape)
        shape[int(axis)] = word
        value.shape = tuple(shape)


def _refuse_unknown(graph: Graph, bind: Sizes) -> None:
    """Every size that is bound has to be one of the file."""
    known = [
        n if isinstance(n, str) else f"{v.name}:{i}"
        for v in graph.inputs
        for i, n in enumerate(v.shape or ())
    ]
    for name in bind:
        if name not in known:
            expected = ", ".join(dict.fromkeys(known)) or "no size: inputs have none"
            raise ArgumentError("write", "no such size", got=repr(name), expected=expected)


def _frozen(params: Mapping[str, tuple[Array, str]], freeze: Sequence[str]) -> set[str]:
    """Paths of the weights that are not trained."""
    weights = [path for path, (_, role) in params.items() if role == "weight"]
    out: set[str] = set()
    for where in freeze:
        # What a path decides needs no parameter.
        found = {path for path in weights if fits_path(where, path, Any)}  # type: ignore[arg-type]
        if not found:
            expected = ", ".join(weights[:4]) or "a file with weights"
            raise ArgumentError(
                "write", "no weight has such a path", got=repr(where), expected=expected
            )
        out |= found
    return out


def source(file: Source, **options: Any) -> str:
    """Return the source of ``model.py`` for a file; options are those of ``package``."""
    return package(file, **options).model


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
        for axis, n in enumerate(value.shape):
            name = n if isinstance(n, str) else f"{value.name}:{axis}"
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


_INIT: Final = '''"""A model of ONNX as source."""

from .model import Model as Model
from .model import ModelConfig as ModelConfig
from .model import load as load
'''


def write(
    file: Source,
    folder: str | Path,
    *,
    bind: Sizes | None = None,
    free: Mapping[str, str] | None = None,
    precision: Precision = "keep",
    freeze: str | Sequence[str] = (),
    flat: bool = False,
    quantized: Quantized = "fake",
    limits: Limits | None = None,
) -> Package:
    """Write a file as a Python package: readable source, its weights as a record, a report.

    The package needs phlox alone: ``from folder import load; model = load(device)``.

    Args:
        file: the path of a file, or its bytes.
        folder: is made; files of these names in it are replaced.
        bind: sizes by the names that the file has for them, or as ``"input:0"``; they become
            numbers in the source.
        free: names for sizes that are numbers in the file, as ``{"input:0": "batch"}``; they stay
            open in the source, where the file itself does not count on them.
        precision: how the record keeps floats: as in the file, in float32, or in float16. The
            model computes in the types of the file.
        freeze: paths of weights or modules that ``load`` of the package does not train; ``*``
            stands for anything.
        flat: makes one class of it all, with one forward in the order of the file.
        quantized: what becomes of whole numbers that stand for floats, as in ``load``.
        limits: what the file may ask for.

    Raises:
        ArgumentError: when a size, a path or a word of an option is none of the file.
        OnnxError: when the file is malformed, or holds what cannot be written.
        OSError: when the folder cannot be written.

    Example:
        >>> import onnx, tempfile
        >>> text = '<ir_version: 8, opset_import: ["" : 18]> f (float[2] x) => (float[2] y)'
        >>> file = onnx.parser.parse_model(text + " { y = Relu(x) }")
        >>> with tempfile.TemporaryDirectory() as folder:
        ...     made = write(file.SerializeToString(), folder)
        >>> made.report["nodes"]
        1
    """
    made = package(
        file,
        bind=bind,
        free=free,
        precision=precision,
        freeze=freeze,
        flat=flat,
        quantized=quantized,
        limits=limits,
    )
    written_to(made, Path(folder))
    return made


_PRECISIONS: Final = {"full": FullPrecision, "half": HalfPrecision, "keep": KeepPrecision}


def written_to(made: Package, folder: Path) -> None:
    """Write a package into a folder that is made."""
    folder.mkdir(parents=True, exist_ok=True)
    texts = {"__init__.py": _INIT, "model.py": made.model, "_ops.py": made.ops}
    for name, text in {**texts, "report.md": report_of(made)}.items():
        if text is not None:
            (folder / name).write_text(text, encoding="utf-8")
        else:
            (folder / name).unlink(missing_ok=True)
    NamedMsgpackRecorder(_PRECISIONS[made.precision]).record(_record(made), folder / "weights.mpk")


def report_of(made: Package) -> str:
    """What became of a file, as Markdown."""
    r = made.report
    simple = ", ".join(f"{n} {word}" for word, n in r["simplified"].items() if n) or "nothing"
    lines = [
        "# Report",
        "",
        f"{r['nodes']} nodes became {r['lines']} lines in {r['classes']} classes.",
        "",
        f"- inputs: {', '.join(map(_described, made.inputs))}",
        f"- trained: {r['trained']} numbers; frozen: {r['frozen']}; state: {r['state']}",
        f"- simplified: {simple}",
        f"- recognised: {_counts(r['recognised'])}",
        f"- layers and parameters: {_counts(r['layers'])}",
        f"- left as plain ops, in `_ops.py`: {_counts(r['called'])}",
        *(f"- lost: {text}" for text in r["lost"]),
    ]
    return "\n".join(lines) + "\n"


def _described(value: Value) -> str:
    sizes = "?" if value.shape is None else ", ".join(str(n or "?") for n in value.shape)
    return ascii(f"{value.name} {value.dtype} ({sizes})")


def _counts(found: Mapping[str, int]) -> str:
    return ", ".join(f"{word} {n}" for word, n in found.items()) or "none"


def _record(made: Package) -> dict[str, Any]:
    """The parameters as the tree that the model loads; ids follow from the paths."""
    out: dict[str, Any] = {}
    for path, (array, _) in made.params.items():
        branch = out
        *words, last = path.split(".")
        for word in words:
            branch = branch.setdefault(word, {})
        name = blake2b(path.encode(), digest_size=8).hexdigest()
        branch[last] = ParamEntry(name, asarray(np.ascontiguousarray(array), device=Numpy()))
    return out
