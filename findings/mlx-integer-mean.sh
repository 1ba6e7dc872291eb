#!/usr/bin/env bash
# mlx 0.32.4 (its CPU build): the mean of int32 numbers is taken from a sum that wraps around at 32 bits.
#
# Guess: the mean of [2000000000, 2000000000] is 2e9: the page "mlx.core.mean" makes no mention of a range, the
# answer is a float32, which holds such numbers, and int8 and int16 are widened.
# Done: means, variances and sums of large positive int32, int8 and int64 numbers, beside NumPy's and beside the
# mean of the same numbers made float32 first.
# Seen: -147483648, a negative mean of positive numbers, and a variance of 4.6e18 where both numbers are equal. Labels,
# pixel counts and time stamps in milliseconds reach such sums; astype(float32) before the mean is right.
set -euo pipefail

folder=$(mktemp -d)
trap 'rm -rf "$folder"' EXIT
python3 -m venv "$folder/venv"
"$folder/venv/bin/pip" install --quiet "mlx[cpu]==0.32.4" numpy==2.4.6
"$folder/venv/bin/python" - <<'PYTHON'
import mlx.core as mx
import numpy as np

mx.set_default_device(mx.cpu)
numbers = [2_000_000_000, 2_000_000_000]
narrow = mx.array(numbers, dtype=mx.int32)
mean, variance = mx.mean(narrow), mx.var(narrow)
wide = mx.mean(narrow.astype(mx.float32))
print("int32:", mean.item(), "variance:", variance.item(), " as float32:", wide.item())
print("int8:", mx.mean(mx.array([127] * 4, dtype=mx.int8)).item())
print("int64:", mx.mean(mx.array(numbers, dtype=mx.int64)).item())
print("NumPy, int32:", np.mean(np.array(numbers, "i4")), "variance:", np.var(np.array(numbers, "i4")))
assert mean.dtype == mx.float32 and mean.item() == -147_483_648, "the mean of int32 is right now"
assert variance.item() > 4e18, "the variance of int32 is right now"
assert wide.item() == np.mean(np.array(numbers, "i4")) == 2e9
assert mx.mean(mx.array([127] * 4, dtype=mx.int8)).item() == 127
assert mx.mean(mx.array(numbers, dtype=mx.int64)).item() == 2e9
PYTHON
