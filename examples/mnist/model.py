"""The network: two convolutions, each with batch norm, GELU and a pool, then a linear layer."""

from __future__ import annotations

from pathlib import Path

import phlox as px
from phlox import Float, Tensor, nn
from phlox.record import HalfPrecision, NamedMsgpackRecorder


class DigitsConfig(nn.Config):
    """Settings of ``Digits``: channels of the two convolutions, and the dropout between."""

    classes: int = 10
    channels: tuple[int, int] = (16, 32)
    dropout: float = 0.25
    side: int = 28

    def init(self, device: px.Backend | str | None = None) -> Digits:
        """Return the network with lazy parameters on ``device``."""
        first, second = self.channels
        features = second * (self.side // 4) ** 2
        return Digits(
            conv1=nn.Conv2dConfig(1, first, kernel_size=3, padding="same").init(device),
            norm1=nn.BatchNormConfig(first).init(device),
            conv2=nn.Conv2dConfig(first, second, kernel_size=3, padding="same").init(device),
            norm2=nn.BatchNormConfig(second).init(device),
            dropout=nn.DropoutConfig(self.dropout).init(device),
            head=nn.LinearConfig(features, self.classes).init(device),
        )


class Digits(nn.Module):
    """Images (N, 1, 28, 28) to logits (N, 10)."""

    conv1: nn.Conv2d
    norm1: nn.BatchNorm
    conv2: nn.Conv2d
    norm2: nn.BatchNorm
    dropout: nn.Dropout
    head: nn.Linear

    def forward(self, images: Tensor[Float]) -> Tensor[Float]:
        """Return the logits of a batch of images."""
        x = px.max_pool2d(nn.gelu(self.norm1(self.conv1(images))), 2)
        x = px.max_pool2d(nn.gelu(self.norm2(self.conv2(x))), 2)
        logits: Tensor[Float] = self.head(self.dropout(x.flatten(1)))
        return logits


def save(model: Digits, config: DigitsConfig, folder: Path) -> tuple[Path, Path]:
    """Write config (JSON) and record (half precision) and return their paths."""
    folder.mkdir(parents=True, exist_ok=True)
    recorder = NamedMsgpackRecorder(HalfPrecision)
    return config.save(folder / "digits.json"), model.valid().save_file(folder / "digits", recorder)
