"""Records and the recorders that read and write them: everything of phlox_record."""

from phlox_record import *

from ._mirror import mirror as _mirror

_mirror(__name__, "phlox_record")
