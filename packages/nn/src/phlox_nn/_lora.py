"""Low-rank adapters: a model is frozen and learns small matrices beside its linear maps."""

from __future__ import annotations

from fnmatch import fnmatchcase
from typing import Any, TypeVar

from phlox_record import Record
from phlox_tensor import ArgumentError, Float, RecordError, Tensor

from . import initializers as init
from ._linear import Linear
from ._module import Module
from ._param import Param
from ._parts import map_modules, modules

M = TypeVar("M", bound=Module)


class LoraLinear(Module):
    """A linear map that is frozen, and a product of two small ones that is trained.

    down: (d_input, rank); up: (rank, d_output), zeros at first. Hu et al., 2021.
    """

    base: Linear
    down: Param
    up: Param
    scale: float

    def forward(self, x: Tensor[Float]) -> Tensor[Float]:
        """Map (…, d_input) to (…, d_output)."""
        return self.base(x) + (x @ self.down.value) @ self.up.value * self.scale

    def merged(self) -> Linear:
        """Return one linear map that gives the same."""
        weight: Any = self.base.weight
        if not isinstance(weight, Param):  # stored as integers
            weight = weight.into_param()
        product = self.down.value.detach() @ self.up.value.detach() * self.scale
        value = weight.value.detach() + product
        return self.base.replace(weight=weight.with_value(value))


def apply_lora(model: M, rank: int, *where: str, alpha: float | None = None) -> M:
    """Return the model frozen, with adapters beside its linear layers.

    Of a model whose weights are stored as integers (``quantize_weights``) these stay as they are.

    Args:
        model: any module.
        rank: columns of the small matrices.
        where: paths of linear layers, in which ``*`` stands for anything; none for all.
        alpha: adapters are scaled by ``alpha / rank``; None for a scale of 1.

    Raises:
        ArgumentError: when a path is that of no linear layer.

    Example:
        >>> import phlox_nn as nn
        >>> model = nn.apply_lora(nn.Sequential(nn.Linear(64, 64)), 2)
        >>> model.num_params(trainable=True), nn.merge_lora(model).num_params()
        (256, 4160)
    """
    paths = [path for path, inner in modules(model) if path and isinstance(inner, Linear)]
    chosen = {p for p in paths if not where or any(fnmatchcase(p, each) for each in where)}
    unused = [w for w in where if not any(fnmatchcase(p, w) for p in paths)]
    if unused or not chosen or rank < 1:
        raise ArgumentError(
            "apply_lora",
            "a rank without columns" if rank < 1 else "no linear layer has such a path",
            got=rank if rank < 1 else repr(unused[0]) if unused else "a model without",
            expected="at least 1" if rank < 1 else ", ".join(paths[:4]) or "linear layers inside",
            hint="print(model)",
        )

    def adapted(path: str, inner: Module) -> Module:
        if path not in chosen or not isinstance(inner, Linear):
            return inner
        device, sizes = inner.weight.device, inner.settings
        down = init.Normal(std=1.0 / rank).param((sizes.d_input, rank), device)
        up = init.Zeros().param((rank, sizes.d_output), device)
        return LoraLinear(inner, down, up, 1.0 if alpha is None else alpha / rank)

    return map_modules(model.freeze(), adapted)


def merge_lora(model: M) -> M:
    """Return the model with each adapter added to the linear layer beside it, trainable again.

    A weight that was stored as integers becomes floats there; ``quantize_weights`` stores it again.
    """

    def merged(path: str, inner: Module) -> Module:
        return inner.merged() if isinstance(inner, LoraLinear) else inner

    return map_modules(model, merged).unfreeze()


def lora_record(model: Module) -> dict[str, Record]:
    """Return the adapters alone, by path, to be saved apart from the model.

    Raises:
        ArgumentError: when the model has none.
    """
    found: dict[str, Any] = {
        path: {"down": inner.down.value.detach(), "up": inner.up.value.detach()}
        for path, inner in modules(model)
        if isinstance(inner, LoraLinear)
    }
    if not found:
        raise ArgumentError(
            "lora_record", "the model has no adapters", got=type(model).__name__,
            expected="what nn.apply_lora(model, rank) gave",
        )  # fmt: skip
    return found


def load_lora_record(model: M, record: Record) -> M:
    """Return the model, which has the same adapters, with those of a record.

    Raises:
        RecordError: when the record is of other adapters.
    """
    known: dict[str, Any] = record if isinstance(record, dict) else {}
    mine = {path for path, inner in modules(model) if isinstance(inner, LoraLinear)}
    if mine != set(known):
        raise RecordError(
            "load_lora_record",
            "the record is of other adapters",
            got=", ".join(sorted(known)[:4]) or "none",
            expected=", ".join(sorted(mine)[:4]) or "none",
        )

    def loaded(path: str, inner: Module) -> Module:
        if not isinstance(inner, LoraLinear):
            return inner
        new = known[path]
        values = {
            name: param.with_value(new[name].to_device(param.device))
            for name, param in (("down", inner.down), ("up", inner.up))
        }
        return inner.replace(**values)

    return map_modules(model, loaded)
