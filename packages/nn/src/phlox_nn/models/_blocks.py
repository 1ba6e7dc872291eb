"""Matrices in blocks of llama.cpp that are integers with scales here too, without any loss."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, Final, NamedTuple, TypeVar

from phlox_record import Stored, TensorEntry
from phlox_tensor import Numpy, asarray, float32, int8, pack_int4

from ..module.module import Module
from ..weights.quantized import Bits, quantize_weights

M = TypeVar("M", bound=Module)

_GROUP: Final = 32


class _Form(NamedTuple):
    """Blocks of a float16 and 32 integers: their bits, and how bytes become int8."""

    bits: Bits
    integers: Callable[[Any], Any]


def _bytes(raw: Any) -> Any:
    """Integers of 8 bits, (…, 32)."""
    return raw.view("int8")


def _halves(raw: Any) -> Any:
    """Integers from -8 on, of which 16 bytes hold low halves first, then high ones."""
    low, high = (raw & 15).view("int8") - 8, (raw >> 4).view("int8") - 8
    return raw.__array_namespace__().concat((low, high), axis=-1)


_FORMS: Final = {"Q4_0": _Form(4, _halves), "Q8_0": _Form(8, _bytes)}


def with_blocks(model: M, record: dict[str, Any], matrices: list[str]) -> tuple[M, dict[str, Any]]:
    """Return the model with stored weights where a record has blocks of them, and its record so.

    Args:
        model: with lazy parameters.
        record: entries by path, weights with the outputs in front.
        matrices: paths of the weights that may be stored.
    """
    result = dict(record)
    for name, form in _FORMS.items():
        stored = {path: record[path] for path in matrices if _is(record.get(path), name)}
        for path, entry in stored.items():
            del result[path]
            result[f"{path}.integers"], result[f"{path}.scales"] = _both(entry, form)
        if stored:
            model = quantize_weights(model, *stored, bits=form.bits, group=_GROUP)
    return model, result


def _is(entry: Any, name: str) -> bool:
    stored: Stored | None = getattr(entry, "stored", None)
    return stored is not None and stored.name == name


def _both(entry: TensorEntry, form: _Form) -> tuple[TensorEntry, TensorEntry]:
    """Integers and scales of a matrix, the inputs in front."""
    outputs, inputs = entry.shape
    assert entry.stored is not None
    read = entry.stored.read

    def blocks() -> Any:
        return read().reshape(outputs, inputs // _GROUP, -1)

    def integers() -> Any:
        whole = form.integers(blocks()[:, :, 2:]).reshape(outputs, inputs).T
        if form.bits == 4:
            return pack_int4(asarray(whole.copy(), device=Numpy()), 0).numpy()
        return whole

    def scales() -> Any:
        return blocks()[:, :, :2].copy().view("<f2")[:, :, 0].T.astype("float32")

    held = (inputs * form.bits // 8, outputs)
    return (
        TensorEntry(held, int8, integers, drop=entry.drop),
        TensorEntry((inputs // _GROUP, outputs), float32, scales, drop=entry.drop),
    )
