"""Training steps of larger networks, and the same in PyTorch."""

from __future__ import annotations

from typing import Any

import numpy as np

import phlox as px
from benchmarks.case import Run
from phlox import nn

STEPS, ROWS, SIZE, WORDS = 200, 32, 128, 96
RNN, LSTM = "RNN 128, b32 s200, Adam", "LSTM 2 x 128, b32 s200, Adam"
GPT, RESNET = "GPT d128 L4 h4, b16 s96, Adam", "ResNet-18, b4 64 x 64, Adam"
# How many times as fast as PyTorch a step is to be.
GOALS = {RNN: 1.2, LSTM: 1.0, GPT: 1.2, RESNET: 1.2}


class Last(nn.Module):
    """A recurrent layer and a map of its last state."""

    layer: nn.Rnn | nn.Lstm
    head: nn.Linear

    def forward(self, x: px.Tensor[Any]) -> px.Tensor[Any]:
        """Map (N, length, size) to logits (N, 10)."""
        states: px.Tensor[Any] = self.layer(x)[0]
        return self.head(states[:, -1])


def arrays() -> dict[str, tuple[np.ndarray, np.ndarray]]:
    """What each network is given, and the classes that it is to find."""
    rng = np.random.default_rng(0)
    lines = rng.standard_normal((ROWS, STEPS, SIZE), np.float32), rng.integers(0, 10, ROWS)
    text = rng.integers(0, WORDS, (16, 97))
    images = rng.standard_normal((4, 3, 64, 64), np.float32), rng.integers(0, 10, 4)
    return {RNN: lines, LSTM: lines, GPT: (text[:, :-1], text[:, 1:].reshape(-1)), RESNET: images}


def models(device: px.Backend) -> dict[str, nn.Module]:
    """The networks."""
    gpt = nn.models.GptConfig(WORDS, 96, 128, 4, 4, dropout=0.0).init(device)
    return {
        RNN: Last(nn.Rnn(SIZE, SIZE, device=device), nn.Linear(SIZE, 10, device=device)),
        LSTM: Last(nn.Lstm(SIZE, SIZE, 2, device=device), nn.Linear(SIZE, 10, device=device)),
        GPT: Rows(gpt),
        RESNET: nn.models.resnet18(10, device=device),
    }


class Rows(nn.Module):
    """A decoder whose logits are rows, one for each token."""

    gpt: nn.models.Gpt

    def forward(self, tokens: px.Tensor[Any]) -> px.Tensor[Any]:
        """Map (N, length) to (N · length, words)."""
        logits = self.gpt(tokens)
        return logits.reshape(-1, logits.shape[-1])


def torch_models() -> dict[str, Any]:
    """The same networks in PyTorch."""
    import torch  # noqa: PLC0415 # pyright: ignore[reportMissingImports] - for comparisons

    n: Any = torch.nn

    class TorchLast(n.Module):  # type: ignore[misc]
        def __init__(self, layer: Any) -> None:
            super().__init__()
            self.layer, self.head = layer, n.Linear(SIZE, 10)

        def forward(self, x: Any) -> Any:
            return self.head(self.layer(x)[0][:, -1])

    class TorchGpt(n.Module):  # type: ignore[misc]
        def __init__(self) -> None:
            super().__init__()
            self.word, self.place = n.Embedding(WORDS, 128), n.Embedding(96, 128)
            block = n.TransformerEncoderLayer(
                128, 4, 512, 0.0, "gelu", batch_first=True, norm_first=True
            )
            self.blocks = n.TransformerEncoder(block, 4, n.LayerNorm(128), False)
            self.mask = n.Transformer.generate_square_subsequent_mask(96)

        def forward(self, tokens: Any) -> Any:
            x = self.word(tokens) + self.place.weight
            x = self.blocks(x, self.mask, is_causal=True)
            return (x @ self.word.weight.T).reshape(-1, WORDS)

    class Block(n.Module):  # type: ignore[misc]
        def __init__(self, before: int, after: int, stride: int) -> None:
            super().__init__()
            self.inner = n.Sequential(
                n.Conv2d(before, after, 3, stride, 1, bias=False), n.BatchNorm2d(after), n.ReLU(),
                n.Conv2d(after, after, 3, 1, 1, bias=False), n.BatchNorm2d(after),
            )  # fmt: skip
            self.beside: Any = n.Identity()
            if before != after:
                self.beside = n.Sequential(
                    n.Conv2d(before, after, 1, stride, bias=False), n.BatchNorm2d(after)
                )

        def forward(self, x: Any) -> Any:
            return (self.inner(x) + self.beside(x)).relu()

    sizes = (64, 64, 128, 256, 512)
    stages = [
        b for i in range(4)
        for b in (Block(sizes[i], sizes[i + 1], 1 + (i > 0)), Block(sizes[i + 1], sizes[i + 1], 1))
    ]  # fmt: skip
    resnet = n.Sequential(
        n.Conv2d(3, 64, 7, 2, 3, bias=False), n.BatchNorm2d(64), n.ReLU(), n.MaxPool2d(3, 2, 1),
        *stages, n.AdaptiveAvgPool2d(1), n.Flatten(), n.Linear(512, 10),
    )  # fmt: skip
    return {
        RNN: TorchLast(n.RNN(SIZE, SIZE, batch_first=True)),
        LSTM: TorchLast(n.LSTM(SIZE, SIZE, 2, batch_first=True)),
        GPT: TorchGpt(),
        RESNET: resnet,
    }


def torch_steps(step_of: Any) -> dict[str, Run]:
    """Steps of Adam, each made by ``step_of(model, inputs, labels, rule)``."""
    import torch  # noqa: PLC0415 # pyright: ignore[reportMissingImports] - for comparisons

    given = arrays()
    return {
        name: step_of(model, *given[name], torch.optim.Adam(model.parameters(), lr=1e-3))
        for name, model in torch_models().items()
    }
