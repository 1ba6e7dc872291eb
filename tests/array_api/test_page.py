"""The page of what does not hold of the array API says what happens."""

from __future__ import annotations

import operator
import re
from pathlib import Path

import numpy as np
import pytest

import phlox as px

PAGE = Path(__file__).parents[2] / "docs" / "array-api.md"
ROWS = re.findall(r"^\| `([^`]+)` \| `(\w+)` \|", PAGE.read_text(encoding="utf-8"), re.MULTILINE)


def test_the_page_has_rows() -> None:
    assert len(ROWS) >= 8


@pytest.mark.parametrize(("expression", "error"), ROWS)
def test_what_does_not_hold_is_an_error_of_this_class(expression: str, error: str) -> None:
    names = {"np": np, "operator": operator, "px": px, "x": px.ones((2, 2))}
    with pytest.raises(Exception, match=r"hint|expected") as raised:
        eval(expression, names)
    assert type(raised.value).__name__ == error


def test_an_operator_with_assignment_makes_a_new_tensor() -> None:
    x = px.ones((2, 2))
    y = x
    x += 1
    assert y.tolist() == [[1.0, 1.0], [1.0, 1.0]]
    assert x.tolist() == [[2.0, 2.0], [2.0, 2.0]]
