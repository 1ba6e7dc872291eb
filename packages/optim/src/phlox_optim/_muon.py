"""Muon."""

from __future__ import annotations

from dataclasses import KW_ONLY
from math import sqrt
from typing import Literal, final

from phlox_tensor import Float, ShapeError, Tensor, linalg

from ._config import OptimizerConfig
from ._rule import ConfiguredRule, State, Stepped

Scaling = Literal["original", "match_rms_adamw"]


class MuonConfig(OptimizerConfig):
    """Settings of ``Muon``.

    Attributes:
        weight_decay: of the parameter itself, apart from the gradient.
        momentum: share of the last step that is kept.
        nesterov: look ahead by the momentum.
        coefficients: of x, x³ and x⁵ in each round.
        rounds: how often the polynomial is applied.
        epsilon: the least norm that is divided by.
        scaling: ``"original"`` multiplies by √max(1, outputs / inputs), ``"match_rms_adamw"`` by
            0.2 · √max(outputs, inputs), so that the rates of AdamW fit. Liu et al., 2025.
    """

    _: KW_ONLY
    weight_decay: float = 0.1
    momentum: float = 0.95
    nesterov: bool = True
    coefficients: tuple[float, float, float] = (3.4445, -4.775, 2.0315)
    rounds: int = 5
    epsilon: float = 1e-7
    scaling: Scaling = "original"

    def validate(self) -> None:
        """Raise ConfigError for a setting that makes no sense."""
        for name in ("weight_decay", "momentum", "rounds", "epsilon"):
            self.require(name, getattr(self, name) >= 0, ">= 0")


@final
class Muon(ConfiguredRule[MuonConfig]):
    """Steps by the orthogonal part of the momentum of a matrix.

    For matrices (inputs, outputs) alone, as ``Linear`` has them; other parameters go to another
    optimizer (``GroupsConfig``). Rounds run in the type of the step: float32 for narrower
    parameters.
    Jordan et al., 2024, https://kellerjordan.github.io/posts/muon
    """

    def step(self, lr: float, tensor: Tensor[Float], grad: Tensor[Float], state: State) -> Stepped:
        """Return the matrix after a step, and its velocity.

        Raises:
            ShapeError: when the parameter is no matrix.
        """
        c = self._config
        if tensor.ndim != 2:
            raise ShapeError(
                "Muon",
                "the parameter is no matrix",
                got=tensor.shape,
                expected="(inputs, outputs)",
                hint='optim.GroupsConfig(optim.AdamWConfig(), {"head.weight": optim.MuonConfig()})'
                ", by the paths of linear layers alone",
            )
        # As an average with shares 1 - momentum it has the same direction.
        velocity = grad if state is None else state["velocity"] * c.momentum + grad
        direction = grad + velocity * c.momentum if c.nesterov else velocity
        inputs, outputs = tensor.shape
        if c.scaling == "original":
            factor = sqrt(max(1.0, outputs / max(inputs, 1)))
        else:
            factor = 0.2 * sqrt(max(inputs, outputs))
        kept = tensor * (1.0 - lr * c.weight_decay)
        return kept - self._orthogonal(direction) * (lr * factor), {"velocity": velocity}

    def _orthogonal(self, x: Tensor[Float]) -> Tensor[Float]:
        """The matrix with singular values near 1: an odd polynomial acts on them alone."""
        a, b, c = self._config.coefficients
        tall = x.shape[0] > x.shape[1]
        x = x.T if tall else x
        x = x / linalg.vector_norm(x).clip(min=self._config.epsilon)
        for _ in range(self._config.rounds):
            squared = x @ x.T
            x = x * a + (squared * b + squared @ squared * c) @ x
        return x.T if tall else x
