#!/usr/bin/env bash
# PyTorch 2.15.0 (CPU): `torch.masked.argmax` returns positions in the element type of its input.
#
# Guess: int64 positions, the same numbers as `torch.argmax` where nothing is masked: the page
# "torch.masked" shows argmax among the reductions, and its docstring speaks of argmax computation.
# Done: one highest element at 301 of 1,000 in bfloat16, at 200 of 300 in int8 and at 2,049 of 3,000
# in uint8, with a mask that keeps all.
# Seen: positions are stored in the input's type and rounded or wrapped with it: 300, -56 and 1. In
# float32 they are whole numbers up to 16,777,216, which cannot index. argmin does the same.
set -euo pipefail

folder=$(mktemp -d)
trap 'rm -rf "$folder"' EXIT
python3 -m venv "$folder/venv"
"$folder/venv/bin/pip" install --quiet torch==2.15.0 numpy==2.4.6
"$folder/venv/bin/python" - <<'PYTHON'
import torch
from torch import masked

for kind, length, place, wrong in (
    (torch.bfloat16, 1_000, 301, 300),
    (torch.int8, 300, 200, -56),
    (torch.uint8, 3_000, 2_049, 1),
    (torch.float32, 1_000, 301, 301),
):
    x = torch.zeros(1, length, dtype=kind)
    x[0, place] = 1
    everything = torch.ones_like(x, dtype=torch.bool)
    got, plain = masked.argmax(x, dim=1, mask=everything), torch.argmax(x, dim=1)
    print(f"{kind}: masked {got.item()} as {got.dtype}, torch.argmax {plain.item()} as {plain.dtype}")
    assert plain.item() == place and plain.dtype == torch.int64
    assert got.item() == wrong and got.dtype == kind
assert masked.argmin(-x, dim=1, mask=everything).dtype == torch.float32
PYTHON
