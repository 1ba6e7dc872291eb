"""What Lightning, Keras, Hugging Face and PyTorch call the parts of a training."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Final

NAMES: Final[Mapping[str, str]] = {
    "AveragedModel": "train.Ema(model, 0.999)",
    "GradScaler": "train.Learner(model, optimizer, 1e-3, scaling=optim.LossScalingConfig().init())",
    "LightningModule": "train.Learner(model, optimizer, 1e-3), and a function of model and batch",
    "TrainState": "train.Learner(model, optimizer, 1e-3)",
}
