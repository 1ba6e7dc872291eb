"""phlox where Python lacks what a browser has not: locks of files, threads, compiled packages.

Run by tests/meta/test_without_system.py in a process of its own; the first argument is a folder.
"""

import sys
import threading
from pathlib import Path
from typing import Any, NoReturn

HIDDEN = ("_posixshmem", "fcntl", "ml_dtypes", "msgpack._cmsgpack", "phlox_kernels", "resource")
for name in HIDDEN:
    sys.modules[name] = None  # type: ignore[assignment]


def refused(*_: object) -> NoReturn:
    """Stand for what starts threads."""
    raise RuntimeError("can't start new thread")


replaced: Any = threading
replaced._start_new_thread = refused

import phlox as px  # noqa: E402 - what it looks for is hidden first
from phlox import nn, optim, record  # noqa: E402

px.seed(0)
device = px.Autodiff(px.Numpy())
model = nn.Linear(2, 1, device=device)
rule = optim.AdamWConfig().init()
x = px.random.normal((16, 2), device=device)
y = x.sum(axis=1, keepdims=True)


@px.compile
def step(model: nn.Linear, rule: Any) -> Any:
    """Return the model and its rule after a step, and the loss before it."""
    loss = (model(x) - y).square().mean()
    return rule.step(0.1, model, loss.backward()), rule, loss


losses = []
for _ in range(3):
    model, rule, loss = step(model, rule)
    losses.append(loss.item())
assert losses[2] < losses[0], losses

recorder = record.NamedMsgpackRecorder()
path = Path(sys.argv[1]) / "model"
for _ in range(2):  # the second waits for the first, where there are threads
    saving = recorder.record_async(model.into_record(), path)
    assert saving.done
    assert saving.wait() == path.with_suffix(".mpk")
loaded = nn.Linear(2, 1, device=device).load_record(recorder.load(path))
assert loaded.weight.value.tolist() == model.weight.value.tolist()

message = ""
try:
    px.ones(2, dtype="bfloat16", device=px.Numpy())
except TypeError as error:
    message = str(error)
assert "NumPy has no bfloat16" in message, message
assert message.endswith("hint: pip install ml_dtypes"), message
assert px.bfloat16.itemsize == 2, "it has a size without a package"
assert px.as_dtype("bfloat16") is px.bfloat16
print("phlox works without them")
