"""Charts of measurements: a dot for each row, where its ratio is, and the mean of its group."""

from __future__ import annotations

import json
import re
from pathlib import Path

from tools.generate.charts import RAW, chart, files

MACHINE = {"torch": "2.15.0", "cpu": "A & B", "threads": 1}


def measured(**groups: list[float]) -> dict[str, object]:
    rows = [
        {"group": group, "name": f"{group} < {times}", "times": times}
        for group, each in groups.items()
        for times in each
    ]
    return {"machine": MACHINE, "rows": [*rows, {"group": "alone", "name": "no peer"}]}


def test_half_and_double_are_equally_far_from_one() -> None:
    picture = chart(measured(rows=[0.5, 1.0, 2.0], conv=[1000.0]))
    places = [float(x) for x in re.findall(r'<circle cx="([\d.]+)"', picture)]
    assert abs(places[0] + places[2] - 2 * places[1]) < 0.2
    assert places[3] == max(places) < 720  # beyond the end, so at it
    assert picture.count("#c8451b") == 1  # the one that is slower
    assert ">1.00</text>" in picture  # the mean of the group
    assert "A &amp; B" in picture
    assert "rows &lt; 0.5: 0.50" in picture
    assert ">alone<" not in picture


def test_each_file_of_measurements_is_drawn(tmp_path: Path) -> None:
    raw = tmp_path / "raw"
    raw.mkdir()
    (raw / "one.json").write_text(json.dumps(measured(rows=[1.5])))
    assert list(files(raw)) == [tmp_path / "one.svg"]
    assert {file.stem for file in RAW.glob("*.json")} == {file.stem for file in files()} != set()
