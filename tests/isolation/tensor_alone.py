"""phlox-tensor with nothing else installed: the first page of the usage guide, on NumPy.

Run by `./x isolate` in an environment that holds phlox-tensor and what it declares.
"""

import importlib.util

import numpy as np

import phlox_tensor as pt
from phlox_tensor import Numpy

OTHERS = (
    "autodiff",
    "data",
    "distributed",
    "fusion",
    "kernels",
    "nn",
    "onnx",
    "optim",
    "record",
    "text",
    "train",
    "wgpu",
)
assert not any(importlib.util.find_spec(f"phlox_{name}") for name in OTHERS), "not alone"
assert not importlib.util.find_spec("ml_dtypes"), "bfloat16 alone needs it"

x = pt.asarray([[1.0, 2.0], [3.0, 4.0]])
y = (x @ x.T + 1).sum(axis=0, keepdims=True)
assert (x.shape, x.dtype, x.device) == ((2, 2), pt.float32, Numpy())
assert y.tolist() == [[18.0, 38.0]]
assert x[0, ::-1].tolist() == [2.0, 1.0]
assert x[:, None].shape == (2, 1, 2)
assert x[x > 2].tolist() == [3.0, 4.0]
assert x[pt.asarray([1, 0])].tolist() == [[3.0, 4.0], [1.0, 2.0]]
assert x.at[0].add(10.0).tolist() == [[11.0, 12.0], [3.0, 4.0]]

n = pt.arange(6, device=Numpy()).reshape(2, 3)
assert n.numpy().tolist() == n.tolist() == [[0, 1, 2], [3, 4, 5]]
assert float(y[0, 0]) == 18.0
assert n.astype(pt.float64).dtype == pt.float64
assert pt.concat([x, x], axis=0).shape == (4, 2)
assert pt.where(x > 2, x, 0.0).tolist() == [[0.0, 0.0], [3.0, 4.0]]

pt.seed(7)
first = pt.random.normal((2, 3)).tolist()
pt.seed(7)
assert pt.random.normal((2, 3)).tolist() == first

with pt.use_device(Numpy(float="float64")):
    assert pt.ones(3).dtype == pt.float64
assert np.asarray(x).tolist() == x.tolist()
assert pt.asarray(np.eye(3)).shape == (3, 3)
assert pt.from_dlpack(np.eye(3)).tolist() == np.eye(3).tolist()

message = ""
try:
    _ = pt.ones((2, 3)) @ pt.ones((2, 3))
except ValueError as error:
    message = f"{type(error).__name__} {error}"
assert message.startswith("ShapeError [matmul]"), message
assert "\nhint: " in message, message
print("phlox-tensor works alone")
