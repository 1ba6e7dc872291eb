#!/usr/bin/env bash
# ml_dtypes 0.6.0 (NumPy 2.4.6): the mean of four int4 sevens is -1.
#
# Guess: 7. NumPy's pages "numpy.sum" and "numpy.mean" say that integers narrower than the
# platform's are summed in the platform's integer, and that a mean of integers is a float64.
# Done: sum and mean of [7, 7, 7, 7] as int8 and as int4.
# Seen: int8 gives 28 and 7.0. int4 sums in int4 and wraps: 28 becomes -4, and the mean is the
# int4 number -1, below every value that went in.
set -euo pipefail

folder=$(mktemp -d)
trap 'rm -rf "$folder"' EXIT
python3 -m venv "$folder/venv"
"$folder/venv/bin/pip" install --quiet ml_dtypes==0.6.0 numpy==2.4.6
"$folder/venv/bin/python" - <<'PYTHON'
import ml_dtypes
import numpy as np

wide, narrow = np.full(4, 7, np.int8), np.full(4, 7, ml_dtypes.int4)
print("int8: sum", wide.sum(), "mean", wide.mean())
print("int4: sum", narrow.sum(), "mean", narrow.mean(), "of type", narrow.mean().dtype)
assert (int(wide.sum()), float(wide.mean())) == (28, 7.0)
assert (int(narrow.sum()), int(narrow.mean())) == (-4, -1)
PYTHON
