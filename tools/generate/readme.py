"""The README as package indexes show it: nothing lies beside it, so links to files are text."""

import re
from pathlib import Path

from tools.shell import ROOT

FILE = ROOT / "docs" / "pypi.md"
_PICTURE = re.compile(r"^!\[[^]]*\]\([^)]*\)\n\n", re.MULTILINE)
_LINK = re.compile(r"\[([^]]*)\]\((?!https?://)[^)]*\)")


def page(source: Path = ROOT / "README.md") -> str:
    """Return the text of that page."""
    return _LINK.sub(r"\1", _PICTURE.sub("", source.read_text()))
