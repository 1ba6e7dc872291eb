"""Every op and every function of the tensor layer shows an example on its page."""

from __future__ import annotations

from tools.generate.code import own_ops
from tools.generate.namespaces import functions
from tools.generate.op_text import example


def test_every_op_has_an_example() -> None:
    assert [op.name for op in own_ops() if not op.internal and not example(op)] == []


def test_every_function_has_an_example() -> None:
    found = functions()
    assert {"fft.rfft", "functions.asarray", "linalg.solve", "random_numbers.normal"} <= set(found)
    assert [name for name, f in found.items() if ">>>" not in (f.__doc__ or "")] == []
