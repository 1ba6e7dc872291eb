"""What must not stand in the tree: one machine's places, hosts, promises without a number."""

import ast
import re
from pathlib import Path

import pytest

from tests.architecture.tree import files, is_generated
from tools.shell import ROOT

# Written in pieces, so that this file does not hold what it looks for.
PLACES = {
    "a home folder": r"/(?:home|ro" + r"ot|Users)/\w",
    "a folder of one machine": r"(?<![\w.}/])/(?:wo" + r"rk|opt/wh" + r"eels)/\w",
    "a folder outside the repository": r"\.\./sha" + r"red\b",
    "a package index": r"\b(?:files\.python" + r"hosted|py" + r"pi)\.(?:org|io)\b",
    "a crate registry": r"\b(?:static\.|index\.)?crates" + r"\.io\b",
    "a registry of scripts": r"\bregistry\.npm" + r"js\b",
}
# Cargo writes the name of its registry into its lock file; cargo needs it there.
EXEMPT = {"Cargo.lock"}
PROMISE = re.compile(r"\b(?:TO" + r"DO|FIX" + r"ME|XX" + r"X|HA" + r"CK)\b(?!\(#\d+\))")


def text_of(file: Path) -> str:
    """Text of a file; nothing of one that git would call binary, or whose bytes are no text."""
    data = file.read_bytes()
    return "" if b"\0" in data[:8000] else data.decode(errors="replace")


def lines() -> list[tuple[Path, int, str]]:
    """Every line of every text file."""
    return [
        (file.relative_to(ROOT), number, line)
        for file in files()
        if file.name not in EXEMPT
        for number, line in enumerate(text_of(file).splitlines(), 1)
    ]


@pytest.mark.parametrize("what", sorted(PLACES))
def test_the_tree_names_no_place(what: str) -> None:
    pattern = re.compile(PLACES[what])
    found = [f"{file}:{number}: {line}" for file, number, line in lines() if pattern.search(line)]
    assert not found, "\n".join([f"{what}:", *found])


def test_a_promise_names_its_issue() -> None:
    found = [f"{file}:{number}: {line}" for file, number, line in lines() if PROMISE.search(line)]
    hint = "hint: write TO" + "DO(#12), or do it"
    assert not found, "\n".join([*found, hint])


def test_the_tree_was_read() -> None:
    assert len({file for file, _, _ in lines()}) > 100


@pytest.mark.parametrize(
    ("what", "text"),
    [
        ("a home folder", "see /ho" + "me/me/data"),
        ("a folder of one machine", "cd /wo" + "rk/main"),
        ("a folder outside the repository", "`../sha" + "red/design.md`"),
        ("a package index", "from https://py" + "pi.org/simple"),
        ("a crate registry", "on crates" + ".io today"),
        ("a registry of scripts", "registry.npm" + "js.org"),
    ],
)
def test_the_patterns_find_what_they_are_for(what: str, text: str) -> None:
    assert re.search(PLACES[what], text)


@pytest.mark.parametrize(
    ("text", "bad"), [("# TO" + "DO: later", True), ("# TO" + "DO(#12): later", False)]
)
def test_the_promise_pattern(text: str, bad: bool) -> None:
    assert bool(PROMISE.search(text)) is bad


def hints() -> list[tuple[Path, int, str]]:
    """Texts that are no docstrings and no examples, in the sources of all packages."""
    found = []
    for file in files(".py"):
        if "src" not in file.parts or is_generated(file):
            continue
        tree = ast.parse(file.read_text())
        left_out = [*ast.walk(tree)]
        examples = [
            k.value for k in left_out if isinstance(k, ast.keyword) and k.arg in ("doc", "example")
        ]
        docs = [n.value for n in left_out if isinstance(n, ast.Expr)]
        skipped = {id(part) for top in [*examples, *docs] for part in ast.walk(top)}
        for node in ast.walk(tree):
            if (
                isinstance(node, ast.Constant)
                and isinstance(node.value, str)
                and id(node) not in skipped
            ):
                found.append((file.relative_to(ROOT), node.lineno, node.value))
    return found


def test_hints_call_the_namespace_px() -> None:
    found = [f"{file}:{line}: {text}" for file, line, text in hints() if re.search(r"\bpt\.", text)]
    assert not found, "\n".join([*found, 'hint: px.asarray(x), x.astype("float32")'])
    assert sum("px." in text for _, _, text in hints()) > 20
