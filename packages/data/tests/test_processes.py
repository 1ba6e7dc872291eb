"""Processes as workers: the batches of one process, faults that are told, nothing left behind."""

from __future__ import annotations

import gc
import importlib
import os
import pickle
import signal
import subprocess
import sys
import threading
import time
from pathlib import Path
from typing import Any

import numpy as np
import pytest

import phlox_data as data
from phlox_tensor import ArgumentError

pytestmark = pytest.mark.skipif(sys.platform == "win32", reason="Windows has no such pipes")

# Processes import what they are to call: a file of its own, as tests are no modules.
NAME = "functions_of_items"
FUNCTIONS = """
import os, signal, time
import numpy as np
import phlox_data as data

def augmented(x, rng):
    image = np.full((2, 3), x % 7, "u1")
    return {"x": x, "noise": rng.random(3), "name": f"item {x}", "image": image}

def growing(x):
    return np.zeros(3 + (x == 40))

def failing(x):
    if x == 21:
        raise KeyError("no such word")
    return x

def lethal(x):
    if x == 21:
        os.kill(os.getpid(), signal.SIGKILL)
    return x

def strange(x):
    return lambda: x

def unchanged(x):
    return x

def drawn(x):
    return os.getpid(), np.random.randint(2**62)

def refusing(x):
    if x == 21:
        raise data.DataError("images", "a file is no whole picture")
    return x

def napping(x):
    time.sleep(0.001 if x < 8 else 30)
    return x
"""


@pytest.fixture
def functions(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Any:
    (tmp_path / f"{NAME}.py").write_text(FUNCTIONS)
    monkeypatch.syspath_prepend(str(tmp_path))
    yield importlib.import_module(NAME)
    del sys.modules[NAME]


def plain(batch: Any) -> tuple[Any, ...]:
    return tuple((k, v if isinstance(v, list) else (v.dtype, v.tolist())) for k, v in batch.items())


def test_batches_are_those_of_one_process(functions: Any) -> None:
    items = data.of(range(53)).map(functions.augmented)
    one = data.DataLoader(items, 8, shuffle=True)
    with data.DataLoader(items, 8, shuffle=True, workers=data.Processes(2)) as many:
        for _ in range(2):
            kept = [*many]  # slots of batches that somebody keeps are not used again
            assert [*map(plain, kept)] == [*map(plain, one)]
        wanted = [*one]
        for number, batch in enumerate(many):
            assert plain(batch) == plain(wanted[number])
            if number == 2:
                break
        assert many.position == (2, 3)
        assert [plain(batch) for batch in many] == [*map(plain, wanted[3:])]
        half = many.part(0, 1, 2)
        assert [plain(b) for b in half] == [plain(b) for b in one.part(0, 1, 2)]
        half.close()


def test_memory_is_used_again(functions: Any) -> None:
    items = data.of(range(640)).map(functions.augmented)
    with data.DataLoader(items, 64, workers=data.Processes(2)) as loader:
        for _ in range(3):
            for batch in loader:
                del batch
        gc.collect()
        assert loader._pool is not None
        assert len(loader._pool._slots._free) <= 5


def test_an_item_of_another_shape_is_told(functions: Any) -> None:
    items = data.of(range(53)).map(functions.growing)
    with data.DataLoader(items, 8, workers=data.Processes(2)) as loader:
        got: list[Any] = []
        with pytest.raises(data.RaggedError, match="item 1 of the batch") as caught:
            got.extend(batch.shape for batch in loader)
        assert got == [(8, 3)] * 5
        assert "batch 5 of epoch 0" in "".join(caught.value.__notes__)


def test_errors_come_out_at_their_batch(functions: Any) -> None:
    items = data.of(range(53)).map(functions.failing)
    with data.DataLoader(items, 8, workers=data.Processes(2)) as loader:
        got: list[Any] = []
        with pytest.raises(KeyError, match="no such word") as caught:
            got.extend(loader)
        assert len(got) == 2
        notes = "".join(caught.value.__notes__)
        assert "item 21, batch 2 of epoch 0, worker" in notes
        assert "in failing" in notes
        loader.position = (0, 3)
        assert len([*loader]) == 4


def test_a_process_that_is_gone_is_told_soon(functions: Any) -> None:
    items = data.of(range(53)).map(functions.lethal)
    loader = data.DataLoader(items, 8, workers=data.Processes(2))
    says = r"ended by SIGKILL at items 0 to 7 of batch 2 of epoch 0\nhint: loader\.at\(0, 2\)"
    with pytest.raises(data.WorkerError, match=says):
        list(loader)
    loader.close()


def test_errors_of_phlox_keep_what_was_noted_on_them(functions: Any) -> None:
    items = data.of(range(53)).map(functions.refusing)
    with (
        data.DataLoader(items, 8, workers=data.Processes(2)) as loader,
        pytest.raises(data.DataError, match="a file is no whole picture") as caught,
    ):
        list(loader)
    notes = "".join(caught.value.__notes__)
    assert "item 21, batch 2 of epoch 0, worker" in notes
    assert "again: loader.dataset.item(21, epoch=0, seed=0)" in notes


def test_a_process_that_is_killed_is_told_while_others_are_busy(functions: Any) -> None:
    items = data.of(range(64)).map(functions.napping)
    loader = data.DataLoader(items, 8, workers=data.Processes(2))
    batches = iter(loader)
    next(batches)
    assert loader._pool is not None
    killed: list[float] = []

    def kill() -> None:
        assert loader._pool is not None
        killed.append(time.perf_counter())
        os.kill(loader._pool._workers[0][0].pid, signal.SIGKILL)

    threading.Timer(0.3, kill).start()
    with pytest.raises(data.WorkerError, match="process 0 ended by SIGKILL"):
        next(batches)
    assert time.perf_counter() - killed[0] < 1  # 20 ms on an idle machine; it took 5 s once
    loader.close()


def test_processes_draw_other_numbers(functions: Any) -> None:
    first = data.DataLoader(data.of(range(64)).map(functions.drawn), 8, workers=data.Processes(2))
    pairs = [pair for batch in first for pair in zip(*map(np.ravel, batch), strict=True)]
    assert len({number for _, number in pairs}) == 64
    first.close()


def test_items_that_cannot_be_sent_are_told(functions: Any) -> None:
    items = data.of(range(8)).map(functions.strange)
    with (
        data.DataLoader(items, 8, workers=data.Processes(1)) as loader,
        pytest.raises(AttributeError, match="lambda") as caught,
    ):
        list(loader)
    assert "workers=4, which are threads" in "".join(caught.value.__notes__)


def test_functions_that_cannot_be_sent_are_refused() -> None:
    items = data.of(range(8)).map(lambda x: x)
    with pytest.raises(ArgumentError, match=r"cannot go to other processes.*\nhint: workers=4"):
        list(data.DataLoader(items, 8, workers=data.Processes(1)))
    with pytest.raises(ArgumentError, match="count is no number of processes"):
        data.Processes(0)


@pytest.mark.parametrize("named", [True, False])
def test_arrays_go_to_processes(functions: Any, named: bool) -> None:
    columns = {"x": np.arange(20), "deep": (np.eye(20), ["a"] * 20)}
    rows = data.arrays(**columns) if named else data.arrays(columns)
    items = rows.map(functions.unchanged)
    wanted = [*data.DataLoader(items, 8)]
    with data.DataLoader(items, 8, workers=data.Processes(1)) as loader:
        for found, other in zip(loader, wanted, strict=True):
            assert found["x"].tolist() == other["x"].tolist()
            assert found["deep"][0].tolist() == other["deep"][0].tolist()
            assert found["deep"][1] == other["deep"][1]
    again = pickle.loads(pickle.dumps(rows))
    assert again[3]["deep"][1] == "a"
    with pytest.raises(ValueError, match="read-only"):
        again[3]["deep"][0][0] = 1


def test_arrays_need_no_processes() -> None:
    with data.DataLoader(data.arrays(np.arange(9)), 4, workers=data.Processes(2)) as loader:
        assert [batch.tolist() for batch in loader] == [[0, 1, 2, 3], [4, 5, 6, 7], [8]]
        assert loader._pool is None


PROGRAM = """
import os, time
import phlox_data as data
from functions_of_items import augmented

if __name__ == "__main__":
    loader = data.DataLoader(data.of(range(800)).map(augmented), 8, workers=data.Processes(2))
    batches = iter(loader)
    next(batches)
    print(*[process.pid for process, _ in loader._pool._workers], flush=True)
    time.sleep(60)
"""


def test_nothing_is_left_when_the_parent_is_killed(functions: Any, tmp_path: Path) -> None:
    del functions
    before = {*os.listdir("/dev/shm")} if Path("/dev/shm").is_dir() else set()
    (tmp_path / "program.py").write_text(PROGRAM)
    with subprocess.Popen(
        [sys.executable, str(tmp_path / "program.py")],
        stdout=subprocess.PIPE,
        text=True,
        env=os.environ | {"PYTHONPATH": os.pathsep.join(sys.path)},
    ) as parent:
        assert parent.stdout is not None
        workers = [int(word) for word in parent.stdout.readline().split()]
        assert len(workers) == 2
        parent.send_signal(signal.SIGKILL)
    deadline = time.monotonic() + 10
    while any(Path(f"/proc/{worker}").exists() for worker in workers):
        assert time.monotonic() < deadline
        time.sleep(0.05)
    if before:
        after = {name for name in os.listdir("/dev/shm") if not name.startswith("mpich")}
        assert after <= before  # those of MPI are of programs beside this one


def test_a_program_without_a_guard_is_told(functions: Any, tmp_path: Path) -> None:
    del functions
    unguarded = PROGRAM.replace('if __name__ == "__main__":', "if True:")
    (tmp_path / "program.py").write_text(unguarded)
    done = subprocess.run(
        [sys.executable, str(tmp_path / "program.py")],
        capture_output=True,
        text=True,
        env=os.environ | {"PYTHONPATH": os.pathsep.join(sys.path)},
        check=False,
        timeout=60,
    )
    assert done.returncode
    assert 'hint: if __name__ == "__main__": around the program' in done.stderr
