"""What layers with weights ask of their inputs."""

from __future__ import annotations

from phlox_tensor import DTypeError, Tensor

from ._param import Param


def check_dtype(layer: object, x: object, weight: Param) -> None:
    """Keep an input from changing the type that a model computes in, which promotion would do.

    Raises:
        DTypeError: when the floats of the input are of another type than the weights.
    """
    dtype = x.dtype if isinstance(x, Tensor) else weight.dtype
    if dtype is not weight.dtype and dtype.kind == "Float":
        raise DTypeError(
            type(layer).__name__,
            "input and weights differ in type",
            got=f"{dtype} beside weights of {weight.dtype}",
            expected=weight.dtype,
            hint=f"x.astype({weight.dtype.name!r})",
        )
