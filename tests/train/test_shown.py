"""What others see of a run: its state, its list, a page about it, and its rows for other tools."""

from __future__ import annotations

import csv
import json
import math
import os
import re
import subprocess
import sys
from pathlib import Path
from typing import Any

import numpy as np
import pytest

import phlox as px
from phlox import train
from phlox._cli import main
from phlox_train.runs import control
from phlox_train.runs.control import ask
from phlox_train.runs.lock import is_held
from phlox_train.show.view import Curve, View
from tests.train.loops import loop, stop_at


def view(folder: Path) -> View:
    found = View(folder)
    found.read()
    return found


def page(*runs: Path) -> list[dict[str, Any]]:
    out = runs[0].parent / "page.html"
    assert main(["report", *map(str, runs), "-o", str(out)]) == 0
    text = out.read_text(encoding="utf-8")
    assert "://" not in text  # nothing is asked of a network
    data = re.search(r'<script type="application/json" id="data">(.*)</script>', text)
    assert data is not None
    runs_: list[dict[str, Any]] = json.loads(data[1], parse_constant=pytest.fail)
    return runs_


def test_a_folder_says_how_its_run_is(tmp_path: Path) -> None:
    def body(run: train.Run, one: Any) -> None:
        if run.steps == 5:
            assert is_held(tmp_path / "a")
            assert view(tmp_path / "a").state == "running"

    loop(tmp_path / "a", body=body, callbacks=[stop_at(7)])
    found = view(tmp_path / "a")
    assert (found.state, found.card["reason"], found.card["step"]) == ("stopped", "tested", 7)
    loop(tmp_path / "a", body=body)
    found = view(tmp_path / "a")
    assert (found.state, found.card["starts"], found.step, found.epoch) == ("done", 2, 12, 2)
    assert found.card["devices"] == ["Autodiff(Cpu())"]
    with pytest.raises(ZeroDivisionError):
        loop(tmp_path / "b", body=lambda run, one: 1 // 0)
    assert view(tmp_path / "b").state == "failed"
    assert view(tmp_path / "b").card["reason"].startswith("ZeroDivisionError")


def test_a_run_that_was_killed_is_called_so(tmp_path: Path) -> None:
    code = (
        "import os; from pathlib import Path; from tests.train.loops import loop\n"
        f"loop(Path({str(tmp_path / 'a')!r}), body=lambda r, o: r.steps > 5 and os._exit(9))"
    )
    path = os.pathsep.join([*sys.path, os.environ.get("PYTHONPATH", "")])
    subprocess.run(
        [sys.executable, "-c", code], env={**os.environ, "PYTHONPATH": path}, check=False
    )
    assert view(tmp_path / "a").state == "killed"


def test_a_view_reads_what_came_since_and_all_anew_where_a_run_goes_on(tmp_path: Path) -> None:
    found: list[View] = []
    seen: list[int] = []

    def body(run: train.Run, one: Any) -> None:
        if not found:
            found.append(View(tmp_path))
        seen.append(int(found[0].read()))

    loop(tmp_path, body=body, callbacks=[stop_at(9)])
    assert sum(seen) >= 3
    loop(tmp_path)
    assert found[0].read()
    assert found[0].curves["train/loss"].steps == list(range(1, 13))
    assert not found[0].read()
    assert (
        found[0].curves["train/loss"].values
        == loop(tmp_path)[0].history("train/loss").values.tolist()
    )


def test_no_peak_of_a_long_curve_is_lost() -> None:
    values = [1.0] * 100_000
    values[31_234], values[77_777], values[5] = 9.0, -9.0, math.nan
    curve = Curve(list(range(100_000)), [0] * 100_000, [0.0] * 100_000, values)
    table = curve.thinned()
    assert len(table) <= 2_000
    assert table[:, 3].max() == 9.0
    assert table[:, 3].min() == -9.0
    assert np.all(np.diff(table[:, 0]) > 0)
    assert len(curve.thinned(10**6)) == 100_000


def test_runs_are_listed(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    loop(tmp_path / "a", keep=[train.KeepBest("valid/loss")])
    loop(tmp_path / "deep" / "b", callbacks=[stop_at(7)])
    assert main(["runs", str(tmp_path)]) == 0
    head, first, second = capsys.readouterr().out.splitlines()
    assert head.split() == ["run", "state", "step", "epoch", "time", "best", "age"]
    assert re.match(r"deep/b +stopped +7 +2 ", first)
    assert re.match(r"a +done +12 +3 .*valid/loss 0 at 4 ", second)


def test_a_page_has_curves_and_what_differs(tmp_path: Path) -> None:
    loop(tmp_path / "a", config={"rate": 1e-3, "note": "</script>"})
    loop(tmp_path / "b", config={"rate": 1e-2, "net": {"width": 3}}, fn=nan_at_seven, stop=[])
    first, second = page(tmp_path / "a", tmp_path / "b")
    assert (first["name"], first["state"], first["step"]) == ("a", "done", 12)
    assert first["curves"]["train/loss"]["step"] == list(range(1, 13))
    assert first["best"]["valid/loss"] == {"value": 0.0, "step": 4, "better": "lower"}
    assert first["config"]["note"] == "</script>"
    assert second["config"] == {"rate": "0.01", "net.width": "3"}
    assert second["curves"]["train/loss"]["value"].count(None) >= 1
    assert first["environment"]["packages.numpy"] == np.__version__


def nan_at_seven(model: Any, batch: Any) -> Any:
    from tests.train.nets import forward

    out = forward(model, batch)
    counted.append(1)
    return {**out, "loss": out["loss"] * (math.nan if len(counted) == 7 else 1.0)}


counted: list[int] = []


def test_rows_go_into_csv_and_parquet(tmp_path: Path) -> None:
    parquet = pytest.importorskip("pyarrow.parquet", reason="pyarrow is not installed")
    run, _ = loop(tmp_path / "a")
    losses = run.history("train/loss").values.tolist()
    for to in ("csv", "parquet"):
        assert main(["export", str(tmp_path / "a"), "--to", to]) == 0
    with (tmp_path / "a" / "log.csv").open() as file:
        rows = list(csv.DictReader(file))
    assert [float(row["loss"]) for row in rows if row["split"] == "train"] == losses
    table = parquet.read_table(tmp_path / "a" / "log.parquet").to_pydict()
    assert table["loss"] == [float(row["loss"]) for row in rows]
    assert table["step"] == [int(row["step"]) for row in rows]


def test_a_name_that_comes_while_rows_are_written_is_no_error(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    loop(tmp_path / "a")
    old, log = View.rows, tmp_path / "a" / "log.jsonl"

    def growing(view: View) -> Any:
        yield from old(view)
        row = json.loads(log.read_text().splitlines()[-1]) | {"late": 1.0}
        with log.open("a") as file:
            file.write(json.dumps(row) + "\n")

    monkeypatch.setattr(View, "rows", growing)
    count = len(log.read_text().splitlines())
    assert main(["export", str(tmp_path / "a"), "--to", "csv"]) == 0
    with (tmp_path / "a" / "log.csv").open() as file:
        assert len(list(csv.DictReader(file))) == count


def test_tensorboard_files_have_each_value_once(tmp_path: Path) -> None:
    board = pytest.importorskip("tensorboardX", reason="an extra")
    events = pytest.importorskip("tensorboardX.proto.event_pb2")
    run, _ = loop(tmp_path / "a", config={"rate": 1.0})
    assert board.__version__
    assert main(["export", str(tmp_path / "a"), "--to", "tensorboard"]) == 0
    (file,) = (tmp_path / "a" / "tensorboard").iterdir()
    data, found = file.read_bytes(), []
    while data:  # length, its check, the event, its check
        size = int.from_bytes(data[:8], "little")
        event = events.Event.FromString(data[12 : 12 + size])
        found += [(v.tag, event.step, v.simple_value) for v in event.summary.value]
        data = data[16 + size :]
    curve = [value for name, _, value in found if name == "train/loss"]
    np.testing.assert_allclose(curve, run.history("train/loss").values, rtol=1e-6)
    assert any(name.startswith("config") for name, _, _ in found)


def test_a_library_that_is_not_installed_is_told(
    tmp_path: Path, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    loop(tmp_path / "a", epochs=1)
    for to, module in (("wandb", "wandb"), ("mlflow", "mlflow"), ("parquet", "pyarrow")):
        monkeypatch.setitem(sys.modules, module, None)
        assert main(["export", str(tmp_path / "a"), "--to", to]) == 2
        assert f'hint: pip install "{module}"' in capsys.readouterr().err


def test_no_run_is_a_clear_error(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    commands = (["runs"], ["report"], ["export", "--to", "csv"])
    for command in commands:
        assert main([*command, str(tmp_path)]) == 2
        assert "[runs] no run is there" in capsys.readouterr().err


def test_a_damaged_log_is_a_clear_error(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    loop(tmp_path / "a", epochs=1)
    log = tmp_path / "a" / "log.jsonl"
    log.write_text(log.read_text().replace("{", "", 1))
    assert main(["report", str(tmp_path), "-o", str(tmp_path / "page.html")]) == 2
    assert "log.jsonl is damaged" in capsys.readouterr().err
    loop(tmp_path / "b", epochs=1)
    assert main(["report", str(tmp_path), "-o", str(tmp_path / "page.html")]) == 0
    assert "log.jsonl is damaged" in capsys.readouterr().out
    assert '"name":"b"' in (tmp_path / "page.html").read_text()


@pytest.mark.parametrize(("wish", "steps"), [("save", 12), ("end", 8), ("stop", 5)])
def test_others_may_ask_a_run(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, wish: Any, steps: int
) -> None:
    monkeypatch.setattr(control, "_EVERY", 0.0)
    saved = []

    def note(event: train.Event, run: train.Run) -> None:
        if isinstance(event, train.Stepped) and event.step == 5:
            ask(tmp_path, wish)
        if isinstance(event, train.Saved) and event.reason != "epoch":
            saved.append((event.step, event.reason))

    run, _ = loop(tmp_path, callbacks=[note])
    assert run.steps == steps
    assert not (tmp_path / "control").exists()
    reason = f"{wish} was asked for"
    assert run.reason == ("done" if wish == "save" else reason)
    if wish != "end":
        assert (5, reason) in saved


def test_what_was_asked_of_an_earlier_start_is_forgotten(tmp_path: Path) -> None:
    ask(tmp_path, "stop")
    run, _ = loop(tmp_path)
    assert run.reason == "done"


def test_the_machine_is_measured_beside_the_log(tmp_path: Path) -> None:
    seen = []

    def note(event: train.Event, run: train.Run) -> None:
        if isinstance(event, train.Measured):
            seen.append(event.values)

    loop(tmp_path / "a", callbacks=[note, stop_at(7)], system=1e-6)
    loop(tmp_path / "a", callbacks=[note], system=1e-6)
    curves = view(tmp_path / "a").curves
    assert curves["system/memory"].values == [values["memory"] for values in seen]
    assert len(seen) == 12
    assert min(values["memory"] for values in seen) > 10.0
    assert min(values["tensors"] for values in seen) > 0.0
    for wrong in (0, -1.0, "10", True):
        with pytest.raises(px.ArgumentError, match=r"no interval(.|\n)*system=10.0"):
            loop(None, system=wrong)
    loop(tmp_path / "b", system=None)
    assert not any(name.startswith("system/") for name in view(tmp_path / "b").curves)
