"""From a picture to the names of what is on it."""

from collections.abc import Sequence
from pathlib import Path
from typing import Any

import numpy as np
from PIL import Image

from examples.pictures.data import names
from phlox import Backend, data, nn
from phlox.data import augment
from phlox.record import PyTorchRecorder
from phlox.train import predict

# Mean and standard deviation of the colors that the weights were trained with.
MEAN = (0.485, 0.456, 0.406)
STD = (0.229, 0.224, 0.225)
SHORT, SIDE = 256, 224
"""The shorter side of a picture, and the square in its middle that the network sees."""


def load(place: Path, device: Backend | str | None = None) -> nn.models.MobileNetV2:
    """Return the network with the published weights.

    Raises:
        RecordError: when the file is another network's.
    """
    record = PyTorchRecorder().open(place / "mobilenet_v2.pth")
    model = nn.models.MobileNetV2Config().init(device)
    counters = {r"\.num_batches_tracked$": None}
    return model.load_record(record, device, remap=counters, layout="pytorch").with_training(False)


def read(path: Path) -> np.ndarray[Any, Any]:
    """Return the colors of a picture as uint8 (3, height, width)."""
    with Image.open(path) as file:
        return np.asarray(file.convert("RGB")).transpose(2, 0, 1)


def classify(
    model: nn.models.MobileNetV2,
    place: Path,
    pictures: Sequence[Path],
    count: int = 3,
    device: Backend | str | None = None,
) -> list[list[tuple[str, float]]]:
    """Return the likeliest classes of each picture and their shares, the best first."""
    seen = data.of(pictures).map(read).map(augment.Resize(SHORT)).map(augment.CenterCrop(SIDE))
    batches = data.DataLoader(seen.map(augment.Normalize(MEAN, STD)), 8, device=device)
    shares = predict(model, lambda model, batch: model(batch).softmax(axis=-1), batches)
    known = names(place)
    best = np.argsort(-shares, axis=1, kind="stable")[:, :count]
    return [
        [(known[i], float(row[i])) for i in order] for row, order in zip(shares, best, strict=True)
    ]
