"""Checks of the arguments of a learner."""

from __future__ import annotations

from typing import Any, cast

from phlox_optim import ConstantSchedulerConfig, PlateauScheduler, Scheduler
from phlox_tensor import ArgumentError, WrongTypeError
from phlox_tensor.groups import Group, first_size


def require(value: object, kind: Any, name: str, hint: str) -> None:
    """Refuse what is not of a kind.

    Raises:
        WrongTypeError: for it.
    """
    if not isinstance(value, kind):
        raise WrongTypeError(
            "Learner",
            f"what is given as {name} is no {name}",
            got=repr(value) if isinstance(value, type) else type(value).__name__,
            expected="what the hint gives",
            hint=hint,
        )


def require_group_for_shards(asked: bool, group: Group | None) -> None:
    """Refuse to shard the states of an optimizer in one process.

    Raises:
        ArgumentError: without a group.
    """
    if asked and group is None:
        hint = "Learner(..., group=distributed.init(), shard_optimizer=True)"
        what, expected = "shard_optimizer takes processes", "a group"
        raise ArgumentError("Learner", what, got="group=None", expected=expected, hint=hint)


def required_parts(given: int | None, group: Group | None) -> int:
    """Return how many parts a batch has, by default as many as there were ranks first.

    Raises:
        ArgumentError: for a number below 1, and what is none.
    """
    parts = first_size(group) if given is None else given
    if type(parts) is not int or parts < 1:
        raise ArgumentError("Learner", "microbatches", got=given, expected="1 or more")
    return parts


def required_schedule(given: Any) -> Scheduler | PlateauScheduler:
    """Return a schedule, or that of a rate.

    Raises:
        WrongTypeError: for what is neither.
    """
    if isinstance(given, int | float) and not isinstance(given, bool):
        return ConstantSchedulerConfig(float(given)).init()
    hint = "optim.CosineSchedulerConfig(1e-3, steps=1000).init()"
    require(given, Scheduler | PlateauScheduler, "schedule", hint)
    return cast("Scheduler | PlateauScheduler", given)
