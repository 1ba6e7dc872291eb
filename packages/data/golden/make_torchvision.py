"""Write torchvision.npz: pictures and boxes after transforms of torchvision with fixed parameters.

Each is written as it is called, here and there. Run by hand, with torchvision beside Pillow:
python golden/make_torchvision.py
"""

from __future__ import annotations

from pathlib import Path

import numpy as np
import torch  # pyright: ignore[reportMissingImports] - never a dependency
from PIL import Image
from torchvision import tv_tensors  # pyright: ignore[reportMissingImports]
from torchvision.transforms import v2  # pyright: ignore[reportMissingImports]

TARGET = Path(__file__).parent / "torchvision.npz"
FILTERS = ("nearest", "bilinear", "bicubic")
CASES = [
    *(f"Resize((13, 50), '{name}')" for name in (*FILTERS, "box", "hamming", "lanczos")),
    *("Resize(20)", "Resize(23)", "Resize(23, max_size=30)"),
    *("CenterCrop(10)", "CenterCrop((15, 21))"),
    *(f"Pad((1, 2, 3, 4), padding_mode='{mode}')" for mode in ("edge", "reflect", "symmetric")),
    *("Pad(3, (7, 8, 9))", "Pad((2, 5), 7)"),
    *("RandomHorizontalFlip(1.0)", "RandomVerticalFlip(1.0)"),
    *("RandomCrop((18, 26))", "RandomCrop((22, 30), padding=2)"),
    "RandomResizedCrop((20, 30), (1.0, 1.0), (26 / 18, 26 / 18))",
    *(f"RandomRotation((30, 30), '{name}', fill=7)" for name in FILTERS),
    *(f"RandomRotation(({turn}, {turn}), expand=True)" for turn in (90, 180, 270)),
    "RandomRotation((-77, -77), 'bilinear', center=(10, 8))",
    *(f"RandomAffine((10, 10), None, (1.2, 1.2), (5, 5, -7, -7), '{name}')" for name in FILTERS),
    "RandomAffine((-30, -30), scale=(0.7, 0.7), center=(3.0, 4.0), fill=(1, 2, 3))",
    *(f"ColorJitter(brightness=({by}, {by}))" for by in (0.0, 0.3, 1.7)),
    *(f"ColorJitter(contrast=({by}, {by}))" for by in (0.0, 0.3, 1.7)),
    *(f"ColorJitter(saturation=({by}, {by}))" for by in (0.0, 0.3, 1.7)),
    *(f"ColorJitter(hue=({by}, {by}))" for by in (-0.5, -0.2, 0.1)),
    *("RandomGrayscale(1.0)", "RandomInvert(1.0)", "RandomAutocontrast(1.0)"),
    *("RandomEqualize(1.0)", "RandomPosterize(2, 1.0)", "RandomSolarize(100, 1.0)"),
    *("RandomAdjustSharpness(0.0, 1.0)", "RandomAdjustSharpness(2.5, 1.0)"),
    *("GaussianBlur(3, (1.0, 1.0))", "GaussianBlur((5, 9), (2.0, 2.0))"),
]


def main() -> None:
    """Write the file."""
    rng = np.random.default_rng(0)
    small = Image.fromarray(rng.integers(0, 256, (6, 9, 3)).astype(np.uint8))
    image = small.resize((26, 18), Image.Resampling.BICUBIC)
    corners = [[3, 4, 20, 16], [0, 0, 26, 18], [20, 1, 25, 6]]
    boxes = tv_tensors.BoundingBoxes(
        torch.tensor(corners, dtype=torch.float32), format="XYXY", canvas_size=(18, 26)
    )
    made = {"cases": np.array(CASES), "image": np.array(image), "boxes": boxes.numpy()}
    for place, case in enumerate(CASES):
        change = eval(f"v2.{case}", {"v2": v2})
        made[f"image{place}"] = np.array(change(image))
        if "mode=" not in case:  # of which torchvision refuses boxes
            made[f"boxes{place}"] = change(image, boxes)[1].numpy()
    np.savez_compressed(TARGET, **made)


if __name__ == "__main__":
    main()
