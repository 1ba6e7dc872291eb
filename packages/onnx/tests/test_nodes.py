"""The cases of nodes of the onnx wheel, on the reference."""

from fnmatch import fnmatchcase

import pytest

from phlox_onnx.testing import EXPECTED, expected_failure, node_cases, run_case
from phlox_tensor import Numpy

PARTS = 16


@pytest.mark.filterwarnings("ignore")
def test_there_are_as_many_cases_as_this_was_written_for() -> None:
    cases = node_cases()
    assert len(cases) >= 1884
    assert sum(expected_failure(name) is None for name in cases) >= 1640


@pytest.mark.filterwarnings("ignore")
@pytest.mark.parametrize("part", range(PARTS))
def test_cases_pass_but_those_that_cannot(part: int) -> None:
    wrong = []
    for name in sorted(node_cases())[part::PARTS]:
        why = expected_failure(name)
        try:
            run_case(node_cases()[name], Numpy())
        except Exception as error:
            if why is None:
                wrong.append(
                    f"{name}: {type(error).__name__}: {' '.join(str(error).split())[:200]}"
                )
        else:
            if why is not None:
                wrong.append(f"{name} passes, but is expected to fail: {why}")
    assert not wrong, "\n".join(wrong)


@pytest.mark.filterwarnings("ignore")
@pytest.mark.parametrize("pattern", sorted(EXPECTED))
def test_an_expected_failure_names_cases(pattern: str) -> None:
    if pattern.startswith("test_image_decoder"):
        pytest.importorskip("PIL", reason="the cases are made with Pillow")
    assert any(fnmatchcase(name, pattern) for name in node_cases())
