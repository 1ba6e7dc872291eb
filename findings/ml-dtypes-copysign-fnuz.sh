#!/usr/bin/env bash
# ml_dtypes 0.6.0 (NumPy 2.4.6): `np.copysign(0, -1)` is NaN in the fnuz float8 types.
#
# Guess: 0. These types have one zero, as the table of types in the project's README says, so
# -0.0 and `np.negative(0)` become 0; the sign of a zero can only be dropped.
# Done: negate 0 and copy a minus onto it in the three fnuz types.
# Seen: negation gives 0, copysign gives NaN: it sets the sign bit, and a zero with that bit is
# the code of NaN in these types. In float8_e4m3fn, which has a -0, both give -0.
set -euo pipefail

folder=$(mktemp -d)
trap 'rm -rf "$folder"' EXIT
python3 -m venv "$folder/venv"
"$folder/venv/bin/pip" install --quiet ml_dtypes==0.6.0 numpy==2.4.6
"$folder/venv/bin/python" - <<'PYTHON'
import ml_dtypes
import numpy as np

for name in ("float8_e4m3fnuz", "float8_e5m2fnuz", "float8_e4m3b11fnuz"):
    kind = getattr(ml_dtypes, name)
    zero, minus = np.zeros(1, kind), np.array([-1], np.float32).astype(kind)
    negated, copied = float(np.negative(zero)[0]), float(np.copysign(zero, minus)[0])
    print(name, "negative(0):", negated, "copysign(0, -1):", copied)
    assert negated == 0 and np.isnan(copied)
PYTHON
