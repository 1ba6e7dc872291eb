"""The runtime: ordering, limits, errors, memory, threads."""

from __future__ import annotations

import gc
import os
import pickle
import subprocess
import sys
import threading
from collections.abc import Callable
from typing import Any

import numpy as np
import pytest

import phlox_tensor as pt
from phlox_wgpu import Wgpu, _adapter, _engine
from phlox_wgpu._array import GpuArray
from phlox_wgpu._errors import DeviceMemoryError, ShaderError
from phlox_wgpu._kernel import Kernel
from phlox_wgpu._runtime import grid
from phlox_wgpu._sizes import size_class

Run = Callable[[str], str]
Up = Callable[[Any], GpuArray]

CHECKED = """\
@compute @workgroup_size(1)
fn main() { out0[0] = i32(checked_index(in0[0], p.length)); }
"""


def checked() -> Kernel:
    return Kernel(CHECKED, ("i32",), ("i32",), (("length", "i32"),), index_errors="take")


def test_a_machine_without_a_session_starts_in_silence(run: Run) -> None:
    program = "import phlox_tensor as pt, phlox_wgpu; pt.ones(1, device=phlox_wgpu.Wgpu())"
    environment = {k: v for k, v in os.environ.items() if k != "XDG_RUNTIME_DIR"}
    done = subprocess.run(
        [sys.executable, "-c", program],
        capture_output=True,
        text=True,
        check=False,
        env=environment,
    )
    assert done.returncode == 0, done.stderr
    assert "XDG_RUNTIME_DIR" not in done.stderr


def test_importing_and_making_a_device_opens_nothing(run: Run) -> None:
    out = run(
        """
        import sys
        from phlox_wgpu import Wgpu
        device = Wgpu()
        assert Wgpu(0) is device and Wgpu(1) is not device
        assert device.memory().current == 0
        print("wgpu" in sys.modules, repr(device), repr(Wgpu(1)), repr(Wgpu(0, power="low")))
        """
    )
    assert out.split("\n")[0] == "False Wgpu() Wgpu(1) Wgpu(0, power='low')"


def test_an_adapter_that_is_not_there(gpu: Wgpu) -> None:
    del gpu
    with pytest.raises(
        pt.BackendUnavailableError, match=r"no such adapter: got 99, expected 0: (.|\n)*Wgpu\("
    ):
        Wgpu(99).upload(np.zeros(1, np.float32), pt.float32)
    with pytest.raises(pt.ArgumentError):
        Wgpu(-1)
    with pytest.raises(pt.ArgumentError):
        Wgpu(power="enormous")  # type: ignore[arg-type]


class FakeAdapter:
    def __init__(self, api: str, device: str, kind: str = "DiscreteGPU") -> None:
        self.info = {
            "adapter_type": kind,
            "backend_type": api,
            "device": device,
            "device_id": 1,
            "vendor_id": 2,
        }


def test_a_gpu_under_several_apis_counts_once() -> None:
    twins = [FakeAdapter("Vulkan", "a"), FakeAdapter("Vulkan", "a")]
    others = [FakeAdapter("D3D12", "a"), FakeAdapter("OpenGL", "a")]
    alone = FakeAdapter("D3D12", "b")
    assert _adapter.one_api_each([*others, *twins, alone]) == [*twins, alone]


@pytest.mark.parametrize(
    ("power", "order"), [("high", ["big", "small", "soft"]), ("low", ["small", "big", "soft"])]
)
def test_adapters_are_ordered_by_power(
    monkeypatch: pytest.MonkeyPatch, power: Any, order: list[str]
) -> None:
    found = [
        FakeAdapter("Vulkan", "soft", "CPU"),
        FakeAdapter("Vulkan", "small", "IntegratedGPU"),
        FakeAdapter("OpenGL", "shows pictures"),
        FakeAdapter("Vulkan", "big"),
    ]
    monkeypatch.setattr(_engine.driver, "adapters", lambda: found)
    assert [a.info["device"] for a in _adapter.adapters(power)] == order


def test_an_adapter_that_does_not_open_is_named(monkeypatch: pytest.MonkeyPatch) -> None:
    def lost(*_: Any) -> Any:
        raise RuntimeError("Parent device is lost")

    monkeypatch.setattr(_engine.driver, "Engine", lost)
    with pytest.raises(pt.BackendUnavailableError, match="picture tube cannot be opened: Parent"):
        _adapter.request_device(FakeAdapter("Vulkan", "picture tube"))


def test_no_adapter_says_what_to_install(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(_engine.driver, "adapters", list)
    assert Wgpu.found() == []
    for ask in (Wgpu.describe, lambda: _adapter.find(0, "high")):
        with pytest.raises(pt.BackendUnavailableError, match="apt install mesa-vulkan-drivers"):
            ask()


def test_adapters_are_described(gpu: Wgpu) -> None:
    first = Wgpu.describe()[0]
    assert first["device"] == "wgpu:0"
    assert first["limits"]["max-storage-buffer-binding-size"] >= gpu.device.max_binding_bytes
    assert first["bits of ops in a kernel"] is True
    assert first["tensor cores"] is bool(Wgpu().device.tensor_lanes)
    assert Wgpu.found()[0] is gpu


def test_a_type_that_the_hardware_lacks(gpu: Wgpu) -> None:
    with pytest.raises(pt.DTypeError, match="float64"):
        gpu.upload(np.zeros(1), pt.float64)


def test_a_tensor_over_the_limit(gpu: Wgpu) -> None:
    count = gpu.device.max_binding_bytes // 4 + 1
    with pytest.raises(DeviceMemoryError, match="max-storage-buffer-binding-size"):
        gpu.ops.full((count,), 0, pt.float32)


@pytest.mark.parametrize("count", [0, 1, 65_535, 65_536, 10**6, 65_535 * 70_000 // 2])
def test_grids_are_folded(count: int) -> None:
    x, y, z = grid(count)
    assert z == 1
    assert max(x, y) <= 65_535
    assert count <= x * y < count + max(y, 1)


def test_a_given_grid_is_checked() -> None:
    with pytest.raises(ValueError, match="65535"):
        grid((65_536, 1, 1))


def test_more_workgroups_than_one_axis_has(gpu: Wgpu, up: Up) -> None:
    values = np.arange(4100 * 4099, dtype=np.float32).reshape(4100, 4099)
    x = gpu.ops.permute_dims(up(values), (1, 0))
    total = gpu.ops.add(x, gpu.ops.flip(x, (0, 1)))  # a strided walk: more than 65,535 workgroups
    got = gpu.read(gpu.ops.max(total, (0, 1), False))
    assert got == (values + np.flip(values)).max()


def test_size_classes() -> None:
    limit = 1 << 27
    previous = 0
    for nbytes in [1, 256, 257, 5000, 1 << 20, (1 << 20) + 1, 9_999_999, limit - 5, limit]:
        bucket = size_class(nbytes, limit)
        assert nbytes <= bucket <= limit
        assert bucket % 16 == 0
        assert bucket >= previous
        assert nbytes <= 1 << 20 or bucket <= nbytes * 1.13
        previous = bucket


def test_an_upload_does_not_overtake_recorded_work(gpu: Wgpu, up: Up) -> None:
    for i in range(50):
        x = up(np.full(10, i, np.float32))
        y = gpu.ops.add(x, 1.0)
        del x  # its buffer goes back, and the next upload takes it
        up(np.full(10, -1, np.float32))
        assert gpu.read(y).tolist() == [i + 1.0] * 10


def test_parameters_of_many_dispatches(gpu: Wgpu, up: Up) -> None:
    x = up(np.zeros(3, np.float32))
    sums = [gpu.ops.add(x, float(i)) for i in range(1000)]
    assert [gpu.read(s)[0] for s in sums] == list(range(1000))


def test_an_index_error_is_raised_once_at_the_next_read(gpu: Wgpu, up: Up) -> None:
    device = gpu.device
    out = device.empty((), pt.int32)
    other = up(np.ones(3, np.float32))
    for index, expected in [(2, 2), (-3, 0), (-1, 2)]:
        device.launch((checked,), [up(np.int32(index))], [out], (3,), 1)
        assert gpu.read(out) == expected
    for index in (3, -4):
        device.launch((checked,), [up(np.int32(index))], [out], (3,), 1)
        with pytest.raises(pt.IndexOutOfRangeError, match=rf"\[take\].*got {index}, .*-3"):
            gpu.read(other)
        assert gpu.read(other).sum() == 3
    device.launch((checked,), [up(np.int32(9))], [out], (3,), 1)
    with pytest.raises(pt.IndexOutOfRangeError):
        gpu.sync()
    gpu.sync()


def test_a_kernel_over_the_limit_of_buffers_is_refused(gpu: Wgpu, up: Up) -> None:
    most = gpu.device.max_bindings
    body = "@compute @workgroup_size(1)\nfn main() { out0[0] = in0[0]; }\n"
    xs = [up(np.zeros(1, np.float32)) for _ in range(most)]
    out = gpu.device.empty((1,), pt.float32)
    with pytest.raises(pt.DeviceError, match=f"at most {most} .*max-storage-buffers"):
        gpu.device.launch((lambda: Kernel(body, ("f32",) * most, ("f32",)),), xs, [out], (), 1)
    gpu.sync()


def test_a_shader_that_does_not_compile(gpu: Wgpu) -> None:
    with pytest.raises(ShaderError, match="does not compile") as caught:
        gpu.device.launch((lambda: Kernel("fn main() {", (), ()),), [], [], (), 1)
    assert "fn main() {" in caught.value.listing()
    assert pickle.loads(pickle.dumps(caught.value)).wgsl == caught.value.wgsl


def test_memory_is_flat_over_a_loop(gpu: Wgpu, up: Up) -> None:
    x = up(np.ones((64, 64), np.float32))

    def step() -> None:
        y = gpu.ops.exp(gpu.ops.multiply(x, 0.5))
        z = gpu.ops.sum(gpu.ops.add(y, gpu.ops.permute_dims(y, (1, 0))), (0,), False, pt.float32)
        gpu.read(z)

    for _ in range(20):
        step()
    gc.collect()
    device = gpu.device
    before = gpu.memory().current, device.pool.reserved_bytes, device.engine.counts[1]
    for _ in range(250):  # 1000 ops
        step()
    gc.collect()
    assert (gpu.memory().current, device.pool.reserved_bytes, device.engine.counts[1]) == before


def test_the_oldest_free_buffer_goes_first_whichever_came_back_last(gpu: Wgpu) -> None:
    gpu.trim()
    arrays = [gpu.device.empty((5_000_000 + i,), pt.float32) for i in range(4)]
    made = [x.storage.buffer.serial for x in arrays]
    for i in (2, 0, 3, 1):
        arrays[i] = gpu.device.empty((1,), pt.float32)
    again = [gpu.device.empty((5_000_000,), pt.float32) for _ in range(4)]
    assert [x.storage.buffer.serial for x in again] == made


def test_buffers_return_and_trim_gives_them_to_the_driver(gpu: Wgpu) -> None:
    gpu.device.trim()
    base = gpu.memory().current
    x = gpu.ops.full((1000, 1000), 1.0, pt.float32)
    view = gpu.ops.permute_dims(x, (1, 0))
    held = gpu.memory().current - base
    assert 4_000_000 <= held <= 4_600_000
    del x
    assert gpu.memory().current - base == held, "the view keeps the buffer"
    del view
    assert gpu.memory().current == base
    assert gpu.memory().peak >= base + held
    assert gpu.device.trim() >= held
    assert gpu.read(gpu.ops.full((3,), 2.0, pt.float32)).tolist() == [2, 2, 2]


def test_a_backend_gives_its_free_buffers_to_the_driver(gpu: Wgpu) -> None:
    gpu.trim()
    pool = gpu.device.pool
    kept = gpu.ops.full((1000, 1000), 5.0, pt.float32)
    base = pool.reserved_bytes
    del gpu.ops.full((3000, 1000), 1.0, pt.float32).storage
    assert pool.reserved_bytes >= base + 12_000_000, "a freed buffer waits to be used again"
    gpu.trim()
    assert pool.reserved_bytes <= base
    assert gpu.read(kept)[-1, -1] == 5


def test_trimming_opens_no_adapter() -> None:
    device = Wgpu(77)
    device.trim()
    assert device._open is None


def test_the_pool_does_not_hoard_sizes_that_are_not_used_again(
    gpu: Wgpu, monkeypatch: pytest.MonkeyPatch
) -> None:
    pool = gpu.device.pool
    gpu.device.trim()
    monkeypatch.setattr(pool, "keep_bytes", 10_000_000)
    kept = gpu.ops.full((500_000,), 7.0, pt.float32)
    for mebi in range(1, 20):
        assert gpu.read(gpu.ops.full((mebi * 250_000,), 1.0, pt.float32))[-1] == 1
        assert pool.free_bytes <= 10_000_000 + mebi * 1_150_000
    assert gpu.read(kept).sum() == 3_500_000


def test_an_array_in_a_reference_cycle_gives_back_a_live_buffer(gpu: Wgpu) -> None:
    for _ in range(3):
        cycle: list[Any] = [gpu.ops.full((77,), 1.0, pt.float32)]
        cycle.append(cycle)
        gpu.sync()
        del cycle
        gc.collect()
        assert gpu.read(gpu.upload(np.full(77, 3.0, np.float32), pt.float32)).sum() == 231


def test_threads_share_a_device(gpu: Wgpu) -> None:
    failures: list[BaseException] = []

    def work(seed: int) -> None:
        try:
            rng = np.random.default_rng(seed)
            for i in range(25):
                values = rng.normal(size=(17 + seed, 33 + i)).astype(np.float32)
                x = gpu.upload(values, pt.float32)
                y = gpu.ops.multiply(gpu.ops.add(x, 1.0), x)
                z = gpu.ops.sum(y, (1,), False, pt.float32)
                exact = ((values + 1) * values).sum(1, dtype=np.float64)
                np.testing.assert_allclose(gpu.read(z), exact, rtol=1e-4, atol=1e-4)
        except BaseException as error:
            failures.append(error)

    threads = [threading.Thread(target=work, args=(seed,)) for seed in range(6)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert not failures, failures


@pytest.mark.skipif(not hasattr(__import__("os"), "fork"), reason="this system has no fork")
def test_a_forked_child_says_why_it_cannot_go_on(gpu: Wgpu, run: Run) -> None:
    del gpu
    out = run(
        """
        import os
        import numpy as np
        import phlox_tensor as pt
        from phlox_wgpu import Wgpu
        gpu = Wgpu()
        x = gpu.upload(np.ones(3, np.float32), pt.float32)
        gpu.sync()
        if os.fork() == 0:
            try:
                gpu.read(gpu.ops.add(x, x))
            except pt.DeviceError as error:
                print(error, flush=True)
            os._exit(0)
        os.wait()
        print(gpu.read(gpu.ops.add(x, x)))
        """
    )
    assert "opened before fork()" in out
    assert "[2. 2. 2.]" in out


def test_work_left_queued_does_not_hang_the_exit(run: Run) -> None:
    run(
        """
        import phlox_tensor as pt
        from phlox_wgpu import Wgpu
        if Wgpu.found():
            gpu = Wgpu()
            x = gpu.ops.full((1000,), 1.0, pt.float32)
            for _ in range(300):
                x = gpu.ops.add(x, x)
        """
    )


def test_the_time_of_a_part_is_not_told_as_that_of_all(gpu: Wgpu) -> None:
    x = gpu.upload(np.ones(1 << 20, np.float32), pt.float32)
    buffer, engine = x.storage.buffer, gpu.device.engine

    def in_between() -> None:
        gpu.ops.exp(x)
        engine.write(buffer, bytearray(4))  # behind what reads it, which is submitted first
        gpu.ops.exp(x)

    with gpu.device.lock:
        whole = engine.seconds(lambda: gpu.ops.exp(x))
        part = engine.seconds(in_between)
    if "timestamp-query" not in gpu.device.features:
        pytest.skip("this adapter has no clock")
    assert whole > 0
    assert part == 0


def test_steps_that_repeat_make_no_buffers_anew(gpu: Wgpu, monkeypatch: pytest.MonkeyPatch) -> None:
    pool = gpu.device.pool
    gpu.trim()
    monkeypatch.setattr(pool, "keep_bytes", 1_000_000)
    made: list[int] = []
    create = pool._create

    def counted(nbytes: int) -> Any:
        made.append(nbytes)
        return create(nbytes)

    monkeypatch.setattr(pool, "_create", counted)

    def step() -> None:
        kept = [gpu.device.empty((250_000 + 4_000 * i,), pt.float32) for i in range(8)]
        del kept[2:]
        kept += [gpu.device.empty((350_000 + 5_000 * i,), pt.float32) for i in range(8)]

    for _ in range(4):
        step()
    made.clear()
    for _ in range(4):
        step()
    assert not made


def test_numbers_that_fill_the_ring_are_each_their_own(gpu: Wgpu) -> None:
    x = gpu.upload(np.arange(2, dtype=np.float32), pt.float32)
    kept = []
    for i in range(20_000):  # of 64 bytes or more each; the ring holds a megabyte
        y = gpu.ops.add(x, float(i))
        if i % 1999 == 0:
            kept.append((i, y))
    for i, y in kept:
        assert gpu.read(y).tolist() == [i, i + 1]
