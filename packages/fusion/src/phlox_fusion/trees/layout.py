"""Layouts: what trees have in common whose tensors and numbers differ only in their values."""

from __future__ import annotations

import itertools
from collections import deque
from collections.abc import Callable, Hashable, Sequence
from copy import copy
from functools import partial
from typing import Any, Final, NamedTuple, NoReturn, final
from weakref import ref

from phlox_tensor import Backend, Spec, Standing, Tensor, tree
from phlox_tensor.capture import STATEFUL, Packed, plain, refuse

from .. import refused
from ..locks import lock_beyond_forks
from ..source import Source
from .static import BY_EQUALITY, NUMBERS, same_keys, same_static

# What a device has of a tensor: the device, and what the tensor is to it.
Level = tuple[Backend, Standing]


class TensorPart(NamedTuple):
    """A tensor, by its devices from the outermost to the base."""

    levels: tuple[Level, ...]
    spec: Spec


class NumberPart(NamedTuple):
    """An int, a float or a float64 of NumPy, which may be another at each call."""

    type: type


class StaticPart(NamedTuple):
    """Any other leaf: it stands for itself."""

    value: Any


class StatePart(NamedTuple):
    """An object that keeps its state in cells, which may be another at each call."""

    type: type
    static: Any


class NodePart(NamedTuple):
    """A container that is complete once its children are."""

    type: type
    keys: tuple[Any, ...] | None
    size: int
    node: tree.Node
    rest: Any
    static: Any


class AgainPart(NamedTuple):
    """A part that stood at another place before."""

    part: int


Part = TensorPart | NumberPart | StatePart | StaticPart | NodePart | AgainPart


_LEAVES: Final = (TensorPart, NumberPart, StatePart)


@final
class Layout:
    """A tree without its tensors and numbers; one object where one recording serves both.

    Attributes:
        parts: the leaves and nodes, children before what holds them.
        leaves: those that hold a tensor, a number, or an object with state.
        transient: some tensor is on the device of a transform.
        changing: some value that never changes holds lists or dicts, which may.
    """

    __slots__ = ("__weakref__", "_makers", "changing", "leaves", "parts", "transient")

    def __init__(self, parts: list[Part]) -> None:
        self.parts: Final = tuple(parts)
        self.leaves: Final = tuple(p for p in parts if isinstance(p, _LEAVES))
        tensors = [p for p in self.leaves if isinstance(p, TensorPart)]
        self.transient: Final = any(d.transient for part in tensors for d, _ in part.levels)
        self.changing: Final = any(isinstance(p, NodePart) and _changing(p) for p in parts)
        self._makers: dict[bool, Callable[[Any], Any]] = {}

    def build(self, leaves: Sequence[Any]) -> Any:
        """Return a tree of this layout from base primitives and numbers."""
        return (self._makers.get(False) or self._maker(whole=False))(leaves)

    def build_whole(self, leaves: Sequence[Any]) -> Any:
        """Return a tree of this layout from primitives of the outermost devices, and numbers."""
        return (self._makers.get(True) or self._maker(whole=True))(leaves)

    def _maker(self, *, whole: bool) -> Callable[[Any], Any]:
        source = Source()
        names = [f"x{i}" for i in range(len(self.leaves))]
        if names:
            source.line(f"{', '.join(names)}, = leaves")
        out = write_tree(source, self, names, whole=whole).text
        source.line(f"return {out}")
        made = self._makers[whole] = source.function("make", "leaves")
        return made

    def pack(self, leaves: Sequence[Any]) -> Packed:
        """Return the content of a cell in parts."""
        return Packed(self, leaves, Layout.build)


def _changing(part: NodePart) -> Sequence[str]:
    return () if part.node.changing is None else part.node.changing(part.rest)


_LAYOUTS: Final[dict[int, list[ref[Layout]]]] = {}
_lock: Final = lock_beyond_forks()  # a layout may go while another one is looked for


def _layout(parts: list[Part]) -> Layout:
    """Return the layout of these parts: the one there is already, or a new one."""
    key = hash(tuple(map(_hashable, parts)))

    def forget(gone: ref[Layout]) -> None:
        with _lock:
            left = [kept for kept in _LAYOUTS.get(key, ()) if kept is not gone]
            if left:
                _LAYOUTS[key] = left
            else:
                _LAYOUTS.pop(key, None)

    with _lock:
        for kept in _LAYOUTS.get(key, ()):
            known = kept()
            if known is None or len(known.parts) != len(parts):
                continue
            if all(map(equal_parts, known.parts, parts)):
                return known
        made = Layout(parts)
        _LAYOUTS[key] = [*_LAYOUTS.get(key, ()), ref(made, forget)]
        return made


def _hashable(part: Part) -> Any:
    if isinstance(part, TensorPart | NumberPart | AgainPart):
        return part
    if isinstance(part, NodePart):
        return part.type, part.keys, part.size
    if isinstance(part, StatePart):
        return part.type
    value = part.value
    return type(value), value if type(value) in BY_EQUALITY else None


def equal_parts(a: Part, b: Part) -> bool:
    """Whether two parts are one."""
    if a is b:
        return True
    if type(a) is not type(b):
        return False
    if isinstance(a, StaticPart) and isinstance(b, StaticPart):
        return same_static(a.value, b.value)
    if isinstance(a, StatePart) and isinstance(b, StatePart):
        return a.type is b.type and same_static(a.static, b.static)
    if isinstance(a, NodePart) and isinstance(b, NodePart):
        shape = (a.type, a.keys, a.size) == (b.type, b.keys, b.size)
        return shape and same_keys(a.keys, b.keys) and same_static(a.static, b.static)
    return a == b


def levels_of(
    tensor: Tensor[Any], where: str = "", *, given: bool = True
) -> tuple[tuple[Level, ...], Any]:
    """Return what each device has of a tensor, and the primitive of the base device.

    A history that a pass has freed is one to what comes out of a tensor that is given, and none
    for a result.

    Raises:
        CompileError: for a tensor with a history, if ``where`` tells the place that takes none.
    """
    device: Backend = tensor.device
    primitive = tensor.primitive
    levels: list[Level] = []
    while device.inner is not None:
        if device.transient and given:  # whoever asks for its parts is told so by the layout
            break
        standing = device.standing(primitive)
        if standing == "result" and (where or not _joins(device)):
            got = f"a recorded tensor of shape {tensor.shape} on {device!r}"
            raise refused.HISTORY.of(got, where=where or "a tensor")
        if standing == "freed":
            standing = "result" if given and not where and _joins(device) else "constant"
        levels.append((device, standing))
        primitive = device.lower(primitive)
        device = device.inner
    return (*levels, (device, "constant")), primitive


def _joins(device: Backend) -> bool:
    """Whether what ran elsewhere can be a step of what a device records."""
    return type(device).as_one_step is not Backend.as_one_step


def _with_history(device: Backend, inside: Any) -> Any:
    """Make a primitive that stands for one with a history, which no pass may go on into."""
    leaf = device.leaf(inside)
    return device.as_one_step("compile", (leaf,), (inside,), _refuse_to_go_on)[0]


def _refuse_to_go_on(cotangents: list[Any], again: bool) -> NoReturn:
    del cotangents, again
    refuse(refused.INTO_HISTORY.of())


_MAKE: Final[dict[Standing, Callable[[Backend], Callable[[Any], Any]]]] = {
    "constant": lambda device: device.lift,
    "leaf": lambda device: device.leaf,
    "result": lambda device: partial(_with_history, device),
}


def outermost(part: Part, leaf: Any) -> Any:
    """The primitive of the outermost device for that of the base device; a number as it is."""
    for device, standing in part.levels[-2::-1] if isinstance(part, TensorPart) else ():
        leaf = _MAKE[standing](device)(leaf)
    return leaf


class _Open(NamedTuple):
    """On a stack of work: a node whose children come first."""

    part: NodePart
    shared: Hashable


def flatten(
    value: Any, where: str = "", *, given: bool = True
) -> tuple[Layout, list[Any], list[Any]]:
    """Take a tree apart.

    Args:
        value: may have layouts in the place of what has been taken apart, whose leaves are known.
        where: names a place in which no tensor may have a history.
        given: it is no result, so that histories count that a pass has freed.

    Returns:
        The layout, the leaves (base primitives, numbers, objects with state), and for each what it
        is known by: the outermost primitive of a tensor, None for a number, an object by itself.
    """
    parts: list[Part] = []
    leaves: list[Any] = []
    known: list[Any] = []
    seen: dict[Hashable, int] = {}
    work: list[Any] = [value]
    while work:
        item = work.pop()
        cls = type(item)
        if cls is _Open:
            if item.shared is not None:
                seen[item.shared] = len(parts)
            parts.append(item.part)
            continue
        if cls is Tensor:
            again = seen.setdefault((Tensor, id(item.primitive)), len(parts))
            if again < len(parts):
                parts.append(AgainPart(again))
                continue
            levels, primitive = levels_of(item, where, given=given)
            parts.append(TensorPart(levels, Spec(item.shape, item.dtype)))
            leaves.append(primitive)
            known.append(item.primitive)
        elif cls in NUMBERS:
            parts.append(NumberPart(type(plain(item))))
            leaves.append(item)
            known.append(None)
        elif cls in STATEFUL:
            again = seen.setdefault((cls, id(item)), len(parts))
            if again < len(parts):
                parts.append(AgainPart(again))
                continue
            parts.append(StatePart(cls, STATEFUL[cls].static(item)))
            leaves.append(item)
            known.append(item)
        elif cls is Layout:
            first = len(parts)
            parts += [AgainPart(p.part + first) if type(p) is AgainPart else p for p in item.parts]
        else:
            _open(item, parts, work, seen)
    return _layout(parts), leaves, known


def _open(item: Any, parts: list[Part], work: list[Any], seen: dict[Hashable, int]) -> None:
    """Put the children of a node on the stack, after the node itself."""
    node = tree.node_of(item)
    if node is None:
        parts.append(StaticPart(item))
        return
    shared = None if node.static is None else (type(item), id(item))
    if shared in seen:
        parts.append(AgainPart(seen[shared]))
        return
    children, rest = (node.whole_parts or node.flatten)(item)
    if node.changing is not None and node.changing(rest):
        rest = _copied(rest)
    static = rest if node.static is None else node.static(rest)
    keys = tuple(children) if isinstance(children, dict) else None
    values = [*children.values()] if isinstance(children, dict) else [*children]
    work.append(_Open(NodePart(type(item), keys, len(values), node, rest, static), shared))
    work.extend(reversed(values))


def _copied(rest: Any) -> Any:
    """Constants with copies of the lists and dicts among them, which somebody may change."""
    if type(rest) is tuple:
        return tuple(map(_copied, rest))
    if not isinstance(rest, deque | dict | list):
        return rest
    made: Any = copy(rest)
    for key, part in rest.items() if isinstance(rest, dict) else enumerate(rest):
        made[key] = _copied(part)
    if isinstance(rest, deque):  # which copies no attributes
        getattr(made, "__dict__", {}).update(getattr(rest, "__dict__", {}))
    return made


def _late(parts: Sequence[Part]) -> dict[int, Callable[[Any], Any]]:
    """Return by the place of a tensor how what holds it is made without it."""
    again = {part.part for part in parts if isinstance(part, AgainPart)}
    makers: dict[tuple[Level, ...], Callable[[Any], Tensor[Any]]] = {}
    found = {}
    for at, (part, holder) in enumerate(itertools.pairwise(parts)):
        if not isinstance(part, TensorPart) or not isinstance(holder, NodePart) or at in again:
            continue
        standing = {how for _, how in part.levels}
        if holder.size == 1 and holder.node.late is not None and "result" not in standing:
            if part.levels not in makers:
                makers[part.levels] = _maker_of(part)
            device, make = part.levels[0][0], makers[part.levels]
            coming = tree.Coming(part.spec, device, "leaf" in standing, make)
            function = holder.node.late(holder.rest, coming)
            if function is not None:
                found[at] = function
    return found


# Trees as text


class Written(NamedTuple):
    """Names in a text that makes a tree.

    Attributes:
        children: what stands for the children of its root.
        containers: what stands for the lists and dicts in values that never change.
    """

    text: str
    children: list[str]
    containers: list[str]


def write_tree(
    source: Source, layout: Layout, leaves: Sequence[str], *, whole: bool = False
) -> Written:
    """Add the lines that make a tree, and return what stands for it.

    Args:
        leaves: names of base primitives and numbers.
        whole: they are primitives of the outermost devices.
    """
    given = iter(leaves)
    made: list[str] = []
    open_parts: list[str] = []
    children: list[str] = []
    containers: list[str] = []
    late = {} if whole else _late(layout.parts)
    for at, part in enumerate(layout.parts):
        if at in late:  # the tensor of the next part, which takes its primitive
            out = next(given)
        elif at - 1 in late:
            out, primitive = source.name("t"), open_parts.pop()
            source.line(f"{out} = {source.constant(late[at - 1], 'late')}({primitive})")
        elif isinstance(part, TensorPart):
            out = _write_tensor(source, part, next(given), whole=whole)
        elif isinstance(part, NumberPart | StatePart):
            out = next(given)
        elif isinstance(part, StaticPart):
            out = source.constant(part.value)
        elif isinstance(part, AgainPart):
            out = made[part.part]
        else:
            start = len(open_parts) - part.size
            children = open_parts[start:]
            out = _write_node(source, part, children)
            containers += [f"{out}.{name}" for name in _changing(part)]
            del open_parts[start:]
        made.append(out)
        open_parts.append(out)
    return Written(open_parts[0], children, containers)


def _maker_of(part: TensorPart) -> Callable[[Any], Tensor[Any]]:
    """Return a function from the base primitive of a tensor to the tensor."""
    source = Source()
    source.line(f"return {_write_tensor(source, part, 'primitive', whole=False)}")
    return source.function("make", "primitive")


def _write_tensor(source: Source, part: TensorPart, primitive: str, *, whole: bool) -> str:
    for device, standing in () if whole else part.levels[-2::-1]:
        inside = primitive
        primitive = source.name("p")
        make = source.constant(_MAKE[standing](device), standing)
        source.line(f"{primitive} = {make}({inside})")
    return source.tensor(part.levels[0][0], primitive)


def _write_node(source: Source, part: NodePart, children: list[str]) -> str:
    if part.keys is not None:
        pairs = zip(map(source.constant, part.keys), children, strict=True)
        inside = f"{{{', '.join(f'{key}: {child}' for key, child in pairs)}}}"
    else:
        inside = f"({''.join(f'{child}, ' for child in children)})"
    out = source.name("t")
    if part.type is tuple or part.type is dict:
        source.line(f"{out} = {inside}")
    elif part.type is list:
        source.line(f"{out} = [{', '.join(children)}]")
    else:
        rebuild = source.constant(part.node.rebuild, "rebuild")
        rest = source.constant(part.rest, part.type.__name__)
        source.line(f"{out} = {rebuild}({inside}, {rest})")
    return out
