"""Groups of parameters with a rule or a rate of their own."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from math import inf
from typing import final

from phlox_nn import Param
from phlox_nn.where import Where, fits, require_where
from phlox_tensor import ArgumentError, WrongTypeError

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

    def __post_init__(self) -> None:
        """Check what was given.

        Raises:
            ArgumentError: unless the factor is a finite number, at least 0, and ``where`` a path or
                a function of path and parameter.
            WrongTypeError: for a rule that is none.
        """
        require_where("group", self.where, 'optim.Group("encoder.*", optim.Sgd())')
        rule: object = self.rule
        if not isinstance(rule, SimpleOptimizer):
            got = type(rule).__name__
            raise WrongTypeError(
                "group", "the rule is none", got=got, expected="a rule", hint="optim.Sgd()"
            )
        factor: object = self.lr_factor
        if type(factor) not in (float, int) or not 0 <= self.lr_factor < inf:
            expected = "finite, at least 0"
            raise ArgumentError("group", "lr_factor", got=repr(factor), expected=expected)

    def applied(self, lr: float) -> tuple[SimpleOptimizer, float]:
        """Return the rule and the learning rate of the group."""
        return self.rule, lr * self.lr_factor


@final
@dataclass(frozen=True, slots=True)
class Vectors:
    """Says which weights are no matrices: biases, scales of norms; a module may have none.

    Attributes:
        where: among which weights.
    """

    where: Where = "*"

    def __call__(self, path: str, param: Param) -> bool:
        """Whether a weight has less than two axes."""
        return len(param.shape) < 2 and fits(self.where, path, param)


GroupIndices = dict[str, tuple[int, ...]]  # of each parameter, by id, those of its groups


def group_indices(groups: Sequence[Group], weights: dict[str, Param]) -> GroupIndices:
    """The indices of all groups that each trained parameter is in, in their order, by id."""
    found: GroupIndices = {}
    for index, group in enumerate(groups):
        inside = [p.id for path, p in weights.items() if fits(group.where, path, p)]
        if not inside and not isinstance(group.where, Vectors):
            raise ArgumentError(
                "step",
                "a group fits no weight",
                got=repr(group.where),
                expected=", ".join(list(weights)[:4]) or "a module with weights",
                hint="print(model)",
            )
        found.update((key, (*found.get(key, ()), index)) for key in dict.fromkeys(inside))
    return found
