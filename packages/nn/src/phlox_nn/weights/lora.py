"""Low-rank adapters: a model is frozen and learns small matrices beside its weights."""

from __future__ import annotations

from math import prod
from typing import Any, ClassVar, TypeVar

from phlox_record import Record
from phlox_tensor import ArgumentError, DType, Float, Int, RecordError, Tensor, linear, take
from phlox_tensor.names import some

from .. import initializers as init
from ..ids import CopiedIds, new_id
from ..layers.linear import Linear
from ..module.module import Module
from ..module.visit import modules
from ..param.param import Param
from ..parts import walk as _walk
from ..parts.dropped import kept
from ..where import Where, chosen, no_weight
from .computed import ComputedWeight
from .swap import map_fields

M = TypeVar("M", bound=Module)


class _Ids(frozenset[str]):
    """Ids of parameters, which print as their number, and are copied with them."""

    def __deepcopy__(self, memo: dict[int, Any]) -> _Ids:
        copied = CopiedIds.of(memo)
        return _Ids(copied[id] for id in self)

    def __repr__(self) -> str:
        return f"{len(self)} parameters"


class LoraWeight(ComputedWeight):
    """A weight that is frozen, and a product of two small matrices that is trained.

    The weight is seen as a matrix: the first axis is its rows, all others are one. Hu et al., 2021,
    https://arxiv.org/abs/2106.09685

    base: the weight, or what makes it; down: (rows, rank); up: (rank, columns), zeros at first.

    Attributes:
        scale: what the product is multiplied with.
        frozen: ids of what in the model was frozen before.
    """

    hint_for_pytorch: ClassVar = "nn.merge_lora(model)"

    base: Param
    down: Param
    up: Param
    scale: float
    frozen: frozenset[str] = _Ids()

    @property
    def source(self) -> Param:
        """The parameter that the weight is of."""
        base: Any = self.base
        return base.source if isinstance(base, ComputedWeight) else base

    @property
    def value(self) -> Tensor[Float]:
        """The weight with the product added."""
        product = self.down.value @ self.up.value * self.scale
        return self.base.value + product.reshape(*self.shape)

    @property
    def shape(self) -> tuple[int, ...]:
        """The shape of ``value``."""
        return self.base.shape

    @property
    def dtype(self) -> DType:
        """The element type of ``value``."""
        return self.base.dtype

    @property
    def trainable(self) -> bool:
        """Whether gradients reach it."""
        return self.down.trainable or self.up.trainable or self.base.trainable

    def rows(self, indices: Tensor[Int]) -> Tensor[Float]:
        """Return rows of a matrix by index, without making the others."""
        base: Any = self.base
        made = isinstance(base, ComputedWeight)
        rows: Tensor[Any] = base.rows(indices) if made else take(base.value, indices, axis=0)
        small: Tensor[Any] = take(self.down.value, indices, axis=0)
        return rows + small @ self.up.value * self.scale

    def linear(self, x: Tensor[Float], bias: Tensor[Float] | None) -> Tensor[Float]:
        """Return ``x @ value + bias``, without making the product of the small matrices."""
        base: Any = self.base
        made = isinstance(base, ComputedWeight)
        y: Tensor[Float] = base.linear(x, bias) if made else linear(x, base.value, bias)
        return y + (x @ self.down.value) @ self.up.value * self.scale

    def into_param(self) -> Param:
        """Return a parameter of the same identity with the product added."""
        return Param(self.value.detach(), id=self.id, trainable=self.id not in self.frozen)


@kept("model = nn.apply_lora(model, rank)")
def apply_lora(model: M, rank: int, *where: Where, alpha: float | None = None) -> M:
    """Return the model frozen, with adapters beside its weights.

    Of a model whose weights are stored as integers (``quantize_weights``) these stay as they are.
    Weights that are shared share the adapter.

    Args:
        model: any module.
        rank: columns of the first of the small matrices.
        where: which weights, as ``model.freeze`` takes it: paths of weights or layers, in which
            ``*`` stands for anything, or functions, also of embeddings, convolutions and recurrent
            layers; none for those of all linear layers.
        alpha: adapters are scaled by ``alpha / rank``; None for a scale of 1.

    Raises:
        ArgumentError: when a path or function fits no weight of at least two axes, or there is no
            linear layer.

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
    weights, meant = _chosen(model, where)
    frozen = _frozen_before(model)
    scale = 1.0 if alpha is None else alpha / rank
    made: dict[str, LoraWeight] = {}

    def adapted(path: str, leaf: Any, owner: Module) -> Any:
        if path not in weights or isinstance(owner, ComputedWeight) or leaf.id not in meant:
            return leaf
        if leaf.id not in made:
            down, up = _small(leaf, rank)
            made[leaf.id] = LoraWeight(leaf, down, up, scale, frozen)
        return made[leaf.id]

    return map_fields(model.freeze(), adapted)


def _chosen(model: Module, where: tuple[Where, ...]) -> tuple[dict[str, Any], set[str]]:
    """The weights that may have an adapter by path, and the ids of those that are to have one."""
    made = {path: m for path, m in modules(model) if path and isinstance(m, ComputedWeight)}
    inside = tuple(f"{path}." for path in made)
    found: list[tuple[str, Any]] = [*_walk.params(model), *made.items()]
    able = {
        path: weight
        for path, weight in found
        if len(weight.shape) > 1
        and weight.dtype.kind == "Float"
        and (path in made or weight.role == "weight")
        and not path.startswith(inside)
    }
    layers = {path for path, inner in modules(model) if isinstance(inner, Linear)}
    usual = {at: weight for at, weight in able.items() if at.rpartition(".")[0] in layers}
    if where:
        return able, {able[path].id for path in chosen("apply_lora", where, able)}
    if not usual and able:
        raise ArgumentError(
            "apply_lora",
            "no linear layer inside",
            got=type(model).__name__,
            expected="paths of weights, or a module with linear layers",
            hint=f"nn.apply_lora(model, rank, {next(iter(able))!r})",
        )
    if not usual:
        raise no_weight("apply_lora", "none", able, "a module with weights of two axes")
    return able, {weight.id for weight in usual.values()}


def _frozen_before(model: Module) -> frozenset[str]:
    """The ids of what was frozen before there were adapters."""
    for adapter in _adapters(model).values():
        return adapter.frozen
    return _Ids(p.id for p in model.param_list() if p.frozen and p.dtype.kind == "Float")


def _small(weight: Any, rank: int) -> tuple[Param, Param]:
    """The two small matrices beside a weight, of its element type."""
    rows, *rest = weight.shape
    down = init.Normal(std=1.0 / rank).param((rows, rank), weight.device)
    up = init.Zeros().param((rank, prod(rest)), weight.device)
    return _as_type(down, weight.dtype), _as_type(up, weight.dtype)


def _as_type(param: Param, dtype: DType) -> Param:
    if param.dtype is dtype:
        return param
    return Param.lazy(lambda: param.value.detach().astype(dtype), param.shape, dtype, param.device)


@kept("model = nn.merge_lora(model)")
def merge_lora(model: M) -> M:
    """Return the model with each adapter added to the weight beside it.

    Weights are trained again but for those that were frozen before ``apply_lora``, by their ids (a
    ``fork`` has others). Weights that are shared stay shared; where a weight also stands in what
    has no adapter, that keeps it, and the sum has an id of its own. A weight that was stored as
    integers becomes floats there, ``quantize_weights`` stores it again; one that was made of
    others, as by ``weight_norm``, becomes a parameter.

    Raises:
        ArgumentError: when the model has none.

    Example:
        >>> import phlox_nn as nn
        >>> tuned = nn.apply_lora(nn.Linear(4, 4), 2)
        >>> nn.merge_lora(tuned).weight.shape
        (4, 4)
    """
    found = {path: inner for path, inner in modules(model) if isinstance(inner, LoraWeight)}
    if not found:
        raise _no_adapters("merge_lora", model)
    inside = tuple(f"{path}." for path in found)
    kept = {param.id for path, param in _walk.params(model) if not path.startswith(inside)}
    frozen = {id for adapter in found.values() for id in adapter.frozen}
    sums: dict[tuple[str, str], Param] = {}

    def merged(path: str, leaf: Any, owner: Module) -> Any:
        del path, owner
        if not isinstance(leaf, LoraWeight):
            return leaf
        key = leaf.id, leaf.down.id
        if key not in sums:
            id = new_id() if leaf.id in kept else leaf.id
            sums[key] = Param(leaf.value.detach(), id=id, trainable=leaf.id not in frozen)
        return sums[key]

    whole: Any = map_fields(model, merged)
    rest = frozen | {weight.id for weight in sums.values()}
    return whole.map(lambda _, p: p if p.id in rest else p.with_trainable(True))


def _no_adapters(op: str, model: Module) -> ArgumentError:
    return ArgumentError(
        op,
        "the model has no adapters",
        got=type(model).__name__,
        expected="what nn.apply_lora(model, rank) gave",
    )


def _adapters(model: Module) -> dict[str, LoraWeight]:
    """The adapters by path: of a layer where its one ``weight`` has it, else of the weight."""
    return {
        path.removesuffix(".weight"): inner
        for path, inner in modules(model)
        if isinstance(inner, LoraWeight)
    }


def _beside(model: Module) -> dict[str, Param]:
    """All parameters that no weight is made of, by their first paths."""
    made = tuple(f"{path}." for path, m in modules(model) if isinstance(m, ComputedWeight) and path)
    places = {id(p): path for path, p in reversed(_walk.params(model)) if not path.startswith(made)}
    first = set(places.values())
    return {path: p for path, p in _walk.params(model) if path in first}


def lora_record(model: Module) -> dict[str, Record]:
    """Return what differs from the model without adapters, to be saved apart from it.

    These are the adapters, by path, and beside them what else is trained, such as a head that was
    unfrozen, and state, such as the statistics of batch norm.

    Raises:
        ArgumentError: when the model has none.

    Example:
        >>> import phlox_nn as nn
        >>> tuned = nn.apply_lora(nn.Linear(4, 4), 2)
        >>> sorted(nn.lora_record(tuned)["weight"])
        ['down', 'scale', 'up']
    """
    found: dict[str, Any] = {
        path: {
            "down": inner.down.value.detach(),
            "up": inner.up.value.detach(),
            "scale": inner.scale,
        }
        for path, inner in _adapters(model).items()
    }
    if not found:
        raise _no_adapters("lora_record", model)
    rest = _beside(model).items()
    return found | {at: p.value.detach() for at, p in rest if p.trainable or p.role == "state"}


def _check_adapter(path: str, mine: LoraWeight, new: Any) -> None:
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


def _loaded(path: str, param: Param, new: Any) -> Param:
    """A parameter beside the adapters, with the value of a record."""
    if not isinstance(new, Tensor) or (new.shape, new.dtype) != (param.shape, param.dtype):
        fits = isinstance(new, Tensor)
        raise RecordError(
            "load_lora_record",
            f"{path} is another tensor" if fits else f"{path} is no tensor",
            got=f"{new.dtype}{list(new.shape)}" if fits else type(new).__name__,
            expected=f"{param.dtype}{list(param.shape)}",
        )
    return param.with_value(new.to_device(param.device))


@kept("model = nn.load_lora_record(model, record)")
def load_lora_record(model: M, record: Record) -> M:
    """Return the model, which has the same adapters, with those of a record, and what is beside.

    Raises:
        ArgumentError: when the model has none.
        RecordError: when the record is of other adapters, or they were trained at another scale.

    Example:
        >>> import phlox_nn as nn
        >>> tuned = nn.apply_lora(nn.Linear(4, 4), 2)
        >>> again = nn.load_lora_record(tuned, nn.lora_record(tuned))
    """
    known: dict[str, Any] = record if isinstance(record, dict) else {}
    mine = _adapters(model)
    if not mine:
        raise _no_adapters("load_lora_record", model)
    beside = _beside(model)
    rest = {path: new for path, new in known.items() if path in beside}
    if set(mine) != known.keys() - rest.keys():
        raise RecordError(
            "load_lora_record",
            "the record is of other adapters",
            got=", ".join(sorted(known)[:4]) or "none",
            expected=", ".join(sorted(mine)[:4]) or "none",
        )
    lost = [path for path, p in beside.items() if p.trainable and path not in rest]
    if lost:
        raise RecordError(
            "load_lora_record",
            "the record lacks what is trained beside the adapters",
            got=some(list(known)),
            expected=some(lost),
            hint=f"model = model.freeze({lost[0]!r}), which was not trained in the record",
        )

    made: dict[str, Param] = {}  # which weights that are shared share
    for path, new in rest.items():
        made[beside[path].id] = _loaded(path, beside[path], new)
    for path, adapter in mine.items():
        new = known[path]
        _check_adapter(path, adapter, new)
        for name, param in (("down", adapter.down), ("up", adapter.up)):
            if param.id not in made:
                made[param.id] = param.with_value(new[name].to_device(param.device))
    out: Any = model.map(lambda _, param: made.get(param.id, param))
    return out
