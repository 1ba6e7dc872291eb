"""The program in the README runs, and gives what its comments say."""

from __future__ import annotations

import re
from pathlib import Path
from typing import Any

README = Path(__file__).parent.parent / "README.md"


def test_readme() -> None:
    blocks = re.findall(r"```python\n(.*?)```", README.read_text("utf-8"), re.DOTALL)
    assert len(blocks) == 1
    names: dict[str, Any] = {}
    exec(compile(blocks[0], str(README), "exec"), names)
    assert names["w"].grad(names["grads"]).tolist() == [2.0, 4.0, 6.0]
    assert names["first"].tolist() == [3.0, 12.0, 27.0]
    assert names["second"].tolist() == [6.0, 12.0, 18.0]
    assert float(names["moved"]) == 108.0
