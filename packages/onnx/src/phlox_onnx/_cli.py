"""`phlox onnx`: what a file needs, and what there is."""

from __future__ import annotations

import argparse
import json
import sys
from collections.abc import Callable, Iterator, Sequence
from difflib import get_close_matches
from typing import Any, Final, get_args

import numpy as np

from phlox_tensor import ArgumentError, PhloxError

from ._graph import Key, Node, walk
from ._limits import Limits
from ._model import prepared
from ._quantized import Quantized
from ._roles import roles
from ._table import unsupported
from .source import Package, feeds_of, verify, write
from .source._package import Precision, report_of
from .source._verify import Against
from .table import TABLE


def _parser() -> argparse.ArgumentParser:
    parser = argparse.ArgumentParser(prog="phlox onnx", description=__doc__)
    parser.add_argument("file", nargs="?", help="an ONNX model")
    parser.add_argument(
        "--check", action="store_true", help="say what the file holds and what has no row"
    )
    parser.add_argument("--ops", action="store_true", help="print every op that has a row")
    parser.add_argument("--json", action="store_true", help="as JSON")
    parser.add_argument("--out", metavar="FOLDER", help="write the model as a Python package")
    parser.add_argument(
        "--bind",
        action="append",
        default=[],
        metavar="NAME=SIZE",
        help="with --out: a size that becomes a number in the source",
    )
    parser.add_argument(
        "--free",
        action="append",
        default=[],
        metavar="INPUT:AXIS=NAME",
        help="with --out: a size of the file that stays open in the source, under this name",
    )
    parser.add_argument(
        "--precision",
        choices=get_args(Precision),
        default="keep",
        help="with --out: how the record keeps floats",
    )
    parser.add_argument(
        "--freeze",
        action="append",
        default=[],
        metavar="PATH",
        help="with --out: weights that the package does not train; * stands for anything",
    )
    parser.add_argument(
        "--flat", action="store_true", help="with --out: one class, in the order of the file"
    )
    parser.add_argument(
        "--quantized",
        choices=get_args(Quantized),
        default="fake",
        help="with --out: what becomes of whole numbers that stand for floats",
    )
    parser.add_argument("--sample", metavar="FILE.npz", help="with --out: inputs to verify with")
    parser.add_argument(
        "--against",
        choices=get_args(Against),
        default="load",
        help="with --out: what the source is compared with",
    )
    return parser


def main(argv: Sequence[str] | None = None) -> int:
    """Run `phlox onnx` with `argv`; return the exit status."""
    options = _parser().parse_args(argv)
    try:
        if options.ops:
            _print(ops(), options.json)
            return 0
        if options.file and options.check:
            found = checked(options.file)
            _print(found if options.json else list(_report(found)), options.json)
            return 1 if found["unsupported"] else 0
        if options.file and options.out:
            return _write(options)
    except (PhloxError, OSError) as error:
        print(error, file=sys.stderr)
        return 2
    _parser().print_help()
    return 2


# How far source and file may be apart, as a share of the largest value of an output.
_CLOSE: Final = 1e-4
# The same where weights are kept in 16 bits.
_HALF: Final = 1e-2


def _write(options: argparse.Namespace) -> int:
    """Write a package, run it beside the file, and say how far they are apart."""
    bind = {name: _size(text) for name, text in map(_pair("--bind batch=8"), options.bind)}
    free = dict(map(_pair("--free input:0=batch"), options.free))
    made = write(
        options.file,
        options.out,
        bind=bind,
        free=free,
        precision=options.precision,
        freeze=options.freeze,
        flat=options.flat,
        quantized=options.quantized,
    )
    print(report_of(made), end="")
    close = True
    for feeds in _feeds(options, made, {"": 1, **bind}, free):
        words = {"against": options.against, "quantized": options.quantized}
        found = verify(options.file, options.out, feeds, **words)
        sizes = ", ".join(f"{k!r} {np.shape(v)}" for k, v in feeds.items()) if free else ""
        for name, off in found.items():
            line = f"- {name!r} beside {options.against}: {off:.1e} of its largest value"
            print(f"{line}, for {sizes}" if sizes else line)
        most = _HALF if options.precision == "half" else _CLOSE
        close = close and all(off <= most for off in found.values())
    return 0 if close else 1


def _feeds(
    options: argparse.Namespace, made: Package, sizes: dict[str, int], free: dict[str, str]
) -> Iterator[dict[str, Any]]:
    """What is verified with: a sample, or drawn inputs; what was freed in two sizes."""
    if options.sample:
        with np.load(options.sample) as sample:
            yield dict(sample)
        return
    fixed = {v.name: v.shape for v in prepared(options.file, Limits()).inputs}
    for times in (1, 2) if free else (1,):
        for place, word in free.items():
            name, _, axis = place.rpartition(":")
            n = (fixed[name] or ())[int(axis)]
            sizes[word] = times * (n if isinstance(n, int) else 1)
        yield feeds_of(made.inputs, sizes)


def _pair(hint: str) -> Callable[[str], tuple[str, str]]:
    """What takes an option apart."""

    def split(text: str) -> tuple[str, str]:
        name, _, value = text.partition("=")
        if not name or not value:
            words = {"got": repr(text), "expected": "NAME=VALUE", "hint": hint}
            raise ArgumentError("onnx", "no name and value", **words)
        return name, value

    return split


def _size(text: str) -> int:
    if not text.isdigit():
        raise ArgumentError("onnx", "no size", got=repr(text), expected="digits", hint="batch=8")
    return int(text)


def ops() -> list[str]:
    """The names of all ops with a row, with their domain where it is not that of ONNX."""
    return [_name(key) for key in sorted(TABLE) if key[0] != "phlox.onnx"]


def checked(file: str) -> dict[str, Any]:
    """What a file holds, and every op that has no row."""
    graph = prepared(file, Limits())
    nodes = list(walk(graph))
    missing = unsupported(graph)
    out: dict[str, Any] = {
        "inputs": [f"{v.name}: {v.dtype} {_shape(v.shape)}".strip() for v in graph.inputs],
        "outputs": [v.name for v in graph.outputs],
        "nodes": len(nodes),
        "ops": len({node.key for node in nodes}),
        "unsupported": [_missing(key, found) for key, found in sorted(missing.items())],
    }
    if not missing:
        found = roles(graph)
        out["trained"] = sum(a.size for a in found.trained.values())
        out["state"] = sum(a.size for a in found.state.values())
    return out


def _missing(key: Key, nodes: list[Node]) -> dict[str, Any]:
    names = {op: (domain, op) for domain, op in TABLE}
    near = [_name(names[op]) for op in get_close_matches(key[1], names, 1)]
    first = nodes[0].name or next((o for o in nodes[0].outputs if o), "")
    return {"op": _name(key), "count": len(nodes), "first": first, "nearest": near}


def _name(key: Key) -> str:
    domain, op = key
    return f"{domain}.{op}" if domain else op


def _shape(shape: tuple[int | str | None, ...] | None) -> str:
    return "" if shape is None else f"({', '.join('?' if n is None else str(n) for n in shape)})"


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
