#!/usr/bin/env bash
# ml_dtypes 0.6.0 (NumPy 2.4.6): `np.sort` leaves numbers out of order once a NaN is among them.
#
# Guess: NaN comes last and the numbers before it ascend. NumPy's page "numpy.sort" says so for
# real types, float16 is sorted that way, and bfloat16 and the float8 types are real types too.
# Done: sort five values, one of them NaN, as float16, bfloat16 and float8_e4m3fn; then take
# `np.unique` and `np.median`, which build on the sort.
# Seen: float16 gives -1 0 1 2 nan. The two others give 2 nan -1 0 1: nothing tells NaN from the
# rest, so a run on either side of it is sorted by itself. `np.unique` keeps both of two NaNs.
set -euo pipefail

folder=$(mktemp -d)
trap 'rm -rf "$folder"' EXIT
python3 -m venv "$folder/venv"
"$folder/venv/bin/pip" install --quiet ml_dtypes==0.6.0 numpy==2.4.6
"$folder/venv/bin/python" - <<'PYTHON'
import ml_dtypes
import numpy as np

values = [2, np.nan, 1, -1, 0]
seen = {}
for kind in (np.float16, ml_dtypes.bfloat16, ml_dtypes.float8_e4m3fn):
    seen[kind.__name__] = np.sort(np.array(values, kind)).astype(np.float64).tolist()
    print(kind.__name__, seen[kind.__name__])
unique = np.unique(np.array([np.nan, 1, np.nan], ml_dtypes.bfloat16)).astype(float).tolist()
print("unique of [nan, 1, nan] as bfloat16:", unique)
assert str(seen["float16"]) == "[-1.0, 0.0, 1.0, 2.0, nan]"
assert str(seen["bfloat16"]) == str(seen["float8_e4m3fn"]) == "[2.0, nan, -1.0, 0.0, 1.0]"
assert str(unique) == "[nan, 1.0, nan]"
PYTHON
