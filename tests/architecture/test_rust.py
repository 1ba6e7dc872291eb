"""What holds in the Rust sources, and no compiler checks."""

from __future__ import annotations

import re

from tests.architecture.tree import files

SOURCES = [path for path in files(".rs") if "src" in path.parts]


def test_every_instruction_set_is_asked_for_before_it_is_used() -> None:
    detected = re.compile(r'is_x86_feature_detected!\("(\w+)"\)')
    used = re.compile(r'target_feature\(enable = "([\w,]+)"\)')
    [home] = [path for path in SOURCES if path.name == "simd.rs"]
    always = set(detected.findall(home.read_text()))
    assert {"avx2", "avx512f"} <= always
    count = 0
    for path in SOURCES:
        text = path.read_text()
        known = always | set(detected.findall(text))
        for features in used.findall(text):
            count += 1
            missing = set(features.split(",")) - known
            assert not missing, f"{path}: {missing} used without is_x86_feature_detected!"
    assert count > 10
