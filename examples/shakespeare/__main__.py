"""Train on Shakespeare's works and write some: `python -m examples.shakespeare --help`."""

import numpy as np

import phlox as px
from examples.shakespeare.data import text
from examples.shakespeare.train import START, Settings, train, written
from phlox.train import cli


def main(settings: Settings) -> None:
    """Train, write, and compare with PyTorch when asked."""
    works = text()[START:]
    letters = settings.letters(works)
    done = train(works, letters, settings, show=True)
    loss = np.mean(done.history("train/loss").values[-50:])
    count = done.model.num_params()
    print(f"{count:,} parameters, {done.run.seconds:.0f} s, loss {loss:.3f}")
    if settings.beside_torch:
        from examples.shakespeare.twin import losses  # noqa: PLC0415 - for comparisons alone

        print(f"PyTorch: loss {np.mean(losses(works, letters, settings)[-50:]):.3f}")
    px.seed(1)
    print(written(done.model.valid(), letters, "ROMEO.", settings.written))


if __name__ == "__main__":
    cli(main)
