#!/usr/bin/env bash
# JAX 0.10.2 (CPU, float32): the slope of `jax.scipy.special.log_ndtr` falls to 1 far to the left.
#
# Guess: close to -x, as the tail of the normal distribution has it: the page of the function says
# that its gradient is stable (a custom derivative), and its values are right there.
# Done: value and slope from -20 to -1e5; SciPy's values; the true slope by the tail's expansion.
# Seen: right to -100. At -1e4 the slope is 2981 (true 10000) and at -1e5 it is 1 (true 100000):
# it is exp(-x^2/2 - log_ndtr(x) - c), a difference of two numbers near 5e9, whose float32 steps
# are hundreds wide. So a far outlier's gradient grows with distance and then vanishes.
set -euo pipefail

folder=$(mktemp -d)
trap 'rm -rf "$folder"' EXIT
python3 -m venv "$folder/venv"
"$folder/venv/bin/pip" install --quiet jax==0.10.2 jaxlib==0.10.2 scipy==1.17.1 ml_dtypes==0.6.0 numpy==2.4.6
"$folder/venv/bin/python" - <<'PYTHON'
import warnings

import jax
import scipy.special
from jax.scipy.special import log_ndtr

warnings.simplefilter("ignore")
slopes = {}
for x in (-20.0, -100.0, -1e4, -1e5):
    slopes[x] = float(jax.grad(log_ndtr)(x))
    true = -x - 1 / x
    print(f"x {x:g} value {float(log_ndtr(x)):g} SciPy {scipy.special.log_ndtr(x):g}", end=" ")
    print(f"slope {slopes[x]:g} true {true:g}")
    assert abs(float(log_ndtr(x)) / scipy.special.log_ndtr(x) - 1) < 1e-5
assert abs(slopes[-20.0] - 20.05) < 0.01 and abs(slopes[-100.0] - 100.01) < 0.1
assert slopes[-1e4] < 5000 and slopes[-1e5] < 10
PYTHON
