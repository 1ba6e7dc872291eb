"""The source of rows, with all they stand on, for what has no short form of its own."""

from __future__ import annotations

import ast
import inspect
import re
import sys
import types
from collections.abc import Callable
from functools import cache
from keyword import iskeyword
from types import ModuleType
from typing import Any, Final, final

import phlox_tensor as px

from ..._errors import OnnxError

_PACKAGE: Final = __name__.partition(".")[0]
HEAD: Final = '"""Ops of ONNX that phlox has no word for, as functions of tensors."""\n'


@cache
def _parts(module: str) -> tuple[dict[str, ast.stmt], dict[str, tuple[str, str]]]:
    """What a module defines at its top, and where the names that it imports come from."""
    tree = ast.parse(inspect.getsource(sys.modules[module]))
    made: dict[str, ast.stmt] = {}
    taken: dict[str, tuple[str, str]] = {}
    for node in tree.body:
        if isinstance(node, ast.FunctionDef | ast.ClassDef):
            made[node.name] = node
        elif isinstance(node, ast.AnnAssign) and isinstance(node.target, ast.Name):
            made[node.target.id] = node
        elif isinstance(node, ast.Assign):
            made |= {t.id: node for t in node.targets if isinstance(t, ast.Name)}
        elif isinstance(node, ast.Import):
            taken |= {a.asname or a.name: (a.name, "") for a in node.names}
        elif isinstance(node, ast.ImportFrom):
            source = _absolute(module, node)
            taken |= {a.asname or a.name: (source, a.name) for a in node.names}
    return made, taken


def _absolute(module: str, node: ast.ImportFrom) -> str:
    if not node.level:
        return node.module or ""
    base = module.split(".")[: -node.level]
    return ".".join([*base, *([node.module] if node.module else [])])


@final
class Copies:
    """Functions to be written beside a model, and what they need, each once."""

    def __init__(self) -> None:
        """Start with none."""
        self._sources: dict[tuple[str, str], tuple[ast.stmt, str]] = {}
        self._owner: dict[str, tuple[str, str]] = {}
        self._imports: set[tuple[str, str, str]] = set()
        self._made: dict[str, str] = {}
        self.names: list[str] = []

    def row(self, op: str, function: Callable[..., Any]) -> str:
        """Note the function of a row and return its name; one that another made gets the op's.

        Raises:
            OnnxError: for one that has no source of its own.
        """
        if "<locals>" not in function.__qualname__:
            return self.take(function)
        name = re.sub(r"(?<=[a-z0-9])(?=[A-Z])", "_", op).lower()
        name = f"{name}_" if iskeyword(name) else name
        self._made[name] = self._making(function)
        if name not in self.names:
            self.names.append(name)
        return name

    def _making(self, function: Callable[..., Any]) -> str:
        """The call of the function that made one, with what it took then."""
        factory = function.__qualname__.partition(".<locals>")[0]
        module = sys.modules[function.__module__]
        maker = self.take(getattr(module, factory))
        code: types.CodeType = function.__code__
        cells = function.__closure__ or ()
        given = zip(code.co_freevars, (c.cell_contents for c in cells), strict=True)
        takes = inspect.signature(getattr(module, factory)).parameters
        words: list[str] = []
        for name, value in given:
            if takes[name].kind is inspect.Parameter.VAR_POSITIONAL:
                words += map(self._cell, value)
            else:
                words.append(f"{name}={self._cell(value)}")
        return f"{maker}({', '.join(words)})"

    def _cell(self, value: Any) -> str:
        if not callable(value):
            return repr(value).replace("'", '"')
        name = str(value.__name__)
        if getattr(px, name, None) is value:
            self._imports.add(("phlox", "", "px"))
            return f"px.{name}"
        return self._making(value) if "<locals>" in value.__qualname__ else self.take(value)

    def take(self, function: Callable[..., Any]) -> str:
        """Note a function and return its name."""
        name, module = function.__name__, function.__module__
        own = module.startswith(f"{_PACKAGE}.")
        if not own or name not in _parts(module)[0]:
            raise OnnxError(
                "source",
                "a function that cannot be copied",
                got=f"{name} of {module}",
                expected="ops of the table",
                hint="x.exp() in place of px.exp(x); px.onnx.load runs every registered op",
            )
        self._add(module, name)
        if name not in self.names:
            self.names.append(name)
        return name

    def _add(self, module: str, name: str) -> None:
        key = module, name
        if key in self._sources:
            return
        made, taken = _parts(module)
        node = made[name]
        text = _segment(module, node)
        other = self._owner.setdefault(name, key)
        if other != key:
            if self._sources[other][1] != text:
                raise OnnxError("source", "two functions of one name", got=name)
            return
        self._sources[key] = (node, text)
        for used in {n.id for n in ast.walk(node) if isinstance(n, ast.Name)} - {name}:
            if used in made:
                self._add(module, used)
            elif used in taken:
                self._import(used, *taken[used])
        for inner in ast.walk(node):
            if isinstance(inner, ast.ImportFrom):
                source = _absolute(module, inner)
                for alias in inner.names:
                    if source.startswith(_PACKAGE):
                        self._add(source, alias.name)

    def _import(self, used: str, source: str, name: str) -> None:
        if source.startswith(_PACKAGE):
            found = sys.modules.get(source)
            if isinstance(found, ModuleType) and name in _parts(source)[0]:
                self._add(source, name)
            elif isinstance(found, ModuleType) and name in _parts(source)[1]:
                self._import(used, *_parts(source)[1][name])
            return
        source = {"phlox_tensor": "phlox"}.get(source, source)
        self._imports.add((source, name, used))

    def source(self) -> str:
        """The whole file."""
        order = sorted(
            self._sources, key=lambda k: (_rank(self._sources[k][0]), k[0], self._line(k))
        )
        bodies = [self._sources[key][1] for key in self._sorted(order)]
        head = ["from __future__ import annotations", "", *_sorted_imports(self._imports)]
        made = "\n".join(f"{name} = {text}" for name, text in sorted(self._made.items()))
        bodies += [f"{made}\n"] if made else []
        return "\n".join([HEAD, *head, "", ""]) + "\n\n".join(bodies)

    def _line(self, key: tuple[str, str]) -> int:
        return self._sources[key][0].lineno

    def _sorted(self, order: list[tuple[str, str]]) -> list[tuple[str, str]]:
        """Values follow what they are made of; functions may stand anywhere."""
        placed: list[tuple[str, str]] = []

        def place(key: tuple[str, str]) -> None:
            if key in placed:
                return
            node = self._sources[key][0]
            if not isinstance(node, ast.FunctionDef):
                for used in (n.id for n in ast.walk(node) if isinstance(n, ast.Name)):
                    other = self._owner.get(used)
                    if other and other != key and other in self._sources:
                        place(other)
            placed.append(key)

        for key in order:
            place(key)
        return placed


def _sorted_imports(found: set[tuple[str, str, str]]) -> list[str]:
    """Lines of imports: the standard library, then others, each module once."""
    groups: tuple[list[str], list[str]] = ([], [])
    for source in sorted({s for s, _, _ in found}):
        out = groups[source.partition(".")[0] in ("numpy", "phlox")]
        for _, _, used in sorted(f for f in found if f[0] == source and not f[1]):
            out.append(f"import {source}" + (f" as {used}" if used != source else ""))
        names = sorted(n if u == n else f"{n} as {u}" for s, n, u in found if s == source and n)
        out += [f"from {source} import {', '.join(names)}"] if names else []
    ordered = [sorted(g, key=lambda t: t.startswith("from")) for g in groups]
    return [*ordered[0], *([""] if all(ordered) else []), *ordered[1]]


def _rank(node: ast.stmt) -> int:
    if isinstance(node, ast.ClassDef):
        return 0
    return 2 if isinstance(node, ast.FunctionDef) else 1


def _segment(module: str, node: ast.stmt) -> str:
    lines = inspect.getsource(sys.modules[module]).splitlines()
    first = min([node.lineno, *(d.lineno for d in getattr(node, "decorator_list", []))])
    body = lines[first - 1 : node.end_lineno]
    inner = {n.lineno for n in ast.walk(node) if isinstance(n, ast.ImportFrom)}
    return "\n".join(line for i, line in enumerate(body, first) if i not in inner) + "\n"
