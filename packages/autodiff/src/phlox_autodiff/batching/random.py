"""Lanes of random numbers: each lane takes the counter's blocks after those of the last."""

from __future__ import annotations

from math import prod
from typing import Any, Final

from phlox_tensor import concat
from phlox_tensor.random import generator

from .._lanes import Call, LanesRule, NoLanes

_WORDS_PER_BLOCK: Final = 4
# Elements of so many bytes take two words of 32 bits each.
_WIDE: Final = 8


def _random(call: Call) -> Any:
    """Lane k gives what the op gives from the k-th run of blocks on."""
    counted = "count" in call.op.attribute_names
    shape = (call.attribute("count"),) if counted else tuple(call.attribute("shape"))
    dtype = call.attribute("dtype")
    words = 2 if dtype.kind == "Float" and dtype.itemsize == _WIDE else 1
    blocks = -(-prod(shape) * words // _WORDS_PER_BLOCK)
    # Whoever drew the first counter reserved the blocks of one lane.
    _, second = generator().draw(blocks * (call.size - 1))
    first = call.attribute("counter")
    runs = [(first, 1), (second, call.size - 1)]
    if second == first + blocks:
        runs = [(first, call.size)]
    per_lane = blocks * _WORDS_PER_BLOCK // words
    parts = []
    for counter, lanes in runs:
        if lanes:
            size = lanes * per_lane
            more = {"count": size} if counted else {"shape": (size,)}
            drawn = call.run(attributes=call.replaced(counter=counter, **more))
            parts.append(drawn.reshape((lanes, per_lane)))
    every = parts[0] if len(parts) == 1 else concat(parts, axis=0)
    return every[:, : prod(shape)].reshape((call.size, *shape))


LANES: Final[dict[str, LanesRule | NoLanes]] = {
    "random_bits": _random,
    "random_normal": _random,
    "random_uniform": _random,
}
