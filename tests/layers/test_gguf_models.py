"""Decoders from files of llama.cpp and back."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np
import pytest

import phlox as px
from phlox import nn
from phlox.nn import models
from tests.layers.causal_rows import ROWS, TOKENS
from tests.layers.test_causal import DEVICE, WORDS, decoder

SAVED = [name for name in ROWS if name not in {"Mixtral", "Qwen2", "Qwen2Moe", "Qwen3Moe"}]


@pytest.mark.parametrize("name", SAVED)
def test_a_decoder_comes_back_from_a_file_of_llama_cpp(name: str, tmp_path: Path) -> None:
    model = decoder(name)
    path = models.save_gguf(model, tmp_path / "a", header={"tokenizer.ggml.model": "none"})
    assert models.load_report(path).complete
    loaded: Any = models.load(path, DEVICE)
    assert np.abs(loaded(WORDS).numpy() - model(WORDS).numpy()).max() < 2e-6
    assert loaded.source == str(path)
    assert px.record.gguf_metadata(path)["tokenizer.ggml.model"] == "none"
    again: Any = models.load(tmp_path, DEVICE)  # the only file of its folder
    assert again.settings == loaded.settings


def test_windows_that_llama_cpp_does_not_know_are_refused(tmp_path: Path) -> None:
    with pytest.raises(px.RecordError, match=r"no place for windows: got \(False, True"):
        models.save_gguf(decoder("Qwen2"), tmp_path / "a")
    with pytest.raises(px.RecordError, match="experts are not written: got 4 experts"):
        models.save_gguf(decoder("Mixtral"), tmp_path / "a")


@pytest.mark.parametrize("form", ["Q4_0", "Q4_1", "Q5_0", "Q8_0"])
@pytest.mark.parametrize("name", ["Llama", "Qwen3"])
def test_matrices_stay_in_the_blocks_of_their_file(name: str, form: str, tmp_path: Path) -> None:
    """In Llama rows of queries and keys are in another order there, blocks with them."""
    blocks = {"*ffn_down*": "Q5_1", "*": form}
    wide = {"d_model": 64, "d_ff": 96, "d_head": 32, "n_heads": 2, "n_heads_kv": 1}
    px.seed(7)
    config = decoder(name).settings.replace(**wide)
    path = models.save_gguf(config.init(DEVICE), tmp_path / "a", blocks=blocks)
    kept: Any = models.load(path, DEVICE)
    plain: Any = models.load(path, DEVICE, quantized=False)
    layer = kept.model.layers[0]
    assert type(layer.self_attn.q_proj.weight) is nn.BlockWeight
    assert layer.self_attn.q_proj.weight.form == form
    assert layer.mlp.down_proj.weight.form == "Q5_1"
    assert kept.model.embed_tokens.weight.form == form
    for path_, param in plain.params().items():
        found = kept.path(path_).value.numpy()
        assert np.array_equal(found, param.value.numpy()), path_
    # The rows that are multiplied are rounded to 8 bits: a half of 1 / 127 of the largest of 32.
    want = plain(WORDS).numpy()
    assert np.abs(kept(WORDS).numpy() - want).max() < 0.02 * np.abs(want).max()
    tuned = nn.dequantize_weights(kept)
    assert np.array_equal(tuned(WORDS).numpy(), want)
    assert models.load_report(models.save_gguf(tuned, tmp_path / "b")).complete


@pytest.mark.parametrize("form", ["Q4_0", "Q8_0"])
def test_without_bytes_blocks_are_words(form: str, tmp_path: Path) -> None:
    """Rows that are no whole words become floats."""
    gpu = px.Wgpu()
    wide = {"d_model": 64, "d_ff": 96, "d_head": 32, "n_heads": 2, "n_heads_kv": 1}
    px.seed(7)
    config = decoder("Llama").settings.replace(**wide)
    path = models.save_gguf(config.init(DEVICE), tmp_path / "a", blocks=form)
    kept: Any = models.load(path, gpu)
    maps = kept.model.layers[0].mlp
    assert maps.up_proj.weight.blocks.dtype == px.int32
    assert type(maps.down_proj.weight) is nn.Param
    plain: Any = models.load(path, DEVICE, quantized=False)
    for path_, param in plain.params().items():
        assert np.array_equal(kept.path(path_).value.numpy(), param.value.numpy()), path_
    want = plain(WORDS).numpy()
    words = WORDS.to_device(gpu)
    for tokens, wanted in ((words, want), (words[:, :1], want[:, :1])):
        assert np.abs(kept(tokens).numpy() - wanted).max() < 1e-4 * np.abs(want).max()
    trained: Any = models.load(path, px.Autodiff(gpu))
    tuned = nn.apply_lora(trained, 2)
    grads = tuned(words).square().mean().backward()
    assert any(
        param.value.grad(grads) is not None for param in tuned.params(trainable=True).values()
    )


@pytest.mark.parametrize(("element", "form"), [("bfloat16", "BF16"), ("float16", "F16")])
def test_floats_of_16_bits_stay_in_their_file(element: str, form: str, tmp_path: Path) -> None:
    px.seed(7)
    path = models.save_gguf(decoder("Llama").settings.init(px.Cpu(element)), tmp_path / "a")
    kept: Any = models.load(path, DEVICE)
    plain: Any = models.load(path, DEVICE, quantized=False)
    weight = kept.model.layers[0].self_attn.q_proj.weight
    assert type(weight) is nn.BlockWeight
    assert weight.form == kept.model.embed_tokens.weight.form == form
    assert weight.blocks.shape == (weight.shape[1], 2 * weight.shape[0])
    assert np.array_equal(
        weight.value.numpy(), plain.model.layers[0].self_attn.q_proj.weight.value.numpy()
    )
    assert np.abs(kept(WORDS).numpy() - plain(WORDS).numpy()).max() < 1e-5


def test_adapters_are_trained_beside_blocks(tmp_path: Path) -> None:
    px.seed(7)
    config = decoder("Llama").settings.replace(d_model=64, d_ff=96, n_heads=2, n_heads_kv=1)
    path = models.save_gguf(config.init(DEVICE), tmp_path / "a", blocks="Q8_0")
    train = px.Autodiff(DEVICE)
    tuned: Any = nn.apply_lora(models.load(path, train), 2, "*q_proj", "*down_proj")
    words = px.asarray(WORDS.numpy(), device=train)
    gradients = tuned(words).square().mean().backward()
    down = tuned.path("model.layers.0.self_attn.q_proj.weight.up").value
    assert np.abs(down.grad(gradients).numpy()).max() > 0
    merged: Any = nn.merge_lora(tuned)
    assert type(merged.model.layers[0].self_attn.q_proj.weight) is nn.Param
    assert type(merged.model.layers[0].self_attn.k_proj.weight) is nn.BlockWeight


def test_headers_that_are_not_built_are_refused_by_name(tmp_path: Path) -> None:
    model = decoder("Llama")
    rows: list[tuple[dict[str, Any], str]] = [
        ({"general.architecture": "mamba"}, "architecture that is not built: got 'mamba'"),
        ({"llama.expert_count": 8}, r"llama\.expert_count is not built: got 8"),
        ({"split.count": 3}, r"split\.count is not built(.|\n)*hint: llama-gguf-split --merge"),
        ({"split.count": "3"}, r"split\.count is not built: got '3'"),
        ({"llama.attention.head_count_kv": [2, 4]}, "not built.*one number for all layers"),
        ({"llama.rope.scaling.type": "yarn"}, r"rope\.scaling\.type is not built: got 'yarn'"),
        ({"llama.block_count": 10**6}, "more layers than there are tensors"),
        ({"llama.attention.head_count": 3}, "a divisor|rows of"),
        ({"llama.embedding_length": 64}, "shape"),
        ({"general.architecture": "qwen2"}, r"the header has no qwen2\."),
    ]
    for header, message in rows:
        path = models.save_gguf(model, tmp_path / "a", header=header)
        with pytest.raises((px.RecordError, nn.ConfigError), match=message):
            models.load(path, DEVICE)


@pytest.mark.long
@pytest.mark.parametrize("name", ["Gemma2", "Llama", "Phi3", "Qwen2", "Qwen3"])
def test_transformers_reads_the_file_and_gives_the_same(name: str, tmp_path: Path) -> None:
    """Its reader knows neither scalings of rotation nor windows of Qwen, nor scales of Gemma."""
    torch: Any = pytest.importorskip("torch", reason="PyTorch comes with ./x test --long")
    other: Any = pytest.importorskip("transformers", reason="it comes with ./x test --long")
    pytest.importorskip("gguf", reason="it comes with ./x test --long")
    model = decoder(name)
    changes: dict[str, Any] = {"window": None, "sliding": None}
    if name == "Gemma2":
        changes = {"query_scale": None, "score_cap": 50.0, "logit_cap": 30.0, "window": 4096}
        changes |= {"d_head": 256, "query_scale": 1 / 16}
    if name == "Llama":  # whose reader takes no biases
        changes |= {"bias": False, "output_bias": False, "d_ff_bias": False}
    if name == "Qwen3":  # whose reader takes the usual size of a head
        changes |= {"d_head": 128}
    px.seed(3)
    model = model.settings.replace(**changes).init(DEVICE)
    models.save_gguf(model, tmp_path / "a", header={"tokenizer.ggml.padding_token_id": 0})
    there = other.AutoModelForCausalLM.from_pretrained(
        tmp_path, gguf_file="a.gguf", dtype=torch.float32, attn_implementation="eager"
    )
    with torch.no_grad():
        want = there.eval()(torch.tensor(TOKENS)).logits.numpy()
    assert np.abs(model(WORDS).numpy() - want).max() < 1e-4
