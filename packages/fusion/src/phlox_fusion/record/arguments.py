"""What arguments have to be before a function is recorded."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from typing import Any

import numpy as np

from phlox_tensor import CompileError
from phlox_tensor.capture import STATEFUL

from .. import refused
from ..trees.layout import Layout, StaticPart
from .code import KINDS
from .outside import Outside
from .watch import Watch


def refuse_arrays(given: Layout) -> None:
    """Refuse arrays that are no tensors: a replay would go on with what was in them."""
    for part in given.parts:
        if isinstance(part, StaticPart) and isinstance(array := part.value, np.ndarray):
            got = f"an array of shape {array.shape} and type {array.dtype}"
            raise refused.ARRAY.of(got)


def refuse_reached(leaves: Iterable[Any], outside: Sequence[Watch]) -> None:
    """Refuse an object with state that is in an argument, and stands in a name besides."""
    given = {id(leaf) for leaf in leaves if type(leaf) in STATEFUL}
    for value in (value for watch in outside for value in watch.values()):
        if id(value) in given:
            raise refused.reached_twice(value)


def refuse_identical(
    identities: Mapping[int, Any], given: Iterable[Any], leaves: Iterable[Any]
) -> None:
    """Refuse an argument that is there from outside too, where code may ask whether it is."""
    if identities:
        for item in given:
            if id(item) in identities:
                raise refused.TOLD_APART.of(type(item).__name__)
        if not identities.keys().isdisjoint(map(id, leaves)):
            raise refused.TOLD_APART.of("a Tensor inside of an argument")


def refuse_kinds(name: str, seen: Outside, given: Iterable[Any]) -> None:
    """Refuse numbers where code may ask of which type they are by their class."""
    if KINDS in seen.does and any(type(item) in (int, float) for item in given):
        raise CompileError(
            name,
            "the function asks for the class of a number, which is no int or float in a kernel",
            got="type(...) beside int or float",
            expected="isinstance",
            hint="isinstance(n, int)",
        )
