"""Photographs are cut into a folder, and a network learns to tell its classes apart."""

from __future__ import annotations

import os
from pathlib import Path

import numpy as np
import pytest
from PIL import Image

from examples.textures.__main__ import Settings, fit
from examples.textures.data import KINDS, cut, folder

LONG = os.environ.get("PHLOX_TEST_EXAMPLES") == "long"


def test_tiles_are_cut_and_told_apart(tmp_path: Path) -> None:
    rows = np.arange(256)
    across, down = rows // 4 + 0 * rows[:, None], rows[:, None] // 4 + 0 * rows
    drawn = (across % 2, down % 2, (across + down) % 2)  # columns, lines, squares
    for kind, pattern in zip(KINDS, drawn, strict=True):
        Image.fromarray((pattern * 200).astype(np.uint8)).save(tmp_path / f"{kind}.png")
    cut(tmp_path, tmp_path / "tiles")
    assert len(list((tmp_path / "tiles" / "train").rglob("*.png"))) == 3 * 12
    assert len(list((tmp_path / "tiles" / "test" / "grass").iterdir())) == 4
    done = fit(Settings(epochs=6, run=str(tmp_path / "run")), tmp_path / "tiles")
    assert done.best("valid/accuracy").value == 1.0


@pytest.mark.long
@pytest.mark.timeout(600)
@pytest.mark.skipif(not LONG, reason="needs the photographs: ./x test --long")
def test_bricks_grass_and_gravel_are_told_apart(tmp_path: Path) -> None:
    done = fit(Settings(run=str(tmp_path / "run")), folder())
    assert done.best("valid/accuracy").value >= 0.9
