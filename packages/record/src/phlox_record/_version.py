"""The version of this package, which files name as their writer."""

from typing import Final

VERSION: Final = "0.1.0"
WRITER: Final = f"phlox-record {VERSION}"
