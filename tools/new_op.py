"""Scaffold an op through all tables: ./x new-op NAME [options].

An elementwise op has one place per table: the declaration, the Rust row, the WGSL row, the
derivative. Without options it is the identity, to be edited; with --expand the declaration alone is
written. --reduction scaffolds a sum of squares: a declaration with its formula, which every backend
runs, and the derivative.
"""

from __future__ import annotations

import argparse
import keyword
import re
import subprocess
import sys
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path

import phlox_tensor
from phlox_tensor import Tensor

ROOT = Path(__file__).resolve().parent.parent
OPS = Path("packages/tensor/src/phlox_tensor/ops")
RULES = Path("packages/autodiff/src/phlox_autodiff/rules")
RUST = Path("kernels-rs/src/ops/elementwise/table.rs")
WGSL = Path("packages/wgpu-backend/src/phlox_wgpu/wgsl/table.py")


@dataclass(frozen=True)
class NewOp:
    """What to write: expressions in x, and for the gradient in g, x and y.

    Those of a reduction may use ``axis`` and ``keepdims`` too, its gradient ``axis``.
    """

    name: str
    doc: str
    numpy: str
    rust: str
    wgsl: str
    gradient: str
    domain: tuple[float, float]
    ulp: float
    expand: str | None
    reduction: bool = False

    @property
    def family(self) -> str:
        """The file that holds it in every table."""
        return "reduction" if self.reduction else "unary"


class ScaffoldError(ValueError):
    """The op cannot be scaffolded, or a table is not as expected."""


def _declaration(op: NewOp) -> str:
    meaning = (
        f"    expand=lambda x: {op.expand},\n"
        if op.expand
        else f"    numpy=in_float64(lambda x: {op.numpy}),\n"
    )
    return (
        f"{op.name} = elementwise(\n"
        f'    "{op.name}",\n'
        '    "x: Float -> Float",\n'
        f"{meaning}"
        f"    domain=({op.domain[0]:g}, {op.domain[1]:g}),\n"
        f"    ulp={op.ulp:g},\n"
        f'    doc="{op.doc}",\n'
        ")\n"
    )


def _reduction(op: NewOp) -> str:
    return (
        f"{op.name} = reduction(\n"
        f'    "{op.name}",\n'
        '    f"x: Float; {_AXES} -> Float",\n'
        f"    expand=lambda x, axis, keepdims: {op.expand},\n"
        f"    numpy=lambda x, axis, keepdims: {op.numpy},\n"
        f"    domain=({op.domain[0]:g}, {op.domain[1]:g}),\n"
        f"    ulp={op.ulp:g},\n"
        f"    atol={op.ulp:g},\n"
        f'    doc="{op.doc}",\n'
        ")\n"
    )


def _insert_row(text: str, start: str, end: str, name: str, row: str, key: str) -> str:
    """Insert a row into the sorted table between two lines; ``key`` finds the name in a row."""
    first = text.index(start) + len(start)
    last = text.index(end, first)
    lines = text[first:last].split("\n")
    for i, line in enumerate(lines):
        found = re.match(key, line)
        if found and found.group(1) > name:
            lines.insert(i, row)
            break
    else:
        lines.insert(len(lines) - 1, row)
    return text[:first] + "\n".join(lines) + text[last:]


def _with_rust(text: str, op: NewOp) -> str:
    row = f"            {op.name} float => |x| {op.rust}, |x| {op.rust};"
    return _insert_row(
        text, "macro_rules! unary_table", "        }\n    };", op.name, row, r" {12}(\w+) \w+ =>"
    )


def _with_wgsl(text: str, op: NewOp) -> str:
    row = f'    "{op.name}": "{op.wgsl}",'
    return _insert_row(text, "ELEMENTWISE: ", "\n}", op.name, row, r' {4}"(\w+)":')


def _with_rule(text: str, op: NewOp) -> str:
    used = [n for n in ("g", "x", "y", "axis") if re.search(rf"\b{n}\b", op.gradient)]
    row = f'    "{op.name}": lambda {", ".join(used)}: {op.gradient},'
    return _insert_row(text, "RULES: ", "\n}", op.name, row, r' {4}"(\w+)":')


def _edits(op: NewOp) -> dict[Path, Callable[[str], str]]:
    declaration, rule = OPS / f"{op.family}.py", RULES / f"{op.family}.py"
    written = _reduction(op) if op.reduction else _declaration(op)
    edits: dict[Path, Callable[[str], str]] = {declaration: lambda text: text + written}
    if op.expand is None:
        edits[RUST] = lambda text: _with_rust(text, op)
        edits[WGSL] = lambda text: _with_wgsl(text, op)
    if op.expand is None or op.reduction:
        edits[rule] = lambda text: _with_rule(text, op)
    return edits


def add(op: NewOp, root: Path = ROOT) -> list[Path]:
    """Write the op into every table and return the files touched.

    Raises:
        ScaffoldError: when the name is taken or malformed.
    """
    if not re.fullmatch(r"[a-z][a-z0-9_]*", op.name):
        raise ScaffoldError(f"[new-op] not a name: got {op.name!r}, expected lower case letters")
    declared = "\n".join(p.read_text() for p in (root / OPS).glob("*.py"))
    if re.search(rf'= \w+\(\s*"{op.name}",', declared):
        raise ScaffoldError(f"[new-op] the op exists: got {op.name}")
    if keyword.iskeyword(op.name) or hasattr(phlox_tensor, op.name) or hasattr(Tensor, op.name):
        taken = f"got {op.name!r}, expected one that neither Python nor phlox has"
        raise ScaffoldError(f"[new-op] the name is taken: {taken}")
    edits = _edits(op)
    for path, edit in edits.items():
        target = root / path
        target.write_text(edit(target.read_text(encoding="utf-8")), encoding="utf-8")
    return list(edits)


_IDENTITY = {"numpy": "x", "gradient": "g"}
_SUM_OF_SQUARES = {
    "expand": "x.square().sum(axis=axis, keepdims=keepdims)",
    "gradient": "x * spread(g * 2.0, x.shape, axis)",
    "numpy": "np.square(x.astype(np.float64)).sum(axis=axis, keepdims=keepdims)",
}


def parse(words: list[str]) -> NewOp:
    """Read the command line."""
    parser = argparse.ArgumentParser(prog="./x new-op", description=__doc__)
    parser.add_argument("name")
    parser.add_argument("--doc", default="The element itself (edit this).")
    parser.add_argument("--reduction", action="store_true", help="one value for many elements")
    parser.add_argument("--numpy", help="NumPy expression in x, computed in float64")
    parser.add_argument("--rust", default="x", help="Rust expression in x, for f32 and f64")
    parser.add_argument("--wgsl", default="{x}", help="WGSL expression in {x}")
    parser.add_argument("--gradient", help="tensor expression in g, x, y; of a reduction axis too")
    parser.add_argument(
        "--domain", default=(-3.0, 3.0), type=_domain, help="LOW,HIGH that tests draw from"
    )
    parser.add_argument("--ulp", type=float, default=4.0, help="allowed error")
    parser.add_argument("--expand", help="tensor expression in x; no other table is needed then")
    options = parser.parse_args(words)
    values = vars(options)
    usual = _SUM_OF_SQUARES if options.reduction else _IDENTITY
    values |= {k: v for k, v in usual.items() if values[k] is None}
    return NewOp(**values)


def _domain(text: str) -> tuple[float, float]:
    """Two numbers, the smaller one first."""
    try:
        low, high = map(float, text.split(","))
    except ValueError:
        low = high = 0.0
    if not low < high:
        raise argparse.ArgumentTypeError(f"got {text!r}, expected LOW,HIGH such as --domain=-3,3")
    return low, high


def main() -> int:
    """Scaffold one op and say what comes next."""
    op = parse(sys.argv[1:])
    try:
        touched = add(op)
    except ScaffoldError as error:
        print(error)
        return 1
    for path in touched:
        print(f"edited {path}")
    subprocess.run([sys.executable, "tools/gen.py"], cwd=ROOT, check=True)
    print(f"next: edit the rows, then ./x setup && ./x test -k {op.name}")
    return 0


if __name__ == "__main__":
    sys.exit(main())
