"""``python -m phlox``: the command ``phlox``."""

import sys

from ._cli import main

sys.exit(main())
