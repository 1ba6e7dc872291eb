"""A face detector of an ONNX file, read and trained further: `python -m examples.onnx`."""

# There is no __init__.py here: pytest would import it as the package `onnx`.

from __future__ import annotations

import argparse
import sys
from pathlib import Path

import numpy as np

import phlox as px
from examples.onnx.data import board, cuttings, folder, scenes
from examples.onnx.detector import boxes, load, written
from examples.onnx.picture import draw
from examples.onnx.train import found, train
from examples.wheels import DataError
from phlox import Autodiff, Cpu


def run(place: Path, out: Path, steps: int) -> dict[str, list[tuple[float, float]]]:
    """Import, read, train, save and load again; return what is found on each turn."""
    source = written(place / "yunet.onnx", out)
    first = source.index("class Model(")
    print(source[first : source.index("\n\n\ndef ", first)])
    known, unknown = cuttings(place)
    model = load(out, Autodiff(Cpu()))
    before = model.valid()
    done = train(model, known, scenes(place), steps)
    losses, seconds = done.history("train/loss").values, done.run.seconds
    print(f"{steps} steps in {seconds:.0f} s: loss {losses[0]:.2f} to {np.mean(losses[-8:]):.2f}")
    after = done.model.valid()

    rng = np.random.default_rng(1)
    order, turns = rng.permutation(100), rng.integers(0, 4, 100)
    mixed = board(unknown.pictures[order], turns, np.full(100, 56))
    record = after.save_file(out / "lying")
    file = px.onnx.save(after, px.asarray(mixed), out / "lying.onnx", names=["input"])
    again = px.onnx.load(file)
    for one, two in zip(again(px.asarray(mixed)), after(px.asarray(mixed)), strict=True):
        np.testing.assert_allclose(one.numpy(), two.numpy(), rtol=1e-4, atol=1e-4)
    print(f"saved {record} and {file}; the second computes the same")
    titled = {"as it came": boxes(before(px.asarray(mixed)))}
    titled[f"after {steps} steps of training"] = boxes(again(px.asarray(mixed)))
    draw(out / "faces.png", mixed, titled)
    print(f"drew {out / 'faces.png'}")
    return {
        "before": [found(before, unknown, turn) for turn in range(4)],
        "after": [found(again, unknown, turn) for turn in range(4)],
    }


def _at(result: dict[str, list[tuple[float, float]]], turn: int) -> dict[str, tuple[float, float]]:
    return {when: shares[turn] for when, shares in result.items()}


def main() -> int:
    """Run the example and return the exit status."""
    parser = argparse.ArgumentParser(prog="python -m examples.onnx", description=__doc__)
    parser.add_argument("--steps", type=int, default=150)
    parser.add_argument("--out", type=Path, default=Path("build/onnx"), help="folder for results")
    arguments = parser.parse_args()
    try:
        place = folder()
    except DataError as error:
        print(error, file=sys.stderr)
        return 1
    result = run(place, arguments.out, arguments.steps)
    print("pictures it was not trained with: faces found, others taken for faces")
    for turn in range(4):
        columns = (f"{a:4.0%} {b:4.0%} {when}" for when, (a, b) in _at(result, turn).items())
        print(f"  turned {90 * turn:3d}°: {', '.join(columns)}")
    return 0


if __name__ == "__main__":
    sys.exit(main())
