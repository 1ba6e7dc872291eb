#!/usr/bin/env bash
# transformers 5.23.0: a Llama 3.1 read from a GGUF file loses the scaling of its rotary embedding.
#
# Guess: the logits of the model that the file was made from: "GGUF and interaction with Transformers"
# lists Llama, and files of Llama 3.1 and later hold the scaling as the tensor rope_freqs.weight.
# Done: write a small Llama with llama3 scaling as GGUF, as convert_hf_to_gguf.py does, and read it.
# Seen: the tensor is dropped without a word, and the config says rope_type "default". Logits are exactly
# those of the same weights without scaling, off by 0.6 here: the model goes astray on long texts.
set -euo pipefail

folder=$(mktemp -d)
trap 'rm -rf "$folder"' EXIT
python3 -m venv "$folder/venv"
"$folder/venv/bin/pip" install --quiet transformers==5.23.0 gguf==0.19.0 torch==2.15.0 \
  accelerate==1.15.0 numpy==2.4.6
"$folder/venv/bin/python" - "$folder" <<'PYTHON'
import sys

import numpy as np
import torch
from gguf import GGUFWriter
from transformers import AutoModelForCausalLM, LlamaConfig
from transformers.modeling_rope_utils import ROPE_INIT_FUNCTIONS

folder = sys.argv[1]
sizes = dict(vocab_size=64, hidden_size=32, intermediate_size=64, num_hidden_layers=2)
sizes |= dict(num_attention_heads=2, num_key_value_heads=2, head_dim=16, pad_token_id=0)
sizes |= dict(max_position_embeddings=512, rms_norm_eps=1e-5)
scaling = dict(rope_type="llama3", factor=8.0, low_freq_factor=1.0, high_freq_factor=4.0)
scaling |= dict(original_max_position_embeddings=64, rope_theta=10000.0)
torch.manual_seed(0)
model = AutoModelForCausalLM.from_config(LlamaConfig(**sizes, rope_parameters=scaling)).eval()
for parameter in model.parameters():
    parameter.data = torch.randn_like(parameter) * 0.3
weights = {name: tensor.detach().numpy() for name, tensor in model.state_dict().items()}

parts = {
    "input_layernorm": "attn_norm",
    "mlp.down_proj": "ffn_down",
    "mlp.gate_proj": "ffn_gate",
    "mlp.up_proj": "ffn_up",
    "post_attention_layernorm": "ffn_norm",
    "self_attn.k_proj": "attn_k",
    "self_attn.o_proj": "attn_output",
    "self_attn.q_proj": "attn_q",
    "self_attn.v_proj": "attn_v",
}
names = {"model.embed_tokens": "token_embd", "model.norm": "output_norm", "lm_head": "output"}
for layer in range(2):
    names |= {f"model.layers.{layer}.{a}": f"blk.{layer}.{b}" for a, b in parts.items()}
writer = GGUFWriter(f"{folder}/a.gguf", "llama")
writer.add_context_length(512)
writer.add_embedding_length(32)
writer.add_block_count(2)
writer.add_feed_forward_length(64)
writer.add_head_count(2)
writer.add_head_count_kv(2)
writer.add_rope_dimension_count(16)
writer.add_rope_freq_base(10000.0)
writer.add_layer_norm_rms_eps(1e-5)
writer.add_vocab_size(64)
for name, array in weights.items():
    owner, kind = name.rsplit(".", 1)
    if owner.endswith(("q_proj", "k_proj")):
        array = array.reshape(2, 2, 8, 32).swapaxes(1, 2).reshape(32, 32)
    writer.add_tensor(f"{names[owner]}.{kind}", np.ascontiguousarray(array))
plain = 10000.0 ** -(np.arange(8) / 8)
scaled, _ = ROPE_INIT_FUNCTIONS["llama3"](model.config, "cpu")
writer.add_tensor("rope_freqs.weight", (plain / scaled.numpy()).astype(np.float32))
writer.write_header_to_file()
writer.write_kv_data_to_file()
writer.write_tensors_to_file()
writer.close()

tokens = torch.arange(128)[None] % 64
read = AutoModelForCausalLM.from_pretrained(folder, gguf_file="a.gguf", dtype=torch.float32)
without = AutoModelForCausalLM.from_config(LlamaConfig(**sizes)).eval()
without.load_state_dict(model.state_dict())
with torch.no_grad():
    want, got, bare = (m(tokens).logits.numpy() for m in (model, read.eval(), without))
print("rope_type:", read.config.rope_parameters["rope_type"])
print("largest difference to the model:", np.abs(got - want).max())
print("to the same weights without scaling:", np.abs(got - bare).max())
assert read.config.rope_parameters["rope_type"] == "default"
assert np.abs(got - want).max() > 0.1
assert np.abs(got - bare).max() < 1e-4
PYTHON
