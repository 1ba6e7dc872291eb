"""How a module prints: a tree with shapes and counts."""

from __future__ import annotations

from dataclasses import fields
from typing import TYPE_CHECKING, Any

from phlox_tensor import Tensor, tree

from . import _walk
from ._config import Config
from ._param import Param

if TYPE_CHECKING:
    from ._module import Module

_INDENT = "  "
_LONGEST = 60


def printed(module: Module) -> str:
    """Return the printed tree of a module."""
    return "\n".join(_lines(module, ""))


def _lines(module: Any, indent: str) -> list[str]:
    settings = getattr(module, "settings", None)
    layer = isinstance(settings, Config)
    head = type(module).__name__ + (_shown(settings) if isinstance(settings, Config) else "")
    count = module.num_params()
    out = [f"{head} {{"]
    for name in module.field_names():
        if not (layer and name == "settings"):
            out.extend(_field(name, getattr(module, name), indent + _INDENT))
    tail = f"  # {count:,} parameters" if count else ""
    if len(out) == 1:
        return [head if layer else f"{head} {{}}"]
    return [*out, f"{indent}}}{tail}"]


def _shown(config: Config) -> str:
    """The settings that are not as they are by default; all, where all are."""
    rows: list[Any] = [*fields(config)]  # type: ignore[arg-type]  # a dataclass all the same
    pairs = [(row, getattr(config, row.name)) for row in rows]
    chosen = [(row, value) for row, value in pairs if row.default != value]
    return f"({', '.join(f'{row.name}={value!r}' for row, value in chosen or pairs)})"


def _field(name: str, value: Any, indent: str) -> list[str]:
    if isinstance(value, _walk.Walked):
        first, *rest = _lines(value, indent)
        return [f"{indent}{name}: {first}", *rest]
    if _holds_modules(value):
        pairs = [
            line for key, item in _walk.parts(value) for line in _field(key, item, indent + _INDENT)
        ]
        return [f"{indent}{name}: {type(value).__name__} [", *pairs, f"{indent}]"]
    return [f"{indent}{name}: {_constant(value)}"]


def _holds_modules(value: Any) -> bool:
    """Whether a container has parameters or modules among its leaves."""
    if isinstance(value, Param) or not tree.is_node(value):
        return False
    held = _walk.Walked, Param
    return any(isinstance(leaf, held) for leaf in tree.leaves(value, leaf=held))


def _constant(value: Any) -> str:
    if isinstance(value, Param):
        note = ", state" if value.role == "state" else ", frozen" if value.frozen else ""
        return f"{value.dtype.name}{list(value.shape)}{note}"
    if isinstance(value, Tensor):
        return f"Tensor {value.dtype.name}{list(value.shape)}, constant"
    text = repr(value)
    return text if len(text) <= _LONGEST else text[: _LONGEST - 1] + "…"
