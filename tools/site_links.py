"""Links of a built site that lead nowhere, and all that it would load from elsewhere."""

from __future__ import annotations

from collections.abc import Iterator
from html.parser import HTMLParser
from pathlib import Path
from typing import Final
from urllib.parse import unquote, urlsplit

# Elements that load what they name; a link of text to elsewhere is for the reader to follow.
_LOADED: Final = {"audio", "iframe", "img", "link", "script", "source", "video"}
# What only readers of feeds and search engines follow.
_NAMED_ONLY: Final = {"canonical", "generator"}


class _Page(HTMLParser):
    """The places of a page, and what it links to."""

    def __init__(self, text: str) -> None:
        super().__init__()
        self.places: set[str] = {"", "top"}
        self.links: list[tuple[str, str]] = []
        self.feed(text)

    def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        """Note places and links."""
        found = dict(attrs)
        self.places |= {found.get("id") or "", found.get("name") or ""}
        for name in ("href", "src"):
            if found.get(name) and found.get("rel") not in _NAMED_ONLY:
                self.links.append((tag, found[name] or ""))


def problems(root: Path) -> list[str]:
    """One line for each link that leads nowhere or loads from elsewhere."""
    files = sorted(root.rglob("*.html"))
    pages = {file.resolve(): _Page(file.read_text(encoding="utf-8")) for file in files}
    lines: list[str] = []
    for file, page in pages.items():
        if file.name == "404.html":  # its links start where the site will be
            continue
        for tag, address in page.links:
            why = _problem(file, tag, address, pages)
            lines += [f"{file.relative_to(root.resolve())}: {address}: {why}"] if why else []
    return lines + list(_outside_styles(root))


def _problem(file: Path, tag: str, address: str, pages: dict[Path, _Page]) -> str:
    parts = urlsplit(address)
    if parts.scheme in {"data", "mailto"}:
        return ""
    if parts.scheme or parts.netloc:
        return "loaded from elsewhere" if tag in _LOADED else ""
    there = (file.parent / unquote(parts.path)).resolve() if parts.path else file
    there = there / "index.html" if there.is_dir() else there
    if not there.is_file():
        return "no such file"
    if there in pages and unquote(parts.fragment) not in pages[there].places:
        return "no such place on that page"
    return ""


def _outside_styles(root: Path) -> Iterator[str]:
    for file in sorted(root.rglob("*.css")):
        text = file.read_text(encoding="utf-8")
        if "url(http" in text or "@import" in text:
            yield f"{file.relative_to(root)}: loaded from elsewhere"
