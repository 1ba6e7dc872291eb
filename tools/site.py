"""`./x site`: the documentation as a site, into build/site/html.

`--serve` shows it on this machine, `--quick` does not run the examples of pages. Pages are those of
docs/ and the papers of the checkout, with links to each other; the public names of packages come
from their sources. Whatever leads nowhere, or out of the folder, is an error.
"""

from __future__ import annotations

import os
import re
import shutil
from collections.abc import Iterator
from functools import partial
from pathlib import Path, PurePosixPath

from tools import setup, site_links, site_sources
from tools.shell import ROOT, call, fail, run, say, script, together

BUILD = ROOT / "build" / "site"
HTML = BUILD / "html"
_SETTINGS = ROOT / "docs" / "site"
_TOOLS = ROOT / "tools"
# A link or picture outside of code: what stands before its address, and the address.
_CODE = re.compile(r"^```.*?^```|`[^`\n]+`", re.MULTILINE | re.DOTALL)
_LINK = re.compile(r"(\]\()([^)\s#]+)?(#[^)\s]*)?(?=\))")
_PICTURES = {".png", ".svg"}
_INSIDE = ("architecture.md", "compile.md", "programs.md", "kernels.md")


def site(words: list[str]) -> int:
    """Build the site; with `--serve` show it until the program is stopped."""
    unknown = [word for word in words if word not in {"--quick", "--serve"}]
    if unknown:
        raise fail(f"site: got {' '.join(unknown)}, expected --quick or --serve", "./x site")
    tools = setup.own("site")
    assemble(quick="--quick" in words)
    run(script("zensical", tools), "build", "--strict", "--clean", cwd=BUILD, venv=tools)
    problems = site_links.problems(HTML)
    for problem in problems:
        print(problem)
    say(f"{len(problems)} dead or outside links; the site is {HTML / 'index.html'}")
    if problems:
        return 1
    if "--serve" in words:
        served = ("--bind", "127.0.0.1", "--directory", HTML, "8000")
        return call(script("python"), "-m", "http.server", *served)
    return 0


def assemble(build: Path = BUILD, *, quick: bool = False) -> None:
    """Write all that the site is built from into a folder.

    Raises:
        CommandError: an example fails, or a link leads out of the site.
    """
    shutil.rmtree(build, ignore_errors=True)
    pages, sources = build / "pages", build / "sources"
    found = places(ROOT)
    for source, place in found.items():
        target = pages / place
        target.parent.mkdir(parents=True, exist_ok=True)
        if source.suffix == ".md":
            target.write_text(relinked(source, found), encoding="utf-8")
        else:
            shutil.copy(source, target)
    (pages / "changes.md").write_text(changes(), encoding="utf-8")
    shutil.copy(_SETTINGS / "site.css", pages)
    packages = sorted((ROOT / "packages").glob("*/src/phlox_*"))
    for package in packages:
        site_sources.copy(package, sources / package.name)
    names = [package.name for package in packages]
    roots = [ROOT / "src", ROOT / "kernels-rs" / "python", *ROOT.glob("packages/*/src")]
    here = {"PYTHONPATH": os.pathsep.join(map(str, roots))}
    run(script("python"), _TOOLS / "site_api.py", pages / "api", *names, extra=here)
    if not quick:
        _print_results(pages, here)
    settings = (_SETTINGS / "mkdocs.yml").read_text()
    (build / "mkdocs.yml").write_text(settings + "\n".join(["nav:", *navigation(pages), ""]))


def _print_results(pages: Path, here: dict[str, str]) -> None:
    """Put what each block prints under it; a page has a process of its own, as ops are declared."""
    files = [
        pages / "index.md",
        *sorted(pages.glob("guide/*.md")),
        *sorted(pages.glob("packages/*.md")),
    ]
    say(f"running the examples of {len(files)} pages; --quick leaves them out")

    def job(file: Path) -> int:
        return call(script("python"), _TOOLS / "site_printed.py", file, extra=here)

    statuses = together([partial(job, file)] for file in files)
    failed = [file.name for file, status in zip(files, statuses, strict=True) if status]
    if failed:
        raise fail(f"examples fail: {', '.join(failed)}", "./x test tests/docs/test_pages.py")


def places(root: Path) -> dict[Path, PurePosixPath]:
    """Every page and picture, and where it lies in the site."""
    found = {root / "README.md": PurePosixPath("index.md")}
    for file in sorted((root / "docs").rglob("*")):
        inside = PurePosixPath(file.relative_to(root / "docs").as_posix())
        if file.suffix in {".md", *_PICTURES} and inside.parts[0] not in {"site", "pypi.md"}:
            found[file] = inside.with_name("index.md") if inside.name == "README.md" else inside
    found[root / "CONTRIBUTING.md"] = PurePosixPath("contributing/index.md")
    found[root / "STYLE.md"] = PurePosixPath("contributing/style.md")
    engine = root.glob("packages/*/engine/README.md")
    for file in sorted(
        [*root.glob("packages/*/README.md"), *engine, root / "kernels-rs/README.md"]
    ):
        found[file] = PurePosixPath("packages", f"{file.parent.name}.md")
    found[root / "packages/record/FORMAT.md"] = PurePosixPath("packages/record-format.md")
    return found


def relinked(page: Path, found: dict[Path, PurePosixPath]) -> str:
    """Text of a page whose links lead to pages of the site.

    Raises:
        CommandError: a link leads to what is no part of the site.
    """
    text = page.read_text(encoding="utf-8")

    def moved(match: re.Match[str]) -> str:
        address, part = match[2] or "", match[3] or ""
        if not address or "://" in address:
            return match[0]
        there = Path(os.path.normpath(page.parent / address))
        there = there / "README.md" if there.is_dir() else there
        if there not in found:
            where = page.relative_to(ROOT) if page.is_relative_to(ROOT) else page
            raise fail(f"{where}: a link leads out of the site: {address}", "name the file instead")
        way = os.path.relpath(found[there], found[page].parent).replace(os.sep, "/")
        return f"{match[1]}{way}{part}"

    pieces, end = [], 0
    for code in _CODE.finditer(text):
        pieces += [_LINK.sub(moved, text[end : code.start()]), code[0]]
        end = code.end()
    return "".join([*pieces, _LINK.sub(moved, text[end:])])


def changes() -> str:
    """The changelogs of all packages as one page."""
    files = [ROOT / "CHANGELOG.md", *sorted(ROOT.glob("packages/**/CHANGELOG.md"))]
    texts = [
        file.read_text(encoding="utf-8") for file in [*files, ROOT / "kernels-rs/CHANGELOG.md"]
    ]
    parts = [
        re.sub(r"(?m)^(#+ )", r"#\1", text).replace("# Changelog of ", "# ", 1) for text in texts
    ]
    # Links of a changelog start in its folder.
    return "# Changes\n\n" + re.sub(r"\[([^]]+)\]\((?!https?:)[^)]*\)", r"\1", "\n".join(parts))


def navigation(pages: Path) -> Iterator[str]:
    """Lines of the settings that say in which order pages stand, by folder."""

    def those(folder: str) -> list[str]:
        files = [f"{folder}/{file.name}" for file in (pages / folder).glob("*.md")]
        return sorted(files, key=lambda name: (not name.endswith("index.md"), _number(name), name))

    top = sorted(file.name for file in pages.glob("*.md"))
    inside = [name for name in _INSIDE if name in top]
    measured = ["performance.md", *those("performance"), "accuracy.md"]
    apart = {"index.md", "changes.md", "gallery.md", *inside, *measured}
    yield "  - index.md"
    yield from _section("Guide", those("guide"))
    yield "  - Ops:"
    for name in those("ops"):  # titles say what is on a page, too long for a list
        stem = Path(name).stem
        label = "all ops" if stem == "index" else stem.replace("_", " ")
        yield f"      - {label}: {name}"
    yield from _section("Names", those("api"))
    yield from _section("Reference", [name for name in top if name not in apart])
    if "gallery.md" in top:
        yield "  - gallery.md"
    yield from _section("Performance", measured)
    yield from _section(
        "Inside", [*inside, *those("packages"), *those("contributing"), "changes.md"]
    )


def _section(title: str, names: list[str]) -> Iterator[str]:
    yield f"  - {title}:"
    yield from (f"      - {name}" for name in names)


def _number(name: str) -> int:
    """The number that a chapter starts with."""
    found = re.search(r"/(\d+)-", name)
    return int(found[1]) if found else 0
