"""`phlox onnx`: what a file needs, and what there is."""

from __future__ import annotations

import argparse
import json
import sys
from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import Any, Final, get_args
from zipfile import BadZipFile

import numpy as np

from phlox_tensor import ArgumentError, PhloxError
from phlox_tensor.files import told

from ._graph import OWN, Key, Node, walk
from .read._limits import Limits
from .run._model import prepared, refuse_unsupported
from .run._quantized import Quantized
from .run._roles import roles
from .run._table import nearest, unsupported
from .source import Against, Asked, Options, Precision, Train, report_of, written
from .table import TABLE

# Options, what argparse is told of each, and what they do.
_OPTIONS: Final[tuple[tuple[str, dict[str, Any], str], ...]] = (
    ("--check", {"action": "store_true"}, "say what the file holds and what has no row"),
    ("--ops", {"action": "store_true"}, "print every op that has a row"),
    ("--json", {"action": "store_true"}, "as JSON"),
    ("--out", {"metavar": "FOLDER"}, "write the model as a Python package"),
    ("--bind", {"metavar": "NAME=SIZE"}, "with --out: a size that becomes a number in the source"),
    ("--free", {"metavar": "INPUT:AXIS=NAME"},
     "with --out: a size of the file that stays open in the source, under this name"),
    ("--precision", {"choices": get_args(Precision), "default": "keep"},
     "with --out: how the record keeps floats"),
    ("--freeze", {"metavar": "PATH"},
     "with --out: weights that the package does not train; * stands for anything"),
    ("--flat", {"action": "store_true"}, "with --out: one class, in the order of the file"),
    ("--quantized", {"choices": get_args(Quantized), "default": "fake"},
     "with --out: what becomes of whole numbers that stand for floats"),
    ("--sample", {"metavar": "FILE.npz"}, "with --out: inputs to verify with"),
    ("--against", {"choices": get_args(Against), "default": "load"},
     "with --out: what the source is compared with"),
)  # fmt: skip


def _parser() -> argparse.ArgumentParser:
    parser = argparse.ArgumentParser(prog="phlox onnx", description=__doc__)
    parser.add_argument("file", nargs="?", help="an ONNX model")
    for name, words, says in _OPTIONS:
        several: dict[str, Any] = {"action": "append", "default": []} if name in _SEVERAL else {}
        parser.add_argument(name, help=says, **words, **several)
    return parser


_SEVERAL: Final = ("--bind", "--free", "--freeze")


def main(argv: Sequence[str] | None = None, *, train: Train | None = None) -> int:
    """Run `phlox onnx` with `argv`; return the exit status.

    Args:
        argv: the words of the command.
        train: makes a device that records, to look at gradients with.
    """
    options = _parser().parse_args(argv)
    try:
        if options.ops:
            _refuse_beside("--ops", options, ("file", "check", "out", *_WITH_OUT))
            _print(ops(), options.json)
            return 0
        if options.file and options.check:
            _refuse_beside("--check", options, ("out", *_WITH_OUT))
            found = checked(options.file)
            _print(found if options.json else list(_report(found)), options.json)
            return 1 if found["unsupported"] else 0
        if argv or options.file:
            _refuse_unclear(options)
            return _write(options, train)
    except (PhloxError, OSError) as error:
        print(told("onnx", error), file=sys.stderr)
        return 2
    _parser().print_help()
    return 2


def _refuse_unclear(options: argparse.Namespace) -> None:
    if not options.file:
        raise ArgumentError("onnx", "no file is named", hint="phlox onnx model.onnx --check")
    Path(options.file).stat()
    if options.out is None:
        hint = f"phlox onnx {options.file} --check, or --out mymodel"
        raise ArgumentError("onnx", "nothing to do with the file", hint=hint)
    _refuse_beside("--out", options, ("json",))


_WITH_OUT: Final = ("against", "bind", "flat", "free", "freeze", "precision", "quantized", "sample")
_USAGE: Final = "phlox onnx FILE --check [--json], FILE --out FOLDER [OPTION…], or --ops [--json]"


def _refuse_beside(word: str, options: argparse.Namespace, others: Sequence[str]) -> None:
    """What says nothing beside another word."""
    default = _parser().parse_args([])
    given = [each for each in others if getattr(options, each) != getattr(default, each)]
    if given:
        texts = [options.file if each == "file" else f"--{each}" for each in given]
        got = " ".join((word, *texts))
        raise ArgumentError("onnx", "words that say nothing together", got=got, hint=_USAGE)


def _write(options: argparse.Namespace, train: Train | None) -> int:
    """Write a package, run it beside the file, and say how far they are apart."""
    sample = _sample(options.sample) if options.sample else None
    bind = {name: _size(text) for name, text in _pairs("--bind", "batch=8", options.bind).items()}
    free = _pairs("--free", "input:0=batch", options.free)
    words = options.freeze, options.flat, options.quantized, options.precision
    wanted = Options(bind, free, *words)
    cure = _CURES[sample is not None]
    asked = Asked(sample=sample, against=options.against, train=train, cure=cure)
    found = written(options.file, options.out, wanted, asked, keep_wrong=True)
    print(report_of(found.package), end="")
    if not Path(options.out).resolve().name.isidentifier():
        hint = "px.onnx.verify reads it; for an import the folder needs the name of a module"
        print(f"{options.out} is no name that Python imports; {hint}", file=sys.stderr)
    holds = found.proof is not None and found.proof.holds
    if not holds:
        print(f"{options.out} is written, but not as good as the file", file=sys.stderr)
    return 0 if holds else 1


_CURES: Final = (
    "; the package is written; --sample FILE.npz gives inputs that the model is meant for",
    "; the package is written, but does not run with the inputs of --sample",
)


def _sample(path: str) -> dict[str, Any]:
    try:
        found = np.load(path)
        if isinstance(found, np.ndarray):
            raise ValueError("one array without a name")
        with found:
            return dict(found)
    except (ValueError, AttributeError, EOFError, BadZipFile) as error:
        hint = "np.savez('sample.npz', **{input: array})"
        said = str(error).partition(". If you trust")[0]
        raise ArgumentError("onnx", "no sample", got=f"{path}: {said}", hint=hint) from error


def _pairs(option: str, example: str, texts: Sequence[str]) -> dict[str, str]:
    """An option that is given several times, each NAME=VALUE."""
    out: dict[str, str] = {}
    for text in texts:
        name, _, value = text.partition("=")
        if not name or not value or name in out:
            words = {"got": repr(text), "expected": "NAME=VALUE", "hint": f"{option} {example}"}
            what = f"{option} names a size twice" if name in out else "no name and value"
            raise ArgumentError("onnx", what, **words)
        out[name] = value
    return out


def _size(text: str) -> int:
    if not text.isdigit():
        raise ArgumentError("onnx", "no size", got=repr(text), expected="digits", hint="batch=8")
    return int(text)


def ops() -> list[str]:
    """The names of all ops with a row, with their domain where it is not that of ONNX."""
    return [_name(key) for key in sorted(TABLE) if key[0] != OWN]


def checked(file: str) -> dict[str, Any]:
    """What a file holds, and every op that has no row."""
    graph = prepared(file, Limits())
    nodes = list(walk(graph))
    missing = unsupported(graph)
    out: dict[str, Any] = {
        "inputs": [v.described() for v in graph.inputs],
        "outputs": [v.name for v in graph.outputs],
        "nodes": len(nodes),
        "ops": len({node.key for node in nodes}),
        "unsupported": [_missing(key, found) for key, found in sorted(missing.items())],
    }
    if not missing:
        refuse_unsupported(graph)  # nodes that do not fit their rows
        found = roles(graph)
        out["trained"] = sum(a.size for a in found.trained.values())
        out["state"] = sum(a.size for a in found.state.values())
    return out


def _missing(key: Key, nodes: list[Node]) -> dict[str, Any]:
    found = nearest(key[1]) if not key[0] else None
    near = [] if found is None else [_name(found)]
    first = nodes[0].name or next((o for o in nodes[0].outputs if o), "")
    return {"op": _name(key), "count": len(nodes), "first": first, "nearest": near}


def _name(key: Key) -> str:
    domain, op = key
    return f"{domain}.{op}" if domain else op


def _report(found: dict[str, Any]) -> Iterator[str]:
    yield from (f"input   {text!r}" for text in found["inputs"])
    yield from (f"output  {text!r}" for text in found["outputs"])
    yield f"nodes   {found['nodes']} of {found['ops']} ops"
    for each in found["unsupported"]:
        near = f", nearest {each['nearest'][0]}" if each["nearest"] else ""
        yield f"no row  {each['op']}: {each['count']}, first {each['first']!r}{near}"
    if not found["unsupported"]:
        yield f"values  {found['trained']} trained, {found['state']} of state"
        yield "every op has a row"


def _print(found: Any, as_json: bool) -> None:
    print(json.dumps(found, indent=1) if as_json else "\n".join(found))
