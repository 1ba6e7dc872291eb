#!/usr/bin/env bash
# tensorstore 0.1.86: downsampling a float8 array by "mean" gives 0, and by "min" or "max" gives NaN.
#
# Guess: 2, 2, 2 for an array of twos, in every type that it takes: the page "downsample Driver" names no
# exception, the one of `Downsample` says that a method which a type lacks is refused, and "min" of a complex
# array is refused.
# Done: four twos by pairs in bfloat16, five float8 types and float4, by four methods.
# Seen: bfloat16 gives 2 throughout, and the median is 2 in all. The mean is 0 in every 8-bit and 4-bit type. The
# least and the greatest are NaN in the types without infinity (e4m3fn and the fnuz ones), and right in the
# other ones. An overview of stored activations or weights shows zeros or NaN, without a word.
set -euo pipefail

folder=$(mktemp -d)
trap 'rm -rf "$folder"' EXIT
python3 -m venv "$folder/venv"
"$folder/venv/bin/pip" install --quiet tensorstore==0.1.86 ml_dtypes==0.6.0 numpy==2.4.6
"$folder/venv/bin/python" - <<'PYTHON'
import ml_dtypes
import numpy as np
import tensorstore

finite = ("float8_e4m3fn", "float8_e4m3fnuz", "float8_e5m2fnuz")
for name in ("bfloat16", "float8_e5m2", "float8_e3m4", "float4_e2m1fn", *finite):
    store = tensorstore.array(np.full(4, 2, getattr(ml_dtypes, name)))
    seen = {}
    for method in ("median", "mean", "min", "max"):
        seen[method] = tensorstore.downsample(store, [2], method).read().result().astype(np.float32)
    print(f"{name:16}", "  ".join(f"{method} {values}" for method, values in seen.items()))
    assert (seen["median"] == 2).all()
    assert (seen["mean"] == (2 if name == "bfloat16" else 0)).all(), "the mean is computed now"
    for method in ("min", "max"):
        wrong = np.isnan(seen[method]) if name in finite else seen[method] == 2
        assert wrong.all(), f"{method} is computed now"
try:
    tensorstore.downsample(tensorstore.array(np.ones(4, complex)), [2], "min")
except ValueError as error:
    print("complex128:", error)
else:
    raise AssertionError("complex numbers are no longer refused")
PYTHON
