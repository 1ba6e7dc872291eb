"""Memory of the host that a GPU reads and writes in place, and meetings of those that see it."""

from __future__ import annotations

import mmap
import threading
from collections.abc import Callable
from typing import Any, Final

import numpy as np
import pytest

import phlox_tensor as pt
from phlox_wgpu import Wgpu
from phlox_wgpu._array import GpuArray

Up = Callable[[Any], GpuArray]

_KEPT: Final[list[mmap.mmap]] = []  # what a GPU took stays until the process ends


def pages(count: int) -> np.ndarray[Any, Any]:
    _KEPT.append(mmap.mmap(-1, count * mmap.PAGESIZE))
    return np.frombuffer(_KEPT[-1], np.uint8)


@pytest.fixture
def seen(gpu: Wgpu) -> tuple[np.ndarray[Any, Any], Any]:
    """Memory, and what the GPU makes of it."""
    memory = pages(2)
    found = gpu.shared(memory)
    if found is None:
        pytest.skip("the engine or the driver takes no memory: its wheel is phlox-wgpu-engine")
    return memory, found


def test_a_gpu_writes_and_reads_memory_of_the_host(gpu: Wgpu, up: Up, seen: Any) -> None:
    memory, shared = seen
    values = np.arange(300, dtype=np.float32)
    shared.put(up(values), 512)
    gpu.sync()
    assert memory[512:1712].tobytes() == values.tobytes()
    assert not memory[:512].any()
    assert not memory[1712:].any()
    memory[4096:4104].view(np.int32)[:] = 7, -8
    assert gpu.read(shared.array(2, pt.int32, 4096)).tolist() == [7, -8]


def test_what_is_called_behind_a_meeting_waits_for_all(gpu: Wgpu, up: Up, seen: Any) -> None:
    memory, shared = seen
    words = [pages(1)[:4].view(np.uint32) for _ in range(2)]
    shared.put(up(np.array([1, 2], np.float32)), 0)
    shared.meet(words, 0, 1)()
    gone_on = threading.Event()

    found: list[Any] = []

    def other() -> None:
        gone_on.wait(20)
        found.extend(memory[:8].view(np.float32).tolist())
        memory[256:264].view(np.float32)[:] = 3, 4
        words[1][:] = 1

    thread = threading.Thread(target=other)
    thread.start()
    copied = gpu.ops.add(shared.array(2, pt.float32, 256), up(np.zeros(2, np.float32)))
    gone_on.set()
    assert gpu.read(copied).tolist() == [3, 4]
    thread.join()
    assert found == [1, 2]
    assert words[0][0] == 1


def test_a_process_that_never_comes_is_not_waited_for(seen: Any, run: Callable[[str], str]) -> None:
    out = run(
        """
        import mmap
        import numpy as np
        import phlox_tensor as pt
        from phlox_wgpu import Wgpu

        gpu = Wgpu()
        page = np.frombuffer(mmap.mmap(-1, 2 * mmap.PAGESIZE), np.uint8)
        words = [page[at : at + 4].view(np.uint32) for at in (mmap.PAGESIZE, mmap.PAGESIZE + 4)]
        shared = gpu.shared(page[: mmap.PAGESIZE])
        shared.meet(words, 0, 1, seconds=0.2)()
        for call in (lambda: gpu.read(shared.array(1, pt.float32, 0)), shared.meet(words, 0, 2)):
            try:
                print(call())
            except pt.DeviceError as error:
                print(error)
        """
    )
    assert out.count("another process did not come") == 2
    assert "hint: phlox launch" in out


def test_a_lost_gpu_tells_nobody_that_it_wrote(seen: Any, run: Callable[[str], str]) -> None:
    out = run(
        """
        import mmap, time
        import numpy as np
        import phlox_tensor as pt
        from phlox_wgpu import Wgpu

        gpu = Wgpu()
        memory = mmap.mmap(-1, 2 * mmap.PAGESIZE)
        page = np.frombuffer(memory, np.uint8)
        word = page[mmap.PAGESIZE :][:4].view(np.uint32)
        shared = gpu.shared(page[: mmap.PAGESIZE])
        gpu.sync()
        gpu.device.engine.lose()
        reached = shared.meet([word], 0, 1)
        try:
            reached()
        except Exception as error:
            print("lost" in str(error))
        time.sleep(0.2)
        print(word[0])
        """
    )
    assert out.split() == ["True", "0"]
