"""Low-rank adapters: a model is frozen and learns small matrices beside its linear maps."""

from __future__ import annotations

from typing import Any, TypeVar

from phlox_record import Record
from phlox_tensor import ArgumentError, Float, RecordError, Tensor

from . import initializers as init
from ._linear import Linear
from ._module import Module
from ._param import Param, new_id
from ._parts import map_modules, modules
from .where import Where, chosen

M = TypeVar("M", bound=Module)


class _Ids(frozenset[str]):
    """Ids of parameters, which print as their number."""

    def __repr__(self) -> str:
        return f"{len(self)} parameters"


class LoraLinear(Module):
    """A linear map that is frozen, and a product of two small ones that is trained.

    down: (d_input, rank); up: (rank, d_output), zeros at first. Hu et al., 2021.
    """

    base: Linear
    down: Param
    up: Param
    scale: float
    frozen: frozenset[str] = _Ids()  # ids of what in the model was frozen before

    def forward(self, x: Tensor[Float]) -> Tensor[Float]:
        """Map (…, d_input) to (…, d_output)."""
        return self.base(x) + (x @ self.down.value) @ self.up.value * self.scale

    def merged(self) -> Linear:
        """Return one linear map that gives the same."""
        return self.base.replace(weight=self.merged_weight(_id_of(self.base)))

    def merged_weight(self, id: str) -> Param:
        """Return the weight with the product added, under an id."""
        weight: Any = self.base.weight
        before: Param = weight if isinstance(weight, Param) else weight.into_param()
        product = self.down.value.detach() @ self.up.value.detach() * self.scale
        value = before.value.detach() + product
        return Param(value, id=id, trainable=not before.frozen)


def apply_lora(model: M, rank: int, *where: Where, alpha: float | None = None) -> M:
    """Return the model frozen, with adapters beside its linear layers.

    Of a model whose weights are stored as integers (``quantize_weights``) these stay as they are.
    Layers that share a weight share the adapter.

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
    given: object = rank
    if type(given) is not int or given < 1:
        what, expected = "a rank that is no number of columns", "an int, at least 1"
        raise ArgumentError("apply_lora", what, got=repr(rank), expected=expected)
    layers = {
        f"{path}.weight": inner
        for path, inner in modules(model)
        if path and isinstance(inner, Linear)
    }
    weights = {path: inner.weight for path, inner in layers.items()}
    if not weights:
        raise ArgumentError(
            "apply_lora",
            "no linear layer inside",
            got=type(model).__name__,
            expected="a module with linear layers as parts",
            hint="nn.apply_lora(nn.Sequential(layer), rank)"
            if isinstance(model, Linear)
            else "print(model)",
        )
    meant = {_id_of(layers[path]) for path in chosen("apply_lora", where, weights)}
    frozen = _Ids(p.id for p in model.param_list() if p.frozen and p.dtype.kind == "Float")
    made: dict[str, tuple[Param, Param]] = {}

    def adapted(path: str, inner: Module) -> Module:
        if not path or not isinstance(inner, Linear) or _id_of(inner) not in meant:
            return inner
        key = _id_of(inner)
        if key not in made:
            device, sizes = inner.weight.device, inner.settings
            down = init.Normal(std=1.0 / rank).param((sizes.d_input, rank), device)
            made[key] = down, init.Zeros().param((rank, sizes.d_output), device)
        return LoraLinear(inner, *made[key], 1.0 if alpha is None else alpha / rank, frozen)

    return map_modules(model.freeze(), adapted)


def _id_of(layer: Linear) -> str:
    """The id of the weight, by which layers that share it are known."""
    return layer.weight.id


def merge_lora(model: M) -> M:
    """Return the model with each adapter added to the linear layer beside it.

    Weights are trained again but for those that were frozen before ``apply_lora``, by their ids (a
    ``fork`` has others). Layers that share a weight and an adapter share the sum; where the weight
    also stands in what has no adapter, such as an embedding, that keeps it, and the sum has an id
    of its own.
    A weight that was stored as integers becomes floats there, ``quantize_weights`` stores it again;
    one that was made of others, as by ``weight_norm``, becomes a parameter.

    Raises:
        ArgumentError: when the model has none.
    """
    found = {path: inner for path, inner in modules(model) if isinstance(inner, LoraLinear)}
    if not found:
        raise _no_adapters("merge_lora", model)
    kept = {p.id for path, p in model.params().items() if path.rpartition(".base.")[0] not in found}
    frozen = {id for adapter in found.values() for id in adapter.frozen}
    sums: dict[tuple[str, str], Param] = {}

    def merged(path: str, inner: Module) -> Module:
        if not isinstance(inner, LoraLinear):
            return inner
        old = _id_of(inner.base)
        key = old, inner.down.id
        if key not in sums:
            id = new_id() if old in kept else old
            kept.add(id)  # two adapters beside one weight make two
            sums[key] = inner.merged_weight(id).with_trainable(old not in frozen)
        return inner.base.replace(weight=sums[key])

    new = merged("", model) if isinstance(model, LoraLinear) else map_modules(model, merged)
    known = frozen | {weight.id for weight in sums.values()}
    out: Any = new.map(lambda _, p: p if p.id in known else p.with_trainable(True))
    found_model: M = out
    return found_model


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
    sizes, own = (new["down"].shape, new["up"].shape), (mine.down.shape, mine.up.shape)
    if sizes != own:
        same = len(sizes[0]) == 2 and (sizes[0][0], sizes[1][1:]) == (own[0][0], own[1][1:])
        raise RecordError(
            "load_lora_record",
            f"the adapter at {path} is of another {'rank' if same else 'size'}",
            got=f"down {sizes[0]}, up {sizes[1]}",
            expected=f"down {own[0]}, up {own[1]}",
            hint=f"nn.apply_lora(model, {sizes[0][1]})" if same else None,
        )


def load_lora_record(model: M, record: Record) -> M:
    """Return the model, which has the same adapters, with those of a record.

    Raises:
        ArgumentError: when the model has none.
        RecordError: when the record is of other adapters, or they were trained at another scale.
    """
    known: dict[str, Any] = record if isinstance(record, dict) else {}
    mine = {path for path, inner in modules(model) if isinstance(inner, LoraLinear)}
    if not mine:
        raise _no_adapters("load_lora_record", model)
    if mine != set(known):
        raise RecordError(
            "load_lora_record",
            "the record is of other adapters",
            got=", ".join(sorted(known)[:4]) or "none",
            expected=", ".join(sorted(mine)[:4]) or "none",
        )

    made: dict[str, Param] = {}  # layers that share a weight share these

    def loaded(path: str, inner: Module) -> Module:
        if not isinstance(inner, LoraLinear):
            return inner
        new = known[path]
        _check_adapter(path, inner, new)
        for name, param in (("down", inner.down), ("up", inner.up)):
            if param.id not in made:
                made[param.id] = param.with_value(new[name].to_device(param.device))
        return inner.replace(down=made[inner.down.id], up=made[inner.up.id])

    return map_modules(model, loaded)
