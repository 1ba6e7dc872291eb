"""Texts that a model goes on with: at once or in pieces, alone or with others, compiled or not."""

from __future__ import annotations

import subprocess
import sys
from functools import lru_cache, partial
from pathlib import Path
from typing import Any

import numpy as np
import pytest

import phlox as px
from phlox import Cpu, Numpy, Wgpu, nn
from phlox_nn.generation import steps
from phlox_nn.generation.compiled import with_compiled_layers
from phlox_nn.generation.sampling import Sampling, numbers_of
from phlox_nn.generation.steps import Generation, Place, step_in_room
from phlox_nn.layers.position import RotaryScalingConfig

TEXT = [3, 1, 4, 1, 5, 9, 2, 6, 5, 3, 5]


MADE = {
    "gpt": nn.models.GptConfig(61, 128, 16, 2, 4),
    # A window shorter than the text, and fewer positions than a room would have.
    "llama": nn.models.LlamaConfig(61, 104, 16, 2, 4, 2, d_ff=32, window=9),
}
DECODERS = {
    "experts": MADE["llama"].replace(experts=3, expert_layers=(True, False)),
    "gemma": nn.models.LlamaConfig(
        *(61, 104, 16, 4, 4, 2),
        d_ff=32,
        window=9,
        sliding=(True, False) * 2,
        local_theta=99.0,
        from_one=True,
        both_norms=True,
        head_norms=True,
        score_cap=5.0,
        tied=True,
    ),
    "llama": MADE["llama"],
    "phi": MADE["llama"].replace(fused=True, rotary_share=0.5),
}


@lru_cache(maxsize=8)
def model(name: str = "gpt") -> nn.models.CausalModel:
    """A small decoder whose choices are not all alike."""
    px.seed(77)
    made: Any = (MADE | DECODERS)[name].init(Cpu())
    return made.map(lambda _, p: p.with_value(p.value * 8) if p.value.ndim == 2 else p)


def following(
    given: Any, texts: list[list[int]], rules: Sampling, seed: Any, count: int, **options: Any
) -> Any:
    """Tokens (N, count) after texts of any lengths."""
    longest = max(map(len, texts))
    pads = np.array([longest - len(text) for text in texts])
    rows = [[0] * pad + text for pad, text in zip(pads, texts, strict=True)]
    tokens: Any = px.asarray(rows, device=given.devices[0])
    made = Generation(given, pads=pads, chunk=options.pop("chunk", 512))
    numbers = numbers_of(seed, len(texts), count)
    return np.stack([new.numpy() for new in made.tokens(tokens, rules, numbers, **options)], 1)


def compiled(rules: Sampling) -> Any:
    return px.compile(partial(step_in_room, rules))


RULES = [Sampling(1.5, temperature=0.0), Sampling(1.2, 0.9, top_k=8, top_p=0.95)]


@pytest.mark.parametrize("name", MADE)
@pytest.mark.parametrize("rules", RULES, ids=str)
def test_the_same_tokens_come_op_by_op_compiled_and_from_the_whole_text(
    rules: Sampling, name: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(steps, "_ROOM", 64)
    given = model(name)
    got = following(given, [TEXT], rules, 3, 90)[0].tolist()
    assert len(set(got)) > 3
    assert following(given, [TEXT], rules, 3, 90, chunk=4)[0].tolist() == got
    # A room is full on the way.
    assert following(given, [TEXT], rules, 3, 90, compiled=compiled)[0].tolist() == got
    whole, numbers = list(TEXT), numbers_of(3, 1, 90)
    for i in range(90):
        logits = given(px.asarray([whole]))[:, -1]
        seen = np.isin(np.arange(61), whole)[None]
        draw = px.asarray(numbers[:, i])
        whole.append(rules.chosen(logits, draw, px.asarray(seen)).item())
    assert whole[len(TEXT) :] == got


@pytest.mark.parametrize("name", DECODERS)
def test_compiled_layers_are_recorded_once_and_give_the_same_tokens(name: str) -> None:
    given, made = model(name), []

    def noted(function: Any) -> Any:
        made.append(px.compile(function))
        return made[-1]

    by_layer = with_compiled_layers(given, noted)
    for texts in ([TEXT], [TEXT, TEXT[4:]]):
        want = following(given, texts, RULES[1], 3, 40)
        assert len(set(want[0].tolist())) > 3
        assert np.array_equal(following(by_layer, texts, RULES[1], 3, 40), want)
    assert [each.versions for each in made] == [2, 2]  # of one text, and of two
    assert [each.fallbacks for each in made] == [0, 0]


def test_a_long_text_goes_on_alike_where_its_keys_have_room_and_in_rooms() -> None:
    for texts in ([TEXT * 7], [TEXT * 7, TEXT]):
        want = following(model(), texts, RULES[1], 3, 9, compiled=compiled)
        assert len(set(want[0].tolist())) > 3
        assert np.array_equal(following(model(), texts, RULES[1], 3, 9), want)


def test_what_draws_nothing_gets_no_numbers_and_goes_on_alike() -> None:
    greedy = Sampling(temperature=0.0)
    assert not numbers_of(3, 2, 5, greedy).any()
    assert np.array_equal(numbers_of(3, 2, 5, RULES[1]), numbers_of(3, 2, 5))
    with pytest.raises(px.ArgumentError, match="not a seed for each text"):
        numbers_of([3], 2, 5, greedy)


# Modules of Python that take 1 to 12 ms each to import, which no reading of a model needs.
SLOW = {"bz2", "concurrent.futures", "fractions", "lzma", "statistics", "zipfile"}


def test_a_model_of_a_file_is_read_without_slow_modules(tmp_path: Path) -> None:
    config = nn.models.LlamaConfig(64, 104, 32, 2, 2, 1, d_ff=32)
    path = nn.models.save_gguf(config.init(), tmp_path / "a", blocks="Q8_0")
    program = f"""if 1:
        import sys
        import phlox as px
        model = px.nn.models.load({str(path)!r}, px.Cpu())
        model.generate(px.asarray([[1, 2]], device=px.Cpu()), 2, temperature=0)
        print(px.__name__, *({SLOW!r} & set(sys.modules)))
    """
    done = subprocess.run(
        [sys.executable, "-c", program], check=True, capture_output=True, text=True
    )
    assert done.stdout.split() == ["phlox"]


def test_a_greedy_start_loads_no_generators_of_numpy() -> None:
    program = """if 1:
        import sys
        import phlox as px
        from phlox import nn
        made = nn.models.LlamaConfig(61, 104, 16, 2, 4, 2, d_ff=32).init()
        made = made.map(lambda _, p: p.with_value(px.ones(p.shape)))
        made.generate(px.asarray([[1, 2]]), 3, temperature=0)
        print("numpy.random" in sys.modules)
        made.generate(px.asarray([[1, 2]]), 3, seed=0)
        print("numpy.random" in sys.modules)
    """
    done = subprocess.run(
        [sys.executable, "-c", program], check=True, capture_output=True, text=True
    )
    assert done.stdout.split() == ["False", "True"]


def test_a_model_of_other_layers_stays_as_it_is() -> None:
    given = model("gpt")
    assert with_compiled_layers(given, px.compile) is given


@pytest.mark.parametrize("device", [Cpu(), Wgpu()], ids=repr)
def test_steps_ahead_of_the_tokens_that_were_taken_leave_nothing(device: Any) -> None:
    given = model("llama").to_device(device)
    rules = Sampling(temperature=0.0)
    found = []
    for how in (None, compiled):
        made, text, tokens = Generation(given), TEXT, list[int]()
        for count in (7, 3):
            steps_of = made.tokens(
                px.asarray([text], device=device), rules, numbers_of(0, 1, 20), compiled=how
            )
            tokens += [next(steps_of).item() for _ in range(count)]
            steps_of.close()
            assert made.length == len(TEXT) + len(tokens) - 1
            assert made.cache[0].length == made.length
            text = tokens[-1:]
        found.append(tokens)
    assert found[0] == found[1]


@pytest.mark.parametrize("device", [Cpu(), Wgpu()], ids=repr)
def test_a_compiled_step_writes_where_its_cache_is(device: Any) -> None:
    """And whoever holds a cache from before goes on from it, elsewhere."""
    given: Any = model().to_device(device)
    step = compiled(RULES[0])

    def call(kept: Any, token: int, slot: int) -> Any:
        place = Place(px.asarray(slot, device=device), None)
        tokens, draws = px.asarray([[token]], device=device), px.zeros((1,), device=device)
        return step(given, tokens, kept, None, place, draws)[:2]

    def known(kept: Any, length: int) -> list[Any]:
        return [part.numpy()[..., :length, :] for pair in kept for part in pair]

    zeros = px.zeros((1, 4, 64, 4), device=device)
    caches: list[Any] = [tuple((zeros, zeros) for _ in given.h)]
    chosen, seen = [], []
    for slot, token in enumerate(TEXT):
        new, kept = call(caches[-1], token, slot)
        caches.append(kept)
        chosen.append(new.item())
        seen.append(known(kept, slot + 1))
    for slot, (kept, want) in enumerate(zip(caches[1:], seen, strict=True)):
        assert all(map(np.array_equal, known(kept, slot + 1), want))
    # Recorded runs, the last one a spot check, may copy.
    held = [pair[0] for pair in (cache[0] for cache in caches[6:])]
    if device == Cpu():
        assert len({np.asarray(keys).ctypes.data for keys in held}) == 1
    else:
        assert len({id(keys.primitive.storage) for keys in held}) == 1
    new, kept = call(caches[5], TEXT[5], 5)
    assert new.item() == chosen[5]
    assert all(map(np.array_equal, known(kept, 6), seen[5]))


@pytest.mark.parametrize("how", [None, compiled], ids=["by_ops", "compiled"])
@pytest.mark.parametrize("name", MADE)
@pytest.mark.parametrize("rules", RULES, ids=str)
def test_texts_of_unequal_lengths_get_what_each_gets_alone(
    rules: Sampling, how: Any, name: str
) -> None:
    texts, seeds = [TEXT, TEXT[:3], TEXT[4:9]], [5, 6, 7]
    together = following(model(name), texts, rules, seeds, 60, compiled=how, chunk=4)
    for text, seed, row in zip(texts, seeds, together, strict=True):
        alone = following(model(name), [text], rules, [seed], 60)[0]
        assert row.tolist() == alone.tolist()


def test_devices_draw_the_same_tokens() -> None:
    rules = Sampling(temperature=0.8, top_p=0.9)
    found = [
        following(model().to_device(device), [TEXT, TEXT[:4]], rules, 1, 24).tolist()
        for device in (Numpy(), Cpu(), Wgpu())
    ]
    assert found[0] == found[1] == found[2]


def test_what_was_read_is_gone_on_from() -> None:
    made, rules = Generation(model()), Sampling(temperature=0.0)
    text = px.asarray([TEXT])
    first = [new.item() for new in made.tokens(text, rules, numbers_of(0, 1, 5))]
    for how in (None, compiled):
        made.cut(len(TEXT) - 3)
        again = made.tokens(text[:, -3:], rules, numbers_of(0, 1, 5), before=text, compiled=how)
        assert [new.item() for new in again] == first
        assert made.length == len(TEXT) + 4
    made.cut(0)
    assert made.cache is None
    stopped = made.tokens(text, rules, numbers_of(0, 1, 9), compiled=compiled)
    for _ in range(3):
        next(stopped)
    stopped.close()
    cache: Any = made.cache
    assert cache[0].length == made.length == len(TEXT) + 2


def test_a_text_beyond_the_context_is_refused_before_the_first_step() -> None:
    with pytest.raises(px.ShapeError, match=r"\[Gpt\] too long: got 129 tokens, expected at most"):
        model().generate(px.asarray([TEXT]), 119)
    assert model().generate(px.asarray([TEXT[:2]]), 3, seed=1, min_p=0.1).shape == (1, 5)


def of_two_lengths() -> nn.models.Llama:
    """A decoder that turns texts of up to 16 tokens in one way, and longer ones in another."""
    factors = [RotaryScalingConfig(1.0, 16, factors=(f, 2 * f)) for f in (1.0, 3.0)]
    px.seed(77)
    given = MADE["llama"].replace(scaling=factors[0], long_scaling=factors[1])
    made: Any = given.init(px.Cpu()).with_training(False).freeze()
    return made.map(lambda _, p: p.with_value(p.value * 8) if p.value.ndim == 2 else p)


@pytest.mark.parametrize("how", [None, compiled])
def test_an_answer_that_gets_long_is_read_again(how: Any) -> None:
    made, whole, got = of_two_lengths(), [*TEXT], []
    for _ in range(12):
        whole.append(int(made(px.asarray([whole], device=px.Cpu())).numpy()[0, -1].argmax()))
    generation, rows = Generation(made, rolls=how is None), [*TEXT]
    for count in (3, 4, 5):  # the second one ends behind the limit
        new = px.asarray([rows[generation.length :]], device=px.Cpu())
        before = px.asarray([rows], device=px.Cpu())
        draws = np.zeros((1, count))
        steps_of = generation.tokens(
            new, Sampling(temperature=0.0), draws, before=before, compiled=how
        )
        got += [token.item() for token in steps_of]
        rows = [*TEXT, *got]
    assert rows == whole
    keys = made.extend(px.asarray([whole[:-1]], device=px.Cpu()))[1][0].keys.numpy()
    assert np.allclose(generation.cache[0].keys.numpy()[..., -8:, :], keys[..., -8:, :], atol=1e-4)


def test_chunks_of_a_long_text_have_the_keys_of_the_whole() -> None:
    made = of_two_lengths()
    text = px.asarray([[*TEXT, *TEXT, *TEXT][:29]], device=px.Cpu())
    want = made(text).numpy()[:, -1]
    reading = Generation(made, chunk=4)
    assert np.allclose(reading.read(text).numpy(), want, atol=1e-5)
    whole = text[:, :12]
    for new in Generation(made, chunk=4).tokens(whole, Sampling(temperature=0.0), np.zeros((1, 9))):
        assert new.item() == made(whole).numpy()[0, -1].argmax()
        whole = px.concat((whole, new[:, None]), axis=1)
    short = Generation(made, chunk=4)
    want = made(text[:, :16]).numpy()[:, -1]
    assert np.allclose(short.read(text[:, :16]).numpy(), want, atol=1e-5)
    assert short.alike(3, 16)
    assert not short.alike(16, 17)
    assert Generation(model()).alike(3, 100)
