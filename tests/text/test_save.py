"""Language models written as a folder or as one file, with adapters merged."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest
import tokenizers
from tokenizers import Regex, models, normalizers, pre_tokenizers

import phlox as px
from phlox import nn, text
from tests.text.folders import tokenizer, write_folder

RULES: Any = {"max_tokens": 20, "seed": 1}


@pytest.fixture(scope="module")
def model(tmp_path_factory: pytest.TempPathFactory) -> text.LanguageModel:
    return text.load(write_folder(tmp_path_factory.mktemp("model")))


def test_a_folder_and_a_file_answer_as_the_model_that_they_are_of(
    model: text.LanguageModel, tmp_path: Path
) -> None:
    folder = model.save(tmp_path / "new" / "folder")
    again = text.load(folder)
    assert (again.sampling, again.ends) == (model.sampling, model.ends)
    assert again.generate("Now is", **RULES) == model.generate("Now is", **RULES)
    file = again.save(tmp_path / "other" / "model.gguf")
    found = text.load(text.load(file).save(tmp_path / "third.gguf"))
    assert found.ends == model.ends
    found.sampling = model.sampling
    assert found.generate("Now is", **RULES) == model.generate("Now is", **RULES)
    mine, theirs = (each.chat("Be brief.").send("Hi", **RULES) for each in (model, found))
    assert mine == theirs
    blocks = text.load(model.save(tmp_path / "blocks.gguf", blocks="Q8_0"))
    kept: Any = blocks.model
    assert isinstance(kept.path("model.layers.0.mlp.up_proj.weight"), nn.BlockWeight)
    plain: Any = text.load(blocks.save(tmp_path / "plain.gguf")).model
    assert isinstance(plain.path("model.layers.0.mlp.up_proj.weight"), nn.Param)


def test_adapters_go_beside_the_weights_and_are_merged(
    model: text.LanguageModel, tmp_path: Path
) -> None:
    px.seed(3)
    network: Any = model.model
    tuned = nn.apply_lora(network, 2).map(
        lambda _, p: p.with_value(px.random.normal(p.shape, std=0.5)) if p.trainable else p
    )
    adapters = nn.save_adapters(tuned, tmp_path / "adapters")
    beside = text.load(network.source, adapters=adapters)
    want = beside.generate("Now is", **RULES)
    assert want != model.generate("Now is", **RULES)
    for path in ("merged", "merged.gguf"):
        found = text.load(beside.save(tmp_path / path))
        assert found.generate("Now is", temperature=0.9, top_k=50, **RULES) == want


def test_ways_of_cutting_have_the_names_of_llama_cpp(
    model: text.LanguageModel, tmp_path: Path
) -> None:
    short = "(?i:'s|'t|'re|'ve|'m|'ll|'d)|[^\\r\\n\\p{L}\\p{N}]?\\p{L}+|\\p{N}"
    rest = "| ?[^\\s\\p{L}\\p{N}]+[\\r\\n]*|\\s*[\\r\\n]+|\\s+(?!\\S)|\\s+"
    pieces = pre_tokenizers.ByteLevel(add_prefix_space=False, use_regex=False)
    words = pre_tokenizers.ByteLevel(add_prefix_space=False)
    digits = pre_tokenizers.Digits(individual_digits=True)
    split = pre_tokenizers.Split(Regex(f"{short}{rest}"), "isolated")
    for steps, name in (([split, pieces], "qwen2"), ([digits, words], "refact")):
        backend = tokenizer()
        backend.pre_tokenizer = pre_tokenizers.Sequence(steps)
        backend.normalizer = normalizers.NFC()
        made = text.LanguageModel(model.model, text.Tokenizer(backend))
        file = made.save(tmp_path / "model.gguf")
        assert px.record.gguf_metadata(file)["tokenizer.ggml.pre"] == name
        said = "It's 1234 o'clock,\n\n  is it?"
        assert text.Tokenizer.load(file).encode(said) == made.tokenizer.encode(said)


def test_what_has_no_place_in_a_file_is_refused(model: text.LanguageModel, tmp_path: Path) -> None:
    def refused(backend: tokenizers.Tokenizer, said: str) -> None:
        with pytest.raises(text.TextError, match=said):
            text.LanguageModel(model.model, text.Tokenizer(backend)).save(tmp_path / "a.gguf")

    letters = tokenizers.Tokenizer(models.WordLevel({"a": 0}, "a"))
    refused(letters, r"no place in a GGUF file: got WordLevel")
    spaces = tokenizer()
    spaces.pre_tokenizer = pre_tokenizers.Whitespace()
    refused(spaces, "no place in a GGUF file: got texts cut by .*Whitespace")
    upper = tokenizer()
    upper.normalizer = normalizers.Lowercase()
    refused(upper, "no place in a GGUF file")
    large = json.loads(tokenizer().to_str())
    large["model"]["vocab"]["much"] = 400
    refused(tokenizers.Tokenizer.from_str(json.dumps(large)), "the tokenizer is of another model")
    with pytest.raises(text.TextError, match="a folder has no blocks: got Q8_0"):
        model.save(tmp_path / "folder", blocks="Q8_0")
    gpt = nn.models.GptConfig(320, 64, 16, 1, 2).init(px.Cpu())
    with pytest.raises(px.WrongTypeError, match="no file is built for it: got Gpt"):
        text.LanguageModel(gpt, model.tokenizer).save(tmp_path / "folder")
    assert list(tmp_path.iterdir()) == []
