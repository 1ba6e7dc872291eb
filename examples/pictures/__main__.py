"""Say what is on pictures: `python -m examples.pictures [FILE …]`."""

import sys
from pathlib import Path

from examples.pictures.classify import classify, load
from examples.pictures.data import folder
from examples.wheels import DataError


def main() -> int:
    """Print the likeliest classes of the pictures, by default a cat and a cup."""
    try:
        place = folder()
    except DataError as error:
        print(error, file=sys.stderr)
        return 1
    model = load(place)
    pictures = [*map(Path, sys.argv[1:] or (place / "cat.png", place / "cup.png"))]
    for picture, best in zip(pictures, classify(model, place, pictures), strict=True):
        print(picture.name)
        for name, share in best:
            print(f"  {share:6.1%}  {name}")
    return 0


if __name__ == "__main__":
    sys.exit(main())
