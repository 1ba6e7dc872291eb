"""Groups of parameters with a rule or a rate of their own."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import final

from phlox_nn import Module, Param, fits_path
from phlox_tensor import ArgumentError

from ._rule import SimpleOptimizer


@final
@dataclass(frozen=True, slots=True)
class Group:
    """Parameters that step by a rule or a rate of their own.

    Attributes:
        where: a path of a parameter or a module, in which ``*`` stands for anything, or a function
            of path and parameter.
        rule: what a step does.
        lr_factor: what the learning rate is multiplied by.
    """

    where: str | Callable[[str, Param], bool]
    rule: SimpleOptimizer
    lr_factor: float = 1.0

    def applied(self, lr: float) -> tuple[SimpleOptimizer, float]:
        """Return the rule and the learning rate of the group."""
        return self.rule, lr * self.lr_factor


def places(groups: Sequence[Group], module: Module) -> dict[str, int]:
    """The place, counted from 1, of the last group that each trained parameter is in, by id.

    Raises:
        ArgumentError: when a group fits no weight of the module.
    """
    weights = module.params(role="weight")
    found: dict[str, int] = {}
    for place, group in enumerate(groups, 1):
        inside = [p.id for path, p in weights.items() if fits_path(group.where, path, p)]
        if not inside:
            raise ArgumentError(
                "step",
                "a group fits no weight",
                got=repr(group.where),
                expected=", ".join(list(weights)[:4]) or "a module with weights",
                hint="print(model)",
            )
        found.update(dict.fromkeys(inside, place))
    return found
