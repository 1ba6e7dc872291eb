"""The two engines of the GPU backend: the same bits, errors and memory."""

from __future__ import annotations

import importlib.util
import os
import subprocess
import sys

import pytest

from phlox import Wgpu

PROGRAM = """
import gc, hashlib, threading
import numpy as np
import phlox as px
from phlox import Autodiff, nn, optim

gpu = px.Wgpu()
rng = np.random.default_rng(5)


def told(name, *tensors):
    data = b"".join(np.ascontiguousarray(t.numpy()).tobytes() for t in tensors)
    print(name, hashlib.sha256(data).hexdigest(), flush=True)


x = px.asarray(rng.normal(size=(70, 33)).astype("f"), device=gpu)
told("ops", x.exp(), x @ x.T, px.softmax(x), px.sort(x, axis=1), px.cumsum(x, axis=0), x.sum())

many = px.asarray(np.zeros(3, "f"), device=gpu)
for i in range(400):
    many = many + float(i)
told("many", many)

f = px.compile(lambda x: (px.softmax(x @ x.T) @ x).sum(axis=0))
for _ in range(6):
    y = f(x)
told("compiled", y)
del f, y
gc.collect()
told("upload after", px.asarray(rng.normal(size=(70, 33)).astype("f"), device=gpu))

large = px.asarray(rng.normal(size=(700_000,)).astype("f"), device=gpu)
told("large", large + 1.0, large[::-1])

device = Autodiff(gpu)
px.random.seed(3)
layers = nn.Linear(33, 16), nn.Activation("relu"), nn.Linear(16, 1)
model = nn.Sequential(*layers).to_device(device)
rule = optim.AdamWConfig().init()
for _ in range(5):
    loss = model(x.to_device(device)).square().mean()
    model = rule.step(1e-2, model, loss.backward())
told("trained", model(x.to_device(device)))

try:
    px.take(x, px.asarray([99], device=gpu), axis=0).numpy()
except px.IndexOutOfRangeError as error:
    print(str(error).splitlines()[0])
told("after the error", x)
results = {}
threads = [
    threading.Thread(target=lambda i=i: results.update({i: ((x * float(i)).sum().item())}))
    for i in range(5)
]
for thread in threads:
    thread.start()
for thread in threads:
    thread.join()
print(sorted(results.items()))
gpu.trim()
print(gpu.memory().current > 0)
"""


def test_both_engines_give_the_same_bits() -> None:
    if importlib.util.find_spec("phlox_wgpu_engine") is None:
        pytest.skip("./x engine builds the native engine, which nothing needs")
    if not Wgpu.found():
        pytest.skip("no GPU adapter here; mesa-vulkan-drivers brings a software one")
    told = {}
    for engine in ("wgpu-py", "native"):
        done = subprocess.run(
            [sys.executable, "-c", PROGRAM],
            capture_output=True,
            text=True,
            check=False,
            timeout=300,
            env=os.environ | {"PHLOX_WGPU_ENGINE": engine},
        )
        assert done.returncode == 0, f"{engine}: {done.stderr}"
        told[engine] = done.stdout
    assert told["native"] == told["wgpu-py"]
    assert "99" in told["native"]


def test_an_engine_of_another_name_is_refused() -> None:
    done = subprocess.run(
        [sys.executable, "-c", "import phlox as px; px.ones(3, device=px.Wgpu())"],
        capture_output=True,
        text=True,
        check=False,
        timeout=100,
        env=os.environ | {"PHLOX_WGPU_ENGINE": "steam"},
    )
    assert 'got steam, expected "native" or "wgpu-py"' in done.stderr
