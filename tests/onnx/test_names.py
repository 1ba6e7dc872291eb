"""The names of ONNX's ops on the page of names."""

from __future__ import annotations

from phlox_onnx.table import TABLE
from tools.generate.spelling_notes import NOTES, ONNX
from tools.generate.spelling_rows import ROWS


def test_names_are_those_of_ops_that_are_read_and_stand_beside_ours() -> None:
    ours = {row.ours for row in ROWS}
    assert list(ONNX) == sorted(ONNX)
    assert list(NOTES) == sorted(NOTES)
    assert ONNX.keys() | NOTES.keys() <= ours
    assert set(ONNX.values()) <= {op for domain, op in TABLE if not domain}
