"""A folder as people share models: weights, settings, tokenizer, template; tiny and random."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import tokenizers
from tokenizers import decoders, models, pre_tokenizers, trainers

import phlox as px
from phlox import nn

TEXT = "Now is the winter of our discontent made glorious summer by this sun of York; "
SPECIAL = ["<|end|>", "<|user|>", "<|system|>", "<|assistant|>"]
TEMPLATE = (
    "{% for message in messages %}<|{{ message.role }}|>{{ message.content }}<|end|>{% endfor %}"
    "{% if add_generation_prompt %}<|assistant|>{% endif %}"
)


def tokenizer() -> tokenizers.Tokenizer:
    """Pieces of the bytes of a text."""
    made = tokenizers.Tokenizer(models.BPE())
    made.pre_tokenizer = pre_tokenizers.ByteLevel(add_prefix_space=False)
    made.decoder = decoders.ByteLevel()
    trainer = trainers.BpeTrainer(
        vocab_size=320,
        special_tokens=SPECIAL,
        initial_alphabet=pre_tokenizers.ByteLevel.alphabet(),
        show_progress=False,
    )
    made.train_from_iterator([TEXT] * 3, trainer)
    return made


def config(**more: Any) -> dict[str, Any]:
    """The settings of a decoder in the manner of Llama."""
    return {
        "architectures": ["LlamaForCausalLM"],
        "model_type": "llama",
        "vocab_size": 320,
        "hidden_size": 32,
        "intermediate_size": 64,
        "num_hidden_layers": 2,
        "num_attention_heads": 4,
        "num_key_value_heads": 2,
        "max_position_embeddings": 512,
        "rms_norm_eps": 1e-5,
        "rope_theta": 10000.0,
        "hidden_act": "silu",
        "tie_word_embeddings": False,
        "eos_token_id": 0,
        **more,
    }


def write_folder(folder: Path, **more: Any) -> Path:
    """Write the files of a model whose weights are drawn from a fixed seed."""
    settings = config(**more)
    (folder / "config.json").write_text(json.dumps(settings))
    px.seed(5)
    made = nn.models.LlamaConfig(320, 512, 32, 2, 4, 2, d_ff=64).init(px.Cpu())
    # Larger than usual, so that a random model says different things.
    made = made.map(lambda _, p: p.with_value(p.value * 12) if p.value.ndim == 2 else p)
    record = made.into_record(layout="pytorch")
    px.record.SafetensorsRecorder().record(record, folder / "model.safetensors")
    tokenizer().save(str(folder / "tokenizer.json"))
    told = {"eos_token": "<|end|>", "chat_template": TEMPLATE}
    (folder / "tokenizer_config.json").write_text(json.dumps(told))
    rules = {"do_sample": True, "temperature": 0.9, "top_k": 50, "eos_token_id": [0, 2]}
    (folder / "generation_config.json").write_text(json.dumps(rules))
    return folder
