"""Training of the letters, or of pieces of words."""

from __future__ import annotations

from typing import Any

import numpy as np

import phlox as px
from examples.shakespeare.data import Codes, Letters, Pieces
from phlox import Autodiff, Cpu, data, nn, optim
from phlox.train import Fitted, fit

START = 10_000
"""Letters at the beginning of the file that are no play: its license and contents."""


class Settings(nn.Config):
    """Learn to write as Shakespeare did.

    Attributes:
        batch: parts of the text in a step.
        length: letters of a part.
        rate: the highest learning rate, after a warm-up.
        pieces: how many pieces of words there are, found by tokenizers; 0 takes letters.
        written: how many letters or pieces are written in the end.
        beside_torch: train PyTorch's twin, too.
        run: the folder of the run; none by default.
    """

    steps: int = 1500
    batch: int = 16
    length: int = 96
    d_model: int = 128
    n_layers: int = 4
    n_heads: int = 4
    rate: float = 2e-3
    warm_up: int = 100
    seed: int = 0
    pieces: int = 0
    written: int = 600
    beside_torch: bool = False
    run: str | None = None

    def letters(self, works: str) -> Letters | Pieces:
        """Return what the text is made of."""
        return Pieces(works, self.pieces) if self.pieces else Letters(works)

    def model(self, letters: int) -> nn.models.GptConfig:
        """Return the config of the network."""
        sizes = (self.d_model, self.n_layers, self.n_heads)
        return nn.models.GptConfig(letters, self.length, *sizes, dropout=0.0)

    def schedule(self) -> Any:
        """Return the rates: rising, then falling along a cosine."""
        falling = optim.CosineSchedulerConfig(self.rate, self.steps, self.rate / 10)
        return optim.WarmUpSchedulerConfig(falling, self.warm_up).init()

    def batches(self, codes: Codes) -> data.DataLoader:
        """Return a batch for each step, (batch, length + 1), from places that the seed draws."""
        rng = np.random.default_rng(self.seed)
        starts = rng.integers(0, len(codes) - self.length - 1, (self.steps, self.batch))
        parts = data.arrays(starts.ravel()).map(
            lambda start: codes[start : start + self.length + 1]
        )
        return data.DataLoader(parts, self.batch)


_LOSS = nn.CrossEntropyLossConfig().init()


def step(model: nn.models.Gpt, batch: px.Tensor[px.Int]) -> px.Tensor[px.Float]:
    """Return the loss of parts of the text, each letter of which is followed by the next."""
    logits = model(batch[:, :-1])
    loss: Any = _LOSS(logits.reshape(-1, logits.shape[-1]), batch[:, 1:].reshape(-1))
    return loss


def train(
    works: str, letters: Letters | Pieces, settings: Settings, *, show: bool = False
) -> Fitted[nn.models.Gpt]:
    """Train on a text."""
    px.seed(settings.seed)
    clipping = optim.ClipByGlobalNorm(1.0)
    return fit(
        settings.model(len(letters)).init(Autodiff(Cpu())),
        step,
        settings.batches(letters.encoded(works)),
        optimizer=optim.AdamWConfig(weight_decay=0.1, grad_clipping=clipping).init(),
        lr=settings.schedule(),
        compile=True,
        show=show,
        run=settings.run,
        config=settings,
    )


def written(
    model: nn.models.Gpt, letters: Letters | Pieces, beginning: str, count: int, heat: float = 0.8
) -> str:
    """Return a beginning and as many letters or pieces more."""
    longest = model.wpe.settings.n_embedding
    codes: Codes = letters.encoded(beginning)
    end = len(codes) + count
    while len(codes) < end:
        # What goes beyond the positions is forgotten, half of them at a time.
        seen = px.asarray(codes[None, -(longest // 2) :], device=model.wte.weight.device)
        more = min(longest - seen.shape[1], end - len(codes))
        found = model.generate(seen, more, temperature=heat, top_k=20)
        codes = np.concatenate([codes, found.numpy()[0, seen.shape[1] :]])
    return letters.decoded(codes)
