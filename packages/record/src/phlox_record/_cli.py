"""`phlox record`: look into record files, compare, check and convert them."""

from __future__ import annotations

import argparse
import math
import sys
from collections.abc import Iterator, Sequence
from typing import Any, Final

from phlox_tensor import DTYPES, RecordError
from phlox_tensor.files import told

from ._compare import differences, statistics
from ._errors import shown
from ._inspect import FileInfo, convert, inspect, sized
from ._layout import describe
from ._precision import (
    BFloat16Precision,
    DoublePrecision,
    FullPrecision,
    HalfPrecision,
    KeepPrecision,
)
from ._tree import ParamEntry, TensorEntry, entries, entries_with_paths

_PRECISIONS: Final = {
    p.name: p
    for p in (BFloat16Precision, DoublePrecision, FullPrecision, HalfPrecision, KeepPrecision)
}


def main(argv: Sequence[str] | None = None) -> int:
    """Run `phlox record` with `argv`; return the exit status."""
    options = _parser().parse_args(argv)
    status = 0
    try:
        for line in options.run(options):
            found = isinstance(line, str)
            print(line, file=sys.stdout if found else sys.stderr)
            status = max(status, options.says if found else options.fails)
    except BrokenPipeError:  # the reader, such as `head`, has seen enough
        sys.stderr.close()
        return 0
    except (RecordError, OSError) as error:
        print(told("record", error), file=sys.stderr)
        return options.fails
    return status


def _parser() -> argparse.ArgumentParser:
    parser = argparse.ArgumentParser(prog="phlox record", description=__doc__)
    parser.set_defaults(says=0, fails=1)
    commands = parser.add_subparsers(required=True, metavar="COMMAND")
    show = commands.add_parser("show", help="print what a record file holds")
    show.add_argument("file")
    show.add_argument("--stats", action="store_true", help="read all data, say what it holds")
    show.add_argument("--verify", action="store_true", help="read all data, compare checksums")
    show.set_defaults(run=_show)
    turn = commands.add_parser("convert", help="write a record as another kind of file")
    turn.add_argument("source")
    turn.add_argument("target", help="the extension says which kind")
    turn.add_argument("--precision", choices=sorted(_PRECISIONS), default="keep")
    turn.add_argument("--like", metavar="FILE", help="for a compact source: a file with the names")
    turn.set_defaults(run=_convert)
    apart = commands.add_parser("diff", help="compare two records; status 1 where they differ")
    apart.add_argument("a")
    apart.add_argument("b")
    apart.set_defaults(run=_diff, says=1, fails=2)
    check = commands.add_parser("check", help="read files whole, and say whether they are sound")
    check.add_argument("files", nargs="+", metavar="FILE")
    check.set_defaults(run=_check)
    return parser


def _diff(options: argparse.Namespace) -> Iterator[str]:
    yield from differences(inspect(options.a).tree, inspect(options.b).tree)


def _check(options: argparse.Namespace) -> Iterator[str | Exception]:
    for file in options.files:
        try:
            info = inspect(file)
            yield from _read_whole(info)
        except (RecordError, OSError) as error:
            yield told("record", error)  # the other files may be sound
            continue
        about = f"{info.recorder.__name__}, {len(entries(info.tree)):,} tensors"
        yield f"{shown(info.path.name)}: sound, {about}, {_sums(info)}"


def _show(options: argparse.Namespace) -> Iterator[str]:
    info = inspect(options.file)
    tensors = entries(info.tree)
    values = sum(math.prod(t.shape) for t in tensors)
    yield f"{shown(info.path.name)}: {info.recorder.__name__}, format {info.version}"
    yield f"{sized(info.nbytes)}, {shown(info.precision)} precision"
    if info.writer:
        yield f"written by {shown(info.writer)}"
    yield f"{len(tensors):,} tensors with {values:,} values"
    for key, value in info.metadata.items():
        yield f"{shown(key)}: {shown(value)}"
    yield ""
    yield from _branch("record", info.tree, "", set(), stats=options.stats)
    if options.verify:
        yield ""
        yield from _read_whole(info)
        yield _sums(info)


def _read_whole(info: FileInfo) -> Iterator[str]:
    """Yield a line only where a tensor is damaged or of no type of ours, before the error."""
    for path, tensor in entries_with_paths(info.tree):
        try:
            tensor.numpy()
        except RecordError:
            word = "damaged" if tensor.dtype.name in DTYPES else "not read"
            yield f"{word}: {shown(path) or 'the root'}"
            raise
        tensor.drop()
    info.check_end()


def _sums(info: FileInfo) -> str:
    return "all checksums are right" if info.checksums else "there are no checksums"


def _branch(name: str, node: Any, indent: str, params: set[int], *, stats: bool) -> Iterator[str]:
    if isinstance(node, ParamEntry):
        again = ", the one above" if id(node) in params else ""
        params.add(id(node))
        yield f"{indent}{name}  {_tensor(node.tensor, stats)}  param {shown(node.id)}{again}"
    elif isinstance(node, TensorEntry):
        yield f"{indent}{name}  {_tensor(node, stats)}"
    elif isinstance(node, dict):
        yield f"{indent}{name}" + ("" if node else "  {}")
        for key, child in node.items():
            yield from _branch(shown(key), child, indent + "  ", params, stats=stats)
    elif isinstance(node, list) and any(isinstance(c, dict | list) or _leaf(c) for c in node):
        yield f"{indent}{name}  list of {len(node)}"
        for index, child in enumerate(node):
            yield from _branch(str(index), child, indent + "  ", params, stats=stats)
    else:
        yield f"{indent}{name} = {shown(repr(node))}"


def _leaf(node: Any) -> bool:
    return isinstance(node, ParamEntry | TensorEntry)


def _tensor(tensor: Any, stats: bool) -> str:
    form = tensor.stored
    said = f"{tensor.dtype.name} {list(tensor.shape)}  "
    said += (
        sized(describe(tensor).nbytes) if form is None else f"{sized(form.nbytes)} as {form.name}"
    )
    return f"{said}  {statistics(tensor)}" if stats and tensor.dtype.name in DTYPES else said


def _convert(options: argparse.Namespace) -> Iterator[str]:
    precision = _PRECISIONS[options.precision]
    chosen = None if precision is KeepPrecision else precision
    if options.like is None and inspect(options.source).recorder.needs_like:
        raise RecordError(
            "convert",
            f"{shown(options.source)}: a compact file has no names",
            expected="a file with the structure it was written from",
            hint="phlox record convert IN OUT --like FILE",
        )
    place = convert(options.source, options.target, precision=chosen, like=options.like)
    yield f"{shown(place.name)}: {sized(place.stat().st_size)}"
