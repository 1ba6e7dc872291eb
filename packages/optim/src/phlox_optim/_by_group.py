"""Several optimizers for one module, by group of parameters."""

from __future__ import annotations

from ._config import OptimizerConfig
from ._groups import Group, Vectors
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
        """Raise ConfigError for settings that would be lost, or that the parts have."""
        inside = [self.base, *self.others.values()]
        clips = any(each.grad_clipping is not None for each in inside)
        self.require("base", not clips, "grad_clipping of GroupsConfig, which is for all")
        self.require("others", not any(o.groups for o in self.others.values()), "no groups inside")
        self.require("groups", not self.groups, "groups of the base")
        self.require("decayed", self.decayed != "matrices", "decayed of the base and of the others")

    def rule(self) -> SimpleOptimizer:
        """Return the rule of the base."""
        return self.base.rule()

    def parameter_groups(self) -> list[Group]:
        """Return the groups of the base, then the other optimizers."""
        made = self.base.parameter_groups()
        for where, config in self.others.items():
            made.append(Group(where, config.rule()))
            # Those that do not decay, if it says so.
            made += [Group(Vectors(where), each.rule) for each in config.parameter_groups()]
        return made

    def joined_group(self, places: tuple[int, ...]) -> Group:
        """Return the last optimizer that is for all of some groups, or those of the base as one."""
        if places[-1] < len(self.base.parameter_groups()):
            return self.base.joined_group(places)
        return self.parameter_groups()[places[-1]]
