"""Clusters: which ops of a graph run as one program."""

from __future__ import annotations

from collections.abc import Sequence
from collections.abc import Set as AbstractSet
from math import prod
from typing import Final, final
from weakref import WeakKeyDictionary

from phlox_tensor import Backend, Op, Spec, broadcast_shapes
from phlox_tensor.capture import (
    Instr,
    Node,
    Program,
    Taken,
    arguments_of,
    fold_of,
    source_of,
    values_of,
)


@final
class Cluster:
    """Ops of one device and shape that nothing outside comes between.

    Folds may be among them: reductions of the last axes of this shape, and ops on what they give.

    Attributes:
        shape: the shape of every result that is not one of rows.
        inner: how many axes are folded; 0 without folds.
        row: the shape of what folds give.
        reads: values from outside.
        made: results, whoever reads them.
        outputs: results that something outside reads.
        parts: two clusters that read the same, which this one is made of.
    """

    def __init__(self, device: Backend, shape: tuple[int, ...]) -> None:
        self.nodes: list[int] = []
        self.shape = shape
        self.inner = 0
        self.row: tuple[int, ...] = ()
        self.device: Final = device
        self.reads: dict[int, None] = {}
        self.made: dict[int, None] = {}
        self.outputs: list[int] = []
        self.parts: tuple[Cluster, ...] = ()
        self.wide: bool | None = None
        self.closed = False

    @property
    def keepdims(self) -> bool:
        """Whether folds keep the axes that they fold."""
        return len(self.row) == len(self.shape)

    def take(self, place: int, node: Node) -> None:
        """Add an op."""
        self.nodes.append(place)
        self.reads.update((v, None) for v in values_of(node) if v not in self.made)
        self.made.update((v, None) for v in node.results)

    def take_all(self, other: Cluster) -> None:
        """Add the ops of another one."""
        self.nodes = sorted({*self.nodes, *other.nodes})
        self.made |= other.made
        self.reads = {v: None for v in (*self.reads, *other.reads) if v not in self.made}
        self.wide = other.wide if self.wide is None else self.wide
        if other.inner:
            self.shape, self.inner, self.row = other.shape, other.inner, other.row


def clusters_of(
    nodes: Sequence[Node],
    specs: Sequence[Spec],
    wanted: set[int],
    apart: AbstractSet[int] = frozenset(),
) -> tuple[list[Cluster], dict[int, str]]:
    """Return the clusters of two ops and more, and why the other ops stand alone, by place.

    A cluster runs where its last op stood. An op joins those that made its operands as long as
    nothing in between has read from them, so that no op changes places with one that it needs.
    Those at the places ``apart`` stand alone.
    """
    return _Clusters(nodes, specs, wanted).find(apart)


@final
class _Clusters:
    def __init__(self, nodes: Sequence[Node], specs: Sequence[Spec], wanted: set[int]) -> None:
        self._nodes = nodes
        self._specs = specs
        self._wanted = wanted
        self._owner: dict[int, Cluster] = {}
        self._readers: dict[int, list[int]] = {}
        for place, node in enumerate(nodes):
            for value in values_of(node):
                self._readers.setdefault(value, []).append(place)
        self._all: list[Cluster] = []
        self._alone: dict[int, str] = {}

    def find(self, apart: AbstractSet[int]) -> tuple[list[Cluster], dict[int, str]]:
        for place, node in enumerate(self._nodes):
            found = "no kernel for them together" if place in apart else self._reason(node)
            makers = [self._owner[v] for v in values_of(node) if v in self._owner]
            if isinstance(found, str):
                self._alone[place] = found
                for maker in makers:
                    maker.closed = True
                continue
            self._join(place, node, [*dict.fromkeys(makers)], found)
        for cluster in self._all:
            inside = {*cluster.nodes}
            cluster.outputs = [v for v in cluster.made if self._leaves(v, inside)]
        self._take_sources()
        self._join_siblings()
        kept = []
        for cluster in self._all:
            inside = {*cluster.nodes}
            if len(inside) == 1 or not cluster.outputs or self._only_ends(cluster):
                self._alone.update((place, "no elementwise op beside it") for place in inside)
            elif len(inside) == 2 and self._bytes(cluster) < cluster.device.limits.pays_from:
                self._alone.update((place, "two calls on little cost less") for place in inside)
            else:
                kept.append(cluster)
        return kept, self._alone

    def _take_sources(self) -> None:
        """Let clusters draw the random numbers that only they read."""
        for place, node in enumerate(self._nodes):
            if not node.op.traits.source or node.results[0] in self._wanted:
                continue
            (drawn,) = node.results
            if self._held(drawn) < node.device.limits.draws_from:
                self._alone[place] = "few numbers are drawn faster by their op"
                continue
            places = {*self._readers.get(drawn, ())}
            for cluster in self._all:
                if drawn in cluster.reads and places <= {*cluster.nodes}:
                    if self._draws(cluster, node, drawn):
                        cluster.nodes.insert(0, place)
                        cluster.made[drawn] = None
                        del cluster.reads[drawn], self._alone[place]
                    break

    def _draws(self, cluster: Cluster, node: Node, drawn: int) -> bool:
        """Whether a cluster may draw what it reads: its other operands tell its shape."""
        if cluster.inner or cluster.device is not node.device:
            return False
        if len(cluster.nodes) >= node.device.limits.instrs:
            return False
        others = [value for value in cluster.reads if value != drawn]
        if not spans(others, self._specs, cluster.shape):
            return False
        same = self._specs[drawn].shape == cluster.shape
        return same and _has_source(node.device, node.op, self._name(drawn))

    def _join_siblings(self) -> None:
        """Let clusters that read the same and do not need each other read it once."""
        owner = {place: cluster for cluster in self._all for place in cluster.nodes}

        def is_free(first: Cluster, second: Cluster) -> bool:
            """Whether the first one may wait for the second one."""
            last = second.nodes[-1]
            return all(
                (owner[p].nodes[-1] if p in owner else p) > last and owner.get(p) is not second
                for value in first.outputs
                for p in self._readers.get(value, ())
            )

        latest: dict[int, Cluster] = {}
        for cluster in sorted(self._all, key=lambda each: each.nodes[-1]):
            both = cluster
            if not cluster.inner:
                shape = cluster.shape
                shared = [v for v in cluster.reads if shape and self._specs[v].shape == shape]
                for first in dict.fromkeys(latest[v] for v in shared if v in latest):
                    if self._fits_beside(first, both) and is_free(first, both):
                        both = self._joined(first, both, owner)
                latest.update((v, both) for v in both.reads)

    def _fits_beside(self, first: Cluster, second: Cluster) -> bool:
        limits = first.device.limits
        if first.shape != second.shape or first.device != second.device:
            return False
        if not first.outputs or not second.outputs:
            return False
        alone = 1 in (len(first.nodes), len(second.nodes))
        if alone and self._bytes(second) < limits.pays_from:
            return False
        if not limits.mixed and None not in (first.wide, second.wide) and first.wide != second.wide:
            return False
        outside = len({*first.reads, *second.reads}) + len(first.outputs) + len(second.outputs)
        return len(first.nodes) + len(second.nodes) <= limits.instrs and outside <= limits.bindings

    def _joined(self, first: Cluster, second: Cluster, owner: dict[int, Cluster]) -> Cluster:
        both = Cluster(second.device, second.shape)
        both.take_all(first)
        both.take_all(second)
        both.outputs = [*first.outputs, *second.outputs]
        both.parts = (first, second)
        owner.update(dict.fromkeys(both.nodes, both))
        self._all = [each for each in self._all if each not in both.parts] + [both]
        return both

    def _bytes(self, cluster: Cluster) -> int:
        return prod(cluster.shape) * self._specs[cluster.outputs[0]].dtype.itemsize

    def _held(self, value: int) -> int:
        return self._specs[value].nbytes

    def _only_ends(self, cluster: Cluster) -> bool:
        """Whether it is a fold, and one op on what it gives: nothing to save."""
        shapes = [self._specs[v].shape for v in cluster.made]
        return len(cluster.nodes) == 2 and cluster.inner > 0 and cluster.shape not in shapes

    def _reason(self, node: Node) -> bool | str | None:
        """Why an op is in no program; else whether it takes 8 bytes an element, None for bools."""
        device = node.device
        limits = device.limits
        if not limits.bindings:
            return f"{device!r} runs no programs"
        inner: int | str = 0
        args: tuple[int | Taken, ...] | str
        if node.op.traits.folds and limits.folds:
            inner, args = fold_of(node, self._specs), (*values_of(node),)
            if self._held(args[0]) < limits.folds_from:
                return "a fold of little costs less by itself"
        else:
            args = arguments_of(node, self._specs)
        if isinstance(inner, str) or isinstance(args, str):
            return str(inner or args)
        dtypes = [arg.dtype if isinstance(arg, Taken) else self._name(arg) for arg in args]
        if not _runs(device, node.op.name, tuple(dtypes), self._name(node.results[0]), inner):
            return f"{device!r} has no kernel for {', '.join(dict.fromkeys(dtypes))}"
        sizes = {self._size(v) for v in (*values_of(node), *node.results)} - {1}
        return None if not sizes else max(sizes) == 8

    def _name(self, value: int) -> str:
        return self._specs[value].dtype.name

    def _size(self, value: int) -> int:
        dtype = self._specs[value].dtype
        return 1 if dtype.kind == "Bool" else max(dtype.itemsize, 2)

    def _join(self, place: int, node: Node, makers: list[Cluster], wide: bool | None) -> None:
        # Those that fold come first: they tell which shapes go together.
        order = sorted(makers, key=lambda maker: not maker.inner)
        for tried in (order, [maker for maker in order if not maker.inner]):
            mine, joined = self._alone_with(place, node, wide), list[Cluster]()
            for maker in tried:
                if self._fits(maker, mine):
                    mine.take_all(maker)
                    joined.append(maker)
            if self._rows_stand(mine):
                break
        for maker in makers:
            if maker in joined:
                self._all.remove(maker)
                self._owner.update((v, mine) for v in maker.made)
            else:
                maker.closed = True
        self._all.append(mine)
        self._owner[node.results[0]] = mine

    def _alone_with(self, place: int, node: Node, wide: bool | None) -> Cluster:
        shape = self._specs[node.results[0]].shape
        mine = Cluster(node.device, shape)
        if node.op.traits.folds and node.device.limits.folds:
            mine.shape, mine.row = self._specs[values_of(node)[0]].shape, shape
            mine.inner = int(fold_of(node, self._specs))
        mine.wide = wide
        mine.take(place, node)
        return mine

    def _fits(self, maker: Cluster, mine: Cluster) -> bool:
        limits = mine.device.limits
        if maker.closed or maker.device != mine.device or not self._in_form(maker, mine):
            return False
        if not limits.mixed and None not in (maker.wide, mine.wide) and maker.wide is not mine.wide:
            return False
        both = {*maker.nodes, *mine.nodes}
        made = {**maker.made, **mine.made}
        reads = {*maker.reads, *mine.reads} - made.keys()
        outputs = [v for v in made if self._leaves(v, both)]
        return len(both) <= limits.instrs and len(reads) + len(outputs) <= limits.bindings

    def _in_form(self, maker: Cluster, mine: Cluster) -> bool:
        """Whether the shapes of two clusters go together."""
        folded, other = (maker, mine) if maker.inner else (mine, maker)
        if not folded.inner:
            return maker.shape == mine.shape
        if other.inner:
            return (other.shape, other.inner, other.row) == (folded.shape, folded.inner, folded.row)
        return other.shape in (folded.shape, folded.row)

    def _rows_stand(self, cluster: Cluster) -> bool:
        """Whether what has one element for each row broadcasts as the program lets it."""
        if not cluster.inner:
            return True
        if not self._may_read_again(cluster) and self._reads_again(cluster):
            return False
        if cluster.keepdims or not cluster.row:
            return True
        # Without their axes, rows do not broadcast, nor are they told from what does.
        for node in map(self._nodes.__getitem__, cluster.nodes):
            on_rows = self._specs[node.results[0]].shape == cluster.row and not node.op.traits.folds
            for value in values_of(node):
                shape = self._specs[value].shape
                if shape and value not in cluster.made if on_rows else shape == cluster.row:
                    return False
        return True

    def _may_read_again(self, cluster: Cluster) -> bool:
        limits = cluster.device.limits
        folded = max((self._held(v) for v in (*cluster.reads, *cluster.made)), default=0)
        return limits.stages and folded >= limits.stages_from

    def _reads_again(self, cluster: Cluster) -> bool:
        """Whether an op of the folded shape reads what has one element for each row."""
        for node in map(self._nodes.__getitem__, cluster.nodes):
            if node.op.traits.folds or self._specs[node.results[0]].shape != cluster.shape:
                continue
            made = [v for v in values_of(node) if v in cluster.made]
            if any(self._specs[v].shape == cluster.row for v in made):
                return True
        return False

    def _leaves(self, value: int, inside: set[int]) -> bool:
        """Whether something outside of these ops reads a value; one that comes later may join."""
        if value in self._wanted:
            return True
        last = self._readers.get(value, [-1])[-1]
        return last not in inside and last >= 0


def spans(values: Sequence[int], specs: Sequence[Spec], shape: tuple[int, ...]) -> bool:
    """Whether values broadcast to a shape by themselves."""
    return bool(values) and broadcast_shapes(*[specs[v].shape for v in values]) == shape


def _has_source(device: Backend, op: Op, dtype: str) -> bool:
    """Whether a backend draws inside of a program."""
    types = source_of(op)
    drawn = len(types) + 1
    draw = Instr(op.name, tuple(range(1, drawn)), dtype)
    instrs = draw, Instr("add", (0, drawn), dtype)
    return _has_kernel(device, Program((dtype,), types, instrs, (drawn + 1,)))


def _runs(device: Backend, op: str, dtypes: tuple[str, ...], result: str, inner: int) -> bool:
    """Whether a backend has a kernel for an op of these element types."""
    instr = Instr(op, tuple(range(len(dtypes))), result)
    return _has_kernel(device, Program(dtypes, (), (instr,), (len(dtypes),), min(inner, 1)))


_HAS_KERNEL: Final[WeakKeyDictionary[Backend, dict[Program, bool]]] = WeakKeyDictionary()


def _has_kernel(device: Backend, program: Program) -> bool:
    """Whether a backend makes a kernel of a program; it is asked once for each."""
    known = _HAS_KERNEL.setdefault(device, {})
    found = known.get(program)
    if found is None:
        found = known[program] = device.kernel(program) is not None
    return found
