"""Decoders of ``nn.models`` beside those of ``transformers``, with the same weights by name."""

from __future__ import annotations

import json
from collections.abc import Mapping
from pathlib import Path
from types import MappingProxyType
from typing import Any

import numpy as np
import pytest
from safetensors.numpy import save_file

import phlox as px
from phlox import nn
from phlox.nn import models
from phlox_nn.models._public import published
from tests.layers.causal_rows import ROWS, TOKENS, Array, weight

STORED = Path(__file__).with_name("causal.json")
DEVICE = px.Cpu()
WORDS = px.asarray(TOKENS, device=DEVICE)


def decoder(name: str) -> models.Llama:
    """The decoder of a row, whose weights follow from the order of their names."""
    model: models.Llama = published(ROWS[name]).config(ROWS[name]).init(DEVICE)
    record: Any = model.into_record(layout="pytorch")
    flat = {
        path: weight(place, shape)
        for place, (path, shape) in enumerate(sorted(_shapes(record).items()))
    }
    return model.load_record(flat, layout="pytorch")


def _shapes(record: Any, start: str = "") -> dict[str, tuple[int, ...]]:
    found: dict[str, tuple[int, ...]] = {}
    for name, item in record.items():
        if isinstance(item, dict):
            found |= _shapes(item, f"{start}{name}.")
        else:
            found[start + name] = item.tensor.shape
    return found


def arrays(model: nn.Module, layout: Any = "pytorch", start: str = "") -> dict[str, Array]:
    """The weights of a model by name, as files have them."""
    found: dict[str, Array] = {}
    work: list[Any] = [(start, model.into_record(layout=layout))]
    for path, record in work:
        for name, item in record.items():
            if isinstance(item, dict):
                work.append((f"{path}{name}.", item))
            else:
                found[path + name] = np.ascontiguousarray(item.tensor.numpy())
    return found


def written(
    folder: Path,
    config: dict[str, Any] | None,
    weights: dict[str, Array],
    words: Mapping[str, str] = MappingProxyType({}),
) -> Path:
    """A folder of a model, in one file; names have the words of the published ones."""

    def theirs(name: str) -> str:
        if "experts" in name or ".gate." in name:
            for there, here in words.items():
                name = name.replace(here, there)
        return name

    if config is not None:
        (folder / "config.json").write_text(json.dumps(config))
    named = {theirs(name): array for name, array in weights.items()}
    save_file(named, folder / "model.safetensors", {"format": "pt"})
    return folder


def logits_elsewhere(name: str, folder: Path) -> Array:
    """The logits of the same decoder of ``transformers``, which reads it from a folder."""
    torch: Any = pytest.importorskip("torch", reason="PyTorch comes with ./x test --long")
    other: Any = pytest.importorskip("transformers", reason="it comes with ./x test --long")
    word = name.split("-", maxsplit=1)[0]
    kind = getattr(other, f"{word}TextConfig" if word == "Gemma3" else f"{word}Config")
    kind(**ROWS[name]).save_pretrained(folder)
    written(folder, None, arrays(decoder(name)), published(ROWS[name]).words)
    model = other.AutoModelForCausalLM.from_pretrained(
        folder, dtype=torch.float32, attn_implementation="eager"
    )
    with torch.no_grad():
        found: Array = model.eval()(torch.tensor(TOKENS)).logits.numpy()
    return found


@pytest.mark.parametrize("name", ROWS)
def test_logits_are_those_of_transformers(name: str) -> None:
    logits = decoder(name)(WORDS).numpy()
    assert logits.shape == (2, 20, 60)
    assert np.abs(logits[:, -1] - json.loads(STORED.read_text())[name]).max() < 1e-4


@pytest.mark.long
@pytest.mark.parametrize("name", ROWS)
def test_all_logits_are_those_of_transformers_here(name: str, tmp_path: Path) -> None:
    want = logits_elsewhere(name, tmp_path)
    assert np.abs(decoder(name)(WORDS).numpy() - want).max() < 1e-4


@pytest.mark.parametrize("name", [name for name in ROWS if name != "Phi3-long"])
def test_a_cache_gives_what_there_is_at_once(name: str) -> None:
    """In pieces of a few tokens and of one, past the window."""
    model, cache, found = decoder(name), None, []
    for start, end in ((0, 3), (3, 9), (9, 10), (10, 11), (11, 20)):
        logits, cache = model.extend(WORDS[:, start:end], cache)
        found.append(logits.numpy())
    assert np.abs(np.concatenate(found, axis=1) - model(WORDS).numpy()).max() < 1e-5
    last, _ = model.extend(WORDS, last=True)
    assert np.abs(last.numpy() - found[-1][:, -1:]).max() < 1e-5


@pytest.mark.parametrize("name", ["Llama-3", "Gemma3", "Mistral"])
def test_a_shorter_text_beside_a_longer_one_gives_what_it_gives_alone(name: str) -> None:
    model = decoder(name)
    alone = model(WORDS[1:, 8:]).numpy()
    padding = px.asarray(np.arange(20)[None] < np.array([[0], [8]]), device=DEVICE)
    first, cache = model.extend(WORDS[:, :12], padding=padding[:, :12])
    second, _ = model.extend(WORDS[:, 12:], cache, padding=padding)
    assert np.abs(first[1:, 8:].numpy() - alone[:, :4]).max() < 1e-5
    assert np.abs(second[1:].numpy() - alone[:, 4:]).max() < 1e-5


@pytest.mark.parametrize("name", ROWS)
def test_texts_of_any_lengths_go_on_together_as_they_do_alone(name: str) -> None:
    model = decoder(name)
    lengths = (3, 14, 8)  # also before and past a window and the limit of short factors
    texts = [WORDS[:1, :3], WORDS[1:, :14], WORDS[1:, 4:12]]
    caches = [model.extend(text)[1] for text in texts]
    new = WORDS[:1, 15:18].reshape(3, 1)
    logits, kept = model.extend_each(new, caches)
    alone = [model.extend(new[i : i + 1], cache) for i, cache in enumerate(caches)]
    want = np.concatenate([each.numpy() for each, _ in alone])
    assert logits.shape == (3, 1, 60)
    assert np.abs(logits.numpy() - want).max() < 1e-5
    assert [cache[-1].length for cache in kept] == [length + 1 for length in lengths]
    again, _ = model.extend_each(new[:2], [kept[2], kept[0]])
    first, _ = model.extend(new[:1], alone[2][1])
    assert np.abs(again[:1].numpy() - first.numpy()).max() < 1e-5


def test_a_model_without_maps_of_several_texts_takes_one_after_the_other() -> None:
    model = nn.models.GptConfig(9, 8, 16, 2, 2).init(DEVICE)
    caches = [model.extend(px.asarray([text], device=DEVICE))[1] for text in ([1, 2], [3])]
    logits, kept = model.extend_each(px.asarray([[4], [5]], device=DEVICE), caches)
    want, _ = model.extend(px.asarray([[3, 5]], device=DEVICE), last=True)
    assert np.abs(logits[1:].numpy() - want.numpy()).max() < 1e-5
    assert [cache[0].length for cache in kept] == [3, 2]


class Room:
    """A cache of fixed size, into which keys and values are written at their places."""

    def __init__(self, kept: nn.KeyValues, positions: Any) -> None:
        self.kept, self.positions, self.length = kept, positions, kept.length

    def extended(self, new: nn.KeyValues) -> nn.KeyValues:
        both = zip(self.kept, new, strict=True)
        return nn.KeyValues(*(old.at[:, :, self.positions].set(one) for old, one in both))


@pytest.mark.parametrize("name", ["Llama", "Gemma3", "Mistral"])
def test_positions_in_a_cache_of_fixed_size_give_what_a_growing_one_does(name: str) -> None:
    model, found = decoder(name), []
    size = model.settings.head
    rows = px.zeros((2, 2, 32, size), device=DEVICE)
    cache: Any = [nn.KeyValues(rows, rows)] * 3
    for start, end in ((0, 9), (9, 10), (10, 20)):
        positions = px.arange(start, end, device=DEVICE)
        rooms: Any = tuple(Room(each, positions) for each in cache)
        logits, cache = model.extend(WORDS[:, start:end], rooms, positions=positions)
        found.append(logits.numpy())
    assert np.abs(np.concatenate(found, axis=1) - model(WORDS).numpy()).max() < 1e-5


@pytest.mark.parametrize("name", ["Mixtral", "Qwen2Moe"])
def test_experts_that_a_token_takes_give_what_all_do(name: str) -> None:
    """Recorded ones run all with shares of 0; slopes are of those that are taken."""
    model = decoder(name)
    there = model.to_device(px.Autodiff(DEVICE))
    logits = there(WORDS.to_device(px.Autodiff(DEVICE)))
    assert np.abs(logits.numpy() - model(WORDS).numpy()).max() < 1e-5
    grads = logits.square().mean().backward()
    experts: Any = there.model.layers[2].mlp
    slopes = [grads.get(each.up_proj.weight.value) for each in experts.experts]
    assert all(slope is not None for slope in slopes)
    gate: Any = grads.get(experts.gate.weight.value)
    assert gate.abs().max().item() > 0
    fast = px.compile(lambda model, words: model(words))
    for _ in range(3):
        assert np.abs(fast(model, WORDS).numpy() - model(WORDS).numpy()).max() < 1e-5


def test_a_text_goes_on_and_one_that_is_too_long_is_refused() -> None:
    model = decoder("Qwen3")
    greedy = model.generate(WORDS[:, :5], 6, temperature=0.0)
    following = model(greedy).argmax(axis=-1)[:, 4:-1]
    assert np.array_equal(greedy[:, 5:].numpy(), following.numpy())
    with pytest.raises(px.ShapeError, match="got 129 tokens, expected at most 128"):
        model(WORDS[:1, :1].repeat(129, axis=1))


@pytest.mark.parametrize(
    ("wrong", "message"),
    [
        ({"n_heads": 3}, "a divisor of d_model 16"),
        ({"n_heads_kv": 3}, "a divisor of n_heads 4"),
        ({"rotary_share": 0.3}, "a share of an even number"),
        ({"window": 0}, "at least 1"),
        ({"window": 4, "sliding": (True,)}, "one for each of 32 layers"),
        ({"long_scaling": nn.RotaryScalingConfig(2.0)}, "one with original_length"),
        ({"scaling": nn.RotaryScalingConfig(1.0, factors=(1.0,))}, "2 factors"),
    ],
)
def test_settings_that_make_no_sense_are_refused(wrong: dict[str, Any], message: str) -> None:
    with pytest.raises(nn.ConfigError, match=message):
        models.LlamaConfig(**{"d_model": 16, "n_heads": 4, **wrong}).init()


def test_slopes_reach_every_weight() -> None:
    device = px.Autodiff(DEVICE)
    for name in ("Gemma3", "Phi3", "Qwen2"):
        model = decoder(name).to_device(device)
        words = WORDS.to_device(device)
        loss = nn.CrossEntropyLoss()(model(words[:, :-1]), words[:, 1:])
        grads = loss.backward()
        for path, param in model.params().items():
            slope = grads.get(param.value)
            assert slope is not None, path
            assert float(slope.abs().max()) > 0, path
