"""A form of files: how a tree becomes bytes and comes back, as a row of functions."""

from __future__ import annotations

from collections.abc import Callable
from typing import NamedTuple

from ._content import Content
from ._limits import Limits
from ._source import Source, Write


class Form(NamedTuple):
    """What the recorders of a form share, plain or compressed."""

    write: Callable[[Content, Limits, Write], None]
    read: Callable[[Source, Limits], Content]
    recognizes: Callable[[bytes], bool]  # by the first bytes
    cap: Callable[[Limits], int]  # the most bytes behind gzip
