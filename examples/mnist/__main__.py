"""The demo: load MNIST, train on the CPU, compile, save, serve on three backends, draw."""

from __future__ import annotations

import argparse
import subprocess
import sys
from pathlib import Path

import numpy as np

from examples.mnist.batches import normalized
from examples.mnist.data import DataError, load
from examples.mnist.model import DigitsConfig
from examples.mnist.picture import draw
from examples.mnist.speed import compare
from examples.mnist.train import Settings, save, train


def main() -> int:
    """Run the demo and return the exit status."""
    parser = argparse.ArgumentParser(prog="./x demo", description=__doc__)
    parser.add_argument("--epochs", type=int, default=Settings.epochs)
    parser.add_argument("--batch", type=int, default=Settings.batch)
    parser.add_argument("--out", type=Path, default=Path("build/demo"), help="folder for results")
    arguments = parser.parse_args()
    try:
        data = load()
    except DataError as error:
        print(error, file=sys.stderr)
        return 1
    print(f"MNIST: {len(data.train.labels):,} + {len(data.test.labels):,} digits")
    config = DigitsConfig()
    settings = Settings(epochs=arguments.epochs, batch=arguments.batch)
    model, history = train(data, settings, config)
    speed = compare(normalized(data.train), data, settings, config, steps=20)
    print(
        f"training steps: {speed.written:,.0f} images/s as written, {speed.compiled:,.0f} compiled "
        "by px.compile, with the same losses"
    )
    for path in save(model, config, arguments.out):
        print(f"saved {path}: {path.stat().st_size:,} bytes")
    serve = [sys.executable, "-m", "examples.mnist.serve", str(arguments.out)]
    done = subprocess.run(serve, check=False)
    if done.returncode:
        return done.returncode
    picture = arguments.out / "digits.png"
    draw(picture, history, data.test, np.load(arguments.out / "logits.npy"))
    print(f"drew {picture}")
    return 0


if __name__ == "__main__":
    sys.exit(main())
