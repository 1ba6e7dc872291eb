"""Each row of the names table is called beside NumPy and PyTorch; what differs is said there."""

from __future__ import annotations

import re
from typing import Any

import pytest

import phlox_tensor as pt
from phlox_tensor import REGISTRY
from phlox_tensor._elsewhere.spellings import Spelling
from tests.names.given import GIVEN
from tests.names.rows import APART, BY_KINDS, OTHER, SAME, Line
from tools.generate.spelling_notes import NOTES
from tools.generate.spelling_rows import ROWS as SPELLING_ROWS

ROWS = {row.ours: row for row in SPELLING_ROWS if (row.numpy, row.torch) != ("", "")}
# What the calls here cannot show.
UNSEEN = {
    "remainder": "of ONNX",
    "scatter": "of Burn",
}


# Functions of devices, processes and settings, which have no like elsewhere, and names of types.
UNLIKE = {
    "Entry", "Pull", "Ready", "Standing", "all_gather", "all_reduce", "as_device", "as_dtype",
    "batch_norm_train", "blocks_linear", "broadcast", "default_device", "dequantize_blocks",
    "devices", "empty_cache", "is_inside", "pack_int4", "prepacked", "printoptions",
    "quantized_linear", "random.generator", "random.use_generator", "reduce_scatter",
    "set_printoptions", "unpack_int4",
}  # fmt: skip


def test_every_public_function_stands_in_the_table() -> None:
    ours = {row.ours for row in SPELLING_ROWS}
    spaces = {"": pt, "fft.": pt.fft, "linalg.": pt.linalg, "random.": pt.random}
    found = {
        prefix + name
        for prefix, space in spaces.items()
        for name in getattr(space, "__all__", dir(space))
        if not name.startswith("_") and callable(getattr(space, name)) and name not in ours
        if not isinstance(getattr(space, name), type)
    }
    assert found - ours == UNLIKE
    assert len(ours) == len(SPELLING_ROWS)


def lines(name: str) -> list[Line]:
    """The lines of a row that are to give the same."""
    op = REGISTRY.get(name)
    if name in SAME or name in OTHER or op is None or not op.op_class.broadcasts:
        return SAME.get(name, [])
    kinds = tuple(operand.kind for operand in op.signature.operands)
    return [(text,) for text in BY_KINDS.get(kinds, ())]


def test_every_row_is_called_or_says_why_not() -> None:
    for table in (SAME, OTHER, APART):
        assert list(table) == sorted(table)
        assert set(table) <= set(ROWS)
    called = {name for name in ROWS if lines(name) or name in OTHER}
    assert set(APART) == set(ROWS) - called


def test_what_differs_is_said_of_the_rows_that_differ() -> None:
    assert set(OTHER) <= set(NOTES), "a row that differs says nothing"
    assert set(NOTES) - set(OTHER) == set(UNSEEN), "nothing shows what a row says"


def _line(line: Line, row: Spelling, library: str) -> str:
    """A line as one library writes it; empty where it has no such function."""
    from tests.names.beside import function

    own = line[("ours", "numpy", "torch").index(library)] if len(line) == 3 else line[0]
    if library == "ours":
        return re.sub(r"\bf\(", f"px.{row.ours}(", own)
    name = getattr(row, library)
    if len(line) == 1 and not name:
        return ""
    if re.search(r"\bf\(", own):
        short = row.ours.rpartition(".")[2]
        names = (row.ours if name in ("", "=") else name, row.ours, short)
        found = next(filter(None, (function(each, library) for each in names)), None)
        own = "" if found is None else re.sub(r"\bf\(", f"{found}(", own)
    return own.replace("axis=", "dim=") if library == "torch" else own


def _differences(line: Line, row: Spelling) -> dict[str, str]:
    """In what each library that has the function differs."""
    from tests.names.beside import difference, ours, theirs

    mine: Any = ours(_line(line, row, "ours"), GIVEN)
    codes = {library: _line(line, row, library) for library in ("numpy", "torch")}
    found = {n: difference(mine, theirs(c, GIVEN, n)) for n, c in codes.items() if c}
    assert found, f"no library has {row.ours}: {line}"
    return found


@pytest.mark.long
@pytest.mark.parametrize("name", [name for name in ROWS if lines(name)])
def test_a_row_gives_what_others_give(name: str) -> None:
    for line in lines(name):
        assert not any(_differences(line, ROWS[name]).values()), (
            line,
            _differences(line, ROWS[name]),
        )


@pytest.mark.long
@pytest.mark.parametrize("name", OTHER)
def test_a_row_that_says_what_differs_does_differ(name: str) -> None:
    for line in OTHER[name]:
        assert any(_differences(line, ROWS[name]).values()), f"the same everywhere: {line}"
