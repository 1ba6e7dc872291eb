"""What docstrings say of an op, with a line of code that the pages run."""

from __future__ import annotations

import textwrap

import numpy as np

from phlox_tensor._op.declaration import Op

SAMPLES = {
    "Float": "[-0.5, 0.25, 0.75]",
    "Num": "[-2.0, 0.5, 3.0]",
    "Any": "[-2.0, 0.5, 3.0]",
    "Int": "[6, 3, 1]",
    "Bits": "[6, 3, 1]",
    "Whole": "[6, 3, 1]",
    "Bool": "[True, False, True]",
}


def example(op: Op) -> str:
    """A line of code, declared or made up by class."""
    if op.example:
        return op.example
    operands = op.signature.operands
    if op.op_class.broadcasts and not any(
        a.default.__class__ is object for a in op.signature.attributes
    ):
        parts = [f"pt.asarray({_sample(op, o.name, o.kind)})" for o in operands]
        return f"pt.{'ops.' if op.internal else ''}{op.name}({', '.join(parts)})"
    if op.op_class.reduces:
        return f"pt.{op.name}(pt.asarray({_matrix(operands[0].kind)}), axis=1)"
    return ""


def _sample(op: Op, name: str, kind: str) -> str:
    low, high = op.tested.interval(name)
    if kind in ("Float", "Num") and (low, high) != (-3.0, 3.0):
        values = np.round(np.linspace(low, high, 4)[1:], 2).tolist()
        return str(values)
    return SAMPLES[kind]


def _matrix(kind: str) -> str:
    return "[[True, False], [True, True]]" if kind == "Bool" else "[[1.0, 4.0], [3.0, 2.0]]"


def docstring(op: Op, indent: str) -> str:
    """The declared text and its example, wrapped."""
    lines = textwrap.wrap(op.doc, 94 - len(indent))
    if code := example(op).replace("pt.", "px."):
        shown = [textwrap.wrap(line, 88 - len(indent)) for line in code.splitlines()]
        lines += ["", "Example:", *(f"    {line}" for wrapped in shown for line in wrapped)]
    if len(lines) == 1:
        return f'{indent}"""{lines[0]}"""'
    body = "\n".join((indent + line).rstrip() for line in lines).strip()
    return f'{indent}"""{body}\n{indent}"""'
