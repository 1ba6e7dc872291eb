#!/usr/bin/env bash
# PyTorch 2.15.0 (CPU): `CrossMapLRN2d` never drops the first channels from its window.
#
# Guess: the result of `LocalResponseNorm(5)`, whose page "LocalResponseNorm" gives the formula of
# the same published layer: channel c sums the squares of channels c - 2 to c + 2.
# Done: both layers on six channels of 100, which must give a palindrome.
# Seen: LocalResponseNorm is one. CrossMapLRN2d agrees for three channels and then keeps the first
# ones in its running sum: channels 3 to 5 are 7 to 8 per cent too small.
set -euo pipefail

folder=$(mktemp -d)
trap 'rm -rf "$folder"' EXIT
python3 -m venv "$folder/venv"
"$folder/venv/bin/pip" install --quiet torch==2.15.0 numpy==2.4.6
"$folder/venv/bin/python" - <<'PYTHON'
import torch
from torch import nn

x = torch.full((1, 6, 2, 2), 100.0)
across = nn.CrossMapLRN2d(5)(x)[0, :, 0, 0]
local = nn.LocalResponseNorm(5)(x)[0, :, 0, 0]
print("CrossMapLRN2d     ", [round(v, 2) for v in across.tolist()])
print("LocalResponseNorm ", [round(v, 2) for v in local.tolist()])
assert torch.allclose(local, local.flip(0))
assert torch.allclose(across[:3], local[:3])
assert ((1 - across[3:] / local[3:]) > 0.06).all(), "the window moves now"
PYTHON
