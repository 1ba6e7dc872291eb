"""Several optimizers for one module, by group of parameters."""

from __future__ import annotations

from dataclasses import field, replace
from math import inf

from ._config import OptimizerConfig
from ._groups import Group, Vectors
from ._rule import SimpleOptimizer


class GroupsConfig(OptimizerConfig):
    """Several optimizers for one module.

    Attributes:
        base: for all parameters that no other is for.
        others: optimizers by path, in which ``*`` stands for anything; the last that fits counts.
        lr_factors: what the rate of a step is multiplied by for some of the others, by their path,
            beside the ``lr_factor`` that a group of the base has for the same parameters.

    Example:
        >>> import phlox_nn as nn, phlox_optim as optim
        >>> others = {"layers.*.weight": optim.MuonConfig(weight_decay=0.01)}
        >>> rates = {"layers.*.weight": 0.02 / 3e-4}  # 0.02 in a step of 3e-4
        >>> optimizer = optim.GroupsConfig(optim.AdamWConfig(), others, rates).init()
    """

    base: OptimizerConfig
    others: dict[str, OptimizerConfig]
    lr_factors: dict[str, float] = field(default_factory=dict)

    def validate(self) -> None:
        """Raise ConfigError for settings that would be lost, or that the parts have."""
        inside = [self.base, *self.others.values()]
        clips = any(each.grad_clipping is not None for each in inside)
        self.require("base", not clips, "grad_clipping of GroupsConfig, which is for all")
        self.require("others", not any(o.groups for o in self.others.values()), "no groups inside")
        for where, factor in self.lr_factors.items():
            self.require("lr_factors", where in self.others, f"paths of others, not {where!r}")
            self.require("lr_factors", 0 <= factor < inf, "finite factors, at least 0")
        self.require("groups", not self.groups, "groups of the base")
        self.require("decayed", self.decayed != "matrices", "decayed of the base and of the others")

    def rule(self) -> SimpleOptimizer:
        """Return the rule of the base."""
        return self.base.rule()

    def parameter_groups(self) -> list[Group]:
        """Return the groups of the base, then the other optimizers."""
        made = self.base.parameter_groups()
        for where, config in self.others.items():
            factor = self.lr_factors.get(where, 1.0)
            made.append(Group(where, config.rule(), factor))
            # Those that do not decay, if it says so.
            made += [Group(Vectors(where), each.rule, factor) for each in config.parameter_groups()]
        return made

    def joined_group(self, places: tuple[int, ...]) -> Group:
        """Return the last optimizer that is for all of some groups, or those of the base as one.

        The factor of the rate that the base has for them counts beside another optimizer's own.
        """
        count = len(self.base.parameter_groups())
        own = tuple([place for place in places if place < count])
        if len(own) == len(places):
            return self.base.joined_group(places)
        last = self.parameter_groups()[places[-1]]
        factor = self.base.joined_group(own).lr_factor if own else 1.0
        return replace(last, lr_factor=last.lr_factor * factor)
