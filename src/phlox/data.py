"""Datasets and loaders: everything of phlox_data, which `pip install phlox[data]` brings."""

from typing import TYPE_CHECKING as _TYPE_CHECKING

from ._extras import of_extra as _of_extra

with _of_extra("data"):
    from phlox_data import *

    if not _TYPE_CHECKING:
        from phlox_data import __getattr__  # noqa: F401 - says what names of others are called here
