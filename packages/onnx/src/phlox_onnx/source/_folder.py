"""A package in a folder: the texts, the record, the report."""

from __future__ import annotations

import os
import tempfile
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from hashlib import blake2b
from pathlib import Path
from typing import Any, Final, final

import numpy as np

from phlox_record import (
    FullPrecision,
    HalfPrecision,
    KeepPrecision,
    NamedMsgpackRecorder,
    ParamEntry,
)
from phlox_tensor import ArgumentError, Numpy, asarray

from .._errors import OnnxError
from ..read._limits import Limits
from ..read._read import Source
from ..run._quantized import Quantized
from ._options import Options, Precision, Sizes
from ._package import Package, package
from ._proof import Asked, Proof, proven
from ._verify import Feeds

_INIT: Final = '''"""A model of ONNX as source."""

from .model import Model as Model
from .model import ModelConfig as ModelConfig
from .model import load as load
'''

_FILES: Final = ("__init__.py", "_ops.py", "model.py", "report.md", "weights.mpk")


def write(  # noqa: PLR0913 - each option is a name of its own
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
    verify: bool | Feeds = True,
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
        verify: runs the package beside the file, on the default device, before it takes its place:
            with drawn inputs at up to three sizes of what is open, or with arrays by input.

    Raises:
        ArgumentError: when a size, a path or a word of an option is none of the file.
        OnnxError: when the file is malformed, or holds what cannot be written; when what was
            written differs from the file, or runs with none of the inputs: then nothing changes.
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
    asked = Options(bind, free, freeze, flat, quantized, precision, limits)
    if not _is_choice(verify):
        got = type(verify).__name__
        raise ArgumentError("write", "verify is no inputs", got=got, hint="{input: array}")
    how = Asked(sample=None if isinstance(verify, bool) else verify)
    return written(file, folder, asked, None if verify is False else how).package


@final
@dataclass(frozen=True)
class Written:
    """What was written, and what running it beside its file said, if that was done."""

    package: Package
    proof: Proof | None


def written(
    file: Source,
    folder: str | Path,
    options: Options,
    asked: Asked | None,
    *,
    keep_wrong: bool = False,
) -> Written:
    """Write a package beside its folder, run it beside its file, and put it into its place.

    Args:
        file: the path of a file, or its bytes.
        folder: is made; files of these names in it are replaced, all at once.
        options: those of ``write``.
        asked: how the package is looked at; not at all by default.
        keep_wrong: puts what does not pass into its place, too.

    Raises:
        OnnxError: when the package does not pass and is not kept: then nothing changes.
        OSError: when the folder cannot be written.
    """
    if not _is_path(folder):
        raise ArgumentError("write", "this is no folder", got=repr(folder), hint='"mymodel"')
    made, target, proof = package(file, options), Path(folder), None
    target.parent.mkdir(parents=True, exist_ok=True)
    with tempfile.TemporaryDirectory(dir=target.parent) as name:
        place = Path(name)
        _written_to(made, place)
        if asked is not None:
            proof = proven(file, place, made, _of_file(asked, options, made))
            made.proof = proof.lines
            if proof.wrong and not keep_wrong:
                raise _unproven(proof)
            (place / "report.md").write_text(report_of(made), encoding="utf-8")
        target.mkdir(exist_ok=True)
        for each in _FILES:
            (target / each).unlink(missing_ok=True)
            if (place / each).exists():
                os.replace(place / each, target / each)
    return Written(made, proof)


def _of_file(asked: Asked, options: Options, made: Package) -> Asked:
    return replace(
        asked,
        sizes=options.bind,
        freed=made.freed,
        quantized=options.quantized,
        limits=options.limits,
    )


def _unproven(proof: Proof) -> OnnxError:
    """The error of a package that differs from its file, or does not run."""
    hint = "verify={input: array} brings inputs that fit; verify=False leaves it out"
    got = proof.wrong[0].removeprefix("- ")
    return OnnxError("write", "the source does not pass", got=got, hint=hint)


def _is_choice(verify: object) -> bool:
    return isinstance(verify, bool | Mapping)


def _is_path(folder: object) -> bool:
    """Whether there is a folder, or may be one."""
    if not isinstance(folder, str | os.PathLike) or not str(folder):
        return False
    return Path(folder).is_dir() or not Path(folder).exists()


_PRECISIONS: Final = {"full": FullPrecision, "half": HalfPrecision, "keep": KeepPrecision}


def _written_to(made: Package, folder: Path) -> None:
    """Write a package into an empty folder."""
    texts = {"__init__.py": _INIT, "model.py": made.model, "_ops.py": made.ops}
    for name, text in {**texts, "report.md": report_of(made)}.items():
        if text is not None:
            (folder / name).write_text(text, encoding="utf-8")
    NamedMsgpackRecorder(_PRECISIONS[made.precision]).record(_record(made), folder / "weights.mpk")


def report_of(made: Package) -> str:
    """What became of a file, as Markdown."""
    r = made.report
    inputs = ", ".join(ascii(f"{v.name} {v.dtype} {v.sizes}") for v in made.inputs)
    simple = ", ".join(f"{n} {word}" for word, n in r["simplified"].items() if n) or "nothing"
    lines = [
        "# Report",
        "",
        f"{r['nodes']} nodes became {r['lines']} lines in {r['classes']} classes.",
        "",
        f"- inputs: {inputs}",
        f"- trained: {r['trained']} numbers; frozen: {r['frozen']}; state: {r['state']}",
        f"- simplified: {simple}",
        f"- recognised: {_counts(r['recognised'])}",
        f"- layers and parameters: {_counts(r['layers'])}",
        f"- left as plain ops, in `_ops.py`: {_counts(r['called'])}",
        *(f"- no layer, since it {why}: {_nodes(names)}" for why, names in r["kept"].items()),
        *(f"- lost: {text}" for text in r["lost"]),
        *(["", "## Verified", "", *(ascii_of(line) for line in made.proof)] if made.proof else []),
    ]
    return "\n".join(lines) + "\n"


def ascii_of(line: str) -> str:
    """A line in which names of a file are plain words."""
    return line.encode("ascii", "backslashreplace").decode()


def _nodes(names: list[str]) -> str:
    """Nodes as the report names them: the first, and how many more there are."""
    more = f" and {len(names) - 1} more" if len(names) > 1 else ""
    return ascii_of(names[0]) + more


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
        branch[last] = ParamEntry(name, asarray(np.asarray(array, order="C"), device=Numpy()))
    return out
