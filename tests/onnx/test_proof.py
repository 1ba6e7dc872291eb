"""What `phlox onnx FILE --out` says about the package that it wrote."""

from __future__ import annotations

import sys
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from onnx import numpy_helper, parser

import phlox as px
from phlox import Autodiff
from phlox_onnx._cli import main
from phlox_onnx._difference import difference
from phlox_onnx.source import _proof
from phlox_onnx.source._proof import Asked, Proof, proven
from phlox_onnx.source._verify import feeds_of
from phlox_onnx.source.text._write import Writer

HEAD = '<ir_version: 9, opset_import: ["" : 20]> g '


def f(*shape: int) -> Any:
    return np.random.default_rng(sum(shape)).normal(size=shape).astype(np.float32)


def file(folder: Path, text: str, **constants: Any) -> str:
    proto = parser.parse_model(HEAD + text)
    for name, value in constants.items():
        proto.graph.initializer.append(numpy_helper.from_array(np.asarray(value), name))
    path = folder / "model.onnx"
    path.write_bytes(proto.SerializeToString())
    return str(path)


POOLED = """(float[n, 3, h, w] x) => (float[n, 4] y) {
    a = Conv(x, k) b = MaxPool<kernel_shape = [2, 2], strides = [2, 2]>(a) c = Relu(b)
    d = GlobalAveragePool(c) y = Flatten(d) }"""


def command(path: str, folder: Path, *words: str) -> int:
    return main([path, "--out", str(folder / "made"), *words], train=Autodiff)


def test_three_sizes_and_gradients_stand_in_the_report(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    before = set(sys.modules)
    assert command(file(tmp_path, POOLED, k=f(4, 3, 3, 3)), tmp_path) == 0
    assert not {name for name in set(sys.modules) - before if name.startswith("_phlox_onnx")}
    report = (tmp_path / "made" / "report.md").read_text()
    assert report == capsys.readouterr().out
    verified = report.partition("## Verified\n\n")[2].splitlines()
    shapes = ["(1, 3, 4, 4)", "(2, 3, 8, 8)", "(3, 3, 12, 12)"]
    assert [line.partition("for 'x' ")[2] for line in verified[:3]] == shapes
    assert all(line.startswith("- 'y' beside load: ") for line in verified[:3])
    assert verified[3:] == ["- gradients: finite for all 1 weights"]


def proof_of(path: str, folder: Path, old: str, new: str) -> Proof:
    """What is said of a package in which something was changed."""
    made = px.onnx.write(path, folder / "made")
    model = folder / "made" / "model.py"
    assert old in model.read_text()
    model.write_text(model.read_text().replace(old, new))
    return proven(path, folder / "made", made, Asked(train=Autodiff, cure="; try again"))


RELU = "(float[n, 4] x) => (float[n, 4] y) { y = Relu(x) }"


def test_a_package_that_is_wrong_for_larger_batches_is_found(tmp_path: Path) -> None:
    path = file(tmp_path, RELU)
    assert proof_of(path, tmp_path, "x.relu()", "x.relu()").holds
    wrong = "x[:1].relu().broadcast_to(x.shape)"
    proof = proof_of(path, tmp_path, "x.relu()", wrong)
    assert not proof.holds
    assert ": 0.0e+00 of" in proof.lines[0]
    assert ": 0.0e+00 of" not in proof.lines[1]


def test_a_package_that_breaks_is_one_line_with_a_cure(tmp_path: Path) -> None:
    path = file(tmp_path, RELU)
    proof = proof_of(path, tmp_path, "x.relu()", "dict(zip([1], [], strict=True))")
    assert not proof.holds
    (line,) = proof.lines
    assert "does not run with these inputs: got ValueError: zip()" in line
    assert line.endswith("; try again")


def test_gradients_that_are_not_finite_are_found(tmp_path: Path) -> None:
    text = "(float[n, 4] x) => (float[n, 2] y) { a = MatMul(x, w) b = Abs(a) y = Sqrt(b) }"
    path = file(tmp_path, text, w=np.zeros((4, 2), np.float32))
    assert command(path, tmp_path) == 1
    report = (tmp_path / "made" / "report.md").read_text()
    assert "- gradients: not finite for 1 of 1 weights, first " in report


def test_random_numbers_are_the_same_on_both_sides(tmp_path: Path) -> None:
    text = "(float[n, 4] x) => (float[n, 4] y) { r = RandomNormalLike(x) y = Add(x, r) }"
    assert command(file(tmp_path, text), tmp_path) == 0


WIDE = """(float[n, 1, t] x) => (float[n, 2, k] y) {
    y = Conv<strides = [160]>(x, k) }"""


def test_sizes_grow_until_the_file_runs(tmp_path: Path) -> None:
    assert command(file(tmp_path, WIDE, k=f(2, 1, 512)), tmp_path) == 0
    assert "for 'x' (3, 1, 1920)" in (tmp_path / "made" / "report.md").read_text()


def test_where_no_size_runs_the_command_says_so(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    path = file(tmp_path, WIDE, k=f(2, 1, 64000))
    assert command(path, tmp_path) == 1
    said = capsys.readouterr()
    assert "the package is written; --sample FILE.npz gives inputs" in said.out
    assert "is written" in said.err
    np.savez(tmp_path / "sample.npz", x=f(1, 1, 64320))
    assert command(path, tmp_path, "--sample", str(tmp_path / "sample.npz")) == 0
    np.savez(tmp_path / "other.npz", z=f(1))
    assert command(path, tmp_path, "--sample", str(tmp_path / "other.npz")) == 1
    assert "an input is missing in the sample: got z, expected x" in capsys.readouterr().out


def test_a_sample_that_is_none_is_told_before_anything_is_written(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    (tmp_path / "junk.npz").write_bytes(b"junk")
    assert command(file(tmp_path, RELU), tmp_path, "--sample", str(tmp_path / "junk.npz")) == 2
    assert "no sample" in capsys.readouterr().err
    assert not (tmp_path / "made").exists()


def test_verify_says_what_is_missing(tmp_path: Path) -> None:
    path = file(tmp_path, RELU)
    px.onnx.write(path, tmp_path / "made")
    with pytest.raises(px.ArgumentError, match="an input is missing: got none, expected x"):
        px.onnx.verify(path, tmp_path / "made", {})
    with pytest.raises(px.ArgumentError, match="expected 'load', 'onnxruntime'"):
        px.onnx.verify(path, tmp_path / "made", {"x": f(1, 4)}, against="bad")  # type: ignore[arg-type]


def test_tiny_outputs_are_measured_by_a_thousandth() -> None:
    zero = np.zeros(3)
    assert difference(zero + 1e-9, zero) == pytest.approx(1e-6)
    assert difference(zero + 1e-3, zero) == 1
    assert difference(np.array([2.0, 1.0]), np.array([2.0, 2.0])) == 0.5


def test_write_verifies_before_anything_is_replaced(tmp_path: Path) -> None:
    good = file(tmp_path, RELU)
    made = px.onnx.write(good, tmp_path / "made")
    assert [line.partition("for ")[2] for line in made.proof[:3]] == [
        f"'x' ({n}, 4)" for n in (1, 2, 3)
    ]
    before = (tmp_path / "made" / "model.py").read_bytes()
    assert made.proof[0] in (tmp_path / "made" / "report.md").read_text()
    bad = file(tmp_path, "(float[n, 4] x) => (float[n, 4] y) { y = Transpose<perm = [0, 0]>(x) }")
    with pytest.raises(px.onnx.OnnxError, match="at none of the sizes that were tried"):
        px.onnx.write(bad, tmp_path / "made")
    assert (tmp_path / "made" / "model.py").read_bytes() == before
    assert sorted(p.name for p in tmp_path.iterdir()) == ["made", "model.onnx"]
    assert px.onnx.write(bad, tmp_path / "made", verify=False).proof == []
    assert (tmp_path / "made" / "model.py").read_bytes() != before


def test_write_verifies_with_the_inputs_that_it_is_given(tmp_path: Path) -> None:
    path = file(tmp_path, RELU)
    made = px.onnx.write(path, tmp_path / "made", verify={"x": f(7, 4)})
    assert len(made.proof) == 2
    assert made.proof[0].endswith("for 'x' (7, 4)")
    with pytest.raises(px.onnx.OnnxError, match="an input is missing in the sample"):
        px.onnx.write(path, tmp_path / "made", verify={"z": f(7, 4)})


def test_a_source_that_differs_is_not_written(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    real = Writer.source
    wrong = lambda *args: real(*args).replace("x.relu()", "x.tanh()")  # noqa: E731
    monkeypatch.setattr(Writer, "source", wrong)
    with pytest.raises(px.onnx.OnnxError, match=r"'y' beside load: \d"):
        px.onnx.write(file(tmp_path, RELU), tmp_path / "made")
    assert not (tmp_path / "made").exists()


def test_larger_sizes_are_tried_once_more_where_one_ran(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    tried: list[int] = []

    def noted(*args: Any) -> dict[str, Any]:
        feeds = feeds_of(*args)
        tried.append(feeds["x"].shape[1])
        return feeds

    monkeypatch.setattr(_proof, "feeds_of", noted)
    text = "(float[1, t] x) => (float y) <int64[2] s = {1, 16}> { y = Reshape(x, s) }"
    made = px.onnx.write(file(tmp_path, text), tmp_path / "made")
    assert made.proof[0].endswith("for 'x' (1, 16)")
    assert tried == [4, 8, 12, 16, 32, 48, 64, 128, 192]
