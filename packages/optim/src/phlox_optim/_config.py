"""What the configs of all optimizers have in common."""

from __future__ import annotations

from dataclasses import field
from typing import Any, ClassVar, Final, Literal

from phlox_nn import ConfigError
from phlox_nn.where import Where
from phlox_tensor import ArgumentError
from phlox_tensor.arguments import explained

from ._adaptor import OptimizerAdaptor
from ._checked import CheckedConfig
from ._clipping import GradientClipping
from ._groups import Group, Vectors
from ._rule import SimpleOptimizer

Setting = float | bool | int | str | None
_NOT_BY_GROUP: Final = ("decayed", "grad_clipping", "groups")


class OptimizerConfig(CheckedConfig):
    """Base of configs of optimizers: the settings of a rule, clipping, and groups of parameters.

    Attributes:
        grad_clipping: applied to the gradients of each step.
        decayed: which weights ``weight_decay`` acts on: ``"all"``, or ``"matrices"``, those of at
            least two axes, which leaves out biases and the scales of norms, whatever groups say.
        groups: other settings for some parameters, by path (``*`` stands for anything), such as
            ``{"*.bias": {"weight_decay": 0.0}, "head": {"lr_factor": 10.0}}``. ``lr_factor``
            multiplies the learning rate. Of each setting the last group that has it counts: here
            ``head.bias`` does not decay and steps ten times as far.
    """

    _rule: ClassVar[type[Any] | None] = None
    _by_name = "; the rate is one of each step: optimizer.step(lr, model, grads)"

    grad_clipping: GradientClipping | None = field(default=None, kw_only=True)
    groups: dict[str, dict[str, Setting]] = field(default_factory=dict, kw_only=True)
    decayed: Literal["all", "matrices"] = field(default="all", kw_only=True)

    def __post_init__(self) -> None:
        """Check every value, and what the groups make of them.

        Raises:
            ConfigError: naming the field.
        """
        super().__post_init__()
        decays = self.decayed != "matrices" or "weight_decay" in vars(self)
        self.require("decayed", decays, "all: this optimizer has no weight_decay")
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
        return [self._group(where, settings) for where, settings in self._settings()]

    def joined_group(self, places: tuple[int, ...]) -> Group:
        """Return what several groups are together, for parameters that are in all of them.

        Args:
            places: those of the groups in ``parameter_groups()``, in order.
        """
        chosen = [self._settings()[place] for place in places]
        settings = {name: value for _, each in chosen for name, value in each.items()}
        return self._group(chosen[-1][0], settings)

    def _settings(self) -> list[tuple[Where, dict[str, Setting]]]:
        """Which weights have settings of their own, and which."""
        vectors: list[tuple[Where, dict[str, Setting]]] = [(Vectors(), {"weight_decay": 0.0})]
        return [*self.groups.items(), *(vectors if self.decayed == "matrices" else [])]

    def _group(self, where: Where, settings: dict[str, Setting]) -> Group:
        """A group with settings of its own, and those of the config for all else."""
        name = f"{type(self).__name__}.groups[{where!r}]"
        own = {key: value for key, value in settings.items() if key != "lr_factor"}
        factor = settings.get("lr_factor", 1.0)
        odd = [key for key in own if key in _NOT_BY_GROUP]
        if "lr" in own:
            raise ConfigError(
                "config",
                f"{name} has a rate of its own",
                got="lr",
                expected="lr_factor, which multiplies the rate of the step",
                hint=f'groups={{{where!r}: {{"lr_factor": 0.1}}}}',
            )
        if odd:
            what, expected = f"{name} makes no sense", "settings of the rule, and lr_factor >= 0"
            raise ConfigError("config", what, got=odd[0], expected=expected)
        try:
            rule = self.replace(decayed="all", groups={}, **own).rule() if own else self.rule()
            return Group(where, rule, factor)  # type: ignore[arg-type]  # it looks at the factor
        except ConfigError as error:
            what = f"{name} is refused: {error.what}"
            raise ConfigError(
                "config", what, got=error.got, expected=error.expected, hint=error.hint
            ) from None
        except ArgumentError:
            raise ConfigError(
                "config",
                f"{name} makes no sense",
                got=f"lr_factor {factor!r}",
                expected="settings of the rule, and lr_factor >= 0",
            ) from None

    @explained
    def init(self) -> OptimizerAdaptor:
        """Return the optimizer for modules; its state follows the parameters' devices."""
        return OptimizerAdaptor(
            self.rule(), self.grad_clipping, self.parameter_groups(), self.joined_group
        )
