#!/usr/bin/env bash
# Keras 3.15.1, backend "numpy": normalization layers give 31.6 in place of 1.22 for the numbers 10000, 10001, 10002.
#
# (This backend imports SciPy and JAX, so both are installed.)
#
# Guess: -1.22, 0, 1.22: what the page "BatchNormalization layer" gives as the formula, for numbers that float32 holds
# exactly. The backends are said to be interchangeable, and JAX's takes the variance of differences from the mean.
# Done: batch, group and layer normalization of one feature near 10000, `ops.moments` and `ops.var` of the same numbers.
# Seen: this backend takes mean(x*x) - mean(x)**2 in float32, which cancels to 0, so what is left is
# 1 / sqrt(epsilon) = 31.6 for every unit of distance. Kelvin, pressure in hPa and years are such features.
# `ops.var` on the same backend has 0.667, and the same numbers less 10000 are normalized right.
set -euo pipefail

folder=$(mktemp -d)
trap 'rm -rf "$folder"' EXIT
python3 -m venv "$folder/venv"
"$folder/venv/bin/pip" install --quiet keras==3.15.1 numpy==2.4.6 scipy==1.17.1 jax==0.10.2
KERAS_BACKEND=numpy KERAS_HOME="$folder" "$folder/venv/bin/python" - <<'PYTHON'
import keras
import numpy as np
from keras import ops

x = np.array([[10_000], [10_001], [10_002]], "f4")
right = (x.astype("f8") - x.mean()) / np.sqrt(x.astype("f8").var() + 1e-3)
batch = np.array(keras.layers.BatchNormalization()(x, training=True))
group = np.array(keras.layers.GroupNormalization(1)(x.T))
layer = np.array(keras.layers.LayerNormalization()(x.T))
moments, direct = ops.moments(x, [0])[1].item(), ops.var(x).item()
print("batch norm:", batch.ravel(), " group norm:", group.ravel())
print("right:", right.ravel(), " layer norm:", layer.ravel())
print("variance by ops.moments:", moments, " by ops.var:", direct)
assert moments == 0 and abs(direct - 2 / 3) < 1e-6
assert np.allclose(batch.ravel(), [-31.62, 0, 31.62], atol=0.02), "batch norm is right now"
assert np.allclose(group.ravel(), batch.ravel()) and np.allclose(layer.ravel(), batch.ravel())
small = np.array(keras.layers.BatchNormalization()(x - 10_000, training=True))
assert np.allclose(small, right, atol=1e-5)
PYTHON
