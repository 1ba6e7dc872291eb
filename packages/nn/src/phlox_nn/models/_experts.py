"""Maps of a layer that are let through by a gate, and several of which each token takes a few."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, Final, Literal

from phlox_tensor import Float, Int, Tensor, arange, asarray, swiglu, take, topk
from phlox_tensor.capture import recording

from ..layers.linear import Linear
from ..module.module import Module

Gate = Literal["silu", "gelu", "gelu_tanh"]

_GATES: Final[dict[str, Callable[..., Tensor[Float]]]] = {
    "gelu": lambda gate, up: gate.gelu() * up,
    "gelu_tanh": lambda gate, up: gate.gelu_tanh() * up,
    "silu": swiglu,
}


class LlamaMlp(Module):
    """A linear map, let through by another one, and a third. Shazeer, 2020."""

    gate_proj: Linear | None
    up_proj: Linear | None
    gate_up_proj: Linear | None
    down_proj: Linear
    activation: Gate

    def forward(self, x: Tensor[Float]) -> Tensor[Float]:
        """Map (…, d) to the same shape."""
        return self.down_proj(self._gated(x))  # of many tokens what came before is gone by then

    def _gated(self, x: Tensor[Float]) -> Tensor[Float]:
        """What the gate lets through."""
        if self.gate_up_proj is None:
            maps: Any = self.gate_proj, self.up_proj
            gate, up = (each(x) for each in maps)
        else:
            both = self.gate_up_proj(x)
            half = both.shape[-1] // 2
            gate, up = both[..., :half], both[..., half:]
        return _GATES[self.activation](gate, up)


class LlamaExperts(Module):
    """Maps of which each token takes a few, by shares of its own. Jiang et al., 2024 (2401.04088).

    Outside of gradients and compiled functions only the maps run that a token takes, which reads
    from the device; what is recorded runs them all, with a share of 0 for those not taken.
    """

    gate: Linear
    experts: tuple[LlamaMlp, ...]
    shared_expert: LlamaMlp | None
    shared_expert_gate: Linear | None
    chosen: int
    normalized: bool

    def forward(self, x: Tensor[Float]) -> Tensor[Float]:
        """Map (N, length, d) to the same shape."""
        rows = x.reshape(x.shape[0] * x.shape[1], x.shape[2])
        shares, places = topk(self.gate(rows).softmax(axis=-1), self.chosen, axis=-1)
        if self.normalized:
            shares = shares / shares.sum(axis=-1, keepdims=True)
        recorded = x.device.records or x.device.transient or recording() is not None
        found = (self._all if recorded else self._taken)(rows, shares, places)
        if self.shared_expert is not None and self.shared_expert_gate is not None:
            found = found + self.shared_expert_gate(rows).sigmoid() * self.shared_expert(rows)
        return found.reshape(x.shape)

    def _all(
        self, rows: Tensor[Float], shares: Tensor[Float], places: Tensor[Int]
    ) -> Tensor[Float]:
        """The sum of what all maps give, by shares (rows, chosen) of those at places."""
        count = arange(len(self.experts), dtype=places.dtype, device=places.device)
        hit = (places[..., None] == count).astype(shares.dtype)
        each = (shares[..., None] * hit).sum(axis=1)
        found = rows * 0.0
        for i, expert in enumerate(self.experts):
            found = found + expert(rows) * each[:, i : i + 1]
        return found

    def _taken(
        self, rows: Tensor[Float], shares: Tensor[Float], places: Tensor[Int]
    ) -> Tensor[Float]:
        """The same, of the maps that some row takes, for those rows."""
        taken: Any = places.numpy()
        found = rows * 0.0
        for i in sorted(set(taken.reshape(-1).tolist())):
            at, slot = (taken == i).nonzero()
            where = asarray(at, device=rows.device)
            share = shares[where, asarray(slot, device=rows.device)][:, None]
            found = found.at[where].add(self.experts[i](take(rows, where, axis=0)) * share)
        return found
