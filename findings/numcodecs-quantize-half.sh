#!/usr/bin/env bash
# numcodecs 0.16.6: `Quantize(digits=2)` stores float16 values of 512 and more as infinity.
#
# Guess: 1000 stays 1000: the page "Quantize" speaks of reduced precision with a number of decimal digits, and
# a float16 near 1000 has steps of 0.5, so there is nothing to reduce. `BitRound` keeps such values.
# Done: five values with 1, 2 and 3 digits as float16 and float32, and with 2 digits from float32 to float16.
# Seen: float32 is right. float16 is multiplied by 16, 128 or 1024 in float16, so what is above 4095, 511 or 63
# is stored as infinity, with nothing but NumPy's warning of an overflow; more digits lose more of the range.
# The same values as float32 with astype="f2" come through, so the stored type is not at fault.
set -euo pipefail

folder=$(mktemp -d)
trap 'rm -rf "$folder"' EXIT
python3 -m venv "$folder/venv"
"$folder/venv/bin/pip" install --quiet numcodecs==0.16.6 numpy==2.4.6
"$folder/venv/bin/python" -W ignore::RuntimeWarning - <<'PYTHON'
import numpy as np
from numcodecs import BitRound, Quantize

values = [1, 60, 100, 1000, 5000]
for digits, kept in ((1, 4), (2, 3), (3, 2)):
    wide = Quantize(digits, "f4").encode(np.array(values, "f4"))
    half = Quantize(digits, "f2").encode(np.array(values, "f2"))
    print(f"{digits} digits: float32 {wide.tolist()}, float16 {half.tolist()}")
    assert wide.tolist() == values
    assert half[:kept].tolist() == values[:kept] and np.isinf(half[kept:]).all(), "float16 is kept now"
through = Quantize(2, "f4", astype="f2").encode(np.array(values, "f4"))
rounded = BitRound(9).encode(np.array(values, "f2")).view("f2")
print("from float32 with astype float16:", through.tolist(), " BitRound:", rounded.tolist())
assert through.dtype == np.float16 and through.tolist() == rounded.tolist() == values
PYTHON
