"""Training of the letters."""

from dataclasses import dataclass
from itertools import islice
from typing import Any

import numpy as np

import phlox as px
from examples.shakespeare.data import Codes, Letters, batches
from phlox import Autodiff, Cpu, nn, optim
from phlox.train import fit

START = 10_000
"""Letters at the beginning of the file that are no play: its license and contents."""


@dataclass(frozen=True)
class Settings:
    """What is trained, and how long."""

    steps: int = 1500
    batch: int = 16
    length: int = 96
    d_model: int = 128
    n_layers: int = 4
    n_heads: int = 4
    rate: float = 2e-3
    warm_up: int = 100
    seed: int = 0

    def model(self, letters: int) -> nn.models.GptConfig:
        """Return the config of the network."""
        sizes = (self.d_model, self.n_layers, self.n_heads)
        return nn.models.GptConfig(letters, self.length, *sizes, dropout=0.0)

    def schedule(self) -> Any:
        """Return the rates: rising, then falling along a cosine."""
        falling = optim.CosineSchedulerConfig(self.rate, self.steps, self.rate / 10)
        return optim.WarmUpSchedulerConfig(falling, self.warm_up).init()


@dataclass(frozen=True)
class Trained:
    """The network and its letters, and the loss of each step."""

    model: nn.models.Gpt
    letters: Letters
    losses: list[float]
    seconds: float


_LOSS = nn.CrossEntropyLossConfig().init()


def step(model: nn.models.Gpt, batch: Any) -> px.Tensor[px.Float]:
    """Return the loss of pieces and the letters that follow."""
    tokens, wanted = batch
    logits = model(tokens)
    loss: Any = _LOSS(logits.reshape(-1, logits.shape[-1]), wanted.reshape(-1))
    return loss


def train(works: str, settings: Settings, *, show: bool = False) -> Trained:
    """Train on a text."""
    letters = Letters(works)
    px.seed(settings.seed)
    pieces = batches(letters.encoded(works), settings.length, settings.batch, settings.seed)
    done = fit(
        settings.model(len(letters)).init(Autodiff(Cpu())),
        step,
        list(islice(pieces, settings.steps)),
        optimizer=optim.AdamWConfig(
            weight_decay=0.1, grad_clipping=optim.ClipByGlobalNorm(1.0)
        ).init(),
        lr=settings.schedule(),
        compile=True,
        show=show,
    )
    losses = done.history("train/loss").values.tolist()
    return Trained(done.model.valid(), letters, losses, done.run.seconds)


def written(trained: Trained, beginning: str, count: int, temperature: float = 0.8) -> str:
    """Return a beginning and as many letters more."""
    model = trained.model
    longest = trained.model.wpe.settings.n_embedding
    codes: Codes = trained.letters.encoded(beginning)
    while len(codes) - len(beginning) < count:
        # What goes beyond the positions is forgotten, half of them at a time.
        seen = px.asarray(codes[None, -(longest // 2) :], device=model.wte.weight.device)
        more = min(longest - seen.shape[1], count - (len(codes) - len(beginning)))
        found = model.generate(seen, more, temperature=temperature, top_k=20)
        codes = np.concatenate([codes, found.numpy()[0, seen.shape[1] :]])
    return trained.letters.decoded(codes)
