"""What holds in the Rust sources, and no compiler checks."""

from __future__ import annotations

import re

from tests.architecture.tree import files

SOURCES = [path for path in files(".rs") if "src" in path.parts]


def test_every_instruction_set_is_asked_for_before_it_is_used() -> None:
    detected = re.compile(r'is_x86_feature_detected!\("(\w+)"\)')
    used = re.compile(r'target_feature\(enable = "([\w,]+)"\)')
    known = {name for path in SOURCES for name in detected.findall(path.read_text())}
    assert {"avx2", "avx512f"} <= known
    count = 0
    for path in SOURCES:
        for features in used.findall(path.read_text()):
            count += 1
            missing = set(features.split(",")) - known
            assert not missing, f"{path}: {missing} used without is_x86_feature_detected!"
    assert count > 10


def test_lists_of_a_users_size_are_made_where_missing_memory_is_an_error() -> None:
    grows = re.compile(r"vec!\[[^\]]*;|with_capacity\(|\.resize\(")
    kernels = [path for path in SOURCES if "kernels-rs" in path.parts]
    kernels = [path for path in kernels if "tests" not in path.name and path.name != "scratch.rs"]
    assert len(kernels) > 50
    for path in kernels:
        code = path.read_text().split("#[cfg(test)]")[0]
        lines = [line for line in code.splitlines() if grows.search(line)]
        assert not lines, f"{path}: {lines[0].strip()} aborts; use memory/scratch.rs"
