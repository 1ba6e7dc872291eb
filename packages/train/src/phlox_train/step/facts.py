"""What is the same on all ranks of a learner, as texts: else their parameters drift apart."""

from __future__ import annotations

import re
from collections.abc import Sequence
from typing import Any, Final

from phlox_nn import Module
from phlox_tensor import ArgumentError, Backend
from phlox_tensor.groups import Group, all_gather_object

from .places import checked_barrier

_OWN: Final = re.compile(r" at 0x[0-9a-fA-F]+|, rank \d+")  # of objects, and of a group
_SET: Final = re.compile(r"\{[^:{}\n]+[}…]")  # whose order is another one in each process
_SETTINGS: Final = (
    *("microbatches", "optimizer", "schedule", "scaling", "ema", "compile", "shard_optimizer"),
)


def facts_of(model: Module, device: Backend, settings: Sequence[object]) -> dict[str, str]:
    """Return what a rank has: its settings, kind of device, parameters, and all else that prints.

    Args:
        model: whose values are those of rank 0.
        device: that computes, whose number is the rank's own.
        settings: of the learner.
    """
    found = dict(zip(_SETTINGS, (_OWN.sub("", repr(each)) for each in settings), strict=True))
    found |= kind_of(device)
    found |= parameters_of(model)
    printed = _SET.sub("a set", _OWN.sub("", repr(model)))
    printed = printed.replace(repr(device.base), device.base.name)
    for number, line in enumerate(printed.splitlines(), 1):
        found[f"line {number} of print(model)"] = line.strip(" {")
    return found


def parameters_of(model: Module) -> dict[str, str]:
    """Return what the parameters of a model are, without their values."""
    found = {}
    for path, param in model.params().items():
        role = "trained" if param.trainable else "frozen" if param.frozen else param.role
        found[f"the model's {path}"] = f"{role} {param.dtype} {param.shape}"
    return found


def kind_of(device: Backend) -> dict[str, str]:
    """Return the kind of a device, and the vector instructions that it uses where it tells them."""
    kind = {"kind of device": device.base.name}
    describe: Any = getattr(device.base, "describe", None)
    if describe is not None and device.base.name == "cpu":  # others ask their drivers
        kind["PHLOX_SIMD"] = " ".join(describe()[0]["instruction sets in use"])
    return kind


def require_same(group: Group, mine: dict[str, str]) -> None:
    """Compare facts of all ranks with those of rank 0.

    Raises:
        ArgumentError: on all ranks, naming the first that differs.
    """
    checked_barrier(group, "Learner(...)")
    first, *others = all_gather_object(group, mine)
    for rank, other in enumerate(others, 1):
        for name in dict.fromkeys([*first, *other]):
            one, two = first.get(name, "none"), other.get(name, "none")
            if one != two:
                if name in _SETTINGS:
                    one, two = _apart(one, two)
                got = f"{one} on rank 0, {two} on rank {rank}"
                hint = "the same Learner(...) on all ranks, each of which takes every step"
                raise ArgumentError(
                    "Learner", name, got=got, expected="the same on all ranks", hint=hint
                )


def _apart(one: str, two: str) -> tuple[str, str]:
    """Return the first field in which two settings differ; both whole where no field does."""
    for pair in zip(one.split(", "), two.split(", "), strict=False):
        if pair[0] != pair[1]:
            a, b = (text[text.rfind("(", 0, text.find("=")) + 1 :] for text in pair)
            return (one, two) if a == b else (a, b)
    return one, two
