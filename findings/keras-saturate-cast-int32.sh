#!/usr/bin/env bash
# Keras 3.15.1, backend "numpy", x86-64: `ops.saturate_cast(3e9, "int32")` is -2147483648, the other end of the range.
#
# Guess: 2147483647: the docstring of `keras.ops.saturate_cast` says that the cast prevents overflow, and for uint8,
# int8 and int16 it ends at the nearest number that the type holds.
# Done: 3e9, -3e9 and 1e20 as float32 and float64 to int32 and int16, beside NumPy's clip.
# Seen: the upper bound is made a float32, also for float64, where 2147483647 becomes 2147483648, which int32 does not
# hold: the cast after the clip wraps to the smallest int32, so that large positive numbers turn negative. int16 is right.
# A clip to 2147483520, the largest float32 below the bound, gives what is meant.
set -euo pipefail

folder=$(mktemp -d)
trap 'rm -rf "$folder"' EXIT
python3 -m venv "$folder/venv"
"$folder/venv/bin/pip" install --quiet keras==3.15.1 numpy==2.4.6 scipy==1.17.1 jax==0.10.2
KERAS_BACKEND=numpy KERAS_HOME="$folder" "$folder/venv/bin/python" -W ignore::RuntimeWarning - <<'PYTHON'
import platform

import numpy as np
from keras import ops

numbers = [3e9, -3e9, 1e20]
low, high = -(2**31), 2**31 - 1
single = ops.saturate_cast(np.array(numbers, "f4"), "int32").tolist()
double = ops.saturate_cast(np.array(numbers, "f8"), "int32").tolist()
narrow = ops.saturate_cast(np.array(numbers, "f4"), "int16").tolist()
exact = np.clip(np.array(numbers, "f8"), low, high).astype("i4").tolist()
by_hand = np.clip(np.array(numbers, "f4"), low, 2147483520).astype("i4").tolist()
print("float32 to int32:", single, " float64 to int32:", double, " float32 to int16:", narrow)
assert narrow == [32767, -32768, 32767] and exact == [high, low, high]
assert by_hand == [2147483520, low, 2147483520]
if platform.machine() in ("x86_64", "AMD64"):
    assert single == double == [low, low, low], "float32 to int32 saturates now"
else:
    print("the cast after the clip is the processor's: only x86-64 is asserted")
PYTHON
