#!/usr/bin/env bash
# flax 0.12.8: serialization.to_bytes writes big-endian arrays as they lie and names them little-endian.
#
# Guess: from_bytes(target, to_bytes(tree)) gives the tree back, or to_bytes refuses: the page
# "flax.serialization package" says that to_bytes saves any state-dict of arrays, and NumPy's own
# save keeps ">f4". Arrays of that kind come from idx, FITS and HDF5 files.
# Done: a float32 and an int16 array in both byte orders, through to_bytes and from_bytes.
# Seen: the name "float32" is stored without the order. Little-endian arrays come back; 0, 1, 2 of
# the other order come back as 0, 4.6e-41, 9e-44, and 1 of int16 as 256, without a word.
set -euo pipefail

folder=$(mktemp -d)
trap 'rm -rf "$folder"' EXIT
python3 -m venv "$folder/venv"
"$folder/venv/bin/pip" install --quiet flax==0.12.8 numpy==2.4.6
JAX_PLATFORMS=cpu "$folder/venv/bin/python" - <<'PYTHON'
import io

import numpy as np
from flax import serialization

for kind in ("f4", "i2"):
    little, big = np.arange(3, dtype="<" + kind), np.arange(3, dtype=">" + kind)
    seen = {}
    for order, values in (("<", little), (">", big)):
        back = serialization.from_bytes({"x": np.zeros(3, little.dtype)}, serialization.to_bytes({"x": values}))["x"]
        seen[order] = back
        print(order + kind, values.tolist(), "->", back.tolist())
    assert np.array_equal(seen["<"], little)
    assert np.array_equal(seen[">"], big.view("<" + kind)) and not np.array_equal(seen[">"], little)
    file = io.BytesIO()
    np.save(file, big)
    file.seek(0)
    assert np.array_equal(np.load(file), little)
PYTHON
