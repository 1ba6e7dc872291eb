"""Records and the recorders that read and write them: everything of phlox_record."""

from phlox_record import *
