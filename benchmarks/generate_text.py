"""A small decoder that has read some Shakespeare, in several forms, and text that it has not."""

from __future__ import annotations

from collections.abc import Iterator
from functools import cache
from pathlib import Path
from typing import Any

import phlox as px
from examples.shakespeare.data import Codes, Pieces, text
from examples.shakespeare.train import Settings, step
from phlox import optim, train
from phlox.nn import models

_PIECES, _LENGTH, _ROWS = 2048, 128, 40
_SETTINGS = Settings(steps=150, batch=8, warm_up=20)
_LEARNED, _HELD_OUT = 1_000_000, 60_000  # letters, the last ones of which are not learned from


@cache
def _codes() -> tuple[int, Codes, Codes]:
    """How many pieces there are, those to learn from, and those held out."""
    works = text()
    pieces = Pieces(works[:_LEARNED], _PIECES)
    return len(pieces), pieces.encoded(works[:_LEARNED]), pieces.encoded(works[-_HELD_OUT:])


def rows() -> list[list[int]]:
    """Return rows of tokens to be foretold."""
    found: list[list[int]] = _codes()[2][: _ROWS * _LENGTH].reshape(_ROWS, _LENGTH).tolist()
    return found


def files(folder: Path) -> Iterator[tuple[str, Path]]:
    """Yield a file of each form."""
    from benchmarks.generate import header  # noqa: PLC0415 - which imports this one

    model = _learned()
    for form in (None, "Q8_0", "Q4_0"):
        name = form or "float32"
        path = folder / f"{name}.gguf"
        yield name, models.save_gguf(model, path, blocks=form, header=header(_codes()[0]))


def _learned() -> Any:
    """The decoder after its steps."""
    px.seed(0)
    config = models.LlamaConfig(
        _codes()[0], 1024, 128, 4, n_heads=4, n_heads_kv=2, d_ff=384, tied=True
    )
    done = train.fit(
        config.init(px.Autodiff(px.Cpu())),
        step,
        _SETTINGS.batches(_codes()[1]),
        optimizer=optim.AdamWConfig().init(),
        lr=_SETTINGS.schedule(),
    )
    return done.model.valid()
