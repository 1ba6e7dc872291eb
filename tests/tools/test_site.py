"""`./x site`: what pages become, what links are refused, what is searched."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from tools import site
from tools.commands import main
from tools.shell import ROOT, CommandError
from tools.site_links import problems
from tools.site_printed import printed
from tools.site_sources import headed


def small(root: Path) -> Path:
    """A checkout of a few pages."""
    for name, text in {
        "README.md": "[a](docs/guide/1-a.md#part) [t](packages/tensor) `[no](link)` [w](https://a.b)",
        "docs/guide/1-a.md": "```\n[no](code)\n```\n![curve](../curve.svg) [u](../../README.md)",
        "docs/curve.svg": "<svg/>",
        "docs/pypi.md": "",
        "packages/tensor/README.md": "# Tensor",
    }.items():
        file = root / name
        file.parent.mkdir(parents=True, exist_ok=True)
        file.write_text(text)
    return root


def test_links_lead_to_pages_of_the_site(tmp_path: Path) -> None:
    root = small(tmp_path)
    found = site.places(root)
    assert root / "docs/pypi.md" not in found
    text = site.relinked(root / "README.md", found)
    assert text == "[a](guide/1-a.md#part) [t](packages/tensor.md) `[no](link)` [w](https://a.b)"
    inner = site.relinked(root / "docs/guide/1-a.md", found)
    assert inner.endswith("[no](code)\n```\n![curve](../curve.svg) [u](../index.md)")


def test_a_link_out_of_the_site_is_refused(tmp_path: Path) -> None:
    root = small(tmp_path)
    (root / "docs/guide/1-a.md").write_text("[code](../../x)")
    with pytest.raises(CommandError, match=r"1-a\.md: a link leads out of the site: \.\./\.\./x"):
        site.relinked(root / "docs/guide/1-a.md", site.places(root))


def test_links_of_every_page_have_a_place() -> None:
    found = site.places(ROOT)
    pages = [file for file in found if file.suffix == ".md" and file.is_file()]
    assert len(pages) > 70
    for page in pages:
        site.relinked(page, found)


def test_dead_and_outside_links_are_found(tmp_path: Path) -> None:
    (tmp_path / "a.html").write_text(
        '<p id="here"><a href="#here">1</a><a href="b.html#no">2</a><a href="c.html">3</a>'
        '<a href="https://a.b">4</a><script src="https://c.d/x.js"></script><img src="b.html">'
    )
    (tmp_path / "b.html").write_text('<a href="a.html#here">1</a>')
    (tmp_path / "a.css").write_text("p { background: url(https://e.f/x.png) }")
    assert problems(tmp_path) == [
        "a.html: b.html#no: no such place on that page",
        "a.html: c.html: no such file",
        "a.html: https://c.d/x.js: loaded from elsewhere",
        "a.css: loaded from elsewhere",
    ]


def test_what_a_block_prints_stands_under_it() -> None:
    twice = "```python\nprint(x)\n```\n"
    page = f"```python\nx = 2\n```\ntext\n{twice}end\n{twice}\n```\n2\n```\n"
    shown = printed(page, "page")
    assert "print(x)\n```\n\n``` { .text .printed }\n2\n```\nend\n" in shown
    assert shown.count(".printed") == 1  # the last block shows its own
    with pytest.raises(ZeroDivisionError):
        printed("```python\n1 / 0\n```\n", "page")


def test_examples_of_sources_get_a_heading() -> None:
    source = (
        'def f():\n    """One.\n\n    >>> f()\n    [1]\n\n    Two.\n\n'
        '    Example:\n        >>> f()\n    """\n'
    )
    assert headed(source) == (
        'def f():\n    """One.\n\n    Examples:\n        >>> f()\n        [1]\n\n    Two.\n\n'
        '    Examples:\n        >>> f()\n    """\n'
    )


def test_changes_of_every_package_are_one_page_without_links_that_start_elsewhere() -> None:
    text = site.changes()
    for name in ("phlox", "phlox-kernels", "phlox-nn", "phlox-wgpu-engine"):
        assert f"\n## {name}\n" in text
    assert "(../" not in text
    assert "](" not in text.replace("](http", "")


def test_an_unknown_word_is_refused(capsys: pytest.CaptureFixture[str]) -> None:
    with pytest.raises(CommandError, match="got --fast, expected --quick or --serve"):
        site.site(["--fast"])


@pytest.mark.long
@pytest.mark.timeout(600)
def test_the_site_builds_strictly_and_search_finds_names() -> None:
    assert main(["site", "--quick"]) == 0
    items = json.loads((site.HTML / "search.json").read_text())["items"]
    titles = " ".join(item["title"] for item in items)
    for word in ("cross_entropy", "freeze", "ONNX", "AdamWConfig", "DataLoader"):
        assert word in titles, word


def test_the_gallery_has_every_example() -> None:
    page = (ROOT / "docs/gallery.md").read_text()
    folders = [file.parent.name for file in (ROOT / "examples").glob("*/__main__.py")]
    assert len(folders) >= 8
    missing = [name for name in folders if f"examples.{name}" not in page and name != "mnist"]
    assert missing == []


def test_the_list_of_ops_names_each_page_by_its_own_name(tmp_path: Path) -> None:
    for name in ("index", "indexing", "pooling_nd"):
        file = tmp_path / "ops" / f"{name}.md"
        file.parent.mkdir(exist_ok=True)
        file.touch()
    lines = [line.strip() for line in site.navigation(tmp_path)]
    assert "- all ops: ops/index.md" in lines
    assert "- indexing: ops/indexing.md" in lines
    assert "- pooling nd: ops/pooling_nd.md" in lines
