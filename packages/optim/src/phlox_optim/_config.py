"""What the configs of all optimizers have in common."""

from __future__ import annotations

from dataclasses import field
from typing import Any, ClassVar

from phlox_nn import ConfigError
from phlox_tensor import ArgumentError
from phlox_tensor.arguments import explained

from ._adaptor import OptimizerAdaptor
from ._checked import CheckedConfig
from ._clipping import GradientClipping
from ._groups import Group
from ._rule import SimpleOptimizer

Setting = float | bool | int | str | None
_NOT_BY_GROUP = ("grad_clipping", "groups")


class OptimizerConfig(CheckedConfig):
    """Base of configs of optimizers: the settings of a rule, clipping, and groups of parameters.

    Attributes:
        grad_clipping: applied to the gradients of each step.
        groups: other settings for some parameters, by path (``*`` stands for anything), such as
            ``{"*.bias": {"weight_decay": 0.0}, "head": {"lr_factor": 10.0}}``. ``lr_factor``
            multiplies the learning rate. The last that fits counts, with its settings alone: here
            ``head.bias`` decays again, unless ``"head.bias": {"weight_decay": 0.0, "lr_factor":
            10.0}`` follows.
    """

    _rule: ClassVar[type[Any] | None] = None

    grad_clipping: GradientClipping | None = field(default=None, kw_only=True)
    groups: dict[str, dict[str, Setting]] = field(default_factory=dict, kw_only=True)

    def __post_init__(self) -> None:
        """Check every value, and what the groups make of them.

        Raises:
            ConfigError: naming the field.
        """
        super().__post_init__()
        self.parameter_groups()

    def rule(self) -> SimpleOptimizer:
        """Return the rule for one tensor.

        Raises:
            TypeError: when no ``ConfiguredRule`` belongs to the class, and it defines none.
        """
        made = self._rule
        if made is None:
            name = type(self).__name__
            raise TypeError(
                f"[rule] {name} belongs to no rule\n"
                f"hint: class Rule(optim.ConfiguredRule[{name}]), or def rule(self) in {name}"
            )
        return made(self)

    def parameter_groups(self) -> list[Group]:
        """Return the groups with the rule of each.

        Raises:
            ConfigError: for a setting that a group cannot have.
        """
        made = []
        for where, settings in self.groups.items():
            own = {name: value for name, value in settings.items() if name != "lr_factor"}
            factor = settings.get("lr_factor", 1.0)
            odd = [name for name in own if name in _NOT_BY_GROUP]
            if "lr" in own:
                raise ConfigError(
                    "config",
                    f"{type(self).__name__}.groups[{where!r}] has a rate of its own",
                    got="lr",
                    expected="lr_factor, which multiplies the rate of the step",
                    hint=f'groups={{{where!r}: {{"lr_factor": 0.1}}}}',
                )
            try:
                rule = self.replace(groups={}, **own).rule() if own and not odd else self.rule()
            except ConfigError as error:
                what = f"{type(self).__name__}.groups[{where!r}] is refused: {error.what}"
                raise ConfigError(
                    "config", what, got=error.got, expected=error.expected, hint=error.hint
                ) from None
            try:
                group = None if odd else Group(where, rule, factor)  # type: ignore[arg-type]
            except ArgumentError:
                group = None
            if group is None:
                raise ConfigError(
                    "config",
                    f"{type(self).__name__}.groups[{where!r}] makes no sense",
                    got=odd[0] if odd else f"lr_factor {factor!r}",
                    expected="settings of the rule, and lr_factor >= 0",
                )
            made.append(group)
        return made

    @explained
    def init(self) -> OptimizerAdaptor:
        """Return the optimizer for modules; its state follows the parameters' devices."""
        return OptimizerAdaptor(self.rule(), self.grad_clipping, self.parameter_groups())
