"""What must not stand in the tree: one machine's places, hosts, promises without a number."""

import re
from pathlib import Path

import pytest

from tests.architecture.tree import files
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
