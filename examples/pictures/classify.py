"""From a picture to the names of what is on it."""

from pathlib import Path
from typing import Any

import numpy as np
from PIL import Image

import phlox as px
from examples.pictures.data import names
from phlox import Backend, nn
from phlox.record import PyTorchRecorder

# Mean and standard deviation of the colors that the weights were trained with.
MEAN = np.array([0.485, 0.456, 0.406])
STD = np.array([0.229, 0.224, 0.225])
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


def prepared(path: Path) -> np.ndarray[Any, Any]:
    """Return the middle of a picture as (1, 3, 224, 224)."""
    with Image.open(path) as file:
        picture = file.convert("RGB")
    factor = SHORT / min(picture.size)
    width, height = (int(size * factor) for size in picture.size)
    picture = picture.resize((width, height), Image.Resampling.BILINEAR)
    left, top = (width - SIDE) // 2, (height - SIDE) // 2
    square = np.asarray(picture.crop((left, top, left + SIDE, top + SIDE)))
    colors = (square / 255.0 - MEAN) / STD
    return colors.transpose(2, 0, 1)[None].astype(np.float32)


def classify(
    model: nn.models.MobileNetV2,
    place: Path,
    picture: Path,
    count: int = 3,
    device: Backend | str | None = None,
) -> list[tuple[str, float]]:
    """Return the likeliest classes and their shares, the best first."""
    shares = model(px.asarray(prepared(picture), device=device)).softmax(axis=-1).numpy()[0]
    known = names(place)
    return [(known[i], float(shares[i])) for i in np.argsort(-shares, kind="stable")[:count]]
