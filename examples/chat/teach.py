"""A tokenizer, a model and a training, written as a folder that ``text.load`` reads."""

from __future__ import annotations

from collections.abc import Iterable
from pathlib import Path
from typing import Any

import numpy as np
import tokenizers
from tokenizers import decoders, models, pre_tokenizers, trainers

import phlox as px
from examples.chat.facts import talks
from phlox import Autodiff, Cpu, data, nn, optim, text
from phlox.train import fit

TEMPLATE = (
    "{% for message in messages %}<|{{ message.role }}|>{{ message.content }}<|end|>{% endfor %}"
    "{% if add_generation_prompt %}<|assistant|>{% endif %}"
)


class Settings(nn.Config):
    """Teach a tiny language model some capitals, and talk with it.

    Attributes:
        steps: how many batches are learned from.
        batch: talks in a batch.
        d_model: size of a vector.
        n_layers: number of layers.
        rate: the highest learning rate.
        seed: what weights and batches follow from.
        folder: where the model is written; one that is there is talked with at once.
    """

    steps: int = 150
    batch: int = 16
    d_model: int = 64
    n_layers: int = 2
    rate: float = 5e-3
    seed: int = 0
    folder: str = "runs/capitals"


def make_tokenizer() -> tokenizers.Tokenizer:
    """Return pieces of bytes that make the talks short (Sennrich et al., 2016)."""
    made = tokenizers.Tokenizer(models.BPE())
    made.pre_tokenizer = pre_tokenizers.ByteLevel(add_prefix_space=False)
    made.decoder = decoders.ByteLevel()
    trainer = trainers.BpeTrainer(
        vocab_size=400,
        special_tokens=["<|end|>", "<|user|>", "<|assistant|>"],
        initial_alphabet=pre_tokenizers.ByteLevel.alphabet(),
        show_progress=False,
    )
    made.train_from_iterator([" ".join(pair) for pair in talks()], trainer)
    return made


def examples_of(
    tokenizer: text.Tokenizer, pairs: Iterable[tuple[str, str]]
) -> list[dict[str, Any]]:
    """Return the tokens of each question and answer; targets are those of the answer, else -1."""
    template = text.ChatTemplate(TEMPLATE)
    found: list[dict[str, Any]] = []
    for question, answer in pairs:
        asked = [{"role": "user", "content": question}]
        told = [*asked, {"role": "assistant", "content": answer}]
        tokens = tokenizer.encode(template.render(told))
        known = len(tokenizer.encode(template.render(asked, answer=True)))
        found.append({"tokens": tokens, "targets": [-1] * known + tokens[known:]})
    longest = max(len(each["tokens"]) for each in found)
    for each in found:
        gap = longest - len(each["tokens"])
        each["tokens"] = np.array(each["tokens"] + [0] * gap)
        each["targets"] = np.array(each["targets"] + [-1] * gap)
    return found


_LOSS = nn.CrossEntropyLossConfig(pad_tokens=(-1,)).init()


def step(model: nn.models.Llama, batch: Any) -> px.Tensor[px.Float]:
    """Return the loss of the answers, each token of which is followed by the next."""
    logits = model(batch["tokens"][:, :-1])
    loss: Any = _LOSS(logits, batch["targets"][:, 1:])
    return loss


def teach(settings: Settings, *, show: bool = False) -> Path:
    """Train a model and write its folder; return the path."""
    px.seed(settings.seed)
    special = {"eos_token": "<|end|>"}
    tokenizer = text.Tokenizer(make_tokenizer(), special, text.ChatTemplate(TEMPLATE))
    d = settings.d_model
    config = nn.models.LlamaConfig(tokenizer.words, 256, d, settings.n_layers, 4, d_ff=3 * d)
    found = examples_of(tokenizer, talks())
    rng = np.random.default_rng(settings.seed)
    order = rng.integers(0, len(found), settings.steps * settings.batch)
    done = fit(
        config.init(Autodiff(Cpu())),
        step,
        data.DataLoader([found[i] for i in order], settings.batch),
        optimizer=optim.AdamWConfig(grad_clipping=optim.ClipByGlobalNorm(1.0)).init(),
        lr=optim.CosineSchedulerConfig(settings.rate, settings.steps, settings.rate / 10).init(),
        compile=True,
        show=show,
    )
    model = text.LanguageModel(done.model.valid(), tokenizer)
    return model.save(settings.folder)
