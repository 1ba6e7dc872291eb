"""Steps of plans: an op, or a program in the place of some."""

from __future__ import annotations

from typing import NamedTuple

from phlox_tensor.capture import Kernel, Lowered, Node


class Fused(NamedTuple):
    """A program in the place of the ops that it does."""

    nodes: tuple[Node, ...]
    lowered: Lowered
    kernel: Kernel


Step = Node | Fused
