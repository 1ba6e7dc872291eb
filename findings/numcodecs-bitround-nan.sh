#!/usr/bin/env bash
# numcodecs 0.16.6: `BitRound` turns the NaN that CUDA arithmetic produces into -0.
#
# Guess: NaN stays NaN: the docstring of BitRound speaks of dropping bits of the mantissa, and the NaN
# of NumPy survives. CUDA's "C++ Programming Guide" gives 0x7fffffff as the NaN its operations return.
# Done: round four NaN of float32 to 7 bits: NumPy's, CUDA's, one of all bits set and one without the quiet bit.
# Seen: only NumPy's stays. The others are -0, 0 and infinity, as the carry of the rounding runs over the
# exponent. A masked field that was computed on a GPU is stored with zeros where values are missing.
set -euo pipefail

folder=$(mktemp -d)
trap 'rm -rf "$folder"' EXIT
python3 -m venv "$folder/venv"
"$folder/venv/bin/pip" install --quiet numcodecs==0.16.6 numpy==2.4.6
"$folder/venv/bin/python" - <<'PYTHON'
import numpy as np
from numcodecs import BitRound

bits = {"NumPy": 0x7FC00000, "CUDA": 0x7FFFFFFF, "all bits": 0xFFFFFFFF, "signaling": 0x7F800001}
values = np.array(list(bits.values()), np.uint32).view(np.float32)
assert np.isnan(values).all()
codec = BitRound(keepbits=7)
back = np.frombuffer(codec.decode(codec.encode(values)), np.float32)
for name, value in zip(bits, back):
    print(f"{name:10} nan -> {value}")
assert np.isnan(back[0])
assert back[1] == 0 and np.signbit(back[1])
assert back[2] == 0 and not np.signbit(back[2])
assert back[3] == np.inf
PYTHON
