"""Train on Shakespeare's letters and write some: `python -m examples.shakespeare`."""

import argparse
import sys

import numpy as np

import phlox as px
from examples.shakespeare.data import text
from examples.shakespeare.train import START, Settings, train, written
from examples.wheels import DataError


def main() -> int:
    """Train, write, and compare with PyTorch when asked."""
    parser = argparse.ArgumentParser(prog="python -m examples.shakespeare", description=__doc__)
    parser.add_argument("--steps", type=int, default=Settings.steps)
    parser.add_argument("--letters", type=int, default=600, help="how many are written")
    parser.add_argument("--beside-torch", action="store_true", help="train PyTorch's twin too")
    arguments = parser.parse_args()
    try:
        works = text()[START:]
    except DataError as error:
        print(error, file=sys.stderr)
        return 1
    settings = Settings(steps=arguments.steps)
    trained = train(works, settings, show=True)
    last = float(np.mean(trained.losses[-50:]))
    count = trained.model.num_params()
    print(f"{count:,} parameters, {trained.seconds:.0f} s, loss {last:.3f}")
    if arguments.beside_torch:
        from examples.shakespeare.twin import losses  # noqa: PLC0415 - for comparisons alone

        print(f"PyTorch: loss {np.mean(losses(works, settings)[-50:]):.3f}")
    px.seed(1)
    print(written(trained, "ROMEO.", arguments.letters))
    return 0


if __name__ == "__main__":
    sys.exit(main())
