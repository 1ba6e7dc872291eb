"""What ``./x new-op`` refuses before it edits a file."""

from __future__ import annotations

import re
import shlex
from pathlib import Path

import pytest

import phlox as px
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


@pytest.mark.parametrize("domain", ["3", "3,-3", "low,high", "1,2,3"])
def test_an_interval_that_is_none_is_refused(
    domain: str, capsys: pytest.CaptureFixture[str]
) -> None:
    with pytest.raises(SystemExit):
        parse(["isru", f"--domain={domain}"])
    assert f"got '{domain}', expected LOW,HIGH" in capsys.readouterr().err
    assert parse(["isru", "--domain=-2,0.5"]).domain == (-2.0, 0.5)


def test_the_example_of_the_page_is_no_op_yet() -> None:
    page = (ROOT / "docs/contributing/add-an-op.md").read_text(encoding="utf-8")
    commands = re.findall(r"`./x new-op (\w[^`]*)`", page)
    names = [parse(shlex.split(command)).name for command in commands]
    assert names
    assert not any(hasattr(px, name) for name in names)
