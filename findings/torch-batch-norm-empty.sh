#!/usr/bin/env bash
# PyTorch 2.15.0: `BatchNorm1d(momentum=None)` counts an empty batch in its cumulative average.
#
# Guess: 3, the average of the batches of 0 and of 6: the page "BatchNorm1d" calls it a simple average
# over what was seen, and with a momentum an empty batch leaves the averages alone.
# Done: a batch of zeros, an empty one, a batch of sixes; the running mean; the same with momentum 0.1.
# Seen: 2 = 6 / 3, and `num_batches_tracked` is 3: the empty batch moves nothing when it comes but
# lowers the weight of every later one. With a momentum the averages are as without it.
set -euo pipefail

folder=$(mktemp -d)
trap 'rm -rf "$folder"' EXIT
python3 -m venv "$folder/venv"
"$folder/venv/bin/pip" install --quiet torch==2.15.0 numpy==2.4.6
"$folder/venv/bin/python" - <<'PYTHON'
import torch
from torch import nn


def mean_after(layer, *batches):
    for batch in batches:
        layer(batch)
    return float(layer.running_mean[0]), int(layer.num_batches_tracked)


zeros, empty, sixes = torch.zeros(4, 2), torch.zeros(0, 2), torch.full((4, 2), 6.0)
seen = mean_after(nn.BatchNorm1d(2, momentum=None), zeros, empty, sixes)
without = mean_after(nn.BatchNorm1d(2, momentum=None), zeros, sixes)
weighted = mean_after(nn.BatchNorm1d(2), zeros, empty, sixes)
plain = mean_after(nn.BatchNorm1d(2), zeros, sixes)
print("cumulative, with the empty batch", seen, "without", without)
print("momentum,   with the empty batch", weighted, "without", plain)
assert without[0] == 3 and seen == (2.0, 3) and weighted[0] == plain[0]
PYTHON
