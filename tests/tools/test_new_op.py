"""What ``./x new-op`` refuses before it edits a file."""

from __future__ import annotations

from pathlib import Path

import pytest

from tools.new_op import ROOT, ScaffoldError, add, parse


@pytest.mark.parametrize(
    ("name", "text"),
    [
        ("Bad", "not a name: got 'Bad'"),
        ("tanh", "the op exists: got tanh"),
        ("class", "the name is taken: got 'class'"),
        ("zeros", "the name is taken: got 'zeros'"),
        ("shape", "the name is taken: got 'shape'"),
    ],
)
def test_a_name_that_is_taken_is_refused(name: str, text: str) -> None:
    with pytest.raises(ScaffoldError, match=text):
        add(parse([name]), ROOT)


def test_a_free_name_is_written_into_a_copy(tmp_path: Path) -> None:
    unary = Path("packages/tensor/src/phlox_tensor/ops/unary.py")
    (tmp_path / unary).parent.mkdir(parents=True)
    (tmp_path / unary).write_text("")
    assert add(parse(["free_name", "--expand", "x"]), tmp_path) == [unary]
    assert '"free_name",' in (tmp_path / unary).read_text()
