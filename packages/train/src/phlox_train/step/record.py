"""The record of a learner: model, optimizer, schedule, counts, and the rest of its state."""

from __future__ import annotations

from typing import Any, cast

from phlox_record import Record
from phlox_tensor import RecordError, Tensor, tree

from .zero import Zero


def record_of(learner: Any) -> dict[str, Record]:
    """Return the record with the states that this rank keeps; of no other where sharded."""
    record: dict[str, Record] = {
        "model": learner.model.into_record(),
        "optimizer": learner.optimizer.into_record(),
        "schedule": learner.schedule.into_record(),
        "steps": learner.steps,
        "seed": learner.seed,
        "microbatches": learner.microbatches,
    }
    if learner.scaling is not None:
        record["scaling"] = learner.scaling.into_record()
    if learner.ema is not None:
        record["ema"] = learner.ema.into_record()
    return record


def load_parts(learner: Any, record: Record, zero: Zero | None) -> tuple[Any, int]:
    """Load all parts of a record but the model and the count of steps, which are returned.

    Raises:
        RecordError: when the record is not one of such a learner.
    """
    known = record if isinstance(record, dict) else {}
    own = record_of(learner)
    if set(known) != set(own):
        got, expected = ", ".join(map(str, known)), ", ".join(own)
        raise RecordError("load_record", "not of such a learner", got=got, expected=expected)
    for name in ("microbatches", "seed"):
        if known[name] != own[name]:
            raise RecordError(
                "load_record",
                f"steps would give other numbers, as {name} differs",
                got=own[name],
                expected=known[name],
                hint=f"Learner(..., {name}={known[name]!r})",
            )
    model = learner.model.load_record(known["model"])
    device = learner.device.inner or learner.device  # which a compiled step could not move to
    states: Any = tree.map(
        lambda x: x.to_device(device) if isinstance(x, Tensor) else x, known["optimizer"]
    )
    learner.optimizer.load_record(states if zero is None else zero.share(states, model))
    learner.schedule.load_record(known["schedule"])
    if learner.scaling is not None:
        learner.scaling.load_record(known["scaling"])
    if learner.ema is not None:
        learner.ema.load_record(known["ema"])
    return model, cast("int", known["steps"])
