"""Where each part of an op stands: behind ``phlox ops NAME``."""

from __future__ import annotations

import inspect
import json
import re
from functools import cache, partial
from importlib import import_module
from pathlib import Path
from pkgutil import iter_modules
from typing import Any

import phlox_autodiff.batching
import phlox_autodiff.rules
import phlox_tensor.ops
from phlox_autodiff import rule_kind
from phlox_tensor import REGISTRY, Op, Restated

from ._coverage import installed_backends
from ._table import no_such, table

# The checkout, if this is one: pages and sources in Rust come with no wheel.
_CHECKOUT = Path(phlox_tensor.ops.__file__).joinpath(*[".."] * 6).resolve()


def places(name: str) -> list[tuple[str, str]]:
    """Return the parts of an op and where they are: file and line, or the words that say why not.

    Raises:
        ArgumentError: when no op has the name.
    """
    op = REGISTRY.get(name)
    if op is None:
        raise no_such("ops", "op", name, REGISTRY)
    declared = _row(phlox_tensor.ops, name)
    found = [
        ("declaration", declared or "declared elsewhere"),
        ("shape rule", _function(op.shape)),
        ("reference", "the expansion" if op.numpy is None else _function(op.numpy)),
        ("expansion", _expansion(op)),
        ("derivative", _row(phlox_autodiff.rules, name) or rule_kind(op)),
        ("lanes of vmap", _row(phlox_autodiff.batching, name) or "as its class"),
    ]
    devices = {name: device for name, device in installed_backends().items() if device is not None}
    for backend, device in devices.items():
        found.append((f"entry of {backend}", _entry(op, device.entry(name))))
    if "wgpu" in devices and (shader := _row(import_module("phlox_wgpu.wgsl"), name)):
        found.append(("shader", shader))
    page = _CHECKOUT / "docs" / "ops" / f"{Path(str(declared).partition(':')[0]).stem}.md"
    text = _text(page)
    if (place := text.find(f"## {name}\n")) >= 0:
        found.append(("page", _place(page, text.count("\n", 0, place) + 1)))
    return found


def as_text(name: str) -> str:
    """Return how an op is called, what it does, and its places as a table."""
    found = table(["part", "where"], [list(row) for row in places(name)])
    op = REGISTRY[name]
    function = None if op.internal else getattr(phlox_tensor, name, None)
    form = f"px.ops.{name}({op.signature.text})"
    if function is not None:
        form = f"px.{name}{inspect.signature(function)}".replace("'", "")
    return f"{form}\n{op.doc}\n\n{found}"


def as_json(name: str) -> str:
    """Return an op and its places as JSON."""
    found = dict(places(name))
    return json.dumps({"op": name, "signature": REGISTRY[name].signature.text} | found, indent=2)


def _row(package: Any, name: str) -> str | None:
    """The line that begins with the name of the op, in the files of the families."""
    start = re.compile(rf'^((\w+ = \w+\()?\s*"{name}"[,:]|{name} = |def {name}_?\()', re.MULTILINE)
    for module in iter_modules(package.__path__):
        if not module.name.startswith("_") or module.name == "_few":
            file = Path(str(import_module(f"{package.__name__}.{module.name}").__file__))
            text = _text(file)
            found = start.search(text)
            if found is not None:
                return _place(file, text.count("\n", 0, found.end()) + 1)
    return None


@cache
def _text(file: Path) -> str:
    """The text of a file; none where there is none."""
    return file.read_text(encoding="utf-8") if file.is_file() else ""


def _expansion(op: Op) -> str:
    if isinstance(op.expand, Restated):
        return f"one call of {op.expand.op.name}"
    return "none" if op.expand is None else _function(op.expand)


def _entry(op: Op, entry: Any) -> str:
    if entry is None:
        lacking = "for the host alone" if op.op_class.hosted else "missing"
        return "the expansion" if op.expand is not None else lacking
    return _function(entry)


def _function(function: Any) -> str:
    """The file and line of a function; the name of one that is not written in Python."""
    while isinstance(function, partial):
        function = function.func
    function = inspect.unwrap(function)
    try:
        file = inspect.getsourcefile(function)
        line = inspect.getsourcelines(function)[1]
    except (OSError, TypeError):
        owner = getattr(function, "__module__", None) or type(function).__module__
        known = _rust(function.__name__) if owner.startswith("phlox_") else None
        return known or f"{owner}.{function.__name__}"
    return _place(Path(str(file)), line)


def _rust(name: str) -> str | None:
    """The row of an op in the tables of kernels."""
    sources = _CHECKOUT / "kernels-rs" / "src"
    start = re.compile(rf"^( +(\w+ as \")?|fn (r#)?){name}(\"? ?\(|<| \w+ =>)", re.MULTILINE)
    for file in (sources / "ops" / "elementwise" / "table.rs", *sorted(sources.glob("py/*.rs"))):
        text = _text(file)
        if (found := start.search(text)) is not None:
            return _place(file, text.count("\n", 0, found.end()) + 1)
    return None


def _place(file: Path, line: int) -> str:
    here = Path.cwd()
    shown = file.relative_to(here) if file.is_relative_to(here) else file
    return f"{shown}:{line}"
