"""The picture of schedules shows all of them."""

from __future__ import annotations

from xml.etree import ElementTree

from phlox import optim
from tools.generate import schedules


def test_every_schedule_is_drawn() -> None:
    known = {
        name.removesuffix("SchedulerConfig") for name in vars(optim) if "SchedulerConfig" in name
    }
    assert set(schedules.rates()) == known - {""}


def test_the_picture_has_a_line_for_each_within_its_frame() -> None:
    root = ElementTree.fromstring(schedules.page())
    space = "{http://www.w3.org/2000/svg}"
    _ground, *frames = root.findall(f"{space}rect")
    lines = root.findall(f"{space}polyline")
    assert len(frames) == len(lines) == len(schedules.rates())
    for frame, line in zip(frames, lines, strict=True):
        left, top, width, height = (
            float(frame.attrib[key]) for key in ("x", "y", "width", "height")
        )
        for point in line.attrib["points"].split():
            x, y = map(float, point.split(","))
            assert left <= x <= left + width
            assert top - 0.1 <= y <= top + height + 0.1
