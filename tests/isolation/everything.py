"""`phlox` without extras in an otherwise empty environment: a training step on each device found.

Run by `./x isolate`, which has installed nothing but `phlox` and what it declares.
"""

import importlib.util

import phlox as px
from phlox import Autodiff, Cpu, Numpy, nn, optim
from phlox._extras import EXTRAS, installed

assert not any(map(installed, EXTRAS)), "an extra is there that nobody asked for"
assert not any(map(importlib.util.find_spec, ("PIL", "onnx", "psutil", "rich", "wgpu")))
devices = [device for device in px.devices() if device in (Cpu(), Numpy())]
assert Cpu() in devices, "Cpu() is not found by its entry point"
for device in devices:
    model = nn.LinearConfig(4, 2).init(Autodiff(device))
    optimizer = optim.SgdConfig().init()
    x = px.ones((3, 4), device=Autodiff(device))
    before = (model(x) ** 2).sum()
    model = optimizer.step(0.01, model, before.backward())
    after = (model(x) ** 2).sum()
    assert float(after) < float(before), (device, float(before), float(after))
    print(f"a training step on {device}: {float(before):.4f} -> {float(after):.4f}")
