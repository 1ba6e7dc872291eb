"""Models that ``nn.models.load`` makes of folders such as people have on their disks."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from safetensors.numpy import save_file

import phlox as px
from phlox import nn
from phlox.nn import models
from phlox_nn.models._public import published
from tests.layers.causal_rows import ROWS, TOKENS
from tests.layers.test_causal import DEVICE, WORDS, arrays, decoder, written

GPT = {
    "architectures": ["GPT2LMHeadModel"],
    "n_embd": 8,
    "n_head": 2,
    "n_layer": 2,
    "n_positions": 32,
    "vocab_size": 60,
}
BERT = {
    "architectures": ["BertModel"],
    "hidden_size": 8,
    "intermediate_size": 16,
    "max_position_embeddings": 32,
    "num_attention_heads": 2,
    "num_hidden_layers": 2,
    "vocab_size": 60,
}


def same(one: Any, other: Any) -> bool:
    return np.array_equal(one(WORDS).numpy(), other(WORDS).numpy())


@pytest.mark.parametrize("name", ["Gemma3", "Llama-3", "Phi3", "Qwen2"])
def test_a_folder_becomes_the_model_that_it_describes(name: str, tmp_path: Path) -> None:
    model = decoder(name)
    folder = written(tmp_path, ROWS[name], arrays(model))
    loaded: Any = models.load(folder, DEVICE)
    assert same(loaded, model)
    assert loaded.source == str(folder)
    assert models.load_report(folder).complete
    assert same(models.load(folder / "model.safetensors", DEVICE), model)


@pytest.mark.parametrize("name", ROWS)
def test_a_folder_that_was_saved_becomes_the_same_model(name: str, tmp_path: Path) -> None:
    model = decoder(name)
    folder = models.save(model, tmp_path / "new", max_shard_size=20_000)
    assert models.load_report(folder).complete
    assert same(models.load(folder, DEVICE), model)


def test_settings_that_no_architecture_has_are_refused(tmp_path: Path) -> None:
    model = models.LlamaConfig(9, 9, 8, 1, 2, d_ff=8, score_cap=2.0).init(DEVICE)
    with pytest.raises(px.RecordError, match=r"no published architecture has this score_cap"):
        models.save(model, tmp_path / "new")
    assert not (tmp_path / "new").exists()


@pytest.mark.long
@pytest.mark.parametrize("name", ROWS)
def test_transformers_reads_what_was_saved(name: str, tmp_path: Path) -> None:
    torch: Any = pytest.importorskip("torch", reason="PyTorch comes with ./x test --long")
    other: Any = pytest.importorskip("transformers", reason="it comes with ./x test --long")
    model = decoder(name)
    there = other.AutoModelForCausalLM.from_pretrained(
        models.save(model, tmp_path), dtype=torch.float32, attn_implementation="eager"
    )
    with torch.no_grad():
        want = there.eval()(torch.tensor(TOKENS)).logits.numpy()
    assert np.abs(model(WORDS).numpy() - want).max() < 1e-4


def test_the_words_of_mixtral_are_those_of_here(tmp_path: Path) -> None:
    model, words = decoder("Mixtral"), published(ROWS["Mixtral"]).words
    folder = written(tmp_path, ROWS["Mixtral"], arrays(model), words)
    there = px.record.SafetensorsRecorder().open(folder / "model.safetensors")
    assert "w1" in there["model"]["layers"]["0"]["block_sparse_moe"]["experts"]["3"]
    assert same(models.load(folder, DEVICE), model)


def test_shards_beside_an_index_and_a_pytorch_prefix(tmp_path: Path) -> None:
    px.seed(3)
    model = models.GptConfig(60, 32, 8, 2, 2).init(DEVICE).with_training(False)
    weights = arrays(model, "phlox", "transformer.")
    weights["lm_head.weight"] = weights["transformer.wte.weight"]
    weights["transformer.h.0.attn.bias"] = np.ones((1, 1, 4, 4), np.float32)
    names = sorted(weights)
    index: dict[str, str] = {}
    for number, part in enumerate((names[::2], names[1::2]), 1):
        file = f"model-0000{number}-of-00002.safetensors"
        save_file({name: weights[name] for name in part}, tmp_path / file, {"format": "pt"})
        index |= dict.fromkeys(part, file)
    (tmp_path / "config.json").write_text(json.dumps(GPT))
    (tmp_path / "model.safetensors.index.json").write_text(
        json.dumps({"metadata": {}, "weight_map": index})
    )
    loaded = models.load(tmp_path, DEVICE).with_training(False)
    assert same(loaded, model)
    (tmp_path / "model-00002-of-00002.safetensors").unlink()
    with pytest.raises(px.RecordError, match="a file of the record is missing"):
        models.load(tmp_path, DEVICE)


def test_an_encoder_loads_without_positions_of_its_file(tmp_path: Path) -> None:
    model = models.BertConfig(60, 32, 2, 8, 2, 2, 16).init(DEVICE).with_training(False)
    weights = {f"bert.{name}": array for name, array in arrays(model).items()}
    weights["bert.embeddings.position_ids"] = np.arange(32)[None]
    loaded = models.load(written(tmp_path, BERT, weights), DEVICE).with_training(False)
    assert same(loaded, model)


def test_weights_of_bfloat16_go_to_the_type_of_the_device(tmp_path: Path) -> None:
    from ml_dtypes import bfloat16

    model = decoder("Qwen3")
    narrow = {name: array.astype(bfloat16) for name, array in arrays(model).items()}
    loaded: Any = models.load(written(tmp_path, ROWS["Qwen3"], narrow), DEVICE)
    assert loaded.model.norm.weight.dtype == px.float32
    want = narrow["model.layers.1.mlp.up_proj.weight"].astype(np.float32).T
    assert np.array_equal(loaded.path("model.layers.1.mlp.up_proj.weight").value.numpy(), want)


@pytest.mark.parametrize("name", ["bfloat16", "float16"])
def test_matrices_of_16_bits_stay_so_where_nothing_is_recorded(tmp_path: Path, name: str) -> None:
    import ml_dtypes

    narrow = np.dtype(ml_dtypes.bfloat16 if name == "bfloat16" else name)
    weights = {key: array.astype(narrow) for key, array in arrays(decoder("Qwen3")).items()}
    folder = written(tmp_path, ROWS["Qwen3"], weights)
    given: list[Any] = [models.load(folder, px.Cpu(), quantized=each) for each in (True, None)]
    kept, wide = (model.with_training(False) for model in given)
    nbytes = [sum(p.value.nbytes for p in model.param_list()) for model in (kept, wide)]
    matrices = sum(array.size for array in weights.values() if array.ndim == 2)
    assert nbytes[1] - nbytes[0] == 2 * matrices > 0
    tokens: Any = px.asarray([[1, 5, 2, 7, 3, 3]], device=px.Cpu())
    near, want = (model.extend(tokens)[0].numpy() for model in (kept, wide))
    # Products are of the same float32 numbers, and add them up in another order.
    assert np.abs(near - want).max() <= 16 * np.finfo(np.float32).eps * np.abs(want).max()
    trained: Any = models.load(folder, px.Autodiff(px.Cpu()), quantized=True)
    assert all(param.dtype == px.float32 for param in trained.param_list())
    with pytest.warns(UserWarning, match=r"\[train\] matrices in the blocks") as caught:
        _ = kept.train(px.Autodiff(px.Cpu()))
    assert caught[0].filename == __file__
    for model in (wide, nn.apply_lora(kept, 2)):
        _ = model.train(px.Autodiff(px.Cpu()))


def test_names_that_do_not_fit_are_told(tmp_path: Path) -> None:
    weights = arrays(decoder("Llama"))
    taken = weights.pop("model.layers.2.mlp.up_proj.bias")
    weights["model.layers.2.mlp.extra"] = taken
    folder = written(tmp_path, ROWS["Llama"], weights)
    report = models.load_report(folder)
    assert report.missing == ("model.layers.2.mlp.up_proj.bias",)
    assert report.unused == ("model.layers.2.mlp.extra",)
    with pytest.raises(px.RecordError, match=r"missing model\.layers\.2\.mlp\.up_proj\.bias"):
        models.load(folder, DEVICE)
    loaded: Any = models.load(folder, DEVICE, partial=True)
    assert not loaded.model.layers[2].mlp.up_proj.bias.value.numpy().any()


@pytest.mark.parametrize(
    ("change", "message"),
    [
        ({"architectures": ["MambaForCausalLM"]}, "not built: got MambaForCausalLM, expected Bert"),
        ({"architectures": None, "model_type": "t5"}, "got model_type 't5'"),
        ({"hidden_size": 48}, r"shapes differ|shape of"),
        ({"num_hidden_layers": 10**9}, "describes more layers than there are tensors"),
        ({"hidden_act": "relu"}, "hidden_act is not built: got 'relu', expected gelu"),
        ({"hidden_act": ["relu"]}, "hidden_act is not built"),
        ({"vocab_size": "60"}, r"LlamaConfig\.words: got '60', expected int"),
        ({"rope_parameters": {"rope_type": "dynamic"}}, "rope_type is not built: got 'dynamic'"),
        ({"rope_parameters": {"rope_type": "linear"}}, "config.json has no factor"),
        ({"rope_parameters": {"rope_type": "linear", "factor": "8"}}, "factor is no number"),
        ({"layer_types": ["linear_attention"] * 3}, "layer_types is not built"),
        (GPT | {"scale_attn_weights": False}, "scale_attn_weights is not built"),
        (GPT | {"scale_attn_by_inverse_layer_idx": True}, "scale_attn_by_inverse_layer_idx is not"),
        (BERT | {"is_decoder": True}, "is_decoder is not built"),
        (ROWS["Gemma3"] | {"use_bidirectional_attention": True}, "use_bidirectional_attention is"),
    ],
)
def test_what_is_not_built_is_refused_by_name(
    change: dict[str, Any], message: str, tmp_path: Path
) -> None:
    name = "Mistral" if "layer_types" in change else "Llama"
    folder = written(tmp_path, {**ROWS[name], **change}, arrays(decoder(name)))
    with pytest.raises((px.RecordError, nn.ConfigError), match=message):
        models.load(folder, DEVICE)


def test_settings_that_an_architecture_does_not_use_change_nothing() -> None:
    unused = {"Llama": {"partial_rotary_factor": 0.5}, "Gemma3": {"attn_logit_softcapping": 5.0}}
    for name, more in unused.items():
        given = ROWS[name]
        assert published(given).config({**given, **more}) == published(given).config(given)
    part: Any = published(ROWS["Phi3"]).config({**ROWS["Phi3"], "partial_rotary_factor": 0.25})
    assert part.rotary_share == 0.25


@pytest.mark.parametrize(
    ("more", "factors", "amplitude"),
    [  # of transformers 5: the rates of no scaling by those of Qwen2ForCausalLM
        ({}, (1.0, 1.333333, 2.0, 4.0), 1.1386294),
        ({"attention_factor": 1.3, "beta_fast": 8}, (1.0, 1.333333, 2.0, 4.0), 1.3),
        (
            {"mscale": 1.0, "mscale_all_dim": 0.7, "truncate": False},
            (1.0, 1.592417, 3.906975, 4.0),
            1.03791,
        ),
    ],
)
def test_yarn_slows_rates_as_transformers_does(
    tmp_path: Path, more: Any, factors: Any, amplitude: float
) -> None:
    said = {"rope_type": "yarn", "factor": 4.0, "original_max_position_embeddings": 64, **more}
    sizes = {"hidden_size": 64, "num_attention_heads": 4, "num_key_value_heads": 2}
    given = {**ROWS["Qwen2"], **sizes, "rope_parameters": {**said, "rope_theta": 1e4}}
    config: Any = published(given).config(given)
    scaling = config.scaling
    assert np.allclose(scaling.factors, [*factors, 4.0, 4.0, 4.0, 4.0], rtol=1e-6)
    assert scaling.amplitude == pytest.approx(amplitude, rel=1e-6)
    model = config.init(DEVICE)
    with pytest.raises(px.RecordError, match="amplitude of a scaling"):
        models.save_gguf(model, tmp_path / "model.gguf")


def test_folders_that_lack_something_say_what(tmp_path: Path) -> None:
    with pytest.raises(FileNotFoundError, match=r"a model is its weights beside a config\.json"):
        models.load(tmp_path)
    (tmp_path / "config.json").write_text("{")
    with pytest.raises(px.RecordError, match=r"config\.json is no JSON"):
        models.load(tmp_path)
    (tmp_path / "config.json").write_text("[1]")
    with pytest.raises(px.RecordError, match=r"config\.json is no object"):
        models.load(tmp_path)
    (tmp_path / "config.json").write_text(json.dumps(ROWS["Llama"]))
    with pytest.raises(FileNotFoundError, match=r"no weights: there is config\.json"):
        models.load(tmp_path)


@pytest.mark.long
@pytest.mark.parametrize("name", ["Gemma3", "Llama", "Mistral", "Phi3", "Qwen3Moe", "GPT2"])
def test_a_folder_that_transformers_saved_gives_its_logits(name: str, tmp_path: Path) -> None:
    torch: Any = pytest.importorskip("torch", reason="PyTorch comes with ./x test --long")
    other: Any = pytest.importorskip("transformers", reason="it comes with ./x test --long")
    kind = getattr(other, f"{name}TextConfig" if name == "Gemma3" else f"{name}Config")
    given = GPT if name == "GPT2" else ROWS[name]
    torch.manual_seed(0)
    model = other.AutoModelForCausalLM.from_config(kind(**given)).eval()
    model.save_pretrained(tmp_path, max_shard_size="5KB")
    assert (tmp_path / "model.safetensors.index.json").exists()
    with torch.no_grad():
        want = model(torch.tensor(TOKENS)).logits.numpy()
    loaded: Any = models.load(tmp_path, DEVICE).with_training(False)
    assert np.abs(loaded(WORDS).numpy() - want).max() < 1e-4


@pytest.mark.long
def test_vectors_of_bert_are_those_of_transformers(tmp_path: Path) -> None:
    torch: Any = pytest.importorskip("torch", reason="PyTorch comes with ./x test --long")
    other: Any = pytest.importorskip("transformers", reason="it comes with ./x test --long")
    torch.manual_seed(0)
    config = other.BertConfig(**{name: BERT[name] for name in BERT if name != "architectures"})
    theirs = other.BertModel(config).eval()
    for parameter in theirs.parameters():
        parameter.data = torch.randn_like(parameter) * 0.3
    theirs.save_pretrained(tmp_path)
    ours: Any = models.load(tmp_path, DEVICE)
    words = np.arange(18).reshape(2, 9) % 7
    mask = np.array([[1] * 9, [1] * 5 + [0] * 4])
    with torch.no_grad():
        found = theirs(torch.tensor(words), attention_mask=torch.tensor(mask))
    padding = px.asarray(mask == 0, device=DEVICE)
    vectors = ours.with_training(False)(px.asarray(words, device=DEVICE), padding)
    assert np.abs(vectors.numpy()[mask == 1] - found[0].numpy()[mask == 1]).max() < 1e-4
    assert np.abs(ours.pooled(vectors).numpy() - found[1].numpy()).max() < 1e-4
