"""``phlox launch``: ends of jobs, and starts with fewer ranks that end in the same bits."""

from __future__ import annotations

import os
import random
import shutil
import signal
import subprocess
import sys
import time
from collections import Counter
from collections.abc import Iterator
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pytest

from phlox_distributed import DistributedError
from phlox_distributed._launch import Launch, main, require_hosts, require_system, starter
from phlox_distributed._rank import threads
from phlox_tensor.groups import Solo
from tests.distributed.test_mpi import MPIEXEC
from tests.distributed.training import FILLER, WAYS, log_of, whole
from tools.shell import ROOT

pytestmark = [
    pytest.mark.skipif(MPIEXEC is None, reason="no mpiexec is here: pip install mpich"),
    pytest.mark.skipif(
        sys.platform != "linux", reason="a process is looked up in /proc, which only Linux has"
    ),
]
LONG = [pytest.mark.long, pytest.mark.timeout(3600)]


def start(logs: Path, *words: str) -> subprocess.Popen[str]:
    path = os.pathsep.join([str(ROOT), os.environ.get("PYTHONPATH", "")])
    command = [sys.executable, "-m", "phlox", "launch", "--logs", str(logs), *words]
    environment = {**os.environ, "PYTHONPATH": path}
    pipe = subprocess.PIPE
    return subprocess.Popen(command, stdout=pipe, stderr=pipe, text=True, env=environment)


def launched(logs: Path, *words: str) -> tuple[int, str]:
    """Exit status and all that was said."""
    with start(logs, *words) as job:
        said, told = job.communicate(timeout=900)
    return job.returncode, said + told


@pytest.fixture(scope="module")
def calm(tmp_path_factory: pytest.TempPathFactory) -> tuple[bytes, list[dict[str, Any]]]:
    folder = tmp_path_factory.mktemp("calm") / "run"
    return b"".join(whole(Solo(), folder)), log_of(folder)


def ended_well(folder: Path, ranks: int, calm: Any) -> None:
    for rank in range(ranks):
        assert Path(f"{folder}-{rank}.bits").read_bytes() == calm[0]
    assert log_of(folder) == calm[1]


@pytest.mark.parametrize(
    ("kind", "why"),
    [
        ("SIGKILL", "ended with status 9"),
        pytest.param("raise", "rank 1 failed: ValueError: harm at step 7", marks=LONG),
        pytest.param("memory", "rank 1 failed: ", marks=LONG),
    ],
)
def test_a_rank_that_dies_is_done_without(tmp_path: Path, calm: Any, kind: str, why: str) -> None:
    script = str(ROOT / "tests/distributed/training.py")
    words = ["-n", "3", "--min", "2", script, str(tmp_path / "run"), "eager", kind, "1", "7"]
    code, said = launched(tmp_path / "logs", *words)
    assert code == 0, said
    assert why in said
    assert "starts again, 2 starts left after that" in said
    assert "done 0 of 2" in said
    ended_well(tmp_path / "run", 2, calm)


def test_a_rank_that_stands_still_is_shown_and_done_without(tmp_path: Path, calm: Any) -> None:
    script = str(ROOT / "tests/distributed/training.py")
    words = ["-n", "2", "--min", "1", "--hang", "5", script, str(tmp_path / "run"), "compiled"]
    code, said = launched(tmp_path / "logs", *words, "SIGSTOP", "1", "5")
    assert code == 0, said
    assert "it stood still; the stacks of its ranks:" in said
    assert "in all_gather" in said  # where rank 0 waited
    assert "went first" not in said  # all were ended
    assert "rank 1:\n  none: it is stopped" in said
    ended_well(tmp_path / "run", 1, calm)


def test_a_job_that_is_told_to_end_saves_and_goes_on_with_more_ranks(
    tmp_path: Path, calm: Any
) -> None:
    script, folder = str(ROOT / "tests/distributed/training.py"), tmp_path / "run"
    words = (script, str(folder), "eager", "slow", "0", "0")  # so that it has steps left then
    with start(tmp_path / "logs", "-n", "2", *words) as job:
        while not list(folder.glob("checkpoints/step-*")):
            time.sleep(0.01)
            assert job.poll() is None
        job.send_signal(signal.SIGTERM)
        _, told = job.communicate(timeout=100)
    assert job.returncode == 143, told
    assert not Path(f"{folder}-0.bits").exists()
    code, said = launched(tmp_path / "logs", "-n", "3", script, str(folder), "eager")
    assert code == 0, said
    ended_well(folder, 3, calm)


def test_a_rank_at_work_in_a_long_call_shows_where(tmp_path: Path) -> None:
    script = tmp_path / "works.py"
    lines = (
        "import time",
        "from phlox import distributed",
        "group = distributed.init()",
        "def work():",
        "    for _ in range(120):",
        "        time.sleep(0.5)",
        "        group.watchdog.note()",
        "group.rank and work()",
        "group.barrier()",
    )
    script.write_text("\n".join(lines))
    words = ["-n", "2", "--hang", "3", "--restarts", "0", str(script)]
    _, said = launched(tmp_path / "logs", *words)
    of_0, _, of_1 = said.partition("rank 0:")[2].partition("rank 1:")
    assert "in barrier" in of_0
    assert "in work" in of_1


def test_it_ends_when_it_fails_too_often(tmp_path: Path) -> None:
    script = tmp_path / "fails.py"
    script.write_text(
        "import sys\nfrom phlox import distributed\ndistributed.init()\nsys.exit(5)\n"
    )
    code, said = launched(tmp_path / "logs", "-n", "2", "--restarts", "1", str(script))
    assert code == 5
    assert said.count("starts again") == 1
    assert "failed: exit status 5" in said


@pytest.mark.parametrize(
    ("harm", "why"),
    [
        ("os._exit(0)", "rank 1 was gone first: no end of its script"),
        ("os.kill(os.getpid(), 9)", "rank 1 was gone first: no end of its script"),
        ("sys.exit(0)", "rank 1 ended, and rank 0 waits for it in an exchange"),
    ],
)
def test_a_rank_that_leaves_the_others_is_named(tmp_path: Path, harm: str, why: str) -> None:
    script = tmp_path / "leaves.py"
    lines = (
        "import os, sys, time",
        "from phlox import distributed",
        "group = distributed.init()",
        "for turn in range(40):",
        "    group.barrier()",
        "    time.sleep(0.02)",
        "    if group.rank == 1 and turn == 20:",
        f"        {harm}",
    )
    script.write_text("\n".join(lines))
    code, said = launched(tmp_path / "logs", "-n", "2", "--restarts", "0", str(script))
    assert code != 0
    assert why in said


def test_an_error_that_comes_again_is_not_tried_on(tmp_path: Path) -> None:
    script = tmp_path / "fails.py"
    lines = "from phlox import distributed\nif distributed.init().rank:\n    "
    turns = "\n    ".join(f"def fall{n}(): fall{n + 1}()" for n in range(40))
    script.write_text(f"{lines}{turns}\n    fall40 = lambda: 1 / 0\n    fall0()\n")
    code, said = launched(tmp_path / "logs", "-n", "2", str(script))
    assert code == 1
    assert said.count("starts again") == 1
    assert "the same error again, and no checkpoint in between" in said
    assert said.count("in fall0") == 2  # the traceback of rank 1 is shown whole, each time


def test_starts_with_fewer_ranks_keep_the_parts_of_the_first(tmp_path: Path) -> None:
    script = tmp_path / "parts.py"
    lines = (
        "import os, pathlib",
        "from phlox import Autodiff, Cpu, distributed, nn, optim, train",
        "group, here = distributed.init(), pathlib.Path(__file__)",
        "model = nn.Linear(4, 2, device=Autodiff(Cpu()))",
        "train.Learner(model, optim.AdamWConfig().init(), 0.1)",
        "learner = train.Learner(model, optim.AdamWConfig().init(), 0.1, group=group)",
        "if group.rank == 1:",
        "    os.kill(os.getpid(), 9)",
        "print(learner.microbatches, 'parts on', group.size)",
        "group.barrier()",
    )
    script.write_text("\n".join(lines))
    code, said = launched(tmp_path / "logs", "-np", "2", "--min", "1", str(script))
    assert code == 0, said
    assert "no group, so each of the 2 processes makes the whole training by itself" in said
    assert "2 parts on 1" in said


@pytest.fixture
def _signals() -> Iterator[None]:
    numbers = (signal.SIGINT, signal.SIGTERM, signal.SIGUSR1)
    before = [signal.getsignal(number) for number in numbers]
    yield
    for number, handler in zip(numbers, before, strict=True):
        signal.signal(number, handler)


@pytest.mark.usefixtures("_signals")
@pytest.mark.parametrize(("between", "starts"), [(True, 1), (False, 2)], ids=["between", "within"])
def test_a_signal_that_meets_no_job_ends_the_launch(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, between: bool, starts: int
) -> None:
    killed: list[int] = []

    def start(*_: Any) -> Any:
        told.append(0)
        if not between and len(told) == 2:
            os.kill(os.getpid(), signal.SIGTERM)
        return job

    def errors() -> set[str]:
        if between:
            os.kill(os.getpid(), signal.SIGTERM)
        return set()

    told: list[int] = []
    job = SimpleNamespace(
        wait=lambda: 1, tell=lambda _: False, kill=lambda: killed.append(len(told)), errors=errors,
        reasons=list, began=True, joined=True, failed_early=False, left="",
    )  # fmt: skip
    monkeypatch.setattr(Launch, "_start", start)
    assert Launch(["mpiexec"], ["script.py"], tmp_path, 1.0).run(2, 1, 9) == 143
    assert len(told) == starts
    assert killed[-1] == starts


def test_a_script_that_joins_nobody_is_told_of(tmp_path: Path) -> None:
    script = tmp_path / "alone.py"
    script.write_text("print('done')\n")
    code, said = launched(tmp_path / "logs", "-n", "2", str(script))
    assert code == 0
    assert "each of 2 ranks did all by itself: none called distributed.init()" in said


def test_a_rank_may_work_on_alone_after_the_others(tmp_path: Path) -> None:
    script = tmp_path / "alone.py"
    script.write_text(
        "import time\nfrom phlox import distributed\ngroup = distributed.init()\n"
        "group.barrier()\ntime.sleep(8 * (group.rank == 0))\nprint('evaluated', group.rank)\n"
    )
    code, said = launched(tmp_path / "logs", "-n", "2", "--restarts", "0", str(script))
    assert code == 0, said
    assert "evaluated 0" in said


def test_a_module_that_cannot_start_is_started_once_as_python_does(tmp_path: Path) -> None:
    words = ["-n", "2", "-m", "json.tool", "--compact", "no-such-file"]
    code, said = launched(tmp_path / "logs", *words)
    assert code == 2
    assert "starts again" not in said
    assert "before distributed.init(): it cannot start" in said
    assert "No such file or directory: 'no-such-file'" in said


def test_what_cannot_be_started_is_refused(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    assert main(["-n", "2", "--by", "no-such-program", "script.py"]) == 2
    assert "got no no-such-program" in capsys.readouterr().err
    for words, why in (
        (["-n", "2"], "no script is given"),
        (["-n", "0", "script.py"], "-n is 0"),
        (["-n", "2", "--min", "3", "script.py"], "--min is 3, not 1 to 2"),
        (["script.py"], "required: -n"),
    ):
        with pytest.raises(SystemExit):
            main(words)
        assert why in capsys.readouterr().err
    with pytest.raises(DistributedError, match=r"got Windows(.|\n)*hint: mpiexec -n 4"):
        require_system("win32")
    for words in (["--restarts", "-1"], ["--hang", "0"], ["--logs", __file__]):
        with pytest.raises(SystemExit):
            main(["-n", "2", *words, __file__])
    hosts = tmp_path / "hosts"
    for text, got in ((None, "No such file"), ("", "an empty file"), ("a slots=4", "a slots=4")):
        if text is not None:
            hosts.write_text(text)
        assert main(["-n", "2", "--hosts", str(hosts), __file__]) == 2
        said = capsys.readouterr().err
        assert f"machines from {hosts}: got {got}" in said
        assert "expected host:4 a line" in said
    with pytest.raises(SystemExit):
        main(["-n", "2", "no-such-script.py"])
    assert "no such script: no-such-script.py" in capsys.readouterr().err
    assert starter(None, "hosts.txt")[1:] == ["-f", "hosts.txt"]
    monkeypatch.setenv("SLURM_CPUS_PER_TASK", "3")
    assert threads(8) == 3  # the cores of a task are its own
    monkeypatch.setenv("MPI_LOCALNRANKS", "8")  # in a batch script, whose task is mpiexec
    assert threads(10_000) == 1
    monkeypatch.delenv("MPI_LOCALNRANKS")
    monkeypatch.delenv("SLURM_CPUS_PER_TASK")
    assert threads(1) >= threads(2) >= threads(10_000) == 1


def test_other_starters_pass_on_what_ranks_are_told(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    for name in ("mpiexec", "srun"):
        program = tmp_path / name
        program.write_text("#!/bin/sh\necho mpiexec of OpenRTE, Open MPI 4.1\n")
        program.chmod(0o755)
    words = starter(str(tmp_path / "mpiexec"), "hosts.txt")
    told = [words[at + 1] for at, word in enumerate(words) if word == "-x"]
    assert sorted(told) == ["PHLOX_FIRST", "PHLOX_HANG", "PHLOX_LAUNCH", "PHLOX_RANKS"]
    monkeypatch.setenv("SLURM_CPUS_PER_TASK", "3")
    assert "--cpus-per-task=3" in starter(str(tmp_path / "srun"), None)
    hosts = tmp_path / "hosts"
    hosts.write_text("node1:4\n")
    with pytest.raises(DistributedError, match=r"got node1:4, expected host a line\nhint: sed"):
        require_hosts(hosts, starter(str(tmp_path / "srun"), str(hosts)))
    hosts.write_text("node1\n")
    require_hosts(hosts, starter(str(tmp_path / "srun"), str(hosts)))


def test_no_folder_is_left_of_a_job_that_ended_well(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    code = 0
    monkeypatch.setattr("phlox_distributed._launch.Launch.run", lambda *_: code)
    monkeypatch.setattr("tempfile.tempdir", str(tmp_path))
    script = str(ROOT / "tests/distributed/training.py")
    for code in (1, 0):
        assert main(["-n", "2", script]) == code
        assert len(list(tmp_path.glob("phlox-launch-*"))) == 1  # that of the one that failed


@pytest.fixture
def small_disk(tmp_path: Path) -> Iterator[Path]:
    """A disk of 4 MB."""
    if os.geteuid() != 0:
        pytest.skip("to mount a small disk takes root")
    disk = tmp_path / "disk"
    disk.mkdir()
    subprocess.run(["mount", "-t", "tmpfs", "-o", "size=4m", "tmpfs", str(disk)], check=True)
    yield disk
    subprocess.run(["umount", str(disk)], check=True)


@pytest.mark.parametrize(("way", "kills"), [pytest.param(way, 50, marks=LONG) for way in WAYS])
def test_many_deaths_at_random_steps_change_no_bit(
    tmp_path: Path, small_disk: Path, way: str, kills: int
) -> None:
    """Each start has another number of ranks, and one of them dies in some way at some step."""
    chance = random.Random(kills)
    script = str(ROOT / "tests/distributed/training.py")
    expected = b"".join(whole(Solo(), tmp_path / "calm", **WAYS[way]))
    died: Counter[str] = Counter()
    for turn in range(kills):
        folder = small_disk / f"run-{turn // 5}"
        if turn % 5 == 4:
            code, said = launched(tmp_path / "logs", "-n", "3", script, str(folder), way)
            assert code == 0, said
            assert Path(f"{folder}-2.bits").read_bytes() == expected
            shutil.rmtree(folder)
            continue
        ranks = chance.choice([2, 3, 4, 5])
        kind = chance.choice(["SIGKILL", "SIGSTOP", "raise", "exit", "memory", "disk"])
        words = [script, str(folder), way, kind, str(chance.randrange(ranks))]
        step = str(turn % 5 * 7 + chance.randrange(1, 8))
        how = ["-n", str(ranks), "--restarts", "0", "--hang", "8"]
        code, _ = launched(tmp_path / "logs", *how, *words, step)
        died[kind] += code != 0
        (small_disk / FILLER).unlink(missing_ok=True)
    assert died.total() > kills // 2
    assert len(+died) == 6
