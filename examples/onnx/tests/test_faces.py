"""What the outputs of the detector mean; the long test trains it."""

from __future__ import annotations

import os
from pathlib import Path

import numpy as np
import pytest

import phlox as px
from examples.onnx.__main__ import run
from examples.onnx.data import CELL, SIDE, board, folder
from examples.onnx.detector import STRIDES, boxes, likeness
from examples.onnx.train import loss_of
from phlox import Autodiff, Cpu, Tensor, nn

LONG = os.environ.get("PHLOX_TEST_EXAMPLES") == "long"


class OneFace(nn.Module):
    """Says that there is a face of 40 by 48 around (x, y), and is trained to say so or not."""

    sure: nn.Param
    x: int
    y: int

    def forward(self, picture: Tensor) -> tuple[Tensor, ...]:
        """Return nine of the twelve outputs."""
        device = picture.device
        scores, found = [], []
        for stride in STRIDES:
            n = SIDE // stride
            column, row = self.x // stride, self.y // stride
            place = px.asarray(np.arange(n * n) == row * n + column, device=device)
            score = px.where(place & (stride == 16), self.sure.value, 1e-6)
            scores.append(score.reshape((1, -1, 1)))
            box = [self.x / stride - column, self.y / stride - row]
            box += [np.log(40 / stride), np.log(48 / stride)]
            every = px.asarray(np.tile(np.array(box, np.float32), (1, n * n, 1)), device=device)
            found.append(every)
        return *scores, *scores, *found


def one(x: int, y: int, sure: float = 0.9) -> OneFace:
    return OneFace(nn.Param(px.full((), sure, device=Autodiff(Cpu()))), x, y)


PICTURE = np.zeros((1, 3, SIDE, SIDE), np.float32)


def test_a_sure_place_is_a_face_in_its_square() -> None:
    outputs = one(200, 333).valid()(px.asarray(PICTURE))
    share = likeness(outputs).numpy()
    assert share.argmax() == (333 // CELL) * 10 + 200 // CELL
    assert share.max() == pytest.approx(0.9)
    assert np.allclose(boxes(outputs), [[180, 309, 220, 357]], atol=1e-3)


def test_the_loss_asks_for_sureness_where_a_face_is_and_for_the_box() -> None:
    model = one(224, 352)  # the middle of a square
    picture, sides = (px.asarray(a, device=model.sure.value.device)
                      for a in (PICTURE, np.full(100, 50, np.float32)))  # fmt: skip
    at = 5 * 10 + 3
    for faces, sign in ((np.arange(100) == at, -1.0), (np.arange(100) == 0, 1.0)):
        loss = loss_of(model, picture, px.asarray(faces, device=picture.device), sides)
        slope = model.sure.value.grad(loss.backward())
        assert slope is not None
        assert np.sign(slope.item()) == sign
    faces = px.asarray(np.arange(100) == at, device=picture.device)
    there = loss_of(model, picture, faces, sides).item()
    beside = loss_of(one(224 + 16, 352), picture, faces, sides).item()
    assert beside - there == pytest.approx(0.25, abs=1e-3)


def test_cuttings_lie_in_the_middle_of_their_squares_turned() -> None:
    pictures = np.zeros((100, 25, 25), np.uint8)
    pictures[:, :12] = 255  # the upper half is white
    sides = np.full(100, 40)
    sides[99] = 0
    made = board(pictures, np.arange(100) % 4, sides)[0, 0]
    assert made.shape == (SIDE, SIDE)
    assert made[0, 0] == made[CELL * 9 + 32, CELL * 9 + 32] == 128  # paper
    assert made[16, 32] == 255  # above
    assert made[48, 32] == 0
    assert made[32, CELL + 16] == 255  # a quarter turn against the clock: left
    assert made[32, CELL + 48] == 0


@pytest.mark.long
@pytest.mark.timeout(600)
@pytest.mark.skipif(not LONG, reason="needs the detector: ./x test --long")
def test_the_detector_learns_to_find_faces_that_lie(tmp_path: Path) -> None:
    result = run(folder(), tmp_path, 150)
    for turn in range(4):
        (before, _), (after, wrong) = result["before"][turn], result["after"][turn]
        assert before == (0.0 if turn else 1.0)
        assert after >= 0.9
        assert wrong <= 0.06
    assert (tmp_path / "faces.png").stat().st_size > 10_000
