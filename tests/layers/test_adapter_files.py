"""Adapters in the files of PEFT."""

from __future__ import annotations

import json
import shutil
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from safetensors.numpy import load_file, save_file

import phlox as px
from phlox import nn
from tests.layers.causal_rows import ROWS
from tests.layers.test_causal import WORDS, decoder

NAMES = ("q_proj", "v_proj")


def tuned(rank: int = 3, alpha: float = 6.0) -> nn.models.Llama:
    """A decoder whose adapters change what it gives."""
    px.seed(9)
    where = [f"*.{name}.weight" for name in NAMES]
    model = nn.apply_lora(decoder("Llama"), rank, *where, alpha=alpha)
    return model.map(
        lambda _, p: p.with_value(px.random.normal(p.shape, std=0.2)) if p.trainable else p
    )


def test_adapters_have_the_names_and_the_form_of_peft(tmp_path: Path) -> None:
    model = tuned()
    folder = nn.save_adapters(model, tmp_path / "new" / "adapters")
    about = json.loads((folder / "adapter_config.json").read_text())
    assert about["peft_type"] == "LORA"
    assert (about["r"], about["lora_alpha"]) == (3, 6.0)
    assert about["target_modules"] == ["q_proj", "v_proj"]
    found = load_file(folder / "adapter_model.safetensors")
    attention = model.model.layers[0].self_attn
    q_proj: Any = attention.q_proj
    name = "base_model.model.model.layers.0.self_attn.q_proj"
    assert np.array_equal(found[f"{name}.lora_A.weight"], q_proj.weight.down.value.numpy().T)
    assert np.array_equal(found[f"{name}.lora_B.weight"], q_proj.weight.up.value.numpy().T)
    assert len(found) == 2 * 2 * len(model.model.layers)
    plain = decoder("Llama")
    assert np.abs(plain(WORDS).numpy() - model(WORDS).numpy()).max() > 0.1
    again = nn.load_adapters(plain, folder)
    assert np.array_equal(again(WORDS).numpy(), model(WORDS).numpy())
    assert again.num_params(trainable=True) == model.num_params(trainable=True)


def test_layers_are_told_by_their_paths_where_names_do_not_do(tmp_path: Path) -> None:
    model = nn.apply_lora(decoder("Llama"), 2, "model.layers.0.*.q_proj.weight")
    about = json.loads((nn.save_adapters(model, tmp_path) / "adapter_config.json").read_text())
    assert about["target_modules"] == ["model.layers.0.self_attn.q_proj"]
    assert about["lora_alpha"] == 2


def test_what_has_no_place_in_the_files_is_refused(tmp_path: Path) -> None:
    model = decoder("Llama")
    with pytest.raises(px.ArgumentError, match="no adapters"):
        nn.save_adapters(model, tmp_path)
    table = nn.apply_lora(model, 2, "model.embed_tokens.weight")
    with pytest.raises(px.ArgumentError, match=r"no place in the file: got model.embed_tokens"):
        nn.save_adapters(table, tmp_path)
    head = tuned().unfreeze("model.norm.*")
    with pytest.raises(px.ArgumentError, match=r"no place in the file: got model.norm.weight"):
        nn.save_adapters(head, tmp_path)
    assert list(tmp_path.iterdir()) == []


def test_a_copy_of_the_weight_below_has_to_be_the_same(tmp_path: Path) -> None:
    model: Any = decoder("Llama")
    folder = nn.save_adapters(nn.apply_lora(model, 3, "lm_head.weight"), tmp_path)
    file = folder / "adapter_model.safetensors"
    arrays, head = load_file(file), model.lm_head.weight.value.numpy().T.copy()
    name = "base_model.model.lm_head.base_layer.weight"
    save_file({**arrays, name: head}, file)
    assert nn.load_adapters(model, folder).lm_head.weight.down.shape[1] == 3
    for other in (head + 1.0, head[1:]):
        save_file({**arrays, name: np.ascontiguousarray(other)}, file)
        with pytest.raises(px.RecordError, match=r"lm_head has another weight below"):
            nn.load_adapters(model, folder)
    save_file({**arrays, "base_model.model.lm_head.lora_magnitude_vector": head[0]}, file)
    with pytest.raises(px.RecordError, match=r"more than two matrices: got .*magnitude"):
        nn.load_adapters(model, folder)


def test_adapters_of_gpt_2_have_the_names_of_its_class_with_a_head(tmp_path: Path) -> None:
    model = nn.models.GptConfig(9, 8, 8, 1, 2).init()
    folder = nn.save_adapters(nn.apply_lora(model, 2, "h.0.attn.c_attn.weight"), tmp_path)
    file, before = folder / "adapter_model.safetensors", "base_model.model."
    ours = load_file(file)
    assert set(ours) == {f"{before}transformer.h.0.attn.c_attn.lora_{n}.weight" for n in "AB"}
    for around in ("transformer.", ""):  # of a class without a head
        save_file({name.replace("transformer.", around): a for name, a in ours.items()}, file)
        record: Any = nn.lora_record(nn.load_adapters(model, folder))
        assert list(record) == ["h.0.attn.c_attn"]


def test_adapters_have_ranks_and_scales_of_their_own(tmp_path: Path) -> None:
    model = nn.apply_lora(tuned(), 2, "*.layers.1.self_attn.o_proj.weight", alpha=3.0)
    folder = nn.save_adapters(model, tmp_path)
    file = folder / "adapter_config.json"
    about = json.loads(file.read_text())
    name = "^model.layers.1.self_attn.o_proj"
    assert (about["r"], about["rank_pattern"], about["alpha_pattern"]) == (3, {name: 2}, {name: 3})
    again = nn.load_adapters(decoder("Llama"), folder)
    assert np.array_equal(again(WORDS).numpy(), model(WORDS).numpy())
    output: Any = model.model.layers[1].self_attn.o_proj
    more = 2 * sum(output.weight.shape)
    assert again.num_params(trainable=True) == tuned().num_params(trainable=True) + more
    for pattern, scale in (({"o_proj": 5, ".*": 7}, 2.5), ({r"layers\.\d.o_proj": 5}, 3.0)):
        file.write_text(json.dumps({**about, "lora_alpha": 6, "alpha_pattern": pattern}))
        weight: Any = nn.load_adapters(decoder("Llama"), folder).model.layers[1].self_attn.o_proj
        assert weight.weight.scale == scale
    for wrong in ({"(a*)*": 1}, {"a*a*a*": 1}, {"(": 1}):
        file.write_text(json.dumps({**about, "alpha_pattern": wrong}))
        with pytest.raises(px.RecordError, match="no pattern of layers"):
            nn.load_adapters(decoder("Llama"), folder)
    file.write_text(json.dumps({**about, "rank_pattern": {"q": 0}}))
    with pytest.raises(px.RecordError, match="no rank and scale: got r 3, rank_pattern"):
        nn.load_adapters(decoder("Llama"), folder)


def test_files_of_others_are_refused_by_what_differs(tmp_path: Path) -> None:
    model = decoder("Llama")
    good = nn.save_adapters(tuned(), tmp_path / "good")
    config = json.loads((good / "adapter_config.json").read_text())

    def changed(about: Any, said: str) -> None:
        folder = Path(shutil.copytree(good, tmp_path / "other", dirs_exist_ok=True))
        text = about if isinstance(about, str) else json.dumps(about)
        (folder / "adapter_config.json").write_text(text)
        with pytest.raises(px.RecordError, match=said):
            nn.load_adapters(model, folder)

    changed({**config, "use_dora": True}, "use_dora of adapters is not built")
    changed({**config, "alora_invocation_tokens": [3]}, "alora_invocation_tokens of adapters is")
    changed({**config, "trainable_token_indices": [3]}, r"token_indices.*\n.*merge_and_unload")
    changed({**config, "init_lora_weights": "pissa"}, r"got pissa.*\n.*merge_and_unload")
    changed({**config, "peft_type": "IA3"}, "another kind: got IA3")
    changed({**config, "r": "3"}, "no rank and scale")
    changed({**config, "r": 4}, r"another rank")
    changed("{", "is no JSON")
    changed("[]", "another kind: got list")
    stable = {**config, "use_rslora": True}
    (good / "adapter_config.json").write_text(json.dumps(stable))
    weight: Any = nn.load_adapters(model, good).model.layers[0].self_attn.q_proj
    assert weight.weight.scale == pytest.approx(6.0 / np.sqrt(3))
    file = good / "adapter_model.safetensors"
    arrays = load_file(file)
    for wrong, said in (
        ({f"x.{name}": array for name, array in arrays.items()}, "of another model: got x.base"),
        ({next(iter(arrays)): next(iter(arrays.values()))}, "no adapter"),
        ({"base_model.model.lm_head.weight": np.ones((2, 2), np.float32)}, "no adapter"),
        (
            {"base_model.model.model.embed_tokens.lora_embedding_A": np.ones((2, 2), np.float32)},
            r"at model.embed_tokens: got lora_embedding_A, an adapter of an emb.*\n.*merge_and",
        ),
    ):
        save_file(wrong, file)
        with pytest.raises(px.RecordError, match=said):
            nn.load_adapters(model, good)
    with pytest.raises(FileNotFoundError):
        nn.load_adapters(model, tmp_path / "nothing")


@pytest.mark.long
@pytest.mark.filterwarnings("ignore::FutureWarning")
def test_peft_reads_what_is_written_and_is_read(tmp_path: Path) -> None:
    torch: Any = pytest.importorskip("torch", reason="PyTorch comes with ./x test --long")
    other: Any = pytest.importorskip("transformers", reason="it comes with ./x test --long")
    peft: Any = pytest.importorskip("peft", reason="it is installed by hand")
    model = tuned()
    base = other.LlamaForCausalLM(other.LlamaConfig(**ROWS["Llama"])).eval()
    record: Any = decoder("Llama").into_record(layout="pytorch")
    flat: dict[str, Any] = {}
    work = [("", record)]
    while work:
        path, node = work.pop()
        for key, item in node.items():
            name = f"{path}.{key}" if path else key
            if isinstance(item, dict):
                work.append((name, item))
            else:
                flat[name] = torch.tensor(item.tensor.numpy())
    base.load_state_dict(flat, strict=False)
    theirs = peft.PeftModel.from_pretrained(base, str(nn.save_adapters(model, tmp_path / "ours")))
    with torch.no_grad():
        logits = theirs(torch.tensor(WORDS.numpy())).logits.numpy()
    assert np.abs(logits - model(WORDS).numpy()).max() < 1e-4
    theirs.save_pretrained(str(tmp_path / "theirs"))
    again = nn.load_adapters(decoder("Llama"), tmp_path / "theirs")
    assert np.allclose(again(WORDS).numpy(), model(WORDS).numpy(), atol=1e-6)
