"""The program in the README runs."""

from __future__ import annotations

import re
from pathlib import Path

import pytest

README = Path(__file__).parent.parent / "README.md"


def test_readme(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    blocks = re.findall(r"```python\n(.*?)```", README.read_text("utf-8"), re.DOTALL)
    assert blocks
    names: dict[str, object] = {}
    exec(compile("\n".join(blocks), str(README), "exec"), names)
    assert sorted(p.name for p in tmp_path.iterdir()) == ["checkpoint.json", "checkpoint.mpk"]
    record = names["record"]
    assert isinstance(record, dict)
    assert record["step"] == 300
    assert record["weight"].dtype.name == "float16"
