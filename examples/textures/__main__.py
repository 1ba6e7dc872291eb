"""Train on a folder of pictures: `python -m examples.textures --epochs 20`."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import phlox as px
from examples.mnist.model import Digits, DigitsConfig
from examples.textures.data import folder
from phlox import Autodiff, Cpu, data, nn, optim, train
from phlox.data import augment

_LOSS = nn.CrossEntropyLossConfig().init()


class Settings(nn.Config):
    """Tell bricks, grass and gravel apart.

    Attributes:
        model: two convolutions and a linear layer.
        batch: pictures of a step.
        epochs: how often each tile is seen, a random part of it each time.
        lr: the highest learning rate.
        run: the folder of the run; a second start goes on with it.
    """

    model: DigitsConfig = DigitsConfig(classes=3, side=32)
    batch: int = 16
    epochs: int = 20
    lr: float = 3e-3
    run: str = "runs/textures"


def step(model: Digits, batch: Any) -> dict[str, Any]:
    """Return the loss of a batch, and what the accuracy takes."""
    logits = model((batch["image"].astype(px.float32) - 128.0) / 64.0)
    loss = _LOSS(logits, batch["label"])
    return {"loss": loss, "logits": logits, "targets": batch["label"]}


def fit(settings: Settings, tiles: Path) -> train.Fitted[Digits]:
    """Train on ``train``, and test on ``test`` after each epoch."""
    px.seed(0)
    side = settings.model.side
    seen = data.images(tiles / "train", mode="L").map(augment.RandomCrop(side))
    seen = seen.map(augment.RandomHorizontalFlip()).map(augment.RandomVerticalFlip())
    kept = data.images(tiles / "test", mode="L").map(augment.CenterCrop(side))
    batches = data.DataLoader(seen, settings.batch, shuffle=True, workers=2)
    return train.fit(
        settings.model.init(Autodiff(Cpu())),
        step,
        batches,
        optimizer=optim.AdamWConfig().init(),
        lr=optim.CosineSchedulerConfig(settings.lr, settings.epochs * len(batches)).init(),
        epochs=settings.epochs,
        valid=data.DataLoader(kept, 64),
        metrics=[train.Accuracy()],
        run=settings.run,
        config=settings,
    )


def main(settings: Settings) -> None:
    """Train, and say how many of the tiles for tests are told right."""
    print(fit(settings, folder()).best("valid/accuracy"))


if __name__ == "__main__":
    train.cli(main)
