"""What the configs of all optimizers have in common."""

from __future__ import annotations

from abc import abstractmethod
from dataclasses import field

from phlox_nn import Config

from ._adaptor import OptimizerAdaptor
from ._clipping import AnyClipping
from ._rule import SimpleOptimizer


class OptimizerConfig(Config):
    """Base of configs of optimizers: the settings of a rule, and clipping.

    Attributes:
        grad_clipping: applied to the gradients of each step.
    """

    grad_clipping: AnyClipping | None = field(default=None, kw_only=True)

    @abstractmethod
    def rule(self) -> SimpleOptimizer:
        """Return the rule for one tensor."""

    def init(self) -> OptimizerAdaptor:
        """Return the optimizer for modules; its state follows the parameters' devices."""
        return OptimizerAdaptor(self.rule(), self.grad_clipping)
