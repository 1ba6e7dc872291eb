"""The single nodes of the onnx wheel on every backend: loaded, frozen, as source, and both."""

from __future__ import annotations

import pytest

import phlox as px
from phlox import Backend, Cpu, Numpy, Wgpu
from phlox_onnx.testing import Way, expected_failure, needs_host, node_cases, wrong_of

PARTS = 8
DEVICES = {"cpu": Cpu, "numpy": Numpy, "wgpu": Wgpu}
WAYS: tuple[Way, ...] = ("frozen", "frozen source", "load", "source")


def made(device: str) -> Backend:
    try:
        return DEVICES[device]()
    except px.BackendUnavailableError as error:
        pytest.skip(f"no adapter: {error}")


def names() -> list[str]:
    # Pictures are made with another library, where it is installed.
    return sorted(name for name in node_cases() if not name.startswith("test_image_decoder"))


@pytest.mark.filterwarnings("ignore")
@pytest.mark.parametrize("part", range(PARTS))
def test_nodes_that_are_loaded(part: int) -> None:
    wrong = wrong_of(names()[part::PARTS], Cpu())
    assert not wrong, "\n".join(wrong)


@pytest.mark.filterwarnings("ignore")
@pytest.mark.parametrize("way", WAYS)
@pytest.mark.parametrize("device", ["cpu", "wgpu"])
def test_some_nodes_in_every_way(device: str, way: Way) -> None:
    wrong = wrong_of(names()[::60], made(device), way)
    assert not wrong, "\n".join(wrong)


@pytest.mark.filterwarnings("ignore")
@pytest.mark.parametrize("way", ["load", "source"])
def test_shaders_run_most_nodes_alone(way: Way) -> None:
    passing = [name for name in node_cases() if expected_failure(name) is None]
    alone = [name for name in passing if needs_host(name, Wgpu(), way) is None]
    assert len(passing) >= 1670
    assert len(alone) >= 1540


@pytest.mark.long
@pytest.mark.timeout(900)
@pytest.mark.filterwarnings("ignore")
@pytest.mark.parametrize("part", range(PARTS))
@pytest.mark.parametrize("way", WAYS)
@pytest.mark.parametrize("device", sorted(DEVICES))
def test_nodes(device: str, way: Way, part: int) -> None:
    wrong = wrong_of(names()[part::PARTS], made(device), way)
    assert not wrong, "\n".join(wrong)
