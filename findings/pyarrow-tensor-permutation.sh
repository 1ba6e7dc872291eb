#!/usr/bin/env bash
# pyarrow 26.0.1: tensors whose axes were moved come back with another shape and other values.
#
# Guess: `FixedShapeTensorArray.from_numpy_ndarray` followed by `to_numpy_ndarray` is the identity
# for every permuted view that it takes, as the page "pyarrow.FixedShapeTensorArray" says of the
# pair, and element 0 of the array is row 0 of that result.
# Done: a batch of channels x height x width seen as height x width x channels; a batch transposed.
# Seen: of (2, 3, 4) images seen as (3, 4, 2) the array gives (4, 2, 3): a permutation that is a
# cycle is applied in place of its inverse. The transposed batch survives as an array, but its
# scalars do not: `array[0].to_numpy()` has the right shape and the elements in the wrong places.
set -euo pipefail

folder=$(mktemp -d)
trap 'rm -rf "$folder"' EXIT
python3 -m venv "$folder/venv"
"$folder/venv/bin/pip" install --quiet pyarrow==26.0.1 numpy==2.4.6
"$folder/venv/bin/python" - <<'PYTHON'
import numpy as np
import pyarrow as pa

make = pa.FixedShapeTensorArray.from_numpy_ndarray
images = np.arange(24, dtype=np.float32).reshape(1, 2, 3, 4)
moved = images.transpose(0, 2, 3, 1)
back = make(moved).to_numpy_ndarray()
print("shape put in", moved.shape, "shape got back", back.shape)
rows = np.arange(6, dtype=np.float32).reshape(1, 2, 3).transpose(0, 2, 1)
array = make(rows)
print("row put in", rows[0].tolist())
print("of the array ", array.to_numpy_ndarray()[0].tolist())
print("of the scalar", array[0].to_numpy().tolist())
assert moved.shape == (1, 3, 4, 2) and back.shape == (1, 4, 2, 3)
assert np.array_equal(array.to_numpy_ndarray(), rows)
assert array[0].to_numpy().tolist() == [[0, 2], [1, 3], [2, 4]] != rows[0].tolist()
PYTHON
