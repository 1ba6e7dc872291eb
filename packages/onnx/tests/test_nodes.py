"""The cases of nodes of the onnx wheel, on the reference."""

from fnmatch import fnmatchcase

import onnx
import pytest

from phlox_onnx.read._types import LACKING, TYPES
from phlox_onnx.testing import BESIDE_HOST, EXPECTED, expected_failure, node_cases, wrong_of
from phlox_tensor import Numpy

PARTS = 16


@pytest.mark.filterwarnings("ignore")
def test_there_are_as_many_cases_as_this_was_written_for() -> None:
    cases = node_cases()
    assert len(cases) >= 1884
    assert sum(expected_failure(name) is None for name in cases) >= 1670


@pytest.mark.filterwarnings("ignore")
@pytest.mark.timeout(600)
@pytest.mark.parametrize("part", range(PARTS))
def test_cases_pass_but_those_that_cannot(part: int) -> None:
    wrong = wrong_of(sorted(node_cases())[part::PARTS], Numpy())
    assert not wrong, "\n".join(wrong)


KNOWN = sorted({*EXPECTED, *(name for each in BESIDE_HOST.values() for name in each)})


@pytest.mark.filterwarnings("ignore")
@pytest.mark.parametrize("pattern", KNOWN)
def test_an_expected_failure_names_cases(pattern: str) -> None:
    if pattern.startswith("test_image_decoder"):
        pytest.importorskip("PIL", reason="the cases are made with Pillow")
    assert any(fnmatchcase(name, pattern) for name in node_cases())


def test_every_number_of_an_element_type_is_known() -> None:
    names = {code: name.lower() for name, code in onnx.TensorProto.DataType.items() if code}
    ours = {"float": "float32", "double": "float64", "int4": "int8", "uint4": "uint8"}
    assert {code: ours.get(name, name) for code, name in names.items()} == TYPES | LACKING
