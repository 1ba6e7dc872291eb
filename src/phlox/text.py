"""Language models in use: everything of phlox_text, which `pip install phlox[text]` brings."""

from ._extras import of_extra as _of_extra
from ._mirror import mirror as _mirror

with _of_extra("text"):
    from phlox_text import *

_mirror(__name__, "phlox_text")
