#!/usr/bin/env bash
# tinygrad 0.14.0: sorting numbers with a NaN among them loses the NaN and returns another number twice.
#
# Guess: a NaN goes to one end, as in NumPy, PyTorch and JAX, or stays where it fell: comparisons are false, but a sort
# moves elements and makes none. The docstring of Tensor.sort says "bitonic sort" and that equal elements keep their order.
# Done: three, four and five numbers with one NaN, sorted by tinygrad (its PYTHON device, no compiler needed) and NumPy.
# The same was seen on its CPU device, with a C compiler.
# Seen: [3, nan, 2] becomes [2, 3, 3], with indices [2, 0, 0]: each step keeps the larger and the smaller of two, and both
# of those are the same number beside a NaN. So the indices are no permutation, a top k names one row twice, and isnan
# of the result finds nothing. Ask for isnan before the sort.
set -euo pipefail

folder=$(mktemp -d)
trap 'rm -rf "$folder"' EXIT
python3 -m venv "$folder/venv"
"$folder/venv/bin/pip" install --quiet tinygrad==0.14.0 numpy==2.4.6
DEV=PYTHON "$folder/venv/bin/python" - <<'PYTHON'
import numpy as np
from tinygrad import Tensor

nan = float("nan")
cases = (
    ([3.0, nan, 2.0], False, [2, 3, 3], [2, 0, 0]),
    ([3.0, nan, 2.0, 1.0], True, [3, 3, 2, 1], [0, 0, 2, 3]),
    ([3.0, nan, 2.0, 5.0, 1.0], False, [1, 2, 3, 3, 5], [4, 2, 0, 0, 3]),
)
for numbers, descending, seen, places in cases:
    values, indices = (part.numpy() for part in Tensor(numbers).sort(descending=descending))
    print(numbers, "tinygrad:", values, indices, " NumPy:", np.sort(np.float32(numbers)))
    assert np.isnan(np.sort(np.float32(numbers))).sum() == 1
    assert values.tolist() == seen and indices.tolist() == places, "the NaN is kept now"

without = [part.numpy().tolist() for part in Tensor([3.0, 1.0, 2.0]).sort()]
assert without == [[1, 2, 3], [1, 2, 0]], "without a NaN the sort is right"
PYTHON
