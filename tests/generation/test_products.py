"""Tokens of compiled decoders on a GPU, whose products are kernels with what is around them."""

from __future__ import annotations

from functools import partial
from pathlib import Path
from typing import Any

import pytest

import phlox as px
from phlox import Cpu, Wgpu, nn
from phlox_nn.generation.sampling import Sampling, numbers_of
from phlox_nn.generation.steps import Generation, step_in_room

GREEDY = Sampling(temperature=0.0)
TEXT = [3, 1, 4, 1, 5, 9, 2, 6]
CONFIG = nn.models.LlamaConfig(61, 64, 32, 2, 4, 2, d_ff=64)


def decoder(form: str, device: px.Backend, folder: Path) -> Any:
    px.seed(0)
    made: Any = CONFIG.init(Cpu())
    if form == "float32":
        moved = made.to_device(device)
    elif form == "float16":
        moved = made.to_device(device)
        moved = moved.map(lambda _, p: nn.Param(p.value.astype("float16"), id=p.id))
    else:
        moved = nn.models.load(nn.models.save_gguf(made, folder / form, blocks=form), device)
    return moved.with_training(False).freeze()


def tokens(model: Any, device: px.Backend, step: Any = None) -> list[int]:
    made = Generation(model, rolls=step is None).tokens(
        px.asarray([TEXT], device=device),
        GREEDY,
        numbers_of(0, 1, 16),
        compiled=None if step is None else lambda _: step,
    )
    return [int(token.item()) for token in made]


@pytest.mark.parametrize("form", ["float32", "float16", "Q4_0", "Q8_0"])
def test_a_compiled_decoder_gives_the_tokens_of_its_ops(form: str, tmp_path: Path) -> None:
    device = Wgpu()
    if form == "float16" and px.float16 not in device.dtypes:
        pytest.skip("no float16 on this adapter")
    model = decoder(form, device, tmp_path)
    step = px.compile(partial(step_in_room, GREEDY))
    assert tokens(model, device, step) == tokens(model, device)
    if form == "float32":
        cpu = model.to_device(Cpu())
        assert tokens(cpu, Cpu()) == tokens(model, device, step)
