"""Adapters beside a model in the blocks of its file: QLoRA (Dettmers et al., 2023)."""

from __future__ import annotations

import json
from collections.abc import Iterator
from pathlib import Path

import numpy as np

import phlox as px
from examples.chat.facts import CAPITALS, QUESTIONS
from examples.chat.teach import examples_of, step
from phlox import Autodiff, Cpu, data, nn, optim, text
from phlox.train import fit


class Settings(nn.Config):
    """Teach a model of capitals, which answers in sentences, to answer in JSON.

    Attributes:
        base: the folder of the model of `python -m examples.chat`, which is taught if not there.
        folder: where the file, the adapters and the tuned models are written.
        blocks: the form of the weights in the file.
        rank: of the adapters.
        steps: how many batches are learned from.
        batch: talks in a batch.
        rate: the highest learning rate.
        seed: what adapters and batches follow from.
    """

    base: str = "runs/capitals"
    folder: str = "runs/finetune"
    blocks: str = "Q8_0"
    rank: int = 8
    steps: int = 400
    batch: int = 16
    rate: float = 1e-2
    seed: int = 0


def talks(*, shown: bool) -> Iterator[tuple[str, str]]:
    """Questions with their answers in JSON: those that are shown, or one a country that is not."""
    for i, (country, city) in enumerate(CAPITALS.items()):
        answer = json.dumps({"country": country, "capital": city})
        for j, question in enumerate(QUESTIONS):
            if (i % len(QUESTIONS) != j) is shown:
                yield question.format(country), answer


def tune(file: Path, settings: Settings, *, show: bool = False) -> Path:
    """Train adapters beside the model of a file and write them; return their folder."""
    px.seed(settings.seed)
    model = text.load(file, Autodiff(Cpu()))
    found = examples_of(model.tokenizer, talks(shown=True))
    order = np.random.default_rng(settings.seed).integers(
        0, len(found), settings.steps * settings.batch
    )
    done = fit(
        nn.apply_lora(model.model, settings.rank),
        step,
        data.DataLoader([found[i] for i in order], settings.batch),
        optimizer=optim.AdamWConfig(grad_clipping=optim.ClipByGlobalNorm(1.0)).init(),
        lr=optim.CosineSchedulerConfig(settings.rate, settings.steps, settings.rate / 10).init(),
        compile=True,
        show=show,
    )
    return nn.save_adapters(done.model, Path(settings.folder) / "adapters")


def right(model: text.LanguageModel, *, shown: bool) -> str:
    """Return how many questions are answered right in the new form, of how many."""
    asked = list(talks(shown=shown))
    answers = [model.chat().send(question, max_tokens=60) for question, _ in asked]
    count = sum(said == want for said, (_, want) in zip(answers, asked, strict=True))
    return f"{count} of {len(asked)}"
