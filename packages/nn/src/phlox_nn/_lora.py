"""Low-rank adapters: a model is frozen and learns small matrices beside its linear maps."""

from __future__ import annotations

from typing import Any, TypeVar

from phlox_record import Record
from phlox_tensor import ArgumentError, Float, RecordError, Tensor

from . import initializers as init
from ._linear import Linear
from ._module import Module
from ._param import Param
from ._parts import map_modules, modules
from .where import Where, chosen

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


def apply_lora(model: M, rank: int, *where: Where, alpha: float | None = None) -> M:
    """Return the model frozen, with adapters beside its linear layers.

    Of a model whose weights are stored as integers (``quantize_weights``) these stay as they are.

    Args:
        model: any module.
        rank: columns of the small matrices.
        where: which weights of linear layers, as ``model.freeze`` takes it: paths of weights or
            layers, in which ``*`` stands for anything, or functions; none for all.
        alpha: adapters are scaled by ``alpha / rank``; None for a scale of 1.

    Raises:
        ArgumentError: when a path or function fits no linear layer.

    Example:
        >>> import phlox_nn as nn
        >>> model = nn.apply_lora(nn.Sequential(nn.Linear(64, 64)), 2)
        >>> model.num_params(trainable=True), nn.merge_lora(model).num_params()
        (256, 4160)
    """
    if rank < 1:
        raise ArgumentError("apply_lora", "a rank without columns", got=rank, expected="at least 1")
    weights = {
        f"{path}.weight": inner.weight
        for path, inner in modules(model)
        if path and isinstance(inner, Linear)
    }
    if not weights:
        raise ArgumentError(
            "apply_lora",
            "no linear layer inside",
            got=type(model).__name__,
            expected="a module with linear layers as parts",
            hint="print(model)",
        )
    meant = chosen("apply_lora", where, weights)

    def adapted(path: str, inner: Module) -> Module:
        if f"{path}.weight" not in meant or not isinstance(inner, Linear):
            return inner
        device, sizes = inner.weight.device, inner.settings
        down = init.Normal(std=1.0 / rank).param((sizes.d_input, rank), device)
        up = init.Zeros().param((rank, sizes.d_output), device)
        return LoraLinear(inner, down, up, 1.0 if alpha is None else alpha / rank)

    return map_modules(model.freeze(), adapted)


def merge_lora(model: M) -> M:
    """Return the model with each adapter added to the linear layer beside it.

    All weights are trained again, also those that were frozen before ``apply_lora``.
    A weight that was stored as integers becomes floats there; ``quantize_weights`` stores it again.

    Raises:
        ArgumentError: when the model has none.
    """
    if not any(isinstance(inner, LoraLinear) for _, inner in modules(model)):
        raise _no_adapters("merge_lora", model)

    def merged(path: str, inner: Module) -> Module:
        return inner.merged() if isinstance(inner, LoraLinear) else inner

    return map_modules(model, merged).unfreeze()


def _no_adapters(op: str, model: Module) -> ArgumentError:
    return ArgumentError(
        op,
        "the model has no adapters",
        got=type(model).__name__,
        expected="what nn.apply_lora(model, rank) gave",
    )


def lora_record(model: Module) -> dict[str, Record]:
    """Return the adapters alone, by path, to be saved apart from the model.

    Raises:
        ArgumentError: when the model has none.
    """
    found: dict[str, Any] = {
        path: {
            "down": inner.down.value.detach(),
            "up": inner.up.value.detach(),
            "scale": inner.scale,
        }
        for path, inner in modules(model)
        if isinstance(inner, LoraLinear)
    }
    if not found:
        raise _no_adapters("lora_record", model)
    return found


def _check_adapter(path: str, mine: LoraLinear, new: Any) -> None:
    """Refuse what is no adapter, and one that was trained at another scale."""
    names = {"down", "scale", "up"}
    if not isinstance(new, dict) or not {"down", "up"} <= set(new) <= names:
        raise RecordError(
            "load_lora_record",
            f"no adapter at {path}",
            got=", ".join(map(str, new)) if isinstance(new, dict) else type(new).__name__,
            expected="down, up and scale, as nn.lora_record(model) gives them",
        )
    scale = new.get("scale", mine.scale)
    if scale != mine.scale:
        rank = mine.down.shape[1]
        raise RecordError(
            "load_lora_record",
            f"the adapter at {path} was trained at another scale",
            got=f"scale {scale}",
            expected=f"{mine.scale}",
            hint=f"nn.apply_lora(model, {rank}, alpha={scale * rank:g})"
            if isinstance(scale, float)
            else None,
        )
    for name in ("down", "up"):
        if not isinstance(new[name], Tensor):
            raise RecordError(
                "load_lora_record",
                f"{path}.{name} is no tensor",
                got=type(new[name]).__name__,
                expected="a tensor",
            )


def load_lora_record(model: M, record: Record) -> M:
    """Return the model, which has the same adapters, with those of a record.

    Raises:
        RecordError: when the record is of other adapters, or they were trained at another scale.
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
        _check_adapter(path, inner, new)
        values: dict[str, Any] = {
            name: param.with_value(new[name].to_device(param.device))
            for name, param in (("down", inner.down), ("up", inner.up))
        }
        return inner.replace(**values)

    return map_modules(model, loaded)
