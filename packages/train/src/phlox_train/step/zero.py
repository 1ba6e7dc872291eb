"""Optimizer states sharded over ranks: each steps its own parameters, and gets the others.

Rajbhandari et al., 2020, https://arxiv.org/abs/1910.02054, of which this is the first stage.
"""

from __future__ import annotations

from collections.abc import Collection, Mapping
from itertools import pairwise
from math import prod
from typing import Any, Final, TypeVar, final

import numpy as np

from phlox_nn import Module, Param
from phlox_record import Keyed, NamedMsgpackRecorder, Record
from phlox_tensor import Backend, asarray
from phlox_tensor.groups import Group

from .data_parallel import weights_of

M = TypeVar("M", bound=Module)

_RECORDER: Final = NamedMsgpackRecorder()
# What an optimizer keeps by parameter; all else in its record is the same on all ranks.
BY_PARAMETER: Final = ("states", "owners")


@final
class Zero:
    """Which rank steps which parameter: the largest first, each to the rank that has least."""

    def __init__(self, group: Group, device: Backend) -> None:
        """Shard when there is a model."""
        self._group = group
        self._inner = device if device.inner is None else device.inner
        self._ranks: dict[str, int] = {}

    def own(self, model: Module) -> Collection[str]:
        """Return the ids of the parameters that this rank steps."""
        weights = weights_of(model)
        if {param.id for param in weights} != self._ranks.keys():
            loads = [0] * self._group.size
            self._ranks = {}
            for param in sorted(weights, key=lambda each: -prod(each.shape)):  # equal ones in order
                rank = loads.index(min(loads))
                loads[rank] += prod(param.shape)
                self._ranks[param.id] = rank
        return {key for key, rank in self._ranks.items() if rank == self._group.rank}

    def spread(self, model: M, stepped: Collection[str]) -> M:
        """Return the model with the values of those parameters that others have stepped.

        Args:
            model: after the own part of a step.
            stepped: the ids of all parameters that the step is of.
        """
        self.own(model)
        kinds: dict[Any, list[Param]] = {}
        for param in weights_of(model):
            if param.id in stepped:
                kinds.setdefault(param.dtype.numpy, []).append(param)
        new: dict[str, Param] = {}
        for kind, params in kinds.items():
            by_rank = sorted(params, key=lambda each: self._ranks[each.id])
            counts = [0] * self._group.size
            for param in by_rank:
                counts[self._ranks[param.id]] += prod(param.shape)
            own = [p.value.detach().numpy().reshape(-1) for p in by_rank if self._is_own(p)]
            send = np.concatenate(own) if own else np.empty(0, kind)
            whole = np.empty(sum(counts), kind)
            self._group.all_gather(send, whole, counts)
            low = 0
            for param in by_rank:
                high = low + prod(param.shape)
                if not self._is_own(param):
                    value = asarray(whole[low:high].reshape(param.shape), device=self._inner)
                    new[param.id] = param.with_value(value.to_device(param.device))
                low = high
        return model.with_params(new)

    def _is_own(self, param: Param) -> bool:
        return self._ranks[param.id] == self._group.rank

    def whole(self, record: Mapping[str, Record], model: Module) -> dict[str, Record]:
        """Return the record of an optimizer with the states of all ranks; on others the own ones.

        All ranks call. Nobody but rank 0 holds all states, and it only for the record.
        """
        found = self._collected(_RECORDER.to_bytes(dict(record)))
        if self._group.rank:
            return dict(record)
        parts: list[Any] = [_RECORDER.from_bytes(each, dtype="stored") for each in found]
        order = [param.id for param in weights_of(model)]
        whole = dict(record)
        for name in BY_PARAMETER:
            if name in whole:
                joined = {key: value for part in parts for key, value in part[name].items()}
                rest = [key for key in joined if key not in order]
                keys = [*(key for key in order if key in joined), *rest]
                whole[name] = Keyed({key: joined[key] for key in keys})
        return whole

    def share(self, record: Any, model: Module) -> Any:
        """Return what this rank keeps of the whole record of an optimizer."""
        own, found = self.own(model), dict(record)
        for name in BY_PARAMETER:
            if name in found:
                mine = {key: value for key, value in found[name].items() if key in own}
                found[name] = Keyed(mine)
        return found

    def _collected(self, data: bytes) -> list[bytes]:
        """What all ranks send to rank 0; nothing on others."""
        group = self._group
        lengths = np.empty(group.size, np.int64)
        group.all_gather(np.array([len(data)]), lengths, [1] * group.size)
        counts = lengths.tolist() if group.rank == 0 else [0] * group.size
        receive = np.empty(sum(counts), np.uint8)
        only_first = [len(data), *[0] * (group.size - 1)]
        group.all_to_all(np.frombuffer(data, np.uint8), only_first, receive, counts)
        ends = np.cumsum([0, *counts])
        return [receive[low:high].tobytes() for low, high in pairwise(ends)]
