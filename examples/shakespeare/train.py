"""Training of the letters."""

from collections.abc import Callable
from dataclasses import dataclass
from itertools import islice
from time import perf_counter
from typing import Any

import numpy as np

import phlox as px
from examples.shakespeare.data import Codes, Letters, batches
from phlox import Backend, Cpu, nn, optim

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


def train(
    works: str,
    settings: Settings,
    said: Callable[[int, float], None] = lambda step, loss: None,
    device: Backend | None = None,
) -> Trained:
    """Train on a text; ``said`` hears of every hundredth step."""
    device = Cpu() if device is None else device
    letters = Letters(works)
    codes = letters.encoded(works)
    px.seed(settings.seed)
    model = settings.model(len(letters)).init(device)
    rule = optim.AdamWConfig(weight_decay=0.1, grad_clipping=optim.ClipByGlobalNorm(1.0)).init()
    schedule, loss_of = settings.schedule(), nn.CrossEntropyLossConfig().init()

    @px.compile
    def step(model: Any, rule: Any, tokens: Any, wanted: Any, lr: float) -> tuple[Any, Any]:
        def loss_fn(m: Any) -> Any:
            logits = m(tokens)
            return loss_of(logits.reshape(-1, logits.shape[-1]), wanted.reshape(-1))

        loss, grads = px.value_and_grad(loss_fn)(model)
        return rule.step(lr, model, grads), loss

    losses: list[float] = []
    began = perf_counter()
    pieces = batches(codes, settings.length, settings.batch, settings.seed)
    for i, (tokens, wanted) in enumerate(islice(pieces, settings.steps)):
        given, after = (px.asarray(each, device=device) for each in (tokens, wanted))
        model, loss = step(model, rule, given, after, schedule.step())
        losses.append(float(loss))
        if not i % 100:
            said(i, float(np.mean(losses[-100:])))
    return Trained(model, letters, losses, perf_counter() - began)


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
