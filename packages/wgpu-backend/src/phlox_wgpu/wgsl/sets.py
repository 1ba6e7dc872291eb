"""The emitter of kernels over many small sets of arrays, each of a size of its own."""

from __future__ import annotations

from .._kernel import Kernel
from .chain import Chain, function, kept, load, store, stored_type
from .tile import SIGNATURE
from .walk import WORKGROUP


def sets_source(chain: Chain, arrays: int, sets: int) -> Kernel:
    """The kernel of a chain whose first inputs are `arrays`, the others numbers of float32.

    Bindings: the arrays of each set, which are dense, then the results of each. Parameters: how
    many elements each set has, the offset of each array, the numbers.
    """
    numbers = [f"c{i}" for i in range(arrays, len(chain.inputs))]
    outputs = [chain.dtype(value) for value in chain.outputs]
    values = ["r"] if len(outputs) == 1 else [f"r.r{i}" for i in range(len(outputs))]
    params = [(f"n{k}", "u32") for k in range(sets)]
    params += [(f"o{at}", "u32") for at in range(arrays * sets)]
    params += [(name, "f32") for name in numbers]
    lines = []
    for k in range(sets):
        args = [
            load(chain.inputs[i], f"in{at}[p.o{at} + i]")
            for i, at in enumerate(range(k * arrays, (k + 1) * arrays))
        ]
        made = [
            f"    out{k * len(outputs) + i}[i] = {store(dtype, values[i])};"
            for i, dtype in enumerate(outputs)
        ]
        lines += [
            f"  let groups{k} = (p.n{k} + {WORKGROUP - 1}u) / {WORKGROUP}u;",
            f"  if (id < groups{k}) {{",
            f"    let i = id * {WORKGROUP}u + lane_index;",
            f"    if (i >= p.n{k}) {{ return; }}",
            f"    let r = chain({', '.join([*args, *(f'p.{name}' for name in numbers)])});",
            *made,
            "    return;",
            "  }",
            f"  id -= groups{k};",
        ]
    main = SIGNATURE.format(threads=WORKGROUP) + "  var id = linear_group(group, groups);\n"
    body = kept(function(chain) + main + "\n".join(lines) + "\n}\n", "n0")
    inputs = tuple(stored_type(dtype, False) for dtype in chain.inputs[:arrays])
    stored = tuple(stored_type(dtype, False) for dtype in outputs)
    return Kernel(body, inputs * sets, stored * sets, tuple(params))
