"""Decoders of a billion parameters: on the CPU beside llama.cpp by --vs llamacpp, and on GPUs.

The file holds a random decoder in the shape of TinyLlama, whose layers are all the same one. On a
GPU the share is that of its memory's speed, measured by copies, if each token reads the file once.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from functools import partial
from pathlib import Path
from time import perf_counter
from typing import Any

import phlox as px
from benchmarks.generate import header, rows_of, started_sides, told
from phlox import nn
from phlox.nn import models
from phlox_nn.generation.sampling import Sampling, numbers_of
from phlox_nn.generation.steps import Generation, step_in_room

VERSUS = "llamacpp"
_FORMS = ("Q8_0", "Q4_0")
_WORDS, _WIDE, _LAYERS = 32000, 2048, 22
_SIZES: dict[str, Any] = {"n_heads": 32, "n_heads_kv": 4, "d_ff": 5632}
_TEXT, _COUNT, _SKIPPED = 16, 200, 72  # the first ones compile; the room of 256 is not filled


def report(*, with_llamacpp: bool) -> list[dict[str, Any]]:
    """Measure and print the table."""
    rows = []
    cards = [each for each in px.Wgpu.found() if not each.is_software]
    with started_sides(with_llamacpp=with_llamacpp) as (folder, sides):
        for form in _FORMS:
            path = _file(folder, form)
            if not cards:  # whose machine is lent for them
                rows += [told(row) for row in rows_of(f"1.1B {form}", path, sides)]
            for card in cards:
                rows += [told(row) for row in on_a_card(card, form, _blocks(card, path))]
                if form == _FORMS[-1]:
                    rows += [told(row) for row in on_a_card(card, "f16", _halves(card, path))]
            path.unlink()
    return rows


def _file(folder: Path, form: str) -> Path:
    """The decoder in a form."""
    px.seed(0)
    config = models.LlamaConfig(_WORDS, 2048, _WIDE, 1, **_SIZES)
    made: Any = config.init(px.Cpu())
    made = made.replace(
        model=made.model.replace(layers=made.model.layers * _LAYERS),
        settings=config.replace(n_layers=_LAYERS),
    )
    return models.save_gguf(made, folder / form, blocks=form, header=header(_WORDS))


def _blocks(card: px.Wgpu, path: Path) -> Any:
    return models.load(path, card)


def _halves(card: px.Wgpu, path: Path) -> Any:
    whole: Any = models.load(path, card, quantized=False)
    return whole.map(lambda _, p: nn.Param(p.value.astype("float16"), id=p.id))


def on_a_card(card: px.Wgpu, form: str, given: Any) -> Iterator[dict[str, Any]]:
    """Tokens in a second on a GPU, and the share of what its memory gives."""
    model = given.with_training(False).freeze()
    nbytes = sum(p.value.nbytes for p in model.param_list())
    speed = _copy_speed(card)
    step = px.compile(partial(step_in_room, Sampling(temperature=0.0)))
    for kind, compiled in (("op by op", None), ("compiled", lambda _: step)):
        rate = _decode_rate(model, card, compiled)
        name = f"1.1B {form} on {card!r}, {kind}"
        found = {f"share of {speed / 1e9:,.0f} GB/s": rate * nbytes / speed}
        for what, value in {"tokens made in a second": rate, **found}.items():
            yield {"group": "generate_large", "name": f"{name}: {what}", "phlox": value}


def _decode_rate(model: Any, device: px.Backend, compiled: Callable[..., Any] | None) -> float:
    tokens: Any = px.asarray([[7 * i % _WORDS for i in range(_TEXT)]], device=device)
    made = Generation(model, rolls=compiled is None).tokens(
        tokens, Sampling(temperature=0.0), numbers_of(0, 1, _COUNT), compiled=compiled
    )
    began = 0.0
    for i, token in enumerate(made):
        int(token.item())
        if i == _SKIPPED:
            began = perf_counter()
    return (_COUNT - 1 - _SKIPPED) / (perf_counter() - began)


def _copy_speed(card: px.Wgpu) -> float:
    """Bytes that a second's copying reads and writes.

    Memory of a card that was idle is slow for a quarter of a second: 1.6 TB/s for 3.8 on an H200.
    """
    x = px.ones((1 << 27,), device=card)
    best, end = 0.0, perf_counter() + 1.0
    while perf_counter() < end:
        card.sync()
        began = perf_counter()
        for _ in range(8):
            x = x + 1.0
        card.sync()
        best = max(best, 8 * 2 * x.nbytes / (perf_counter() - began))
    return best
