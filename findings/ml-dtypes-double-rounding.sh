#!/usr/bin/env bash
# ml_dtypes 0.6.0 (NumPy 2.4.6): float64 and int64 values are rounded twice on the way down.
#
# Guess: a cast gives the nearest value, as NumPy's own float64 -> float16 does (its page "Data
# type promotion and casting" promises no less) and as IEEE 754 asks of a conversion.
# Done: cast 1 + 2^-8 + 2^-30, just above the middle of two bfloat16 values; the same beside the
# middle of two float8 values; and 2^24 + 2^16 + 1 as int64. NumPy's float16 is asked the same.
# Seen: the value goes through float32 first, which lands on the middle, and ties go to even: the
# far neighbour is taken each time. float16 takes the near one.
set -euo pipefail

folder=$(mktemp -d)
trap 'rm -rf "$folder"' EXIT
python3 -m venv "$folder/venv"
"$folder/venv/bin/pip" install --quiet ml_dtypes==0.6.0 numpy==2.4.6
"$folder/venv/bin/python" - <<'PYTHON'
import ml_dtypes
import numpy as np

cases = [
    ("float16", 1 + 2.0**-11 + 2.0**-40, np.float16, 1 + 2.0**-10),
    ("bfloat16", 1 + 2.0**-8 + 2.0**-30, ml_dtypes.bfloat16, 1 + 2.0**-7),
    ("float8_e4m3fn", 1 + 2.0**-4 + 2.0**-30, ml_dtypes.float8_e4m3fn, 1 + 2.0**-3),
    ("bfloat16 of int64", 2**24 + 2**16 + 1, ml_dtypes.bfloat16, 2.0**24 + 2.0**17),
]
for name, value, kind, nearest in cases:
    got = float(np.array([value]).astype(kind)[0])
    print(f"{name}: {value!r} -> {got!r}, nearest {nearest!r}")
    assert (got == nearest) == (name == "float16"), name
PYTHON
