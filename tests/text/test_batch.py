"""Texts that join and leave while others go on."""

from __future__ import annotations

from typing import Any

import pytest

import phlox as px
from phlox import text
from phlox_nn.generation.steps import Generation
from phlox_nn.layers.position import RotaryScalingConfig
from phlox_text import _batch
from phlox_text._batch import Batch, Row
from tests.text.folders import TEXT, write_folder

PROMPTS = ("Now is", "the winter of our", "made", TEXT[:40])
RULES: Any = ({}, {"top_k": 9}, {"repetition_penalty": 1.2}, {"temperature": 0.0})


@pytest.fixture
def model(tmp_path_factory: pytest.TempPathFactory) -> text.LanguageModel:
    return text.load(write_folder(tmp_path_factory.mktemp("model")))


def together(model: text.LanguageModel, batch: Batch, joins: tuple[int, ...]) -> list[Row]:
    """Rows of the prompts, each of which joins at a step of its own and leaves at its end."""
    rows: list[Row] = []
    for step in range(80):
        for i, at in enumerate(joins):
            if at == step:
                whole = model.tokenizer.encode(PROMPTS[i])
                rows.append(batch.add(whole, seed=i, max_tokens=24 + i, **RULES[i]))
        batch.step()
        for row in rows:
            if row.ended:
                batch.drop(row)
    return rows


@pytest.mark.parametrize("compiled", [False, True])
def test_a_text_beside_others_goes_on_as_it_does_alone(
    model: text.LanguageModel, compiled: bool
) -> None:
    want = [
        model.generate(prompt, seed=i, max_tokens=24 + i, **RULES[i])
        for i, prompt in enumerate(PROMPTS)
    ]
    model._compile = compiled
    for joins in ((0, 0, 0, 0), (0, 3, 5, 30)):
        rows = together(model, Batch(model), joins)
        assert [row.text for row in rows] == want
        assert ["".join(row.pieces) for row in rows] == want
        assert all(row.reason in {"length", "stop"} for row in rows)


@pytest.mark.parametrize("compiled", [False, True])
def test_texts_that_get_long_beside_others_have_the_keys_of_long_ones(
    model: text.LanguageModel, compiled: bool
) -> None:
    small: Any = model.model
    scalings = [RotaryScalingConfig(1.0, 24, factors=(f,) * 4) for f in (1.0, 5.0)]
    settings = small.settings.replace(scaling=scalings[0], long_scaling=scalings[1])
    body = small.model.replace(settings=settings, rotaries=settings._rotaries())
    long = small.replace(model=body, settings=settings)
    made = text.LanguageModel(long, model.tokenizer, compile=compiled)
    want = []
    for prompt in PROMPTS:
        tokens, count = made.tokenizer.encode(prompt), 30
        for _ in range(count):
            tokens.append(int(long(px.asarray([tokens])).numpy()[0, -1].argmax()))
        want.append(made.tokenizer.decode(tokens)[len(prompt) :])
    assert made.generate([*PROMPTS], max_tokens=30) == want
    assert [made.generate(prompt, max_tokens=30) for prompt in PROMPTS] == want
    batch = Batch(made)
    rows = [batch.add(made.tokenizer.encode(prompt), max_tokens=30) for prompt in PROMPTS]
    while not all(row.ended for row in rows):
        batch.step()
    assert [row.text for row in rows] == want


def test_what_texts_begin_with_in_common_is_read_once(
    model: text.LanguageModel, monkeypatch: Any
) -> None:
    batch, read, reading = Batch(model), [], Generation.read

    def counted(self: Generation, tokens: Any) -> Any:
        read.append(tokens.shape[1])
        return reading(self, tokens)

    monkeypatch.setattr(Generation, "read", counted)
    system = model.tokenizer.encode(TEXT * 2)
    asked = [system + model.tokenizer.encode(more) for more in ("Who", "What now", "Where")]
    rows = [batch.add(whole, max_tokens=3, temperature=0) for whole in asked[:2]]
    for _ in range(5):
        batch.step()
    for row in rows:
        batch.drop(row)  # what left is kept
    rows.append(batch.add(asked[2], max_tokens=3, temperature=0))
    batch.step()
    assert read[0] == len(asked[0])
    assert sum(read[1:]) < len(system)  # the other endings
    batch.step()
    batch.step()
    for row, whole in zip(rows, asked, strict=True):
        assert row.text == model.generate(
            model.tokenizer.decode(whole, special=True), max_tokens=3, temperature=0
        )


def test_a_long_text_is_read_in_pieces_between_the_steps_of_others(
    model: text.LanguageModel, monkeypatch: Any
) -> None:
    monkeypatch.setattr(_batch, "_CHUNK", 8)
    batch = Batch(model)
    whole = model.tokenizer.encode(TEXT)
    first = batch.add(model.tokenizer.encode("made"), seed=0, top_k=300, max_tokens=90)
    batch.step()
    batch.step()
    second = batch.add(whole, seed=1, max_tokens=4)
    before, steps = len(first.tokens), 0
    while not second.prefilled:
        batch.step()
        steps += 1
    assert steps == -(-len(whole) // 8)
    assert len(first.tokens) == before + steps
    while not second.ended:
        batch.step()
    assert second.text == model.generate(TEXT, seed=1, max_tokens=4)


def test_an_error_ends_the_texts_that_it_is_of_and_no_others(
    model: text.LanguageModel, monkeypatch: Any
) -> None:
    batch, whole = Batch(model), model.tokenizer.encode("Now is")
    with pytest.raises(text.TextError, match="the context has no room"):
        batch.add(whole, max_tokens=1000)
    with pytest.raises(text.TextError, match="the tokenizer is of another model"):
        batch.add([*whole, 320], max_tokens=3)

    def fails(*_: Any) -> None:
        raise px.DeviceError("attention", "no room")

    row = batch.add(whole, seed=2, max_tokens=9)
    with monkeypatch.context() as changed:
        changed.setattr(Generation, "read", fails)
        batch.step()
    assert isinstance(row.error, px.DeviceError)
    assert row.ended
    batch.drop(row)
    again = batch.add(whole, seed=2, max_tokens=9)
    while not again.ended:
        batch.step()
    assert again.text == model.generate("Now is", seed=2, max_tokens=9)
