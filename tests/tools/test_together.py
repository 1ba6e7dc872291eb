"""Jobs of `./x` that run side by side: their order, what they print, what they raise."""

import sys
import threading
from collections.abc import Callable

import pytest

from tools.check import steps
from tools.shell import CommandError, call, fail, say, together


def _speaks(word: str) -> Callable[[], int]:
    def job() -> int:
        say(word)
        return call(sys.executable, "-c", f"print('{word} ran'); raise SystemExit({len(word)})")

    return job


def test_results_and_output_come_whole_and_in_order(capsys: pytest.CaptureFixture[str]) -> None:
    assert together([[_speaks("one"), _speaks("three")], [_speaks("four")]]) == [3, 5, 4]
    said = capsys.readouterr().out
    for word in ("one", "three", "four"):
        assert f"x: {word}\n{word} ran\n" in said
    assert said.index("one") < said.index("three")


def test_two_chains_run_at_a_time() -> None:
    both = threading.Barrier(2, timeout=60)
    assert sorted(together([[both.wait], [both.wait]])) == [0, 1]


def test_an_error_of_a_job_reaches_the_caller_after_what_it_printed(
    capsys: pytest.CaptureFixture[str],
) -> None:
    def fails() -> int:
        say("about to fail")
        raise fail("it failed", "./x help")

    with pytest.raises(CommandError, match="it failed"):
        together([[fails]])
    assert capsys.readouterr().out == "x: about to fail\n"


def test_every_step_of_check_is_in_one_chain_and_runs_of_mypy_in_the_same() -> None:
    chains = [[step.name for step in chain] for chain in steps()]
    names = [name for chain in chains for name in chain]
    assert len(names) == len(set(names))
    assert {"ruff check", "mypy", "pyright", "cargo clippy"} <= set(names)
    assert sum(any(name.startswith("mypy") for name in chain) for chain in chains) == 1
