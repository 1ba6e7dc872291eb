"""How a module prints: a tree with shapes and counts."""

from __future__ import annotations

from dataclasses import MISSING, fields
from math import prod
from typing import Any, NamedTuple

from phlox_tensor import Tensor, tree

from ..param.param import Param
from ..parts import fields as _fields
from ..parts import walk as _walk
from ..settings.config import Config

_INDENT = "  "
_LONGEST = 60


def printed(module: _fields.ModuleNode) -> str:
    """Return the printed tree of a module."""
    lines: list[str] = []
    weights = _Weights()
    several = len({p.device for _, p in _walk.params(module)}) > 1
    work: list[Any] = [("", "", module)]
    while work:
        entry = work.pop()
        if isinstance(entry, _End):
            count = weights.since(entry.start)
            tail = f"  # {count:,} parameters" if count else ""
            lines.append(entry.text + tail)
            continue
        indent, name, value = entry
        start = f"{indent}{name}: " if name else indent
        if isinstance(value, _fields.ModuleNode):
            head, inside = _module(value)
            lines.append(start + head)
            if inside:
                lines[-1] += " {"
                work.append(_End(f"{indent}}}", weights.mark()))
        elif _holds_modules(value):
            lines.append(f"{start}{type(value).__name__} [")
            work.append(_End(f"{indent}]", None))
            inside = _fields.parts(value)
        else:
            lines.append(start + _constant(value, several))
            weights.meet(value)
            continue
        work += [(indent + _INDENT, key, part) for key, part in reversed(inside)]
    return "\n".join(lines)


class _End(NamedTuple):
    """What closes a module or container, and the weights that were met before it."""

    text: str
    start: tuple[int, int] | None


class _Weights:
    """Counts the values in weights while a tree is gone through, shared ones once."""

    def __init__(self) -> None:
        self._total = 0
        self._places: dict[int, int] = {}  # by object, the number of its last place
        self._number = 0
        self._again: list[tuple[int, int]] = []  # of each repeated place, the last one and size

    def meet(self, value: Any) -> None:
        """Count a parameter that is a weight."""
        if not isinstance(value, Param) or value.role != "weight":
            return
        size = prod(value.shape)
        before = self._places.get(id(value))
        if before is not None:
            self._again.append((before, size))
        self._places[id(value)] = self._number
        self._number += 1
        self._total += size

    def mark(self) -> tuple[int, int]:
        """Where a module begins."""
        return self._number, self._total

    def since(self, start: tuple[int, int] | None) -> int:
        """The values in weights since a mark; none are counted without one."""
        if start is None:
            return 0
        number, total = start
        twice = sum(size for before, size in self._again if before >= number)
        return self._total - total - twice


def _module(module: Any) -> tuple[str, list[tuple[str, Any]]]:
    """The first words of a module, and the fields to print below; none for a plain layer."""
    settings = getattr(module, "settings", None)
    layer = isinstance(settings, Config)
    fields = _fields.fields_of(module).items()
    inside = [(name, value) for name, value in fields if not (layer and name == "settings")]
    head = type(module).__name__ + (_shown(settings) if isinstance(settings, Config) else "")
    return head if inside or layer else f"{head} {{}}", inside


def _shown(config: Config) -> str:
    """The settings that are not as they are by default; all but empty ones, where all are."""
    rows: list[Any] = [*fields(config)]  # type: ignore[arg-type]  # a dataclass all the same
    pairs = [(row, getattr(config, row.name)) for row in rows]
    chosen = [(row, value) for row, value in pairs if _default(row) != value]
    shown = chosen or [(row, value) for row, value in pairs if value != {}]
    return f"({', '.join(f'{row.name}={value!r}' for row, value in shown)})"


def _default(row: Any) -> Any:
    """The default of a field, made where it is made."""
    return row.default if row.default_factory is MISSING else row.default_factory()


def _holds_modules(value: Any) -> bool:
    """Whether a container has parameters or modules among its leaves."""
    if isinstance(value, Param) or not tree.is_node(value):
        return False
    held = _fields.ModuleNode, Param
    return any(isinstance(leaf, held) for leaf in tree.leaves(value, leaf=held))


def _constant(value: Any, several: bool) -> str:
    """A parameter with its device, if there are several; a tensor; any other value."""
    if isinstance(value, Param):
        note = ", state" if value.role == "state" else ", frozen" if value.frozen else ""
        place = f" on {value.device!r}" if several else ""
        return f"{value.dtype.name}{list(value.shape)}{place}{note}{value._inside()}"
    if isinstance(value, Tensor):
        return f"Tensor {value.dtype.name}{list(value.shape)}, constant"
    text = repr(value)
    return text if len(text) <= _LONGEST else text[: _LONGEST - 1] + "…"
