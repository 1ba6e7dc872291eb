#!/usr/bin/env bash
# safetensors 0.8.0: lazy slices take -1 as an index but not as the end of a slice, nor a long end.
#
# Guess: `get_slice("x")[i]` follows Python: negative ends count from the back and ends beyond the
# length are cut, as in the array that `get_tensor` gives. The page "Safetensors" of the docs shows
# it with NumPy's slices.
# Done: five slices of a 4 x 2 tensor, lazily and of the array.
# Seen: [-1] works. [-1:] and [1:-1] raise OverflowError, and [0:9] raises "index 8 out of bounds".
# So the usual loop over pieces of a fixed size fails at the last, shorter piece.
set -euo pipefail

folder=$(mktemp -d)
trap 'rm -rf "$folder"' EXIT
python3 -m venv "$folder/venv"
"$folder/venv/bin/pip" install --quiet safetensors==0.8.0 numpy==2.4.6
"$folder/venv/bin/python" - <<'PYTHON'
import os
import tempfile

import numpy as np
from safetensors import safe_open
from safetensors.numpy import save_file

x, seen = np.arange(8, dtype=np.float32).reshape(4, 2), {}
with tempfile.TemporaryDirectory() as folder:
    path = os.path.join(folder, "a.safetensors")
    save_file({"x": x}, path)
    with safe_open(path, "np") as file:
        for name, key in {
            "[-1]": -1,
            "[1:3]": slice(1, 3),
            "[-1:]": slice(-1, None),
            "[1:-1]": slice(1, -1),
            "[0:9]": slice(0, 9),
        }.items():
            try:
                seen[name] = np.array_equal(file.get_slice("x")[key], x[key])
            except Exception as error:
                seen[name] = f"{type(error).__name__}: {error}"
            print(name, seen[name])
assert seen["[-1]"] is True and seen["[1:3]"] is True
assert all("OverflowError" in seen[n] for n in ("[-1:]", "[1:-1]"))
assert "out of bounds" in str(seen["[0:9]"])
PYTHON
