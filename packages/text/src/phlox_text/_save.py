"""A language model as files that others read: a folder, or one GGUF file."""

from __future__ import annotations

import json
from dataclasses import asdict
from pathlib import Path
from typing import Any

from phlox_nn import (
    BlockWeight,
    LoraWeight,
    QuantizedWeight,
    dequantize_weights,
    merge_lora,
    models,
)
from phlox_nn.generation.sampling import Sampling
from phlox_tensor import WrongTypeError

from ._errors import TextError
from ._gguf_header import header_of
from ._tokenizer import Tokenizer


def save(
    network: Any,
    tokenizer: Tokenizer,
    sampling: Sampling,
    ends: tuple[int, ...],
    path: str | Path,
    blocks: Any,
) -> Path:
    """Write all that a language model is of; see ``LanguageModel.save``."""
    place = Path(path)
    if not isinstance(network, models.Llama):
        got = type(network).__name__
        raise WrongTypeError("text", "no file is built for it", got=got, expected="a Llama")
    if place.suffix == ".gguf":
        header = header_of(tokenizer, ends, network.words)
        place.parent.mkdir(parents=True, exist_ok=True)
        return models.save_gguf(_plain(network), place, blocks=blocks, header=header)
    if blocks is not None:
        hint = f'model.save("{place}.gguf", blocks={blocks!r})'
        raise TextError("text", "a folder has no blocks", got=blocks, expected="None", hint=hint)
    models.save(_plain(network), place)
    tokenizer.backend.save(str(place / "tokenizer.json"))
    template = tokenizer.template
    about = {**tokenizer.special, "chat_template": None if template is None else template.source}
    _write(place / "tokenizer_config.json", about)
    drawn = sampling.temperature > 0
    rules = {name: rule if drawn else None for name, rule in asdict(sampling).items()}
    penalty = sampling.repetition_penalty if sampling.looks_back else None
    rules |= {"repetition_penalty": penalty, "do_sample": drawn, "eos_token_id": list(ends)}
    _write(place / "generation_config.json", rules)
    return place


def _write(file: Path, about: dict[str, Any]) -> None:
    said = {name: value for name, value in about.items() if value is not None}
    file.write_text(json.dumps(said, indent=2, ensure_ascii=False) + "\n", encoding="utf-8")


def _plain(network: Any) -> Any:
    """The network with parameters in the place of adapters and of what is stored as integers."""
    if _has(network, LoraWeight):
        network = merge_lora(network)
    return dequantize_weights(network) if _has(network, (BlockWeight, QuantizedWeight)) else network


def _has(network: Any, kinds: Any) -> bool:
    """Whether some weight is made of others in such a way."""
    owners: list[Any] = []
    network.visit(lambda path, _: owners.append(network.path(path.rpartition(".")[0])))
    return any(isinstance(owner, kinds) for owner in owners)
