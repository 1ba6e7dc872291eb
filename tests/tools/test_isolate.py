"""What `./x isolate` installs beside a package: the wheels it declares, and theirs."""

import pytest

from tools.isolate import isolate, needed
from tools.shell import CommandError
from tools.versions import projects

FOUND = {project.name: project for project in projects()}


@pytest.mark.parametrize(
    ("name", "expected"),
    [
        ("phlox", set(FOUND) - set(FOUND["phlox"].extras)),
        ("phlox-autodiff", {"phlox-autodiff", "phlox-tensor"}),
        ("phlox-optim", {"phlox-nn", "phlox-optim", "phlox-record", "phlox-tensor"}),
        ("phlox-tensor", {"phlox-tensor"}),
    ],
)
def test_a_package_brings_what_it_declares_and_no_more(name: str, expected: set[str]) -> None:
    assert needed(name, FOUND) == expected


def test_an_unknown_package_is_told_the_known_ones() -> None:
    with pytest.raises(CommandError, match="got phlox-trains, expected phlox, phlox-autodiff"):
        isolate(["phlox-trains"])
