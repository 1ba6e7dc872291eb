"""Probes: whether a call is like the one before, asked without making a key."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Any

from phlox_tensor import Backend, Tensor
from phlox_tensor.capture import ALWAYS, MODES, RECORDINGS

from ..record.outside import Outside
from ..record.steps import Kept
from ..record.watch import write
from ..replay.halves import Join
from ..replay.replay import MISS, Replay
from ..source import Source
from ..trees.flat import flat, same_contents, twice
from ..trees.layout import NodePart, NumberPart
from ..trees.static import NUMBERS, WIDE, is_wide

# Takes args, kwargs and a list; gives what the replay gives, or ``MISS`` where a key has to tell.
# What has to be put back after an error goes into the list.
Probe = Callable[["tuple[Any, ...]", "dict[str, Any]", "list[Any]"], Any]


def probe_of(
    args: tuple[Any, ...],
    named: Mapping[str, Any],
    outside: Outside,
    run: Replay | Join,
    kept: Kept | None,
) -> Probe:
    """Write a function that replays calls with arguments like these, after one look at each.

    Args:
        args: arguments that the replay takes, of which no tensor comes twice.
        outside: what the function reads besides them.
        kept: what asks whether a model that it steps may come again; None without one.
    """
    given = (*args, *named.values())
    source = Source()
    miss = f"return {source.constant(MISS, 'MISS')}"
    modes, recordings = source.held(MODES, "modes"), source.held(RECORDINGS, "recordings")
    always = source.held(ALWAYS, "always")
    source.line(f"if {modes}.entered or {recordings}.count: {miss}")
    source.line(f"if len({always}) != {len(ALWAYS)} or len(given) != {len(args)}: {miss}")
    source.line(f"if {f'(*kwargs,) != {(*named,)}' if named else 'kwargs'}: {miss}")
    for ask in ALWAYS:
        source.line(f"if {source.held(ask, 'now')}() is not {source.held(ask())}: {miss}")
    write(source, outside.watches, miss)
    if kept is not None:
        kept.write(source, miss)
    names = [f"a{place}" for place in range(len(given))]
    first, rest = names[: len(args)], names[len(args) :]
    for some, values in ((first, "given"), (rest, "kwargs.values()")):
        if some:
            source.line(f"{', '.join(some)}, = {values}")
    looks = [_look(source, name, item, miss) for name, item in zip(names, given, strict=True)]
    found = f"[{', '.join(text for text, _ in looks if text)}]"
    if outside.identities:
        source.line(f"leaves = {found}")
        every = f"({', '.join(names)}, *leaves)"
        identities = source.held(frozenset(outside.identities), "identities")
        source.line(f"if not {identities}.isdisjoint(map(id, {every})): {miss}")
        found = "leaves"
    if sum(count for _, count in looks) > 1:  # one tensor at two places is another call
        source.line(f"leaves = {found}")
        again = f"{source.held(twice, 'twice')}(leaves)"
        source.line(f"if len({{*map(id, leaves)}}) < len(leaves) and {again}: {miss}")
        found = "leaves"
    if isinstance(run, Join):
        source.line(f"return {source.held(run, 'join')}.run(given, kwargs, {found}, undo)")
    else:
        source.line(f"return {source.held(run, 'replay')}({found}, undo)")
    return source.function("probe", "given, kwargs, undo")


def _look(source: Source, name: str, item: Any, miss: str) -> tuple[str, int]:
    """Add the lines for one argument; return what stands for its leaves, and the tensors in it."""
    cls = type(item)
    if cls is Tensor:
        return _look_at_tensor(source, name, item, miss), 1
    if cls in NUMBERS:
        other = "" if is_wide(item) else "not "
        wide = f" or {other}{-WIDE} <= {name} < {WIDE}" if cls is int else ""
        source.line(f"if type({name}) is not {source.held(cls)}{wide}: {miss}")
        return name, 0
    if item is None or cls is bool:
        source.line(f"if {name} is not {item}: {miss}")
        return "", 0
    if cls is str:
        source.line(f"if type({name}) is not str or {name} != {item!r}: {miss}")
        return "", 0
    known, _, _ = flat(item)
    layout = source.held(known, "layout")
    count = sum(not isinstance(part, NumberPart) for part in known.leaves)
    last = known.parts[-1]
    if isinstance(last, NodePart) and last.node.slot is not None:
        source.line(f"f_{name} = getattr({name}, {last.node.slot!r}, None)")
        source.line(f"if f_{name} is None: f_{name} = {source.held(flat, 'flat')}({name})")
        source.line(f"if f_{name}[0] is not {layout}: {miss}")
        if known.changing:
            source.line(
                f"if not {source.held(same_contents, 'same_contents')}(f_{name}[2]): {miss}"
            )
        return f"*f_{name}[1]", count
    source.line(f"l_{name}, f_{name}, _ = {source.constant(flat, 'flat')}({name})")
    source.line(f"if l_{name} is not {layout}: {miss}")
    return f"*f_{name}", count


def _look_at_tensor(source: Source, name: str, item: Tensor[Any], miss: str) -> str:
    device: Backend = item.device
    primitive = item.primitive
    own = source.constant(device, "device")
    source.line(f"if type({name}) is not Tensor or {name}.device is not {own}: {miss}")
    source.line(f"p_{name} = {name}.primitive")
    spec = source.constant(device.spec_of(primitive), "spec")
    source.line(f"if {source.constant(device.spec_of, 'spec_of')}(p_{name}) != {spec}: {miss}")
    while device.inner is not None:
        standing = source.constant(device.standing, "standing")
        how = device.standing(primitive)
        source.line(f"if {standing}(p_{name}) != {how!r}: {miss}")
        source.line(f"p_{name} = {source.constant(device.lower, 'lower')}(p_{name})")
        device, primitive = device.inner, device.lower(primitive)
    return f"p_{name}"
