"""A table with names and numbers is learned, by the settings that a command line says."""

from __future__ import annotations

import os
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from examples.weather.__main__ import WHEEL, Settings, fit
from examples.wheels import unpacked
from phlox import optim, train

LONG = os.environ.get("PHLOX_TEST_EXAMPLES") == "long"


def test_days_of_two_kinds_are_told_apart(tmp_path: Path) -> None:
    chance = np.random.default_rng(0)
    lines = ["date,precipitation,temp_max,temp_min,wind,weather"]
    for day in range(300):
        rain, wind = chance.uniform(0, 20), chance.uniform(0, 9)
        lines.append(f"day {day},{rain:.1f},{day % 30},{day % 30 - 8},{wind:.1f},")
        lines[-1] += "rain" if rain > 10 else "sun"
    (tmp_path / "days.csv").write_text("\n".join(lines) + "\n")
    words = ["optimizer:sgd-config", "--optimizer.momentum", "0.9", "--lr", "0.05"]

    def main(settings: Settings) -> train.Fitted[Any]:
        assert settings.optimizer == optim.SgdConfig(momentum=0.9)
        return fit(settings, tmp_path / "days.csv")

    done = train.cli(main, [*words, "--run", str(tmp_path / "run"), "--epochs", "8"])
    assert done.best("valid/accuracy").value > 0.9


@pytest.mark.long
@pytest.mark.skipif(not LONG, reason="needs the table: ./x test --long")
def test_the_weather_of_seattle_is_learned(tmp_path: Path) -> None:
    done = fit(Settings(run=str(tmp_path / "run")), unpacked("weather", WHEEL) / "weather.csv")
    assert done.best("valid/accuracy").value >= 0.62
