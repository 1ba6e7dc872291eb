"""The demo: load MNIST, train on the CPU, compile, save, serve on three backends, draw."""

from __future__ import annotations

import argparse
import shutil
import subprocess
import sys
from pathlib import Path

import numpy as np

from examples.mnist.data import DataError, load
from examples.mnist.model import DigitsConfig, save
from examples.mnist.picture import draw
from examples.mnist.speed import compare
from examples.mnist.train import Settings, train


def main() -> int:
    """Run the demo and return the exit status."""
    parser = argparse.ArgumentParser(prog="./x demo", description=__doc__)
    parser.add_argument("--epochs", type=int, default=Settings.epochs)
    parser.add_argument("--batch", type=int, default=Settings.batch)
    parser.add_argument("--out", type=Path, default=Path("build/demo"), help="folder for results")
    parser.add_argument("--resume", action="store_true", help="go on with a run that was stopped")
    arguments = parser.parse_args()
    try:
        data = load()
    except DataError as error:
        print(error, file=sys.stderr)
        return 1
    print(f"MNIST: {len(data.train.labels):,} + {len(data.test.labels):,} digits")
    config = DigitsConfig()
    settings = Settings(epochs=arguments.epochs, batch=arguments.batch)
    folder = arguments.out / "run"
    if not arguments.resume:
        shutil.rmtree(folder, ignore_errors=True)
    done = train(data, settings, config, folder)
    print(done.model)
    best = done.best("valid/accuracy")
    print(f"best test accuracy: {best.value:.2%}, of epoch {best.epoch + 1}, in {best.path}")
    speed = compare(data.train, settings, config, steps=20)
    print(
        f"training steps: {speed.written:,.0f} images/s as written, {speed.compiled:,.0f} compiled "
        "by px.compile, with the same losses"
    )
    for path in save(done.model, config, arguments.out):
        print(f"saved {path}: {path.stat().st_size:,} bytes")
    serve = [sys.executable, "-m", "examples.mnist.serve", str(arguments.out)]
    served = subprocess.run(serve, check=False)
    if served.returncode:
        return served.returncode
    picture = arguments.out / "digits.png"
    draw(picture, done, data.test, np.load(arguments.out / "logits.npy"))
    print(f"drew {picture}")
    return 0


if __name__ == "__main__":
    sys.exit(main())
