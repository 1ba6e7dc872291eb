"""The Rust tests are told what the processor has, by the names that they ask for."""

from __future__ import annotations

import re
from pathlib import Path

from tools import processor

ROOT = Path(__file__).resolve().parents[2]
XEON = "processor : 0\nflags : fpu avx512f avx512_vnni avx512_bf16 amx_bf16 amx_tile amx_int8\n"


def told(tmp_path: Path, text: str) -> str:
    (tmp_path / "cpuinfo").write_text(text)
    return processor.told(tmp_path / "cpuinfo")["PHLOX_TEST_HAS"]


def test_flags_of_the_system_are_told_in_words_of_the_tests(tmp_path: Path) -> None:
    assert told(tmp_path, XEON) == "amx,avx512_bf16,avx512_vnni,avx512f"
    assert told(tmp_path, XEON.replace("amx_tile ", "")) == "avx512_bf16,avx512_vnni,avx512f"
    assert told(tmp_path, "flags : fpu sse2\n") == ""
    assert told(tmp_path, "Features\t: fp asimd asimddp bf16\n") == "bf16,dotprod"
    assert processor.told(tmp_path / "none") == {}


def test_the_tests_ask_for_words_that_are_told() -> None:
    machine = ROOT / "kernels-rs" / "src" / "machine"
    asked = set(re.findall(r'here\("(\w+)"', (machine / "needs.rs").read_text()))
    pairs = re.findall(r'\("(\w+)", "(\w+)"\)', (machine / "simd" / "tests.rs").read_text())
    asked |= {word for pair in pairs for word in pair}
    assert {"amx", "avx512f", "dotprod"} <= asked <= set(processor._WORDS)
