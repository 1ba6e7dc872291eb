#!/usr/bin/env bash
# gguf 0.19.0: one NaN or infinity turns its MXFP4 block of 32 weights into zeros.
#
# Guess: NaN, in that place or in the block: the OCP "Microscaling Formats (MX) Specification"
# has a code for a NaN scale, and Q8_0 and Q4_0 of the same package answer with NaN.
# Done: quantize 1, 2 and a NaN (then an infinity) to Q8_0, Q4_0 and MXFP4, and dequantize.
# Seen: the two older types show NaN. MXFP4 gives 0, 0, 0: a diverged model is saved as a clean one.
set -euo pipefail

folder=$(mktemp -d)
trap 'rm -rf "$folder"' EXIT
python3 -m venv "$folder/venv"
"$folder/venv/bin/pip" install --quiet gguf==0.19.0 numpy==2.4.6
"$folder/venv/bin/python" - <<'PYTHON'
import warnings

import numpy as np
from gguf import GGMLQuantizationType, quants

warnings.simplefilter("ignore")
for bad in (np.nan, np.inf):
    block = np.zeros(32, np.float32)
    block[:3] = 1, 2, bad
    for name in ("Q8_0", "Q4_0", "MXFP4"):
        kind = GGMLQuantizationType[name]
        got = quants.dequantize(quants.quantize(block, kind), kind)[:3]
        print(bad, name, got.tolist())
        assert (got == 0).all() if name == "MXFP4" else np.isnan(got[:2]).any(), name
PYTHON
