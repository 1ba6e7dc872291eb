"""Every hostile file is refused, for the right reason, under a memory cap."""

from __future__ import annotations

import json
import re
import runpy
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest

HERE = Path(__file__).parent
BUILD = runpy.run_path(str(HERE.parent / "attacks" / "build.py"), run_name="build")
NAMES: dict[str, str] = BUILD["expectations"]()
# What the tests of the formats of others read in memory is read under the cap too.
FOREIGN: dict[str, tuple[bytes, str]] = {
    f"{number}{extension}": row
    for module, extension in (
        ("test_gguf.py", ".gguf"),
        ("test_npz.py", ".npz"),
        ("test_pytorch.py", ".pt"),
        ("test_safetensors.py", ".safetensors"),
    )
    for number, row in enumerate(runpy.run_path(str(HERE / module))["HOSTILE"])
}


@pytest.fixture(scope="module")
def results(tmp_path_factory: pytest.TempPathFactory) -> dict[str, Any]:
    folder = tmp_path_factory.mktemp("attacks")
    BUILD["main"](str(folder))
    for name, (data, _) in FOREIGN.items():
        (folder / name).write_bytes(data)
    command = [sys.executable, str(HERE / "attack_reader.py"), str(folder)]
    done = subprocess.run(command, capture_output=True, text=True, check=False, timeout=110)
    assert done.returncode == 0, done.stderr
    found: dict[str, Any] = json.loads(done.stdout)
    return found


def test_the_cap_was_on(results: dict[str, Any]) -> None:
    assert results["capped"] == sys.platform.startswith("linux")


@pytest.mark.parametrize("name", NAMES)
def test_attack(name: str, results: dict[str, Any]) -> None:
    result = results["found"][name]
    assert result["outcome"] == "refused", result
    assert NAMES[name] in result["message"]
    assert all(line.isprintable() for line in result["message"].split("\n"))
    assert len(result["message"]) < 1000
    assert result["seconds"] < 30


@pytest.mark.parametrize("name", FOREIGN)
def test_attack_on_a_format_of_others(name: str, results: dict[str, Any]) -> None:
    result, says = results["found"][name], FOREIGN[name][1]
    assert result["outcome"] == ("refused" if says else "accepted"), result
    assert re.search(says, result["message"])
    assert result["seconds"] < 30


def test_brackets_in_text_are_no_depth() -> None:
    from phlox_record import JsonRecorder

    value = {"text": "[{" * 1000 + '"\\'}
    assert JsonRecorder().from_bytes(JsonRecorder().to_bytes(value)) == value


DEEPEST = 2 * 128 + 8  # tags take levels too


@pytest.mark.parametrize(
    ("begin", "end", "levels"),
    [("[", "]", 1), ('{"a":', "}", 1), ('[{"a":', "}]", 2), ('["\\"[",', "]", 1)],
)
def test_json_is_parsed_to_a_depth_and_no_deeper(begin: str, end: str, levels: int) -> None:
    from phlox_record import Limits
    from phlox_record._errors import Malformed
    from phlox_record._json import parse

    def nested(count: int) -> bytes:
        return (begin * count + "1" + end * count).encode()

    assert parse(nested(DEEPEST // levels), Limits())
    for count in (DEEPEST // levels + 1, 10 * DEEPEST):
        with pytest.raises(Malformed, match="too deep"):
            parse(nested(count), Limits())
