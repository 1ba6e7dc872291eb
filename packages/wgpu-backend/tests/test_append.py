"""Arrays that grow where they are, and rooms that are filled; whoever holds one sees the same."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

import numpy as np
import pytest

from phlox_wgpu import Wgpu
from phlox_wgpu._array import GpuArray

Up = Callable[[Any], GpuArray]


def draw(rng: np.random.Generator, *shape: int) -> np.ndarray:
    return rng.normal(size=shape).astype(np.float32)


@pytest.mark.parametrize("axis", [0, 1, 2])
def test_growing_is_joining_and_old_arrays_stay(
    axis: int, gpu: Wgpu, up: Up, rng: np.random.Generator
) -> None:
    def shape(count: int) -> list[int]:
        return [count if at == axis else at + 2 for at in range(3)]

    want = draw(rng, *shape(5))
    grown, seen, copies = up(want), [], 0
    for step in range(24):
        more = draw(rng, *shape(step % 3))
        before, grown = grown, gpu.ops.append(grown, up(more), axis)
        copies += before.storage is not grown.storage
        want = np.concatenate([want, more], axis)
        seen.append((grown, want))
    assert 1 <= copies <= 5
    for array, values in seen:
        assert np.array_equal(gpu.read(array), values)


def test_the_second_to_append_copies(gpu: Wgpu, up: Up, rng: np.random.Generator) -> None:
    x, one = draw(rng, 2, 3), draw(rng, 1, 3)
    first = gpu.ops.append(up(x), up(one), 0)
    left, right = (gpu.ops.append(first, up(one * n), 0) for n in (2, 3))
    assert left.storage is first.storage is not right.storage
    assert np.array_equal(gpu.read(left), np.concatenate([x, one, one * 2]))
    assert np.array_equal(gpu.read(right), np.concatenate([x, one, one * 3]))
    twice = gpu.ops.append(left, left, 0)
    assert np.array_equal(gpu.read(twice), np.concatenate([x, one, one * 2] * 2))


def filled(x: np.ndarray, values: np.ndarray, place: int) -> np.ndarray:
    """The first places, values, then zeros."""
    return np.concatenate([x[:, :place], values, 0 * x[:, place + 1 :]], 1)


@pytest.mark.parametrize("repeated", [False, True])
def test_a_room_is_filled_where_it_is(
    repeated: bool, gpu: Wgpu, up: Up, rng: np.random.Generator
) -> None:
    def put(operands: Sequence[GpuArray]) -> tuple[GpuArray, ...]:
        return (gpu.ops.append_at(*operands, 1),)

    run = gpu.repeated(lambda: put) if repeated else put
    want = draw(rng, 2, 8, 3)
    room, seen = up(want), []
    for place in range(2, 8):
        values = draw(rng, 2, 1, 3)
        want = filled(want, values, place)
        before = room
        (room,) = run((before, up(values), up(np.int32(place))))
        assert (room.storage is before.storage) == (place > 2)
        assert np.array_equal(gpu.read(room), want)
        seen.append((room, want, place))
    for array, values, place in seen:
        assert np.array_equal(gpu.read(array)[:, : place + 1], values[:, : place + 1])
    # From one that is not the newest it goes on elsewhere.
    old, known, _ = seen[1]
    values = draw(rng, 2, 1, 3)
    (fork,) = run((old, up(values), up(np.int32(4))))
    assert fork.storage is not old.storage
    assert np.array_equal(gpu.read(fork), filled(known, values, 4))
    assert np.array_equal(gpu.read(room), want)


def test_places_that_are_none_write_nothing(gpu: Wgpu, up: Up, rng: np.random.Generator) -> None:
    x, values = draw(rng, 2, 4, 3), draw(rng, 2, 1, 3)
    for place, want in ((4, x), (-1, 0 * x)):
        found = gpu.ops.append_at(up(x), up(values), up(np.int32(place)), 1)
        assert np.array_equal(gpu.read(found), want)
    room = gpu.ops.append_at(up(x), up(values), up(np.int32(3)), 1)
    again = gpu.ops.append_at(room, up(values), up(np.int32(4)), 1)
    assert again.storage is room.storage
    assert np.array_equal(gpu.read(again), filled(x, values, 3))
