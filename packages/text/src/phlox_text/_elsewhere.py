"""What transformers, llama.cpp and vLLM call parts of generation."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Final

NAMES: Final[Mapping[str, str]] = {
    "AutoModelForCausalLM": 'text.load("folder")',
    "AutoTokenizer": 'text.Tokenizer.load("folder")',
    "GenerationConfig": "text.Sampling(temperature=0.8)",
    "LLM": 'text.load("folder")',
    "Llama": 'text.load("folder")',
    "PreTrainedTokenizerFast": 'text.Tokenizer.load("folder")',
    "SamplingParams": "text.Sampling(temperature=0.8)",
    "TextIteratorStreamer": 'model.generate("Once", stream=True)',
    "TextStreamer": 'model.generate("Once", stream=True)',
    "generate": 'text.load("folder").generate("Once")',
    "pipeline": 'text.load("folder").chat()',
}
