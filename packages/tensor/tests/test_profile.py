"""``Profile(device)`` counts time, calls and bytes by op and by module."""

from __future__ import annotations

import json
import threading
from pathlib import Path

import pytest

import phlox_tensor as pt
from phlox_tensor import ArgumentError, Numpy, Profile
from phlox_tensor.scope import WATCH, entered


def test_calls_bytes_and_time_are_counted_by_op() -> None:
    with Profile(Numpy()) as device:
        x = pt.ones((2, 3), device=device)
        y = x + x
        (y + 1.0).sum()
    rows = {row.name: row for row in device.report().by_op}
    assert {name: row.calls for name, row in rows.items()} == {"add": 2, "full": 1, "sum": 1}
    assert rows["full"].nbytes == 24
    assert rows["add"].nbytes == 3 * 24 + 2 * 24  # a number has no bytes
    assert rows["sum"].nbytes == 24 + 4
    assert all(row.seconds > 0 for row in rows.values())
    assert [call.op for call in device.calls] == ["full", "add", "add", "sum"]


def test_an_op_that_is_expanded_inside_counts_once() -> None:
    with Profile(Numpy()) as device:
        pt.ones(3, device=device).std()
    assert {row.name for row in device.report().by_op} == {"full", "std"}


def test_modules_are_told_apart_by_their_path() -> None:
    with Profile(Numpy()) as device:
        x = pt.ones(3, device=device)
        with entered(object(), "encoder.0"):
            x.exp()
            with entered(object(), "encoder.0.norm"):
                x.sum()
    rows = {row.name: row.calls for row in device.report().by_module}
    assert rows == {"(no module)": 1, "encoder.0": 1, "encoder.0.norm": 1}


def test_only_an_open_profile_counts() -> None:
    device = Profile(Numpy(float="float64", int="int16"))  # one that no other test has opened
    x = pt.ones(3, device=device)
    assert not [call.op for call in device.calls]
    with device:
        assert WATCH.count == 1
        x.exp()
        with pytest.raises(ArgumentError, match="open already"):
            device.__enter__()
    x.exp()
    assert [call.op for call in device.calls] == ["exp"]
    assert WATCH.count == 0
    with device:
        pass
    assert not [call.op for call in device.calls]


def test_the_report_prints_as_tables() -> None:
    with Profile(Numpy()) as device:
        pt.ones(3, device=device).exp()
    first, *rest = str(device.report()).splitlines()
    assert first.split() == ["op", "calls", "ms", "share", "MiB"]
    assert sum(line.startswith("exp ") for line in rest) == 1


def test_a_trace_has_an_event_for_each_call(tmp_path: Path) -> None:
    with Profile(Numpy()) as device:
        x = pt.ones(3, device=device)
        thread = threading.Thread(target=x.exp)
        thread.start()
        thread.join()
    device.save_trace(tmp_path / "trace.json")
    events = json.loads((tmp_path / "trace.json").read_text())["traceEvents"]
    assert [event["name"] for event in events] == ["full", "exp"]
    assert all(event["ph"] == "X" and event["dur"] > 0 for event in events)
    assert len({event["tid"] for event in events}) == 2
