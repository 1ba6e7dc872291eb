"""All that is written for a file: the module, what stands beside it, the parameters, the report."""

from __future__ import annotations

from collections import Counter
from collections.abc import Mapping
from dataclasses import dataclass
from hashlib import blake2b
from pathlib import Path
from typing import Any, Final, final

import numpy as np

from phlox_record import KeepPrecision, NamedMsgpackRecorder, ParamEntry
from phlox_tensor import Numpy, asarray

from .._graph import Array, Graph, walk
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
    """

    model: str
    ops: str | None
    params: dict[str, tuple[Array, str]]
    report: dict[str, Any]
    inputs: list[Any]


def package(
    file: Source,
    *,
    bind: Sizes | None = None,
    quantized: Quantized = "fake",
    limits: Limits | None = None,
) -> Package:
    """Return the source of a file, with what belongs to it.

    Args:
        file: the path of a file, or its bytes.
        bind: sizes by the names that the file has for them; they become numbers in the source.
        quantized: what becomes of whole numbers that stand for floats, as in ``load``.
        limits: what the file may ask for.

    Raises:
        OnnxError: when the file is malformed, or holds what cannot be written.
    """
    tries = (_package(file, bind or {}, quantized, limits or Limits(), scale) for scale in SCALES)
    best = next(tries)
    if best.report["called"]:  # perhaps the sizes were too small for it
        other = next(tries)
        fewer = sum(other.report["called"].values()) < sum(best.report["called"].values())
        best = other if fewer else best
    return best


def _package(
    file: Source, bind: Sizes, quantized: Quantized, limits: Limits, scale: int
) -> Package:
    graph = prepared(file, limits)
    without_whole_numbers(graph, quantized)
    refuse_unsupported(graph)
    nodes = len(list(walk(graph)))
    ops = Counter(n.op for n in walk(graph))
    counts = simplified(graph)
    trained = set(roles(graph).trained)
    inputs = list(graph.inputs)
    found = recognised(graph)
    emitter = Emitter(trained, _cases(graph, bind, scale))
    numbers, block = emitter.model(graph)
    structure = Structure(numbers, block, emitter.fields)
    structure.divide()
    title = f"A model of {nodes} nodes of ONNX, as phlox writes it."
    writer = Writer(structure, emitter.trace.kinds, [v.name for v in inputs], title)
    copies = emitter.copies if emitter.copies.names else None
    model = writer.source(copies is not None)
    params = {path: (array, role) for path, array, role in writer.arrays()}
    report = {
        "nodes": nodes,
        "ops": dict(sorted(ops.items())),
        "simplified": counts,
        "recognised": dict(found),
        "layers": dict(sorted(_layers(emitter, structure).items())),
        "called": dict(sorted(emitter.called.items())),
        "classes": len(structure.parts) + 1,
        "lines": model.count("\n"),
        "trained": _sized(params, "weight"),
        "state": _sized(params, "state"),
        "lost": _lost(ops),
    }
    return Package(model, copies.source() if copies else None, params, report, inputs)


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
    quantized: Quantized = "fake",
    limits: Limits | None = None,
) -> Package:
    """Write a file as a Python package: readable source, its weights as a record, a report.

    The package needs phlox alone: ``from folder import load; model = load(device)``.

    Args:
        file: the path of a file, or its bytes.
        folder: is made; files of these names in it are replaced.
        bind: sizes by the names that the file has for them; they become numbers in the source.
        quantized: what becomes of whole numbers that stand for floats, as in ``load``.
        limits: what the file may ask for.

    Raises:
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
    made = package(file, bind=bind, quantized=quantized, limits=limits)
    written_to(made, Path(folder))
    return made


def written_to(made: Package, folder: Path) -> None:
    """Write a package into a folder that is made."""
    folder.mkdir(parents=True, exist_ok=True)
    texts = {"__init__.py": _INIT, "model.py": made.model, "_ops.py": made.ops}
    for name, text in {**texts, "report.md": report_of(made)}.items():
        if text is not None:
            (folder / name).write_text(text, encoding="utf-8")
        else:
            (folder / name).unlink(missing_ok=True)
    NamedMsgpackRecorder(KeepPrecision).record(_record(made), folder / "weights.mpk")


def report_of(made: Package) -> str:
    """What became of a file, as Markdown."""
    r = made.report
    simple = ", ".join(f"{n} {word}" for word, n in r["simplified"].items() if n) or "nothing"
    lines = [
        "# Report",
        "",
        f"{r['nodes']} nodes became {r['lines']} lines in {r['classes']} classes.",
        "",
        f"- trained: {r['trained']} numbers; state, which is not trained: {r['state']}",
        f"- simplified: {simple}",
        f"- recognised: {_counts(r['recognised'])}",
        f"- layers and parameters: {_counts(r['layers'])}",
        f"- left as plain ops, in `_ops.py`: {_counts(r['called'])}",
        *(f"- lost: {text}" for text in r["lost"]),
    ]
    return "\n".join(lines) + "\n"


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
