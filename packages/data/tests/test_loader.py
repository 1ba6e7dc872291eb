"""The loader: same batches for any workers, resumed anywhere, nothing left behind."""

from __future__ import annotations

import gc
import subprocess
import sys
import threading
import time
import tracemalloc
from collections.abc import Callable
from typing import Any

import numpy as np
import pytest

import phlox_data as data
import phlox_tensor as pt

WORKERS = (0, 1, 3, 8)


def augmented(x: int, rng: np.random.Generator) -> dict[str, Any]:
    return {"x": x, "noise": rng.random(3), "name": f"item {x}"}


SOURCES: dict[str, Callable[[], data.Dataset[Any]]] = {
    "arrays": lambda: data.arrays(x=np.arange(53), noise=np.eye(53), name=["a"] * 53),
    "items": lambda: data.of(range(53)).map(augmented),
}


def slow(x: int) -> int:
    time.sleep(0.005)
    return x


def noting(made: list[int]) -> Callable[[int], int]:
    def note(x: int) -> int:
        made.append(x)
        return x

    return note


def threads() -> list[str]:
    return [t.name for t in threading.enumerate() if t.name.startswith("phlox-data")]


@pytest.fixture(autouse=True)
def nothing_left() -> Any:
    yield
    gc.collect()
    assert threads() == []


def plain(batch: Any) -> tuple[Any, ...]:
    return batch["x"].tolist(), batch["noise"].tobytes(), batch["name"]


@pytest.mark.parametrize("source", SOURCES)
@pytest.mark.parametrize("workers", WORKERS)
@pytest.mark.parametrize("prefetch", [0, 1, 5])
def test_batches_are_the_same_for_any_workers(source: str, workers: int, prefetch: int) -> None:
    dataset = SOURCES[source]()
    wanted = [plain(b) for _ in range(2) for b in data.DataLoader(dataset, 10, shuffle=True)]
    wanted = [
        plain(data.DataLoader(dataset, 10, shuffle=True).at(e, n))
        for e in range(2)
        for n in range(6)
    ]
    loader = data.DataLoader(dataset, 10, shuffle=True, workers=workers, prefetch=prefetch)
    assert [plain(b) for _ in range(2) for b in loader] == wanted
    assert wanted[:6] != wanted[6:]
    assert sorted(x for b in wanted[:6] for x in b[0]) == [*range(53)]


@pytest.mark.parametrize("stop", range(13))
def test_a_loader_goes_on_where_another_stopped(stop: int) -> None:
    dataset = SOURCES["items"]()
    wanted = [
        plain(data.DataLoader(dataset, 9, shuffle=True).at(e, n))
        for e in range(3)
        for n in range(6)
    ]
    first = data.DataLoader(dataset, 9, shuffle=True, workers=WORKERS[stop % 4])
    seen: list[Any] = []
    while len(seen) < stop:
        for batch in first:
            seen.append(plain(batch))
            if len(seen) == stop:
                break
    assert first.position == divmod(stop, 6)
    second = data.DataLoader(dataset, 9, shuffle=True, workers=WORKERS[(stop + 1) % 4])
    second.load_record(first.into_record())
    while len(seen) < 18:
        seen.extend(plain(batch) for batch in second)
    assert seen == wanted


def test_leaving_a_loop_keeps_the_place() -> None:
    loader = data.DataLoader(range(10), 2)
    for batch in loader:
        if batch[0] == 4:
            break
    assert [b.tolist() for b in loader] == [[6, 7], [8, 9]]
    assert loader.position == (1, 0)
    loader.position = (0, 3)
    assert len([*loader]) == 2


def test_last_batches_are_kept_or_dropped() -> None:
    assert [len(b) for b in data.DataLoader(range(7), 3)] == [3, 3, 1]
    assert [len(b) for b in data.DataLoader(range(7), 3, drop_last=True)] == [3, 3]
    assert len(data.DataLoader(range(6), 3)) == 2


@pytest.mark.parametrize("workers", [0, 3])
def test_an_error_comes_at_its_batch_with_its_item(workers: int) -> None:
    def bad(x: int) -> int:
        if x in (27, 31):
            raise KeyError(f"no {x}")
        return x

    loader = data.DataLoader(data.of(range(60)).map(bad), 16, workers=workers)
    seen: list[Any] = []
    with pytest.raises(KeyError, match="no 27") as caught:
        seen.extend(iter(loader))
    assert len(seen) == 1
    assert loader.position == (0, 1)
    (note,) = caught.value.__notes__
    assert note.startswith("item 27, batch 1 of epoch 0")
    assert ("worker" in note) == (workers > 0)
    with pytest.raises(KeyError, match="no 27"):
        eval(note.partition("again: ")[2], {"loader": loader})
    loader.position = (0, 2)
    assert len([*loader]) == 2


@pytest.mark.parametrize("workers", [0, 2])
def test_a_ragged_item_is_named_by_its_index(workers: int) -> None:
    ragged = data.of([[1]] * 12 + [[1, 2]] + [[1]] * 7)
    loader = data.DataLoader(ragged, 10, workers=workers)
    with pytest.raises(data.RaggedError, match="item 2 of the batch") as caught:
        list(loader)
    assert caught.value.__notes__[0].startswith("item 12, batch 1 of epoch 0")
    assert "again: loader.at(0, 1)" in caught.value.__notes__[0]
    padded = data.DataLoader(ragged, 10, workers=workers, collate=data.pad(0))
    assert [b.shape for b in padded] == [(10, 1), (10, 2)]


def test_an_error_of_a_collate_is_noted() -> None:
    loader = data.DataLoader(range(4), 2, collate=lambda items: items[5], workers=1)
    with pytest.raises(IndexError) as caught:
        next(iter(loader))
    assert caught.value.__notes__ == ["batch 0 of epoch 0, worker 0\nagain: loader.at(0, 0)"]


def test_even_the_exit_of_a_worker_comes_out() -> None:
    def leave(x: int) -> int:
        raise SystemExit(3)

    with pytest.raises(SystemExit):
        next(iter(data.DataLoader(data.of(range(4)).map(leave), 2, workers=2)))


@pytest.mark.parametrize("how", ["dropped", "closed", "left"])
def test_no_thread_is_left_behind(how: str) -> None:
    loader = data.DataLoader(data.of(range(1000)).map(slow), 8, workers=4)
    batches = iter(loader)
    next(batches)
    assert len(threads()) == 4
    if how == "dropped":
        del batches, loader
        gc.collect()
    elif how == "closed":
        loader.close()
    else:
        for _ in loader:
            break
    assert threads() == []


def test_workers_make_so_many_batches_ahead_and_no_more() -> None:
    made: list[int] = []
    loader = data.DataLoader(data.of(range(100)).map(noting(made)), 10, workers=3, prefetch=2)
    batches = iter(loader)
    next(batches)
    deadline = time.monotonic() + 10
    while len(made) < 30 and time.monotonic() < deadline:
        time.sleep(0.001)
    time.sleep(0.05)
    assert len(made) == 30
    del batches


def test_workers_share_a_batch() -> None:
    together = threading.Barrier(4, timeout=10)
    loader = data.DataLoader(
        data.of(range(32)).map(lambda x: together.wait() if x % 8 == 0 else x),
        32,
        workers=4,
        prefetch=0,
    )
    assert len([*loader]) == 1


def test_workers_see_the_context_of_the_loop() -> None:
    dataset = data.of(range(4)).map(lambda x: str(pt.ones(1).device))
    with pt.use_device(pt.Numpy()):
        assert [*data.DataLoader(dataset, 4, workers=2)] == [["Numpy()"] * 4]


@pytest.mark.parametrize("source", SOURCES)
@pytest.mark.parametrize("workers", [0, 2])
def test_parts_make_up_the_whole(source: str, workers: int) -> None:
    loader = data.DataLoader(SOURCES[source](), 10, shuffle=True, workers=workers)
    parts = [loader.part(v, v + 1, 8) for v in range(8)]
    pairs = loader.part(0, 4, 8), loader.part(4, 8, 8)
    for number in range(len(loader)):
        whole = plain(loader.at(0, number))
        for split in (parts, pairs):
            rows = [part.at(0, number) for part in split]
            assert [x for row in rows for x in row["x"].tolist()] == whole[0]
            assert b"".join(row["noise"].tobytes() for row in rows) == whole[1]
            assert [x for row in rows for x in row["name"]] == whole[2]
    assert parts[0].at(0, 5)["noise"].shape == (0, loader.at(0, 5)["noise"].shape[1])
    assert [*map(len, (batch["x"] for batch in parts[0]))] == [1, 1, 1, 1, 1, 0]


def test_a_part_reads_only_its_rows() -> None:
    read: list[int] = []
    loader = data.DataLoader(data.of(range(8)).map(noting(read)), 8)
    assert [batch.tolist() for batch in loader.part(1, 2, 4)] == [[2, 3]]
    assert read == [2, 3]


def test_what_is_no_part_is_refused() -> None:
    loader = data.DataLoader(range(8), 2)
    for wrong in ((1, 1, 2), (0, 3, 2), (-1, 1, 2)):
        with pytest.raises(pt.ArgumentError, match="no such parts"):
            loader.part(*wrong)
    with pytest.raises(pt.ArgumentError, match="a part has no parts"):
        loader.part(0, 1, 2).part(0, 1, 2)


@pytest.mark.parametrize("workers", [0, 2])
def test_arrays_go_to_the_device(workers: int) -> None:
    dataset = data.arrays(
        x=np.arange(4, dtype=np.uint8), y=np.eye(4, dtype=np.float32), name=["a"] * 4
    )
    batch = next(iter(data.DataLoader(dataset, 3, workers=workers, device="numpy")))
    assert isinstance(batch["x"], pt.Tensor)
    assert batch["x"].device == pt.Numpy()
    assert (batch["x"].dtype, batch["y"].dtype) == (pt.uint8, pt.float32)
    assert batch["name"] == ["a", "a", "a"]
    tensors = data.DataLoader([pt.ones(2, device="numpy")] * 3, 2, device="numpy")
    assert tensors.at(0, 0).device == pt.Numpy()


@pytest.mark.parametrize(
    "settings", [{"batch": 0}, {"workers": -1}, {"prefetch": -1}, {"batch": 2.5}, {"workers": True}]
)
def test_numbers_that_make_no_sense_are_refused(settings: dict[str, Any]) -> None:
    with pytest.raises(pt.ArgumentError, match=f"{next(iter(settings))} is no such number"):
        data.DataLoader(range(8), **{"batch": 2, **settings})


def test_whole_numbers_of_numpy_are_numbers() -> None:
    loader = data.DataLoader(range(8), np.int64(2), workers=np.int32(2))  # type: ignore[arg-type]
    assert [batch.tolist() for batch in loader] == [[0, 1], [2, 3], [4, 5], [6, 7]]


def test_an_epoch_without_a_batch_is_refused() -> None:
    with pytest.raises(pt.ArgumentError, match="got 0 items, expected 1 or more"):
        data.DataLoader([], 2)
    with pytest.raises(pt.ArgumentError, match="got 3 items, expected 4"):
        data.DataLoader(range(3), 4, drop_last=True)


def test_records_of_other_orders_are_refused() -> None:
    record = data.DataLoader(range(10), 2, seed=1).into_record()
    others: list[tuple[str, dict[str, Any]]] = [
        ("seed", {"seed": 2}),
        ("order", {"shuffle": True}),
        ("order", {"shuffle": data.Blocks(3)}),
        ("order", {"sampler": data.Weighted([1.0] * 10)}),
        ("drop_last", {"drop_last": True}),
        ("batch", {"batch": 5}),
    ]
    for name, other in others:
        given: dict[str, Any] = {"batch": 2, "seed": 1, **other}
        loader = data.DataLoader(range(10), **given)
        with pytest.raises(pt.RecordError, match=f"as {name} differs"):
            loader.load_record(record)
    with pytest.raises(pt.RecordError, match="as items differs: got 10, expected 11"):
        data.DataLoader(range(11), 2, seed=1).load_record(record)
    with pytest.raises(pt.RecordError, match="not of a loader"):
        data.DataLoader(range(10), 2).load_record({"epoch": 1})


def test_places_outside_are_refused() -> None:
    loader = data.DataLoader(range(10), 2)
    for wrong in ((0, 5), (-1, 0), (0, -1)):
        with pytest.raises(pt.ArgumentError, match="no such place"):
            loader.position = wrong
        with pytest.raises(pt.ArgumentError, match="no such batch"):
            loader.at(*wrong)


@pytest.mark.parametrize("workers", [0, 2])
def test_two_loops_at_once_are_refused(workers: int) -> None:
    loader = data.DataLoader(range(10), 2, workers=workers)
    outer = iter(loader)
    next(outer)
    assert next(iter(loader)).tolist() == [2, 3]
    with pytest.raises(pt.ArgumentError, match="ended by another one"):
        next(outer)


def test_waiting_is_counted() -> None:
    loader = data.DataLoader(data.of(range(4)).map(slow), 2)
    assert len([*loader]) == 2
    assert loader.waited >= 0.02


def test_a_loader_says_where_it_is() -> None:
    loader = data.DataLoader(range(4), 2)
    next(iter(loader))
    assert repr(loader) == "<DataLoader at batch 1 of 2 in epoch 0>"


INTERRUPTED = """
import _thread, signal, threading, time
import phlox_data as data

signal.signal(signal.SIGINT, signal.default_int_handler)  # which shells ignore behind an "&"

def slow(x):
    time.sleep(0.002)
    return x

loader = data.DataLoader(data.of(range(4000)).map(slow), 16, workers=3)
seen = 0
try:
    for batch in loader:
        seen += 1
        if seen == 5:
            _thread.interrupt_main()
except KeyboardInterrupt:
    print(seen, loader.position, threading.active_count(), next(iter(loader))[0])
"""


def test_an_interrupt_ends_the_threads_and_keeps_the_place() -> None:
    command = [sys.executable, "-c", INTERRUPTED]
    out = subprocess.check_output(command, text=True, timeout=60)
    assert out == "5 (0, 5) 1 80\n"


def test_memory_stays_flat_over_many_epochs() -> None:
    loader = data.DataLoader(data.of(range(64)).map(augmented), 16, shuffle=True, workers=4)
    sizes = []
    tracemalloc.start()
    try:
        for epoch in range(60):
            for _ in loader:
                pass
            if epoch in (19, 59):
                gc.collect()
                sizes.append(tracemalloc.get_traced_memory()[0])
    finally:
        tracemalloc.stop()
    assert sizes[1] - sizes[0] < 20_000  # an epoch's batches hold more


@pytest.mark.parametrize("workers", [0, 2])
def test_the_end_of_an_iterator_in_a_function_is_told_with_its_item(workers: int) -> None:
    items = data.of(range(8)).map(lambda x: next(iter([])) if x == 5 else x)
    with pytest.raises(RuntimeError, match="StopIteration out of a function") as caught:
        list(data.DataLoader(items, 4, workers=workers))
    assert caught.value.__notes__[0].startswith("item 5, batch 1 of epoch 0")
    assert isinstance(caught.value.__cause__, StopIteration)


@pytest.mark.parametrize("drop_last", [False, True])
@pytest.mark.parametrize("workers", [0, 2])
def test_shards_have_all_batches_once(drop_last: bool, workers: int) -> None:
    loader = data.DataLoader(range(23), 4, shuffle=True, drop_last=drop_last, workers=workers)
    whole = [batch.tolist() for batch in loader.part(0, 1, 1)]
    for of in (1, 2, 3, 5):
        shards = [[b.tolist() for b in loader.shard(index, of)] for index in range(of)]
        assert [shards[number % of][number // of] for number in range(len(whole))] == whole
    with pytest.raises(pt.ArgumentError, match="no such batches"):
        loader.shard(6, 9)
    with pytest.raises(pt.ArgumentError, match="no such batches"):
        data.DataLoader(range(8), 2, transform=abs).shard(0, 2)
