#!/usr/bin/env bash
# tinygrad 0.14.0: tanh, sinh, asinh, atanh, asin, atan and erf of small float32 numbers lose their digits, down to 0.
#
# Guess: each of the seven is odd and close to a line at 0, so that f(1e-5) has seven digits in float32, as in NumPy and
# PyTorch. The docstrings name the functions and no error.
# Done: each at 1e-5 and at 1e-8 on tinygrad's PYTHON device (no compiler needed), beside NumPy's and Python's math in float64.
# The same was seen on its CPU device, with a C compiler.
# Seen: an error of 0.14 percent (tanh, sinh, asinh, atanh), 1.3 percent (asin, atan) and 1.7 percent (erf) at 1e-5. At 1e-8
# five are 0, asin and atan are twelve times too large: each is a difference of two numbers near 1. The sine is exact to the
# last bit. A tanh of small activations, or a weight in atanh's domain, moves in steps of 1.2e-7.
set -euo pipefail

folder=$(mktemp -d)
trap 'rm -rf "$folder"' EXIT
python3 -m venv "$folder/venv"
"$folder/venv/bin/pip" install --quiet tinygrad==0.14.0 numpy==2.4.6
DEV=PYTHON "$folder/venv/bin/python" - <<'PYTHON'
import math

import numpy as np
from tinygrad import Tensor

x = np.float32([1e-5, 1e-8])
right = {
    "asin": np.arcsin(x),
    "asinh": np.arcsinh(x),
    "atan": np.arctan(x),
    "atanh": np.arctanh(x),
    "erf": np.float32([math.erf(float(each)) for each in x]),
    "sin": np.sin(x),
    "sinh": np.sinh(x),
    "tanh": np.tanh(x),
}
for name, values in right.items():
    got = getattr(Tensor(x), name)().numpy()
    errors = np.abs(got.astype(np.float64) - values) / values
    print(f"{name:5} of 1e-5 and 1e-8: tinygrad {got}, NumPy {values}, relative errors {errors[0]:.1e} {errors[1]:.1e}")
    if name == "sin":
        assert errors.max() < 2e-7
    else:
        assert errors[0] > 1e-3 and errors[1] > 0.9, "the digits are there now"
PYTHON
