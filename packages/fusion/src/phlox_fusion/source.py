"""Text of Python functions that is made at run time, and what its names stand for."""

from __future__ import annotations

import operator
from collections.abc import Callable, Sequence
from typing import Any, Final, final

from phlox_tensor import Backend, Tensor
from phlox_tensor.capture import Formula, Number

_INFIX: Final[dict[Any, str]] = {
    operator.add: "+",
    operator.eq: "==",
    operator.floordiv: "//",
    operator.ge: ">=",
    operator.gt: ">",
    operator.le: "<=",
    operator.lt: "<",
    operator.mod: "%",
    operator.mul: "*",
    operator.ne: "!=",
    operator.pow: "**",
    operator.sub: "-",
    operator.truediv: "/",
}


@final
class Source:
    """Text of a Python function, and the values that its names stand for."""

    def __init__(self) -> None:
        self._lines: list[str] = []
        self._names: dict[int, str] = {}
        self._values: dict[str, Any] = {"new": object.__new__, "Tensor": Tensor}
        self._count = 0

    def line(self, text: str) -> None:
        """Add a line."""
        self._lines.append(text)

    def name(self, letter: str) -> str:
        """Return a name that nothing has yet."""
        self._count += 1
        return f"{letter}_{self._count}"

    def constant(self, value: Any, kind: str = "k") -> str:
        """Return what stands for a value: its text where that is the same, else a name."""
        if value is None or type(value) in (bool, int, str):
            return repr(value)
        if type(value) is tuple and all(type(x) is int for x in value):
            return repr(value)
        return self.held(value, kind)

    def held(self, value: Any, kind: str = "k") -> str:
        """Return a name for this very object."""
        name = self._names.get(id(value))
        if name is None:
            name = self._names[id(value)] = self.name(kind)
            self._values[name] = value
        return name

    def tensor(self, device: Backend, primitive: str) -> str:
        """Add the lines that make a tensor on a device, and return what stands for it."""
        out = self.name("t")
        self.line(f"{out} = new(Tensor)")
        self.line(f"{out}.primitive = {primitive}")
        self.line(f"{out}.device = {self.constant(device, 'device')}")
        return out

    def number(self, formula: Formula) -> str:
        """Return the text of how a number comes about, of which ``n0`` and so on are the others."""
        function, args = formula
        names = [f"n{a.place}" if type(a) is Number else self.constant(a) for a in args]
        sign = _INFIX.get(function) if len(args) == 2 else None
        if sign is not None:
            return f"({names[0]}) {sign} ({names[1]})"
        return f"{self.constant(function, 'function')}({', '.join(names)})"

    def numbers(self, formulas: Sequence[Formula], miss: str, guards: Sequence[str] = ()) -> None:
        """Add the lines that compute numbers; ``miss`` where one is an error now, or a guard is.

        Args:
            guards: what does not hold for the numbers.
        """
        lines = [
            f"n{place} = {self.number(formula)}"
            for place, formula in enumerate(formulas)
            if formula.function is not None
        ]
        lines += [f"if {guard}: {miss}" for guard in guards]
        if lines:
            for line in ("try:", *(f" {line}" for line in lines), f"except Exception: {miss}"):
                self.line(line)

    def function(self, name: str, parameters: str) -> Callable[..., Any]:
        """Return the function."""
        body = "\n ".join(self._lines)
        code = compile(f"def {name}({parameters}):\n {body}\n", "<phlox_fusion>", "exec")
        space = {"__name__": __name__, **self._values}  # none of the user's functions
        exec(code, space)
        return space[name]

    def __str__(self) -> str:
        return "\n".join(self._lines)
