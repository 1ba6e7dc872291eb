"""The table of ops: an op is one row, in the file of its family."""

from __future__ import annotations

from typing import Final

from .._graph import OWN
from . import (
    attention,
    contraction,
    control,
    elementwise,
    loss,
    microsoft,
    microsoft_fused,
    microsoft_quantized,
    microsoft_recurrent,
    ml,
    movement,
    norm,
    quantized,
    random,
    recurrent,
    recurrent_layers,
    reduction,
    selection,
    signal,
    window,
)
from ._row import Row

_STANDARD = (
    contraction, control, elementwise, loss, movement, norm, quantized, random, recurrent,
    reduction, selection, signal, window,
)  # fmt: skip
_MICROSOFT = (microsoft, microsoft_fused, microsoft_quantized, microsoft_recurrent)
_OWN = (contraction, ml, movement, quantized, recurrent_layers)

TABLE: Final[dict[tuple[str, str], Row]] = {
    **{("", name): row for family in _STANDARD for name, row in family.ROWS.items()},
    **{("com.microsoft", name): row for family in _MICROSOFT for name, row in family.ROWS.items()},
    **{("ai.onnx.ml", name): row for name, row in ml.ROWS.items()},
    **{(OWN, name): row for family in _OWN for name, row in family.OWN_ROWS.items()},
    ("ai.onnx.preview", "FlexAttention"): attention.FLEX,
    (OWN, "BatchScan"): control.BATCH_SCAN,
}
