"""Whole batches through a function and onto a device, one ahead of the loop."""

from __future__ import annotations

import gc
import threading
import time
from typing import Any

import numpy as np
import pytest

import phlox_data as data
import phlox_tensor as pt
from phlox_data import augment

ROWS = data.arrays(
    image=np.arange(53 * 12, dtype=np.uint8).reshape(53, 1, 3, 4), label=np.arange(53) % 3
)
ITEMS = data.of(range(53)).map(lambda x: {"image": np.full((1, 3, 4), x, "u1"), "label": x % 3})


@pytest.fixture(autouse=True)
def nothing_left() -> Any:
    yield
    gc.collect()
    assert [t.name for t in threading.enumerate() if t.name.startswith("phlox-data")] == []


def plain(batch: Any) -> Any:
    return {name: np.asarray(value).tolist() for name, value in batch.items()}


@pytest.mark.parametrize("device", [None, "numpy"])
@pytest.mark.parametrize("workers", [1, 3])
@pytest.mark.parametrize("rows", [ROWS, ITEMS])
def test_batches_are_changed_alike_by_any_workers(rows: Any, workers: int, device: Any) -> None:
    given: dict[str, Any] = {"shuffle": True, "transform": augment.CutMix(num_classes=3), "seed": 5}
    one = data.DataLoader(rows, 10, **given)
    wanted = [plain(batch) for _ in range(2) for batch in one]
    loader = data.DataLoader(rows, 10, **given, workers=workers, device=device)
    found = [plain(batch) for _ in range(2) for batch in loader]
    assert found == wanted
    assert plain(loader.at(1, 3)) == wanted[9]
    assert wanted[:6] != wanted[6:]
    loader.position = (1, 4)
    assert [plain(batch) for batch in loader] == wanted[10:]


def test_random_numbers_of_a_batch_are_its_own() -> None:
    drawn = data.DataLoader(range(6), 2, transform=lambda batch, rng: (batch, rng.random()))
    first, second = ([x for _, x in drawn] for _ in range(2))
    assert len({*first, *second}) == 6
    assert drawn.at(0, 2)[1] == first[2]
    plain_one = data.DataLoader(range(6), 2, transform=lambda batch: batch * 2)
    assert [batch.tolist() for batch in plain_one] == [[0, 2], [4, 6], [8, 10]]
    half = plain_one.part(0, 1, 2)
    assert [batch.tolist() for batch in half] == [[0], [4], [8]]


def test_it_runs_on_the_device() -> None:
    seen: list[Any] = []

    def note(batch: Any) -> Any:
        seen.append((batch["image"].device, batch["image"].dtype, threading.current_thread().name))
        return batch | {"image": batch["image"] / 255.0 if workers else batch["image"]}

    for workers in (0, 2):
        rows = data.DataLoader(ROWS, 53, workers=workers, device="numpy", transform=note)
        next(iter(rows))
    assert [entry[:2] for entry in seen] == [(pt.Numpy(), pt.uint8)] * 2
    assert [entry[2] for entry in seen] == ["MainThread", "phlox-data-upload"]


@pytest.mark.parametrize("workers", [0, 2])
def test_an_error_comes_at_its_batch(workers: int) -> None:
    def bad(batch: Any) -> Any:
        if batch[0] == 4:
            raise KeyError("no such batch")
        return batch

    loader = data.DataLoader(data.of(range(10)).map(int), 2, workers=workers, transform=bad)
    seen: list[Any] = []
    with pytest.raises(KeyError, match="no such batch") as caught:
        seen.extend(loader)
    assert len(seen) == 2
    (note,) = caught.value.__notes__
    assert note == "transform, batch 2 of epoch 0\nagain: loader.at(0, 2)"
    with pytest.raises(KeyError, match="no such batch"):
        eval(note.partition("again: ")[2], {"loader": loader})
    loader.position = (0, 3)
    assert len([*loader]) == 2


def test_the_next_batch_is_made_while_one_is_used() -> None:
    calls: list[int] = []
    ready = threading.Event()

    def note(batch: Any) -> Any:
        calls.append(int(batch[0]))
        if len(calls) == 2:
            ready.set()
        return batch

    loader = data.DataLoader(data.of(range(20)).map(int), 2, workers=1, transform=note)
    batches = iter(loader)
    next(batches)
    assert ready.wait(10)
    time.sleep(0.05)
    assert calls == [0, 2]
    del batches


def slow(x: int) -> int:
    time.sleep(0.05)
    return x


@pytest.mark.parametrize("how", ["closed", "dropped", "left", "again"])
def test_a_loop_that_is_left_ends_its_threads(how: str) -> None:
    loader = data.DataLoader(data.of(range(400)).map(slow), 8, workers=2, transform=lambda b: b)
    batches = iter(loader)
    next(batches)
    began = time.perf_counter()
    if how == "closed":
        loader.close()
    elif how == "dropped":
        del batches, loader
        gc.collect()
    elif how == "left":
        for _ in loader:
            break
    else:
        assert next(iter(loader)).tolist() == [*range(8, 16)]
    assert time.perf_counter() - began < 4


def test_what_cannot_be_called_is_refused() -> None:
    given: dict[str, Any] = {"transform": 3}
    with pytest.raises(pt.WrongTypeError, match=r"hint: DataLoader\(\.\.\., transform=function\)"):
        data.DataLoader(range(4), 2, **given)
