"""Photographs of bricks, grass and gravel from a wheel, cut into a folder of pictures.

They are those of scikit-image, in the public domain (CC0).
"""

from pathlib import Path

from PIL import Image

from examples.pictures.data import PICTURES
from examples.wheels import unpacked

KINDS = ("brick", "grass", "gravel")
WHEEL = PICTURES._replace(files={f"{kind}.png": f"skimage/data/{kind}.png" for kind in KINDS})
TILE = 64
"""Pixels of a side of what is cut out of 512."""


def folder() -> Path:
    """Return a folder with ``train`` and ``test``, a folder for each kind in both.

    The first call downloads 14 MB. Tests are from the right quarter of each photograph, which
    training never sees.

    Raises:
        DataError: the download fails.
    """
    place = unpacked("textures", WHEEL)
    cut(place, place / f"tiles-{TILE}")
    return place / f"tiles-{TILE}"


def cut(photographs: Path, tiles: Path) -> None:
    """Cut photographs into tiles, unless that was done."""
    for kind in KINDS:
        with Image.open(photographs / f"{kind}.png") as file:
            whole = file.convert("L")
        across, down = (side // TILE for side in whole.size)
        for column in range(across):
            part = tiles / ("train" if column < across * 3 // 4 else "test") / kind
            part.mkdir(parents=True, exist_ok=True)
            for row in range(down):
                left, top = column * TILE, row * TILE
                target = part / f"{row}-{column}.png"
                if not target.exists():
                    whole.crop((left, top, left + TILE, top + TILE)).save(target)
