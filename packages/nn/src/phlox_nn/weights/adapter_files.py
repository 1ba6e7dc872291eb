"""Low-rank adapters in the files of PEFT: a folder with names and settings that others read."""

from __future__ import annotations

import json
import re
from collections import Counter
from collections.abc import Callable, Iterator, Mapping
from math import sqrt
from pathlib import Path
from typing import Any, Final, TypeVar

import numpy as np

from phlox_record import SafetensorsRecorder
from phlox_tensor import ArgumentError, RecordError
from phlox_tensor.names import some

from ..layers.linear import Linear
from ..module.module import Module
from ..module.visit import modules
from ..param.param import Param
from ..parts.dropped import kept
from .lora import apply_lora, load_lora_record, lora_record

M = TypeVar("M", bound=Module)
_FILE: Final = "adapter_model.safetensors"
_CONFIG: Final = "adapter_config.json"
_MOST_BYTES: Final = 1 << 20
_AROUND: Final = "transformer."  # the model inside of one with a head, of GPT-2
_BELOW: Final = "base_layer"
_BEFORE: Final = "base_model.model."  # the model inside of two classes of PEFT's
_PATTERNS: Final = (("r", "rank_pattern"), ("lora_alpha", "alpha_pattern"))
_SMALL: Final = ("down", "up")
_MERGED: Final = 'merge them with peft: model.merge_and_unload().save_pretrained("folder")'
# Settings that are not built -> their values that ask for nothing.
_REFUSED: Final[Mapping[str, tuple[Any, ...]]] = {
    "alora_invocation_tokens": (None, []),
    "arrow_config": (None, {}),
    "bias": (None, "none"),
    # Other ways subtract the first adapters from the weights below them, which change so.
    "init_lora_weights": (None, True, False, "eva", "gaussian", "mica", "orthogonal"),
    "layer_replication": (None, []),
    "lora_bias": (None, False),
    "modules_to_save": (None, []),
    "trainable_token_indices": (None, [], {}),
    "use_bdlora": (None, {}),
    "use_dora": (None, False),
    "use_qalora": (None, False),
}


def save_adapters(model: Module, folder: str | Path) -> Path:
    """Write the adapters of linear layers into a folder, as PEFT does; return its path.

    Names are those of the layers, so those of models of ``nn.models`` fit the models of others.

    Raises:
        ArgumentError: when the model has no adapters, or others than of linear layers; and for what
            is trained beside them, which has no place there.

    Example:
        >>> import tempfile, phlox_nn as nn
        >>> tuned = nn.apply_lora(nn.Sequential(nn.Linear(4, 4)), 2)
        >>> folder = nn.save_adapters(tuned, tempfile.mkdtemp())
        >>> sorted(each.name for each in folder.iterdir())
        ['adapter_config.json', 'adapter_model.safetensors']
    """
    record: Any = lora_record(model)
    linear = {path for path, layer in modules(model) if isinstance(layer, Linear)}
    wrong = [path for path in record if path not in linear or "down" not in record[path]]
    if wrong:
        raise ArgumentError(
            "save_adapters",
            "what is no adapter of a linear layer has no place in the file",
            got=some(wrong),
            expected="adapters of linear layers alone",
            hint='recorder.record(nn.lora_record(model), "adapters")',
        )
    around = getattr(model, "_around", "")
    kinds = {
        f"{around}{path}": (each["down"].shape[1], float(each["scale"]))
        for path, each in record.items()
    }
    (rank, scale), _ = Counter(kinds.values()).most_common(1)[0]
    others = {path: kind for path, kind in kinds.items() if kind != (rank, scale)}
    place = Path(folder)
    place.mkdir(parents=True, exist_ok=True)
    whole: dict[str, Any] = {}
    for path, each in record.items():
        inside = whole
        for name in f"{_BEFORE}{around}{path}".split("."):
            inside = inside.setdefault(name, {})
        inside["lora_A"] = {"weight": each["down"].mT}
        inside["lora_B"] = {"weight": each["up"].mT}
    SafetensorsRecorder().record(whole, place / _FILE)
    about = {
        "alpha_pattern": {f"^{path}": r * each for path, (r, each) in others.items()},
        "base_model_name_or_path": getattr(model, "source", None),
        "bias": "none",
        "fan_in_fan_out": bool(around),
        "inference_mode": True,
        "lora_alpha": scale * rank,
        "lora_dropout": 0.0,
        "peft_type": "LORA",
        "r": rank,
        "rank_pattern": {f"^{path}": r for path, (r, _) in others.items()},
        "target_modules": sorted(_targets(set(record), linear)),
        "task_type": None,
    }
    (place / _CONFIG).write_text(json.dumps(about, indent=2) + "\n")
    return place


def _targets(adapted: set[str], linear: set[str]) -> set[str]:
    """Last names of layers, or whole paths where a layer of such a name has no adapter."""
    names = {path.rpartition(".")[2] for path in adapted}
    meant = {path for path in linear if path.rpartition(".")[2] in names}
    return names if meant == adapted else adapted


@kept("model = nn.load_adapters(model, folder)")
def load_adapters(model: M, folder: str | Path) -> M:
    """Return the model frozen, with the adapters of a folder of PEFT's beside its weights.

    Raises:
        RecordError: when the files are damaged, of adapters of another kind, or of another model.

    Example:
        >>> import tempfile, phlox_nn as nn
        >>> model = nn.Sequential(nn.Linear(4, 4))
        >>> folder = nn.save_adapters(nn.apply_lora(model, 2), tempfile.mkdtemp())
        >>> tuned = nn.load_adapters(model, folder)
    """
    place = Path(folder)
    about = _settings(place / _CONFIG)
    found: dict[str, Any] = {}
    ranks: dict[tuple[int, float], list[str]] = {}
    rank_of, alpha_of = (_by_pattern(about, *names) for names in _PATTERNS)
    linear = {path: layer for path, layer in modules(model) if isinstance(layer, Linear)}
    for name, pair, below in _pairs(SafetensorsRecorder().load(place / _FILE)):
        path = name if name in linear else name.removeprefix(_AROUND)
        found[path] = pair
        rank, alpha = int(rank_of(name)), alpha_of(name)
        scaled = alpha * sqrt(rank) if about.get("use_rslora") is True else alpha
        ranks.setdefault((rank, scaled), []).append(f"{path}.weight")
        if below is not None and path in linear:
            _check_below(path, below, linear[path])
    strange = [path for path in found if path not in linear]
    if strange or not found:
        raise RecordError(
            "load_adapters",
            "the adapters are of another model",
            got=some(strange) if strange else "no adapter",
            expected=f"linear layers, such as {some(sorted(linear)[:2])}",
        )
    tuned = model
    for (rank, scaled), weights in ranks.items():
        tuned = apply_lora(tuned, rank, *weights, alpha=scaled)
    tuned = load_lora_record(tuned, found)
    if len(ranks) > 1:  # each call froze the adapters before
        tuned = tuned.unfreeze(*(f"{path}.weight.{part}" for path in found for part in _SMALL))
    return tuned


def _by_pattern(about: Mapping[str, Any], usual: str, name: str) -> Callable[[str], float]:
    """What is said of a layer by the first pattern that fits its path, or of all others."""
    said = about.get(name) or {}
    values: list[Any] = [about.get(usual), *(said.values() if isinstance(said, dict) else [said])]
    whole = usual == "r"
    if not all(type(n) is int or (type(n) is float and not whole) for n in values) or (
        whole and min(values) < 1
    ):
        got = f"{usual} {about.get(usual)}, {name} {said}"
        raise RecordError("load_adapters", "no rank and scale", got=got, expected="numbers")
    patterns = [(_pattern(key), value) for key, value in said.items()]

    def found(path: str) -> float:
        fitting = (value for pattern, value in patterns if pattern.match(path))
        value: float = next(fitting, about[usual])
        return value

    return found


def _pattern(key: str) -> re.Pattern[str]:
    """A key as ``peft`` reads it; refused where a match of what others wrote may take for ever."""
    try:
        if sum(map(key.count, "*+?{")) <= 2 and not re.search(r"\)[*+?{]", key):
            return re.compile(rf"(.*\.)?({key})$")
        what: Any = key
    except re.error as error:
        what = f"{key}: {error}"
    expected = "names of layers, or a pattern that repeats at most two things"
    raise RecordError("load_adapters", "no pattern of layers", got=what, expected=expected)


def _check_below(path: str, below: Any, layer: Linear) -> None:
    """Refuse the copy of a weight, such as ``peft`` keeps of a head, that is another one here."""
    weight: Any = layer.weight
    theirs = below.get("weight") if isinstance(below, Mapping) else None
    same = set(below) == {"weight"} and getattr(theirs, "ndim", 0) == 2
    if same and theirs is not None and isinstance(weight, Param):  # blocks are only near
        ours, copy = weight.value.numpy(), theirs.mT.numpy()
        same = ours.shape == copy.shape and np.allclose(ours, copy, rtol=1e-2, atol=1e-6)
    if not same:
        what = f"{path} has another weight below its adapters than the model"
        raise RecordError("load_adapters", what, expected="the same", hint=_MERGED)


def _settings(file: Path) -> dict[str, Any]:
    size = file.stat().st_size
    if size > _MOST_BYTES:
        got, expected = f"{size:,} bytes", f"at most {_MOST_BYTES:,}"
        raise RecordError("load_adapters", f"{file.name} is too large", got=got, expected=expected)
    try:
        about: Any = json.loads(file.read_bytes())
    except (ValueError, RecursionError) as error:
        raise RecordError("load_adapters", f"{file.name} is no JSON", got=error) from None
    if not isinstance(about, dict) or about.get("peft_type") != "LORA":
        kind: Any = about.get("peft_type") if isinstance(about, dict) else type(about).__name__
        raise RecordError("load_adapters", "adapters of another kind", got=kind, expected="LORA")
    for name, nothing in _REFUSED.items():
        if about.get(name) not in nothing:
            what = f"{name} of adapters is not built"
            raise RecordError("load_adapters", what, got=about[name], expected="none", hint=_MERGED)
    return about


def _pairs(record: Any) -> Iterator[tuple[str, Any, Any]]:
    """Paths of layers, the two matrices of each as they are here, and a copy of what is below."""
    work: list[tuple[str, Any]] = [("", record)]
    while work:
        path, node = work.pop()
        if not isinstance(node, Mapping):
            at, _, last = path.removeprefix(_BEFORE).rpartition(".")
            table = last.startswith("lora_embedding_")
            what = f"no adapter of a linear layer at {at or last}"
            got = f"{last}, an adapter of an embedding" if table else last
            expected = "lora_A, lora_B"
            raise RecordError("load_adapters", what, got=got, expected=expected, hint=_MERGED)
        if set(node) - {_BELOW} == {"lora_A", "lora_B"}:
            a, b = (node[name] for name in ("lora_A", "lora_B"))
            pair: list[Any] = [
                each.get("weight") if isinstance(each, Mapping) else each for each in (a, b)
            ]
            if not all(getattr(each, "ndim", 0) == 2 for each in pair):
                raise RecordError("load_adapters", f"{path} has no two matrices")
            down, up = (each.mT for each in pair)
            yield path.removeprefix(_BEFORE), {"down": down, "up": up}, node.get(_BELOW)
            continue
        if {"lora_A", "lora_B"} < set(node):
            what = f"{path} has more than two matrices"
            got = some(sorted(node))
            raise RecordError(
                "load_adapters", what, got=got, expected="lora_A, lora_B", hint=_MERGED
            )
        work += [(f"{path}.{key}" if path else str(key), node[key]) for key in node]
