"""The version of this package, which files name as their writer."""

from typing import Final

VERSION: Final = "0.2.0"
WRITER: Final = f"phlox-record {VERSION}"
