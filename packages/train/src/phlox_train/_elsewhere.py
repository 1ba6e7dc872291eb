"""What Lightning, Keras, Hugging Face and PyTorch call the parts of a training."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Final

NAMES: Final[Mapping[str, str]] = {
    "AveragedModel": "train.Ema(model, 0.999)",
    "GradScaler": "train.Learner(model, optimizer, 1e-3, scaling=optim.LossScalingConfig().init())",
    "LightningModule": "train.Learner(model, optimizer, 1e-3), and a function of model and batch",
    "EarlyStopping": 'train.NoImprovement("valid/loss", epochs=3)',
    "LearningRateFinder": "train.find_lr(learner, step, batches)",
    "ModelCheckpoint": 'train.KeepBest("valid/loss")',
    "SummaryWriter": 'train.Run("folder", learner, batches), whose log method writes rows',
    "TerminateOnNaN": "train.NotFinite()",
    "TrainState": "train.Learner(model, optimizer, 1e-3)",
    "Trainer": "train.fit(model, step, batches, optimizer=optimizer, lr=1e-3)",
}
