"""Language models in use: everything of phlox_text, which `pip install phlox[text]` brings."""

from typing import TYPE_CHECKING as _TYPE_CHECKING

from ._extras import of_extra as _of_extra

with _of_extra("text"):
    from phlox_text import *

    if not _TYPE_CHECKING:
        from phlox_text import __getattr__  # noqa: F401 - says what names of others are called here
