"""Several optimizers for one module, by group of parameters."""

from __future__ import annotations

from ._adafactor import AdafactorConfig
from ._adagrad import AdaGradConfig
from ._adam import AdamConfig, AdamWConfig
from ._adan import AdanConfig
from ._config import OptimizerConfig
from ._groups import Group
from ._lion import LionConfig
from ._muon import MuonConfig
from ._rmsprop import RmsPropConfig
from ._rule import SimpleOptimizer
from ._sgd import SgdConfig

AnyOptimizer = (
    AdaGradConfig
    | AdafactorConfig
    | AdamConfig
    | AdamWConfig
    | AdanConfig
    | LionConfig
    | MuonConfig
    | RmsPropConfig
    | SgdConfig
    | OptimizerConfig
)
"""What configs take: one of these, which files can name, or one of your own."""


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

    base: AnyOptimizer
    others: dict[str, AnyOptimizer]

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
