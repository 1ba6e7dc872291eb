"""How recurrent ops are spelled: one node each, weights turned into the order of ONNX."""

from __future__ import annotations

from typing import Any, Final

import numpy as np

from phlox_tensor import float32

from ..table.recurrent import GATES
from ._layers import refuse_followed
from ._writer import Call, Writer

_WORDS: Final = {"GRU": {"linear_before_reset": 1}, "LSTM": {}, "RNN": {}}


def recurrent(w: Writer, c: Call) -> Any:
    """A walk over the steps, whose gates are in another order in ONNX; steps come first there."""
    op, dtype = c.op.upper(), c.dtypes[0]
    wide = dtype if dtype.itemsize >= float32.itemsize else float32  # runtimes lack narrow ones
    order, size = np.argsort(GATES[op]), c.shapes[2][0]
    refuse_followed(c, (size,))

    def given(name: str) -> str:
        return name if wide is dtype else w.cast(name, wide)

    def back(name: str) -> str:
        return name if wide is dtype else w.cast(name, dtype)

    def gates(name: str) -> str:
        """Columns of gates as rows, in the order of ONNX."""
        if len(order) == 1:
            return name
        parts = w.add("Split", [name], len(order), axis=0, num_outputs=len(order))
        return str(w.add("Concat", [parts[i] for i in order], axis=0))

    def first(name: str | None) -> str:
        """With an axis of directions in front."""
        return "" if name is None else str(w.add("Unsqueeze", [given(name), w.ints(0)]))

    x, weight_input, weight_hidden, *biases = c.inputs[: {"GRU": 5}.get(op, 4)]
    *states, lengths = c.inputs[3 + len(biases) :]
    weights = [
        first(gates(str(w.add("Transpose", [name], perm=[1, 0]))))
        for name in (weight_input, weight_hidden)
    ]
    bias = ""
    if any(name is not None for name in biases):
        zeros = np.zeros(len(order) * size, dtype.numpy)
        both = [w.array(zeros) if n is None else gates(n) for n in (*biases, None)[:2]]
        bias = first(str(w.add("Concat", both, axis=0)))
    steps = w.add("Transpose", [given(x)], perm=[1, 0, 2])
    counts = "" if lengths is None else str(w.add("Cast", [lengths], to=6))
    *names, reverse = c.attributes
    words: dict[str, Any] = {"direction": "reverse" if reverse else "forward", "hidden_size": size}
    words |= {"activations": [name.capitalize() for name in names] or None, **_WORDS[op]}
    inputs = [steps, *weights, bias, counts, *map(first, states)]
    y, *ends = w.add(op, inputs, 1 + len(states), **words)
    y = w.add("Transpose", [w.add("Squeeze", [y, w.ints(1)])], perm=[1, 0, 2])
    return [back(y), *(back(w.add("Squeeze", [end, w.ints(0)])) for end in ends)]
