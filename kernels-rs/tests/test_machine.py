"""What the package says of the processor is what the system says, and what kernels really use."""

from __future__ import annotations

import os
import platform
import subprocess
import sys
from pathlib import Path
from time import perf_counter, sleep

import pytest

from phlox_kernels import Cpu, _machine


def test_what_is_in_use_is_there() -> None:
    used, there = _machine.used_instruction_sets(), _machine.instruction_sets()
    assert used
    if there:  # the system says
        assert {{"avx512": "avx512f"}.get(name, name) for name in used} <= {*there, "baseline"}


@pytest.mark.parametrize("level", ["avx2", "baseline"])
def test_the_environment_lowers_what_is_in_use(level: str) -> None:
    code = "from phlox_kernels import _machine; print(*_machine.used_instruction_sets())"
    run = _run(code, PHLOX_SIMD=level)
    there = _machine.instruction_sets()
    if platform.machine() in {"aarch64", "arm64"}:  # one level, which baseline takes products from
        used = ["asimd", *(name for name in ("asimddp", "bf16") if name in there)]
        expected = used[:1] if level == "baseline" else used
    else:
        expected = ["baseline" if there and level not in there else level]
    assert sorted(run.stdout.split()) == expected, run.stderr


@pytest.mark.parametrize(
    ("name", "value"),
    [
        ("PHLOX_CACHE_BYTES", "2 GiB"),
        ("PHLOX_NUM_THREADS", "0"),
        ("PHLOX_NUM_THREADS", "1.5"),
        ("PHLOX_NUM_THREADS", "257"),
        ("PHLOX_NUM_THREADS", "two"),
        ("PHLOX_PACKED_BYTES", "-1"),
        ("PHLOX_SIMD", "AVX2"),
        ("PHLOX_SIMD", "avx512_vnni"),
        ("PHLOX_SPIN_US", ""),
    ],
)
def test_settings_that_say_nothing_are_refused(name: str, value: str) -> None:
    run = _run("import phlox_kernels", **{name: value})
    assert run.returncode
    assert f"in {name}: got {value!r}, expected" in run.stderr
    assert "hint: " in run.stderr
    hint = run.stderr.rsplit("hint: ", 1)[1].split()[0].partition("=")
    assert hint[0] == name
    assert not name.endswith("_BYTES") or int(hint[2]) >= 2**20
    assert not _run("import phlox_kernels", **{name: hint[2]}).returncode


def _run(code: str, **settings: str) -> subprocess.CompletedProcess[str]:
    return subprocess.run(
        [sys.executable, "-c", code],
        env={**os.environ, **settings},
        capture_output=True,
        text=True,
        check=False,
    )


def test_a_description_holds_plain_facts() -> None:
    (facts,) = Cpu.describe()
    for word in ("model", "processors", "caches", "instruction sets", "instruction sets in use"):
        assert facts[word], word
    assert facts["cache in use"].startswith("L2 ")
    assert facts["threads"] >= 1


def test_peaks_are_measured() -> None:
    measured = Cpu.measured()
    assert "GFLOP/s on one thread" in measured["float32 peak"]
    units = {"amx_bf16", "avx512_bf16", "bf16"}.intersection(_machine.used_instruction_sets())
    assert ("bfloat16 peak" in measured) == bool(units)


def test_kernels_cut_for_the_cache_that_the_system_tells() -> None:
    told = [size for size in _machine.caches().split(", ") if size.startswith("L2 ")]
    assert _machine.used_cache() in (told or ["L2 1024K"])


@pytest.mark.parametrize(
    ("groups", "files", "share"),
    [
        ("0::/a/b", {"a/b/cpu.max": "150000 100000", "a/cpu.max": "max 100000"}, 1.5),
        ("0::/a/b", {"a/b/cpu.max": "max 100000", "a/cpu.max": "50000 100000"}, 0.5),
        ("0::/", {}, None),
        (
            "2:cpu,cpuacct:/a\n1:memory:/a",
            {"cpu/a/cpu.cfs_quota_us": "250000", "cpu/a/cpu.cfs_period_us": "100000"},
            2.5,
        ),
        (
            "2:cpu,cpuacct:/a",
            {"cpu/a/cpu.cfs_quota_us": "-1", "cpu/a/cpu.cfs_period_us": "100000"},
            None,
        ),
    ],
)
def test_the_quota_of_a_container_is_read(
    tmp_path: Path, groups: str, files: dict[str, str], share: float | None
) -> None:
    held = {"proc/self/cgroup": groups}
    held |= {f"sys/fs/cgroup/{name}": text for name, text in files.items()}
    for name, text in held.items():
        (tmp_path / name).parent.mkdir(parents=True, exist_ok=True)
        (tmp_path / name).write_text(text)
    assert _machine.quota(tmp_path) == share


@pytest.mark.skipif(not hasattr(os, "sched_setaffinity"), reason="the system has no affinity")
def test_threads_are_those_that_affinity_leaves() -> None:
    code = (
        "import os; os.sched_setaffinity(0, {min(os.sched_getaffinity(0))})\n"
        "from phlox_kernels import _machine; print(_machine.threads())"
    )
    env = {name: value for name, value in os.environ.items() if name != "PHLOX_NUM_THREADS"}
    run = subprocess.run(
        [sys.executable, "-c", code], env=env, capture_output=True, text=True, check=True
    )
    assert run.stdout.strip() == "1"


def test_peaks_are_measured_by_the_clock_that_is_given(monkeypatch: pytest.MonkeyPatch) -> None:
    """A machine that gives this process half of its time: by its own time it does twice as much."""

    def rate(count: int) -> float:
        sleep(0.01)
        return 1e9 * count

    for name in ("_fma_peak", "_bf16_peak"):
        monkeypatch.setattr(f"phlox_kernels._machine._native.{name}", rate)
    by_wall, by_own = _machine.peaks(2), _machine.peaks(2, lambda: perf_counter() / 2)
    assert by_wall["float32"] == pytest.approx(2e9, rel=0.1)
    assert by_own["float32"] == pytest.approx(4e9, rel=0.1)
    assert by_own.keys() == by_wall.keys()
