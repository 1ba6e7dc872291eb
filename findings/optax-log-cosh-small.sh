#!/usr/bin/env bash
# optax 0.2.8 (JAX 0.10.2, CPU, float32): the log-cosh loss of errors below 3e-4 is 0.
#
# Guess: half the square, 5e-9 for an error of 1e-4: the docstring of `optax.losses.log_cosh` says that the
# loss is about x**2 / 2 for small x, and `huber_loss` of the same module has this value to seven digits.
# Done: both losses, and the slope of the first, of errors from 1e-4 to 1e-2.
# Seen: 0 for 1e-4 and 3e-4, 7 % too much for 1e-3. The slope is right, so training goes on, but the loss
# that is logged stops at 0 or jumps between multiples of 6e-8 long before the model has converged.
set -euo pipefail

folder=$(mktemp -d)
trap 'rm -rf "$folder"' EXIT
python3 -m venv "$folder/venv"
"$folder/venv/bin/pip" install --quiet optax==0.2.8 jax==0.10.2 jaxlib==0.10.2 numpy==2.4.6
"$folder/venv/bin/python" - <<'PYTHON'
import jax
import jax.numpy as jnp
import numpy as np
from optax.losses import huber_loss, log_cosh

errors = jnp.array([1e-4, 3e-4, 1e-3, 1e-2])
exact = np.log(np.cosh(np.asarray(errors, np.longdouble))).astype(float)
seen = np.asarray(log_cosh(errors), float)
slopes = np.asarray(jax.grad(lambda x: log_cosh(x).sum())(errors))
for error, value, right in zip(errors, seen, exact):
    print(f"error {error:.0e}: log_cosh {value:.4e}, exactly {right:.4e}")
assert seen[0] == seen[1] == 0
assert abs(seen[2] / exact[2] - 1) > 0.05
np.testing.assert_allclose(huber_loss(errors), exact, rtol=1e-4)
np.testing.assert_allclose(slopes, errors, rtol=1e-3)
PYTHON
