#!/usr/bin/env bash
# distrax 0.1.9 (jax 0.10.2): a von Mises distribution of concentration 90 has probability 0 everywhere.
#
# Guess: at the mean the log density is about 1.33, as SciPy has it: a concentration of 90 is a spread of six degrees,
# and float32 holds every part of the formula if the Bessel function is taken scaled by exp(-concentration).
# Done: log densities at the mean, their slopes along the concentration, and entropies for 80 and 90.
# Seen: 80 is right; from about 89 on the log density is -inf and its slope NaN: the plain Bessel function overflows
# float32. Entropy, mean and variance of the same object stay right, so nothing else shows it. A network that learns
# a heading fits such a concentration after a while, and its loss turns to inf.
set -euo pipefail

folder=$(mktemp -d)
trap 'rm -rf "$folder"' EXIT
python3 -m venv "$folder/venv"
"$folder/venv/bin/pip" install --quiet distrax==0.1.9 jax==0.10.2 jaxlib==0.10.2 numpy==2.4.6 scipy==1.17.1
"$folder/venv/bin/python" - <<'PYTHON'
import distrax
import jax
import numpy as np
from scipy import stats


def log_density(concentration):
    return distrax.VonMises(0.0, concentration).log_prob(0.1)


for concentration in (80.0, 90.0):
    print(
        f"concentration {concentration}: log density {float(log_density(concentration)):.4f},",
        f"SciPy {stats.vonmises.logpdf(0.1, concentration):.4f},",
        f"slope {float(jax.grad(log_density)(concentration)):.4f},",
        f"entropy {float(distrax.VonMises(0.0, concentration).entropy()):.4f},",
        f"SciPy {stats.vonmises.entropy(concentration):.4f}",
    )
assert abs(log_density(80.0) - stats.vonmises.logpdf(0.1, 80.0)) < 1e-4
assert log_density(90.0) == -np.inf and np.isnan(jax.grad(log_density)(90.0)), "it is right now"
assert abs(distrax.VonMises(0.0, 90.0).entropy() - stats.vonmises.entropy(90.0)) < 1e-4
PYTHON
