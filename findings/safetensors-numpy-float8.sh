#!/usr/bin/env bash
# safetensors 0.8.0: `safetensors.numpy` saves float8 arrays of ml_dtypes that it cannot load.
#
# Guess: what `save_file` takes, `load_file` gives back: it does so for bfloat16, another type of
# ml_dtypes, and the page "safetensors.numpy" describes the two as a pair.
# Done: save and load bfloat16, float8_e4m3fn and float8_e5m2 arrays through a file.
# Seen: all three are saved. The float8 ones raise AttributeError on loading: they are looked up in
# NumPy itself, which has no such types, though ml_dtypes is there.
set -euo pipefail

folder=$(mktemp -d)
trap 'rm -rf "$folder"' EXIT
python3 -m venv "$folder/venv"
"$folder/venv/bin/pip" install --quiet safetensors==0.8.0 ml_dtypes==0.6.0 numpy==2.4.6
"$folder/venv/bin/python" - <<'PYTHON'
import os
import tempfile

import ml_dtypes
import numpy as np
from safetensors.numpy import load_file, save_file

seen = {}
with tempfile.TemporaryDirectory() as folder:
    path = os.path.join(folder, "a.safetensors")
    for name in ("bfloat16", "float8_e4m3fn", "float8_e5m2"):
        save_file({"x": np.ones(4).astype(getattr(ml_dtypes, name))}, path)
        try:
            seen[name] = str(load_file(path)["x"].dtype)
        except AttributeError as error:
            seen[name] = f"AttributeError: {error}"
        print(name, "->", seen[name])
assert seen["bfloat16"] == "bfloat16"
assert all("AttributeError" in seen[n] for n in ("float8_e4m3fn", "float8_e5m2"))
PYTHON
