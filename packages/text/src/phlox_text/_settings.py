"""What the files beside weights say of generation: rules of choice, and tokens that end a text."""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path
from typing import Any, Final, TypedDict

from phlox_nn.generation.sampling import Sampling, Seed
from phlox_tensor import PhloxError
from phlox_tensor.names import unknown_argument

from ._errors import TextError
from ._files import ids_of, read_json

GREEDY = Sampling(temperature=0.0)
# Words of transformers, llama.cpp, Ollama and others.
_WORDS: Final = {
    "count": ("max_tokens",),
    "do_sample": ("temperature",),
    "max_length": ("max_tokens",),
    "max_new_tokens": ("max_tokens",),
    "n_predict": ("max_tokens",),
    "num_predict": ("max_tokens",),
    "repeat_penalty": ("repetition_penalty",),
    "stop_sequences": ("stop",),
    "stop_strings": ("stop",),
}


class Rules(TypedDict, total=False):
    """How a text goes on; what is not said is as the files of the model say.

    Attributes:
        max_tokens: how many tokens are made at most; None for as many as the context has room for.
        stop: texts that end it; they are no part of it.
        seed: what the draws follow from; None takes it from the stream of random numbers.
        temperature: what logits are divided by; 0 for the likeliest token each time.
        top_k: how many tokens there are to choose from.
        top_p: the likeliest tokens that have this share together are chosen from.
        min_p: tokens of less than this part of the share of the likeliest are not chosen.
        repetition_penalty: makes tokens that are there already less likely, if above 1.
    """

    max_tokens: int | None
    stop: str | list[str] | tuple[str, ...]
    seed: Seed
    temperature: float
    top_k: int | None
    top_p: float | None
    min_p: float | None
    repetition_penalty: float


def check_rules(given: Mapping[str, Any], op: str) -> None:
    """Refuse arguments that are no rules.

    Raises:
        UnknownArgumentError: naming one that is near.
        TextError: for a count or stops that are none.
    """
    unknown = unknown_argument(op, given, Rules.__annotations__, _WORDS)
    if unknown is not None:
        raise unknown
    most = given.get("max_tokens")
    if most is not None and (type(most) is not int or most < 1):
        raise TextError(op, "max_tokens is no count", got=most, expected="at least 1")
    stops = given.get("stop", ())
    if not (isinstance(stops, str | list | tuple) and all(isinstance(one, str) for one in stops)):
        raise TextError(op, "stop is no text", got=stops, expected="a str, or several")


def read_settings(folder: Path) -> tuple[Sampling, tuple[int, ...]]:
    """Return the rules of ``generation_config.json``, and the tokens that end a text.

    As in transformers, nothing is drawn unless ``do_sample`` is true there.

    Raises:
        TextError: for a file that cannot be read, or of rules that are none.
    """
    found = read_json(folder / "generation_config.json", "generate")
    config = read_json(folder / "config.json", "generate")
    inner = config.get("text_config")
    ends = found.get("eos_token_id", config.get("eos_token_id"))
    if ends is None and isinstance(inner, dict):
        ends = inner.get("eos_token_id")
    rules: dict[str, Any] = {"temperature": 0.0}
    if found.get("do_sample") is True:
        rules = {
            name: found[name]
            for name in ("temperature", "top_k", "top_p", "min_p")
            if found.get(name) is not None
        }
        rules = {name: value for name, value in rules.items() if (name, value) != ("top_k", 0)}
    if found.get("repetition_penalty") is not None:
        rules["repetition_penalty"] = found["repetition_penalty"]
    try:
        return Sampling(**rules), tuple(ids_of(ends))
    except (PhloxError, TypeError) as error:
        what = f"{folder / 'generation_config.json'} has rules that are none"
        raise TextError("generate", what, got=error) from None
