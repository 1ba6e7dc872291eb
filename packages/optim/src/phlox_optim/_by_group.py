"""Several optimizers for one module, by group of parameters."""

from __future__ import annotations

from ._config import OptimizerConfig
from ._groups import Group
from ._rule import SimpleOptimizer


class GroupsConfig(OptimizerConfig):
    """Several optimizers for one module.

    Attributes:
        base: for all parameters that no other is for.
        others: optimizers by path, in which ``*`` stands for anything; the last that fits counts.

    Example:
        >>> import phlox_nn as nn, phlox_optim as optim
        >>> others = {"layers.*.weight": optim.MuonConfig(weight_decay=0.01)}
        >>> optimizer = optim.GroupsConfig(optim.AdamWConfig(), others).init()
    """

    base: OptimizerConfig
    others: dict[str, OptimizerConfig]

    def validate(self) -> None:
        """Raise ConfigError for settings that would be lost."""
        inside = [self.base, *self.others.values()]
        clips = any(each.grad_clipping is not None for each in inside)
        self.require("base", not clips, "grad_clipping of GroupsConfig, which is for all")
        self.require("others", not any(o.groups for o in self.others.values()), "no groups inside")
        self.require("groups", not self.groups, "groups of the base")

    def rule(self) -> SimpleOptimizer:
        """Return the rule of the base."""
        return self.base.rule()

    def parameter_groups(self) -> list[Group]:
        """Return the groups of the base, then the other optimizers."""
        others = [Group(where, config.rule()) for where, config in self.others.items()]
        return [*self.base.parameter_groups(), *others]
