#!/usr/bin/env bash
# PyTorch 2.15.0: `CosineEmbeddingLoss` of a short vector and itself is 0.5.
#
# Guess: 0: the page "CosineEmbeddingLoss" gives 1 - cos(x1, x2) for a pair of the same kind, and the
# cosine of a vector and itself is 1 at any length; `cosine_similarity` says 1.
# Done: both functions on equal vectors of length 1, 1e-3 and 1e-6.
# Seen: the losses are 0, 0.0000 and 0.5: the loss adds its own constant of 1e-12 to the squared
# lengths, where cosine_similarity has a floor. Small embeddings look unlike themselves.
set -euo pipefail

folder=$(mktemp -d)
trap 'rm -rf "$folder"' EXIT
python3 -m venv "$folder/venv"
"$folder/venv/bin/pip" install --quiet torch==2.15.0 numpy==2.4.6
"$folder/venv/bin/python" - <<'PYTHON'
import torch
from torch import nn

loss, cosine = {}, {}
for length in (1.0, 1e-3, 1e-6):
    x = torch.tensor([[length, 0.0]])
    loss[length] = float(nn.CosineEmbeddingLoss()(x, x, torch.ones(1)))
    cosine[length] = float(torch.nn.functional.cosine_similarity(x, x))
    print(f"length {length:g}: loss {loss[length]:.6f}, 1 - cosine {1 - cosine[length]:.6f}")
assert abs(loss[1.0]) < 1e-5 and abs(loss[1e-6] - 0.5) < 1e-3 and cosine[1e-6] > 0.999
PYTHON
