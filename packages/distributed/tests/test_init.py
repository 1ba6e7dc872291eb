"""Joining: alone without a launcher, and refused where ranks differ."""

from __future__ import annotations

import mmap
import os
import pickle
import subprocess
import sys
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import numpy as np
import pytest

import phlox_distributed as distributed
from phlox_distributed import DistributedError, _init, _memory, _mpi
from phlox_tensor import ArgumentError, UnknownNameError
from phlox_tensor.groups import all_gather_object, tree_sum


def test_a_process_started_alone_is_a_group_of_one(monkeypatch: pytest.MonkeyPatch) -> None:
    for name in _init.LAUNCHED:
        monkeypatch.delenv(name, raising=False)
    group = distributed.init()
    assert distributed.init() is group
    assert (group.rank, group.size, group.local_rank, group.local_size) == (0, 1, 0, 1)
    group.barrier()
    buffer, found = np.arange(3.0), np.empty(3)
    group.broadcast(buffer)
    group.all_gather(buffer, found, [3])
    assert found.tolist() == [0.0, 1.0, 2.0]
    group.all_to_all(buffer + 1, [3], found, [3])
    assert found.tolist() == [1.0, 2.0, 3.0]
    assert all_gather_object(group, "value") == ["value"]
    assert tree_sum(group, 3, np.array([[1.0], [2.0]])).tolist() == [3.0]


def test_a_library_that_one_thread_may_call_is_refused(monkeypatch: pytest.MonkeyPatch) -> None:
    serialized = SimpleNamespace(Query_thread=lambda: 2, THREAD_MULTIPLE=3)
    monkeypatch.setattr(_mpi, "needed", lambda *_: serialized)
    with pytest.raises(DistributedError, match=r"got thread level 2, expected 3(.|\n)*hint: impo"):
        distributed.Mpi()


def test_mpi_is_not_imported_without_a_launcher() -> None:
    code = "import sys, phlox_distributed as d; d.init(); print('mpi4py' in sys.modules)"
    env = {"PATH": "", "PYTHONPATH": ":".join(sys.path)}
    said = subprocess.run([sys.executable, "-c", code], check=True, stdout=-1, text=True, env=env)
    assert said.stdout == "False\n"


def test_names_of_torch_distributed_lead_here() -> None:
    for name, hint in {
        "get_rank": "group.rank",
        "init_process_group": "distributed.init()",
        "DistributedSampler": "run.batches()",
    }.items():
        with pytest.raises(AttributeError, match=rf"otherwise(.|\n)*{hint}".replace("()", r"\(\)")):
            getattr(distributed, name)
    for name, hint in {
        "world_size": "group.size",
        "all_gather_object": "distributed.all_gather_object",
        "all_reduce": "px.all_reduce",
        "szie": "group.size",
    }.items():
        with pytest.raises(AttributeError, match=rf"hint: {hint}"):
            getattr(distributed.Solo(), name)
    assert getattr(distributed.Solo(), "window", None) is None  # as of a group without one
    init: Any = distributed.init
    for words in ({"backend": "nccl"}, {"rank": 0}):
        with pytest.raises(TypeError, match=r"hint: group = distributed\.init\(\)  # phlox launch"):
            init(**words)
    with pytest.raises(TypeError, match=r"hint: group = distributed\.init\(\)  # phlox launch"):
        init("nccl")


def test_rows_that_differ_in_length_are_refused() -> None:
    ours = distributed.tree_sum(distributed.Solo(), 6, [[1.0, 2.0], [0.5, 0.5]])
    assert ours.tolist() == [1.5, 2.5]
    with pytest.raises(ArgumentError, match=r"differ in length: got \[\[1\.0\], \[2\.0, 3\.0\]\]"):
        distributed.tree_sum(distributed.Solo(), 3, [[1.0], [2.0, 3.0]])
    said = ("tree_sum float32 (3,) 2", ("tree_sum", "float32", (2,)))
    with pytest.raises(ArgumentError, match=r"float32 \(2,\) 2 on 0; .*\(3,\) 2 on 1"):
        distributed.tree_sum(other_says(said), 2, np.ones((1, 2), np.float32))


def other_says(theirs: object) -> Any:
    """Rank 0 of two, of which the other one says something of its own."""
    said = np.frombuffer(pickle.dumps(theirs, protocol=5), np.uint8)

    def all_gather(send: Any, receive: Any, counts: list[int]) -> None:
        if receive.dtype == np.uint8:
            theirs = said
        else:  # where it is, which differs; or how much it says
            theirs = np.array([0, 0] if counts == [2, 2] else [said.size], receive.dtype)
        receive[...] = np.concatenate([send, theirs])

    calls = dict.fromkeys(("local_rank", "local_size", "all_to_all", "broadcast", "barrier"), len)
    return SimpleNamespace(rank=0, size=2, all_gather=all_gather, **calls)


def test_a_rank_with_another_version_is_named() -> None:
    mine = _init.facts()
    assert mine["numpy"] == np.__version__
    other = {**mine, "numpy": "1.0"}
    with pytest.raises(DistributedError, match=r"rank 1 has another numpy: got 1\.0"):
        _init.require_alike(other_says(other), mine)
    _init.require_alike(other_says(dict(mine)), mine)


def test_processes_that_do_not_find_each_other_are_refused(monkeypatch: pytest.MonkeyPatch) -> None:
    """As those of srun, where Slurm and MPI speak different protocols: each would train alone."""
    monkeypatch.delenv("SLURM_STEP_NUM_TASKS", raising=False)
    monkeypatch.setenv("PHLOX_RANKS", "2")
    with pytest.raises(DistributedError, match=r"got a group of one, expected 2(.|\n)*=pmi2"):
        _init._require_size(1)
    _init._require_size(2)
    for name in _init.LAUNCHED:
        monkeypatch.delenv(name, raising=False)
    with pytest.raises(DistributedError, match="do not find each other"):
        distributed.init()
    monkeypatch.setenv("PHLOX_RANKS", "1")
    _init._require_size(1)


@pytest.mark.skipif(not Path("/dev/shm").exists(), reason="memory that processes share is no file")
def test_memory_that_killed_ranks_left_is_removed_once_nobody_uses_it(tmp_path: Path) -> None:
    path, others = (Path(f"/dev/shm/mpich_shm_{os.getpid()}_{k}") for k in range(2))
    for each in (path, others):
        each.write_bytes(bytes(mmap.PAGESIZE))
    try:
        with path.open("r+b") as file, mmap.mmap(file.fileno(), 0):
            _memory.note(tmp_path / "rank-0.shm")
            _memory.remove(tmp_path)
            assert path.exists()
        _memory.remove(tmp_path)
        assert not path.exists()
        assert others.exists()
    finally:
        others.unlink()


@pytest.mark.parametrize(
    ("name", "hint"),
    [
        ("FSDP", "shard_optimizer=True"),
        ("gather", "px.all_gather(x)"),
        ("get_local_rank", "group.local_rank"),
        ("is_available", "group.size > 1"),
        ("launch", "phlox launch -n 4"),
        ("no_sync", "microbatches=8"),
        ("rank", "group.rank"),
        ("send", "px.broadcast(x, 0)"),
        ("set_epoch", "run.batches()"),
    ],
)
def test_names_of_processes_elsewhere_say_what_is_meant(name: str, hint: str) -> None:
    with pytest.raises(UnknownNameError) as caught:
        getattr(distributed, name)
    assert hint in str(caught.value)
