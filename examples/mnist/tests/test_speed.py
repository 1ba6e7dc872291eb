"""The compiled column of the demo."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pytest

from examples.mnist import serve
from examples.mnist.data import Mnist, Split
from examples.mnist.model import DigitsConfig, save
from examples.mnist.speed import compare
from examples.mnist.train import Settings
from phlox import Autodiff, Cpu


def digits(count: int) -> Split:
    """Random pictures."""
    rng = np.random.default_rng(1)
    images = rng.integers(0, 256, (count, 28, 28)).astype(np.uint8)
    return Split(images, rng.integers(0, 10, count).astype(np.uint8))


def test_compiled_steps_of_the_demo_give_the_same_losses() -> None:
    speed = compare(digits(48), Settings(batch=8), DigitsConfig(), steps=4)
    assert min(speed) > 0


def test_the_table_of_the_demo_has_a_compiled_column(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    config = DigitsConfig()
    save(config.init(Autodiff(Cpu())), config, tmp_path)
    monkeypatch.setattr(serve, "load", lambda: Mnist(digits(8), digits(8)))
    monkeypatch.setattr(serve, "backends", lambda count: [(Cpu(), count)])
    assert serve.main(tmp_path).shape == (8, 10)
    head, row = capsys.readouterr().out.splitlines()
    assert head.split()[-5:] == ["images/s", "compiled", "gap", "to", "NumPy"]
    assert float(row.split()[-2].replace(",", "")) > 0
