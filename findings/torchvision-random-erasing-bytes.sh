#!/usr/bin/env bash
# torchvision 0.29.2: RandomErasing(value="random") fills uint8 pictures with black and a few specks.
#
# Guess: noise over the range of the dtype, or an error: the page of v2.RandomErasing says that
# "random" erases each pixel with random values, and the guide to v2 asks for uint8 up to the end.
# Done: gray pictures of uint8 and of floats with value="random", and the values in the hole.
# Seen: standard normal numbers for both. Among bytes they are cut to whole numbers, so that 68 % are
# 0, and what is below 0 wraps to 255: nothing lies between 8 and 247. GaussianNoise, of the same
# module, scales its sigma for uint8.
set -euo pipefail

folder=$(mktemp -d)
trap 'rm -rf "$folder"' EXIT
python3 -m venv "$folder/venv"
"$folder/venv/bin/pip" install --quiet torch==2.15.0 torchvision==0.29.2 numpy==2.4.6
"$folder/venv/bin/python" - <<'PYTHON'
import torch
from torchvision import tv_tensors
from torchvision.transforms import v2

torch.manual_seed(0)
erase = v2.RandomErasing(p=1.0, scale=(0.3, 0.33), value="random")
floats = erase(tv_tensors.Image(torch.full((3, 128, 128), 0.5)))
hole = floats[floats != 0.5]
print("floats: mean", round(hole.mean().item(), 2), "deviation", round(hole.std().item(), 2))
assert abs(hole.std().item() - 1) < 0.1

whole = erase(tv_tensors.Image(torch.full((3, 128, 128), 128, dtype=torch.uint8)))
hole = whole[whole != 128]
values, counts = hole.unique(return_counts=True)
print("bytes:", dict(zip(values.tolist(), counts.tolist(), strict=True)))
assert (hole == 0).float().mean() > 0.6
assert not ((hole > 7) & (hole < 248)).any()
noisy = v2.GaussianNoise(sigma=0.1)(tv_tensors.Image(torch.full((3, 128, 128), 128, dtype=torch.uint8)))
assert noisy.float().std() > 20
PYTHON
