"""The file of noted runs: each op in its spelling, constants and sizes by what is open."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, Final, final

import onnx
from onnx import helper

from phlox_tensor.capture import Value, plain

from .._errors import OnnxError
from ._rows import FOLLOWING, ROWS
from ._run import Run, needed
from ._sizes import Followed, Runs, Unlike, has
from ._writer import EVERY, OPSET, Call, Writer, type_of

_IR: Final = 10  # that of opset 21


def model_of(
    runs: list[Run],
    sizes: Runs,
    opened: Mapping[str, tuple[str, int]],
    inputs: list[str],
    outputs: list[str],
) -> tuple[onnx.ModelProto, list[str]]:
    """Return the model, and who asked for each of its nodes.

    Raises:
        OnnxError: for an op without a spelling, and for what differs from run to run.
    """
    g = _Values(runs, sizes, opened, inputs)
    w = g.writer
    for word in outputs:
        w.name(word)
    wanted = needed(runs[0].graph)
    for i, node in enumerate(runs[0].graph.nodes):
        if not wanted.isdisjoint(node.results):
            g.spell(i, tuple(v in wanted for v in node.results))
    ends = []
    w.place = "the results"
    for name, numbers in zip(
        outputs, zip(*(r.graph.outputs for r in runs), strict=True), strict=True
    ):
        w.nodes.append(helper.make_node("Identity", [g.value(numbers, "the results")], [name]))
        w.places.append(w.place)
        ends.append(helper.make_tensor_value_info(name, *g.typed(numbers)))
    starts = [
        helper.make_tensor_value_info(name, *g.typed(numbers))
        for name, numbers in zip(
            inputs, zip(*(r.graph.inputs for r in runs), strict=True), strict=True
        )
    ]
    made = helper.make_graph(w.nodes, "phlox", starts, ends, w.initializers)
    opsets = [helper.make_opsetid("", OPSET)]
    model = helper.make_model(made, opset_imports=opsets, ir_version=_IR, producer_name="phlox")
    return model, w.places


@final
class _Values:
    """What the values of the runs are called; one of all runs is known by its number in each."""

    def __init__(
        self,
        runs: list[Run],
        sizes: Runs,
        opened: Mapping[str, tuple[str, int]],
        inputs: list[str],
    ) -> None:
        self.runs, self.sizes = runs, sizes
        self.writer = Writer(opened)
        self.known: dict[tuple[int, ...], str] = {}
        numbers = zip(*(r.graph.inputs for r in runs), strict=True)
        for word, each in zip(inputs, numbers, strict=True):
            self.known[each] = self.writer.name(word)

    def spell(self, i: int, wanted: tuple[bool, ...]) -> None:
        """Write an op of the runs."""
        w, nodes = self.writer, [r.graph.nodes[i] for r in self.runs]
        node, place = nodes[0], self.runs[0].place(i)
        w.place = place
        inputs: list[Any] = []
        shapes: list[Any] = []
        dtypes: list[Any] = []
        for each in zip(*(n.operands for n in nodes), strict=True):
            first, shape, dtype = each[0], None, None
            if isinstance(first, Value):
                numbers = tuple(v.number for v in each)
                name: Any = self.value(numbers, f"{node.op.name} in {place}")
                shape, dtype = self.shape(numbers), self.runs[0].graph.specs[first.number].dtype
            elif isinstance(first, tuple):
                columns = zip(*each, strict=True)
                asks = f"{node.op.name} in {place}"
                name = [self.value(tuple(v.number for v in c), asks) for c in columns]
            else:
                name = self.sizes.merged([plain(v) for v in each])
            inputs.append(name)
            shapes.append(shape)
            dtypes.append(dtype)
        attributes = tuple(
            self.sizes.merged([plain(a) for a in each])
            for each in zip(*(n.attributes for n in nodes), strict=True)
        )
        results = list(zip(*(n.results for n in nodes), strict=True))
        specs = self.runs[0].graph.specs
        outs = tuple((self.shape(each), specs[each[0]].dtype) for each in results)
        facts = tuple(inputs), attributes, tuple(shapes), tuple(dtypes), outs, wanted
        call = Call(node.op.name, *facts, place)
        self._refuse(call)
        found = ROWS[call.op](w, call)
        names = found if isinstance(found, list) else [found]
        self.known |= dict(zip(results, names, strict=True))

    def _refuse(self, call: Call) -> None:
        """Refuse what no row could write."""
        if call.op not in ROWS:
            raise call.refuse("an op without a spelling")
        numbers = [i for i in call.inputs if not isinstance(i, str | list)]
        facts = (*numbers, *call.attributes, *(shape for shape, _ in call.outs))
        found = _unlike(facts)
        if found:
            odd, sizes = ", ".join(dict.fromkeys(map(repr, found))), self.sizes
            what = f"what follows from the {sizes.one} is no {sizes.form}: {odd}"
            hint = sizes.without(set().union(*map(sizes.moving, found)))
            raise call.refuse_followed(f"{what} for {sizes.all_shown}", hint)
        if call.op not in FOLLOWING and has(call.attributes, Followed):
            raise call.refuse_followed(f"a setting that follows from the {self.sizes.one}")

    def value(self, numbers: tuple[int, ...], asks: str) -> str:
        """The name of a value; what is none yet must be a constant in all runs."""
        found = self.known.get(numbers)
        if found is None:
            found = self.known[numbers] = self._constant(numbers, asks)
        return found

    def _constant(self, numbers: tuple[int, ...], asks: str) -> str:
        pairs = list(zip(self.runs, numbers, strict=True))
        if not all(n in r.graph.constants for r, n in pairs):
            one = self.sizes.one
            raise _differs(f"the ops take other values from {one} to {one}", asks, EVERY)
        paths = {r.names.get(n) for r, n in pairs}
        if len(paths) == 1 and None not in paths:
            pairs = pairs[:1]  # a parameter is the same in all runs
        arrays = [r.device.read(r.graph.constants[n]) for r, n in pairs]
        common = self.sizes.spread(arrays)
        if common is None:
            one = self.sizes.one
            what = f"a constant that the host computes differs from {one} to {one}"
            raise _differs(what, asks, f"the same values, or {self.sizes.form}")
        return self.writer.spread(common, next(iter(paths)) or "constant")

    def shape(self, numbers: tuple[int, ...]) -> Any:
        """The sizes of a value."""
        pairs = zip(self.runs, numbers, strict=True)
        return self.sizes.merged([tuple(r.graph.specs[n].shape) for r, n in pairs])

    def typed(self, numbers: tuple[int, ...]) -> tuple[int, list[int | str]]:
        """Element type and shape of an input or output, as a file has them."""
        sizes = [repr(n) if isinstance(n, Followed) else n for n in self.shape(numbers)]
        return type_of(self.runs[0].graph.specs[numbers[0]].dtype), sizes


def _unlike(item: Any) -> list[Unlike]:
    if isinstance(item, tuple):
        return [found for part in item for found in _unlike(part)]
    return [item] if isinstance(item, Unlike) else []


def _differs(what: str, asks: str, expected: str) -> OnnxError:
    hint = "ops of tensors, such as px.arange(x.shape[0], device=x.device), in place of NumPy"
    return OnnxError("save", what, got=asks, expected=expected, hint=hint)
