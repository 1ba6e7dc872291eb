#!/usr/bin/env bash
# torchvision 0.29.2: CenterCrop of a picture that is smaller moves boxes a pixel further than pixels.
#
# Guess: boxes lie on their objects afterwards: the page "Getting started with transforms v2" says
# that images and boxes are transformed jointly, and the page of CenterCrop that a smaller image is
# padded and then cropped.
# Done: an object of 3 by 3 pixels and its box through CenterCrop(8), in pictures 8 high and 4 to 7
# wide, and the same through Pad by what each side lacks.
# Seen: at 4, 6 and 7 the box lies on the object. At 5 the object moves by 1 pixel and the box by 2:
# pixels are padded by 3 // 2, boxes shifted by round(-1.5). Pad keeps both together.
set -euo pipefail

folder=$(mktemp -d)
trap 'rm -rf "$folder"' EXIT
python3 -m venv "$folder/venv"
"$folder/venv/bin/pip" install --quiet torch==2.15.0 torchvision==0.29.2 numpy==2.4.6
"$folder/venv/bin/python" - <<'PYTHON'
import torch
from torchvision import tv_tensors
from torchvision.transforms import v2


def places(pixels):
    rows, columns = torch.nonzero(pixels[0], as_tuple=True)
    return [columns.min().item(), rows.min().item(), columns.max().item() + 1, rows.max().item() + 1]


moved = {}
for width in (4, 5, 6, 7):
    pixels = torch.zeros(1, 8, width, dtype=torch.uint8)
    pixels[:, 2:5, 1:4] = 255
    image = tv_tensors.Image(pixels)
    box = tv_tensors.BoundingBoxes([[1, 2, 4, 5]], format="XYXY", canvas_size=(8, width))
    cut, cut_box = v2.CenterCrop(8)(image, box)
    moved[width] = (places(cut), cut_box[0].tolist())
    print(width, "object", moved[width][0], "box", moved[width][1])
    missing = 8 - width
    padded, padded_box = v2.Pad((missing // 2, 0, missing - missing // 2, 0))(image, box)
    assert padded.equal(cut) and padded_box[0].tolist() == places(padded)
assert all(moved[width][0] == moved[width][1] for width in (4, 6, 7))
assert moved[5] == ([2, 2, 5, 5], [3, 2, 6, 5])
PYTHON
