"""The table behind ``phlox ops``: op by backend, gradient rule, tests."""

from __future__ import annotations

import json
from typing import Any

from phlox_autodiff import rule_kind
from phlox_tensor import REGISTRY, Backend, Op, as_device
from phlox_tensor._device.finding import backend_classes
from phlox_tensor.testing import dtypes_for, lacks

from ._table import table

_TABLE = "entry"
_FORMULA = "expansion"


def installed_backends() -> dict[str, Backend | None]:
    """The installed backends by name; None for one that cannot run here."""
    found: dict[str, Backend | None] = {}
    for name in sorted({*backend_classes(), "numpy"}):
        try:
            backend = as_device(name)
            backend.entry("add")
            found[name] = backend
        except (ImportError, RuntimeError):
            found[name] = None
    return found


def _support(op: Op, backend: Backend | None) -> str:
    if backend is None:
        return "not here"
    if backend.entry(op.name) is not None:
        return _TABLE
    if lacks(backend, op):
        return "host alone"
    return _FORMULA if op.expand is not None else "missing"


def coverage() -> list[dict[str, Any]]:
    """Return one record per op: class, signature, support by backend, gradient, tests."""
    backends = installed_backends()
    out = []
    for op in sorted(REGISTRY.values(), key=lambda op: op.name):
        usable = {n: b for n, b in backends.items() if b is not None}
        out.append(
            {
                "op": op.name,
                "class": op.op_class.name,
                "signature": op.signature.text,
                "backends": {name: _support(op, b) for name, b in backends.items()},
                "gradient": rule_kind(op),
                "tests": {
                    name: 0 if lacks(b, op) else len(dtypes_for(op, b))
                    for name, b in usable.items()
                },
            }
        )
    return out


def as_json() -> str:
    """Return the table as JSON."""
    return json.dumps(coverage(), indent=2)


def as_table() -> str:
    """Return the table as text; the tests are conformance checks, one per element type."""
    records = coverage()
    names = sorted(records[0]["backends"]) if records else []
    head = ["op", "class", *names, "gradient", *(f"tests {n}" for n in names)]
    rows = []
    for r in records:
        gradient = r["gradient"].partition(":")[0]
        tests = [str(r["tests"].get(n, "-")) for n in names]
        rows.append([r["op"], r["class"], *(r["backends"][n] for n in names), gradient, *tests])
    missing = [r["op"] for r in records if "missing" in r["backends"].values()]
    checks = sum(sum(r["tests"].values()) for r in records)
    needed = sum(op.expand is None and not op.op_class.hosted for op in REGISTRY.values())
    foot = f"{len(records)} ops, {checks} conformance checks; a backend needs {needed} entries"
    if missing:
        foot += f"; missing somewhere: {', '.join(missing)}"
    return f"{table(head, rows)}\n\n{foot}"
