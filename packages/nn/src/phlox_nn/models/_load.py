"""Models out of the folders that people have on their disks."""

from __future__ import annotations

import json
import re
from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import Any, Final, NamedTuple

from phlox_record import TensorEntry, recorder_for
from phlox_tensor import Backend, RecordError, as_device, random
from phlox_tensor.names import some

from ..loading.report import Layout, LoadReport
from ..module.module import Module
from ._blocks import in_blocks
from ._causal import CausalModel
from ._parts import ModelConfig
from ._published import Json, Published

_CONFIG: Final = "config.json"
_CONFIG_BYTES: Final = 16 << 20
# What folders hold, the first that is there; an index of several files stands for the file.
_WEIGHTS: Final = ("model.safetensors", "pytorch_model.bin")
_INDEX: Final = ".index.json"


class _Source(NamedTuple):
    """A model on a disk: it with lazy parameters, its tensors by name, unread, and their layout."""

    model: Module
    record: dict[str, Any]
    layout: Layout


def load(
    path: str | Path,
    device: Backend | str | None = None,
    *,
    partial: bool = False,
    quantized: bool | None = None,
) -> Module:
    """Return the model of a folder, as its ``config.json`` describes it, or of a GGUF file.

    Weights go from the mapped file to the device one after the other, in the device's float type;
    no first values are made. Of GPT and decoders of the Llama family ``model.source`` is the path.

    Args:
        path: a folder with ``config.json`` beside ``model.safetensors``, its shards and their
            index, or ``pytorch_model.bin``; or one of these files, beside its ``config.json``; or
            a file of llama.cpp, ``.gguf``, alone.
        device: where the weights go; None is the default device.
        partial: leave what the file lacks at first values, and let go what the model lacks.
        quantized: whether matrices stay as the file has them (``nn.BlockWeight``). None keeps those
            of GGUF files, in blocks of Q4_0, Q4_1, Q4_K, Q5_0, Q5_1, Q5_K, Q6_K and Q8_0 or of F16
            and BF16, on a device without uint8 those of Q4_0, Q4_K, Q6_K and Q8_0 whose rows are a
            multiple of 4 bytes. True keeps those of folders in F16 and BF16 too, of decoders of
            the Llama family on a device with uint8 that records nothing. Others, and all with
            False, become floats, which can be trained. So does what a ``quantization_config``
            describes: 8-bit floats, MXFP4, integers of 4 and 8 bits.

    Raises:
        FileNotFoundError: there is no such folder, no config or no weights in it.
        RecordError: an architecture or a setting that is not built; damaged files; names or
            shapes that are those of another model.

    Example:
        >>> from phlox_nn import models
        >>> models.load("folder/of/a/model")
        Traceback (most recent call last):
            ...
        FileNotFoundError: [Errno 2] No such file or directory: 'folder/of/a/model'
    """
    place, target = Path(path), as_device(device)
    model, record, layout = _open(place, target, quantized=quantized)
    made = model.load_record(record, target, partial=partial, layout=layout)
    return made.replace(source=str(place)) if "source" in made.field_names() else made


def load_report(path: str | Path) -> LoadReport:
    """Return what ``load`` would apply, miss and not use; no weights are read.

    Raises:
        RecordError: as ``load``, but for names and shapes.

    Example:
        >>> from phlox_nn import models
        >>> models.load_report("folder/of/a/model").complete
        Traceback (most recent call last):
            ...
        FileNotFoundError: [Errno 2] No such file or directory: 'folder/of/a/model'
    """
    model, record, layout = _open(Path(path), as_device(None), quantized=None)
    return model.load_report(record, layout=layout)


def _described(config: ModelConfig, device: Backend) -> Module:
    """The model with lazy parameters, whose first values cost no place in the random stream."""
    with random.use_generator(random.Generator()):
        made: Module = config.init(device)
    return made


def _open(place: Path, device: Backend, *, quantized: bool | None) -> _Source:
    """Find settings and tensors of a model."""
    folder = place if place.is_dir() else place.parent
    if not place.exists():
        raise FileNotFoundError(2, "No such file or directory", str(place))
    alone = place if place.is_file() else _only(folder, ".gguf")
    if alone is not None and alone.suffix == ".gguf":
        return _open_gguf(alone, device, quantized=quantized is not False)
    from ._public import published  # noqa: PLC0415 - architectures, of which a GGUF file needs one
    from ._scaled import widened  # noqa: PLC0415 - the same

    given = _json(folder / _CONFIG)
    read = published(given)
    config = read.config(given)
    weights = _weights(place) if place.is_dir() else place
    found = widened(dict(named(recorder_for(_without_index(weights)).open(weights))), given)
    layers = getattr(config, "n_layers", 0)
    if layers > len(found):
        what = f"{_CONFIG} describes more layers than there are tensors"
        raise RecordError("load", what, got=layers, expected=f"at most {len(found)}")
    model, record = _described(config, device), _needed(found, read, config)
    narrow = quantized and not device.records and read.layout == "pytorch"
    if narrow and isinstance(model, CausalModel):
        model, record = in_blocks(model, record, _matrices(model, record), device)
    return _Source(model, record, read.layout)


def _matrices(model: Module, record: Mapping[str, Any]) -> list[str]:
    """Paths of weights of linear maps and tables, where the record has them in their sizes."""
    found = ((path, entry) for path, entry in record.items() if isinstance(entry, TensorEntry))
    sizes = {path: sorted(entry.shape) for path, entry in found}
    known = model.params().items()
    return [path for path, p in known if len(p.shape) == 2 and sizes.get(path) == sorted(p.shape)]


def _open_gguf(path: Path, device: Backend, *, quantized: bool) -> _Source:
    from ._gguf import GgufFile  # noqa: PLC0415 - folders do not need it

    file = GgufFile.open(path)
    model = _described(file.config, device)
    record = file.record(model.params())
    if quantized:
        model, record = in_blocks(model, record, _matrices(model, record), device)
    return _Source(model, record, "pytorch")


def _only(folder: Path, suffix: str) -> Path | None:
    """The one file of a kind in a folder without settings of its own."""
    found = sorted(folder.glob(f"*{suffix}"))
    return found[0] if len(found) == 1 and not (folder / _CONFIG).exists() else None


def _without_index(weights: Path) -> Path:
    return weights.with_name(weights.name.removesuffix(_INDEX))


def _json(path: Path) -> Json:
    """The settings of a folder."""
    if not path.exists():
        what = f"No such file or directory; a model is its weights beside a {_CONFIG}"
        raise FileNotFoundError(2, what, str(path))
    if path.stat().st_size > _CONFIG_BYTES:
        got = f"{path.stat().st_size:,} bytes"
        raise RecordError("load", f"{_CONFIG} is too large", got=got, expected=f"{_CONFIG_BYTES:,}")
    try:
        found = json.loads(path.read_bytes())
    except (ValueError, RecursionError) as error:
        raise RecordError("load", f"{_CONFIG} is no JSON", got=str(error)) from None
    if not isinstance(found, dict):
        got = type(found).__name__
        raise RecordError("load", f"{_CONFIG} is no object", got=got, expected="settings by name")
    return found


def _weights(folder: Path) -> Path:
    """The file of weights in a folder."""
    for name in _WEIGHTS:
        if (folder / name).exists() or (folder / f"{name}{_INDEX}").exists():
            return folder / name
    alone = sorted(folder.glob("*.safetensors"))
    if len(alone) == 1:
        return alone[0]
    there = some([each.name for each in sorted(folder.iterdir())])
    what = f"no weights: there is {there}, expected {' or '.join(_WEIGHTS)}"
    raise FileNotFoundError(2, what, str(folder))


def named(record: Any) -> Iterator[tuple[str, Any]]:
    """Yield tensors by dotted name."""
    work: list[tuple[str, Any]] = [("", record)]
    while work:
        path, node = work.pop()
        if isinstance(node, Mapping):
            work += [(f"{path}.{key}" if path else key, node[key]) for key in reversed(list(node))]
        else:
            yield path, node


def _needed(found: dict[str, Any], read: Published, config: ModelConfig) -> dict[str, Any]:
    """The tensors that a model may need, by its names."""
    unused = re.compile(read.unused)
    tied = getattr(config, "tied", False)

    def ours(name: str) -> str:
        for theirs, here in read.words.items():
            name = name.replace(theirs, here)
        return name.removeprefix(read.prefix)

    return {
        ours(name): entry
        for name, entry in found.items()
        if not unused.search(name) and not (tied and name == "lm_head.weight")
    }
