"""Plans: what a replay calls, one op or one program at a time, in order."""

from __future__ import annotations

import itertools
from collections.abc import Sequence
from typing import Any, Final, NamedTuple

from phlox_tensor import Spec
from phlox_tensor.capture import Node, lowered

from .cluster import Cluster, clusters_of
from .finish import with_finishes
from .items import Batch, Fused, Single, Step, gives, last_uses, takes


class Plan(NamedTuple):
    """The steps of a replay.

    Attributes:
        alone: the ops that are in no program, and why, in order.
        finished: the activations that are a part of the product before them.
    """

    steps: tuple[Step, ...]
    alone: tuple[tuple[Node, str], ...]
    finished: tuple[Node, ...] = ()


_PEAK: Final = "memory: as a program it would hold more at once than the ops do"
_LATE: Final = "order: what reads from it runs before the end of the program"


def planned(
    nodes: Sequence[Node],
    specs: Sequence[Spec],
    wanted: set[int],
    owned: frozenset[int] = frozenset(),
) -> Plan:
    """Return what runs these ops, with as many of them in programs as pays.

    At no time does a plan hold more bytes than the ops would one by one.

    Args:
        wanted: values that stay.
        owned: values from outside that go with their last use.
    """
    nodes, finished = with_finishes(nodes, specs, wanted)
    made, alone = _programs(nodes, specs, wanted)
    top = _peak(nodes, specs, wanted, owned)[0]
    while True:
        steps = _in_order(nodes, made)
        late = _late(steps)
        if late is None:
            most, place = _peak(steps, specs, wanted, owned)
            if most <= top:
                break
            worst, why = _blamed(made, steps, place, nodes), _PEAK
        else:
            worst, why = next(pair for pair in made if pair[1] is late), _LATE
        made.remove(worst)
        for part in worst[0].parts or worst[:1]:
            fused = _fused(part, nodes, specs) if part is not worst[0] else None
            if fused is not None and len(part.nodes) > 1:
                made.append((part, fused))
            else:
                alone.update((at, why) for at in part.nodes)
    reasons = tuple((nodes[place], alone[place]) for place in sorted(alone))
    return Plan(steps, reasons, tuple(finished))


def _programs(
    nodes: Sequence[Node], specs: Sequence[Spec], wanted: set[int]
) -> tuple[list[tuple[Cluster, Fused]], dict[int, str]]:
    """The clusters with their programs, and why the other ops stand alone, by place.

    Folds of which a backend makes no kernel together with their cluster stand alone, so that the
    rest of it is one.
    """
    apart: set[int] = set()
    while True:
        clusters, alone = clusters_of(nodes, specs, wanted, apart)
        found = [(cluster, _fused(cluster, nodes, specs)) for cluster in clusters]
        without = [cluster for cluster, fused in found if fused is None]
        folds = {at for each in without for at in each.nodes if nodes[at].op.traits.folds}
        if not folds:
            break
        apart |= folds
    alone.update((at, "no kernel for them together") for each in without for at in each.nodes)
    return [(cluster, fused) for cluster, fused in found if fused is not None], alone


def _fused(cluster: Cluster, nodes: Sequence[Node], specs: Sequence[Spec]) -> Fused | None:
    own = tuple(nodes[place] for place in cluster.nodes)
    parts = lowered(own, specs, cluster.outputs, cluster.inner, cluster.keepdims)
    kernel = cluster.device.kernel(parts.program)
    return None if kernel is None else Fused(own, parts, kernel)


def together(
    steps: Sequence[Single], specs: Sequence[Spec], wanted: set[int]
) -> tuple[Single, ...]:
    """Return steps with equal programs that follow each other as one, where no more is held.

    A kernel that takes several calls at once has ``over``: it gets a list of their arguments, and
    gives the results of all. So the rule of an optimizer is one call over all parameters.
    """
    runs: list[list[Single]] = []
    for step in steps:
        if runs and _goes_on(runs[-1], step):
            runs[-1].append(step)
        else:
            runs.append([step])
    top = _peak(steps, specs, wanted)[0]
    for at, run in enumerate(runs):
        each = tuple(step for step in run if isinstance(step, Fused))
        if len(run) > 1:
            one: Any = Batch(each, each[0].kernel.over)  # type: ignore[attr-defined]
            tried = [*itertools.chain(*runs[:at]), one, *itertools.chain(*runs[at + 1 :])]
            if _peak(tried, specs, wanted)[0] <= top:
                runs[at] = [one]
    return tuple(itertools.chain(*runs))


def _goes_on(run: Sequence[Single], step: Single) -> bool:
    first = run[0]
    if not isinstance(first, Fused) or not isinstance(step, Fused):
        return False
    same = first.lowered.program == step.lowered.program
    same = same and first.nodes[0].device is step.nodes[0].device and hasattr(first.kernel, "over")
    return same and {*takes(step)}.isdisjoint(value for each in run for value in gives(each))


def _in_order(nodes: Sequence[Node], made: list[tuple[Cluster, Fused]]) -> tuple[Step, ...]:
    """Each program where the last of its ops stood."""
    last = {cluster.nodes[-1]: fused for cluster, fused in made}
    inside = {place for cluster, _ in made for place in cluster.nodes}
    steps = [
        last.get(place, node)
        for place, node in enumerate(nodes)
        if place in last or place not in inside
    ]
    return tuple(steps)


def _late(steps: Sequence[Step]) -> Fused | None:
    """The first program that gives what a step before it takes, or takes what one after it gives.

    Two that read the same were joined when the readers of the first were in a program that runs
    later; that one is none any more.
    """
    given = {value: place for place, step in enumerate(steps) for value in gives(step)}
    for place, step in enumerate(steps):
        for value in takes(step):
            behind = given.get(value, -1)
            if behind > place:
                both = (steps[behind], step)
                return next(one for one in both if isinstance(one, Fused))
    return None


def _peak(
    steps: Sequence[Single],
    specs: Sequence[Spec],
    wanted: set[int],
    owned: frozenset[int] = frozenset(),
) -> tuple[int, int]:
    """Return the most bytes that the values of steps hold at once, and at which step."""
    last = last_uses(steps)
    held = {value for value in owned if value in last}
    now = most = sum(specs[value].nbytes for value in held)
    at = 0
    for place, step in enumerate(steps):
        held.update(gives(step))
        now += sum(specs[v].nbytes for v in gives(step))
        if now > most:
            most, at = now, place
        for value in {*takes(step), *gives(step)}:
            if last[value] == place and value not in wanted and value in held:
                held.discard(value)
                now -= specs[value].nbytes
    return most, at


def _blamed(
    made: list[tuple[Cluster, Fused]], steps: Sequence[Any], place: int, nodes: Sequence[Node]
) -> tuple[Cluster, Fused]:
    """The program at the peak, or one that is held back over it, or else the last one before."""
    step = steps[place]
    for pair in made:
        if pair[1] is step:
            return pair
    at = next(k for k, node in enumerate(nodes) if node is step)
    for pair in made:
        if pair[0].nodes[0] < at < pair[0].nodes[-1]:
            return pair
    return max(made, key=lambda pair: (pair[0].nodes[-1] < at, pair[0].nodes[-1]))
