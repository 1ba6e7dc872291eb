"""What the page asks of Python: a network that is trained, looked at, saved and loaded."""

from __future__ import annotations

import time
from collections.abc import Iterator
from importlib.util import find_spec
from itertools import islice
from typing import Any

import numpy as np

import phlox as px
from examples.mnist.model import Digits, DigitsConfig
from phlox import nn, optim

BATCH = 64
MEAN, STD = 0.1307, 0.3081

_loss = nn.CrossEntropyLossConfig().init()
recorder = px.record.NamedMsgpackRecorder(px.record.HalfPrecision)


def devices() -> list[dict[str, Any]]:
    """What this browser can train on, best first: name, words, and why there is no GPU, if so."""
    kernels = find_spec("phlox_kernels") is not None
    known = [("cpu", "the processor, by kernels in Rust")] if kernels else []
    known.append(("numpy", "the processor, by NumPy"))
    problem = ""
    try:
        for each in px.Wgpu.describe():
            played = each["software"]
            words = f"{each['name']}, through WebGPU" + " (software, no GPU)" * played
            # Kernels take less time than a GPU that the processor plays.
            known.insert(1 if played and kernels else 0, ("wgpu", words))
    except px.BackendUnavailableError as error:
        problem = str(error)
    return [{"name": name, "words": words, "problem": problem} for name, words in known]


def normalized(images: np.ndarray) -> np.ndarray:
    """Pixels of 0 to 255 as the network takes them."""
    return ((images.astype(np.float32) / 255 - MEAN) / STD)[:, None]


class Session:
    """One network on one device.

    Args:
        device: what phlox calls it in small letters, such as "wgpu" or "numpy".
        path: of the digits.
    """

    def __init__(self, device: str, path: str = "digits.npz") -> None:
        """Make a network that knows nothing."""
        self.device = px.Autodiff(getattr(px, device.capitalize())())
        px.seed(7)
        self.model: Digits = DigitsConfig().init(self.device)
        self.rule = optim.AdamWConfig(weight_decay=1e-2).init()
        self.steps = 0
        digits = np.load(path)
        self._images = normalized(digits["images"])
        self._labels = digits["labels"].astype(np.int32)
        self._tests, self._answers = normalized(digits["test_images"]), digits["test_labels"]
        self._feed = self._batches()
        self._step = px.compile(_step)
        self._answer = px.compile(_answer)

    def _batches(self) -> Iterator[tuple[px.Tensor, px.Tensor]]:
        """Batches without end, each time through in another order."""
        rng = np.random.default_rng(7)
        while True:
            order = rng.permutation(len(self._labels))
            for at in range(0, len(order) - BATCH + 1, BATCH):
                rows = order[at : at + BATCH]
                images = px.asarray(self._images[rows], device=self.device)
                yield images, px.asarray(self._labels[rows], device=self.device)

    def train(self, steps: int) -> tuple[int, float, float]:
        """Take some steps; their number so far, the loss of the last, and steps a second."""
        start = time.perf_counter()
        losses = []
        for images, labels in islice(self._feed, steps):
            self.model, loss = self._step(self.model, self.rule, images, labels)
            losses.append(loss)
        number = losses[-1].item()  # waits for the device
        self.steps += steps
        return self.steps, number, steps / (time.perf_counter() - start)

    def accuracy(self) -> float:
        """The share of the test's digits that it knows."""
        right = 0
        for at in range(0, len(self._tests), 250):
            found = self.answer(self._tests[at : at + 250]).argmax(axis=1)
            right += int((found == self._answers[at : at + 250]).sum())
        return right / len(self._tests)

    def answer(self, images: np.ndarray) -> np.ndarray:
        """Probabilities of the ten digits for images."""
        return self._answer(self.model.valid(), px.asarray(images, device=self.device)).numpy()

    def drawn(self, pixels: Any) -> list[float]:
        """Probabilities of the ten digits for 784 pixels of 0 to 255."""
        image = np.asarray(pixels.to_py(), np.uint8).reshape(1, 28, 28)
        return self.answer(normalized(image))[0].tolist()

    def sample(self) -> tuple[bytes, int]:
        """A digit of the test: its pixels, and what it is."""
        at = int(np.random.default_rng().integers(len(self._answers)))
        pixels = (self._tests[at, 0] * STD + MEAN) * 255
        return pixels.round().astype(np.uint8).tobytes(), int(self._answers[at])

    def save(self) -> bytes:
        """The record of the network, in half precision."""
        path = self.model.valid().save_file("digits", recorder)
        return path.read_bytes()

    def load(self, path: str) -> None:
        """Take the parameters of a record; training begins anew from them."""
        self.model = self.model.load_file(path, recorder)
        self.rule = optim.AdamWConfig(weight_decay=1e-2).init()


def _step(
    model: Digits, rule: Any, images: px.Tensor, labels: px.Tensor
) -> tuple[Digits, px.Tensor]:
    loss = _loss(model(images), labels)
    return rule.step(2e-3, model, loss.backward()), loss


def _answer(model: Digits, images: px.Tensor) -> px.Tensor:
    return px.softmax(model(images))
