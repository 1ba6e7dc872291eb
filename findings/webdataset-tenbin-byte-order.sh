#!/usr/bin/env bash
# webdataset 1.0.2: big-endian arrays come out of `.ten` files as other numbers.
#
# Guess: equal values, or an error as for bool and complex arrays: the module's docstring calls
# tenbin a format for exchanging arrays, and network and FITS data is big-endian in NumPy.
# Done: encode and decode [0, 1, 2] as float32 of both byte orders.
# Seen: little-endian is right. Big-endian gives 0, 4.6e-41, 9.0e-44: the header says float32 and the
# bytes are written as they lie. `.npy` members of the same tar keep the values.
set -euo pipefail

folder=$(mktemp -d)
trap 'rm -rf "$folder"' EXIT
python3 -m venv "$folder/venv"
"$folder/venv/bin/pip" install --quiet webdataset==1.0.2 numpy==2.4.6
"$folder/venv/bin/python" - <<'PYTHON'
import numpy as np
from webdataset import tenbin

seen = {}
for order in "<>":
    array = np.arange(3).astype(order + "f4")
    (back,) = tenbin.decode_buffer(tenbin.encode_buffer([array]))
    seen[order] = back.tolist()
    print(array.dtype.str, array.tolist(), "->", back.dtype.str, seen[order])
assert seen["<"] == [0, 1, 2]
assert seen[">"] != [0, 1, 2] and max(seen[">"]) < 1e-40
PYTHON
