"""Train on a table: `python -m examples.weather optimizer:sgd-config --lr 0.1`."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import phlox as px
from examples.wheels import Wheel, unpacked
from phlox import Autodiff, Cpu, data, nn, optim, train

# The weather of Seattle from 2012 to 2015 (NOAA, public domain), in vega-datasets (MIT).
WHEEL = Wheel(
    "vega-datasets==0.9.0",
    "vega_datasets-0.9.0-py3-none-any.whl",
    "3d7c63917be6ca9b154b565f4779a31fedce57b01b5b9d99d8a34a7608062a1d",
    {"weather.csv": "vega_datasets/_data/seattle-weather.csv"},
)
MEASURED = ("precipitation", "temp_max", "temp_min", "wind")
_LOSS = nn.CrossEntropyLossConfig().init()


class Settings(nn.Config):
    """Say from rain, temperatures and wind what a day was called.

    Attributes:
        hidden: how wide the network is.
        batch: days of a step.
        epochs: how often each day is seen.
        optimizer: what steps the network.
        lr: the highest learning rate.
        run: the folder of the run; a second start goes on with it.
    """

    hidden: int = 32
    batch: int = 32
    epochs: int = 15
    optimizer: optim.AdamWConfig | optim.SgdConfig = optim.AdamWConfig()
    lr: float = 1e-2
    run: str = "runs/weather"


def step(model: nn.Sequential, batch: Any) -> dict[str, Any]:
    """Return the loss of a batch, and what metrics take."""
    logits = model(batch["x"])
    loss = _LOSS(logits, batch["weather"])
    return {"loss": loss, "logits": logits, "targets": batch["weather"]}


def fit(settings: Settings, file: Path) -> train.Fitted[nn.Sequential]:
    """Train on four fifths of the days, and test on the others after each epoch."""
    px.seed(0)
    days = data.csv(file, label="weather", vectors={"x": MEASURED})
    seen, kept = days.split(0.8)
    device = Autodiff(Cpu())
    model = nn.Sequential(
        nn.BatchNorm(len(MEASURED), device=device),  # columns have units of their own
        nn.Linear(len(MEASURED), settings.hidden, device=device),
        nn.Activation("relu"),
        nn.Linear(settings.hidden, len(days.classes), device=device),
    )
    batches = data.DataLoader(seen, settings.batch, shuffle=True)
    return train.fit(
        model,
        step,
        batches,
        optimizer=settings.optimizer.init(),
        lr=optim.CosineSchedulerConfig(settings.lr, settings.epochs * len(batches)).init(),
        epochs=settings.epochs,
        valid=data.DataLoader(kept, 300),
        metrics=[train.Accuracy()],
        run=settings.run,
        config=settings,
    )


def main(settings: Settings) -> None:
    """Train, and say how many of the days for tests are called right."""
    print(fit(settings, unpacked("weather", WHEEL) / "weather.csv").best("valid/accuracy"))


if __name__ == "__main__":
    train.cli(main)
