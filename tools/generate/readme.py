"""The README as package indexes show it: nothing lies beside it, so links to files are text.

What leads nowhere or is wrong there is left out: pages to read on, and that nothing is there yet.
"""

import re
from pathlib import Path

from tools.shell import ROOT

FILE = ROOT / "docs" / "pypi.md"
_PICTURE = re.compile(r"^!\[[^]]*\]\([^)]*\)\n\n", re.MULTILINE)
_ASIDE = re.compile(r"\s\(\[[^]]*\]\((?!https?://)[^)]*\)\)")  # a link in brackets alone
_LINK = re.compile(r"\[([^]]*)\]\((?!https?://)[^)]*\)")
_OTHERWISE = re.compile(
    r"^## Reading on\n.*?(?=^## )|^Nothing is on PyPI yet.*?(?=^```\npip)", re.MULTILINE | re.DOTALL
)


def page(source: Path = ROOT / "README.md") -> str:
    """Return the text of that page."""
    text = source.read_text()
    for left_out in (_OTHERWISE, _PICTURE, _ASIDE):
        text = left_out.sub("", text)
    return _LINK.sub(r"\1", text)
