"""What save writes and what it takes: files, names, results, wrong arguments, exact spellings."""

from __future__ import annotations

import time
from pathlib import Path
from typing import Any, Final

import numpy as np
import pytest
from onnx.reference import ReferenceEvaluator

import phlox as px
from phlox import Cpu, nn
from phlox_onnx.save import _file
from tests.onnx.exported import Of, drawn, onnxruntime

DEVICE: Final = Cpu()


def linear() -> nn.Linear:
    px.seed(0)
    return nn.Linear(4, 3, device=DEVICE)


# Files


def test_saving_again_replaces_the_data_beside(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(_file, "EXTERNAL", 64)
    path, net = tmp_path / "net.onnx", nn.Linear(64, 64, device=DEVICE)
    sizes = []
    for _ in range(3):
        px.onnx.save(net, drawn(2, 64), path)
        assert sorted(p.name for p in tmp_path.iterdir()) == ["net.onnx", "net.onnx.data"]
        sizes.append((tmp_path / "net.onnx.data").stat().st_size)
    assert len(set(sizes)) == 1
    assert sizes[0] >= 64 * 64 * 4
    found = px.onnx.load(path, device=DEVICE)(drawn(2, 64)).numpy()
    expected = net(px.asarray(drawn(2, 64), device=DEVICE)).numpy()
    np.testing.assert_allclose(found, expected, rtol=1e-5, atol=1e-6)


def test_links_are_not_written_through_for_data(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(_file, "EXTERNAL", 64)
    other = tmp_path / "other"
    other.write_bytes(b"mine")
    (tmp_path / "net.onnx.data").symlink_to(other)
    px.onnx.save(nn.Linear(64, 64, device=DEVICE), drawn(2, 64), tmp_path / "net.onnx")
    assert other.read_bytes() == b"mine"
    assert not (tmp_path / "net.onnx.data").is_symlink()


def test_a_link_stays_and_the_file_that_it_names_is_replaced(tmp_path: Path) -> None:
    (tmp_path / "there").mkdir()
    link = tmp_path / "net.onnx"
    link.symlink_to(tmp_path / "there" / "real.onnx")
    assert px.onnx.save(linear(), drawn(2, 4), link) == link
    assert link.is_symlink()
    assert px.onnx.load(link, device=DEVICE)(drawn(2, 4)).shape == (2, 3)


def test_what_cannot_be_saved_leaves_the_old_file(tmp_path: Path) -> None:
    path = px.onnx.save(linear(), drawn(2, 4), tmp_path / "net.onnx")
    before = path.read_bytes()
    noisy = Of(lambda x: x + px.asarray(np.random.default_rng().normal(size=(2, 4)), device=DEVICE))
    with pytest.raises(px.onnx.OnnxError, match="the file does not give what the module gives"):
        px.onnx.save(noisy, drawn(2, 4).astype(np.float64), path)
    assert path.read_bytes() == before
    assert [p.name for p in tmp_path.iterdir()] == ["net.onnx"]
    px.onnx.save(noisy, drawn(2, 4).astype(np.float64), path, verify=False)
    assert path.read_bytes() != before


def test_an_element_type_that_onnx_does_not_have_for_an_op_is_refused(tmp_path: Path) -> None:
    whole = Of(lambda x: px.nextafter(x, x + 1).astype("int8").cumsum(axis=0, dtype="int8"))
    with pytest.raises(px.onnx.OnnxError, match=r"CumSum of tensor\(int8\) in Of"):
        px.onnx.save(whole, drawn(2, 4), tmp_path / "x.onnx", verify=False)


@pytest.mark.long
def test_many_modules_are_written_in_linear_time(tmp_path: Path) -> None:
    def took(count: int) -> float:
        rows = (
            nn.Sequential(*(nn.Linear(2, 2, device=DEVICE) for _ in range(20)))
            for _ in range(count)
        )
        net = nn.Sequential(*rows)
        start = time.process_time()
        px.onnx.save(net, drawn(2, 2), tmp_path / "x.onnx", verify=False)
        return time.process_time() - start

    took(2)
    assert took(80) < 9 * min(took(20), took(20))  # 4 times as many; quadratic would be 16


# Names and results


def test_results_in_containers_are_outputs_in_order(tmp_path: Path) -> None:
    net = Of(lambda x: {"a": (x + 1, [x * 2]), "b": None, "c": x > 0})
    path = px.onnx.save(net, drawn(2, 4), tmp_path / "x.onnx", output_names=["one", "two", "sign"])
    back = px.onnx.load(path, device=DEVICE)
    assert back.outputs == ("one", "two", "sign")
    for found, want in zip(
        back(drawn(2, 4)), (drawn(2, 4) + 1, drawn(2, 4) * 2, drawn(2, 4) > 0), strict=True
    ):
        np.testing.assert_array_equal(found.numpy(), want)


def test_a_recurrent_layer_gives_its_states_too(tmp_path: Path) -> None:
    net = nn.Lstm(4, 3, device=DEVICE)
    path = px.onnx.save(net, drawn(2, 5, 4), tmp_path / "x.onnx")
    wanted = px.tree.leaves(net(px.asarray(drawn(2, 5, 4), device=DEVICE)))
    found = px.onnx.load(path, device=DEVICE)(drawn(2, 5, 4))
    assert len(wanted) == 3
    for a, b in zip(found, wanted, strict=True):
        np.testing.assert_allclose(a.numpy(), b.numpy(), rtol=1e-5, atol=1e-6)


class Shares(nn.Module):
    """Gives its weight and its input away."""

    layer: nn.Linear

    def forward(self, x: Any) -> Any:
        """Return what nothing computes, beside something."""
        return x, self.layer.weight.value, self.layer(x), px.ones((2,), device=x.device)


def test_inputs_weights_and_constants_are_results_too(tmp_path: Path) -> None:
    net = Shares(linear())
    path = px.onnx.save(net, drawn(2, 4), tmp_path / "x.onnx", dynamic_batch=True)
    found = px.onnx.load(path, device=DEVICE)(drawn(3, 4))
    wanted = net(px.asarray(drawn(3, 4), device=DEVICE))
    for a, b in zip(found, wanted, strict=True):
        np.testing.assert_allclose(a.numpy(), b.numpy(), rtol=1e-6)


def test_a_list_of_arrays_is_several_inputs(tmp_path: Path) -> None:
    both = Of(lambda x, y: x - y)
    path = px.onnx.save(both, [drawn(2, 4), drawn(1, 4)], tmp_path / "x.onnx", names=["a", "b"])
    assert px.onnx.load(path).inputs == ("a", "b")
    assert px.onnx.save(Of(lambda x: x * 2), [1.0, 2.0], path).is_file()


def test_an_optional_input_may_be_left_out(tmp_path: Path) -> None:
    net = Of(lambda x, mask, y: x + y if mask is None else x)
    path = px.onnx.save(net, (drawn(2, 4), None, drawn(1, 4)), tmp_path / "x.onnx")
    assert px.onnx.load(path).inputs == ("x0", "x1")


# Wrong arguments

WRONG: Final[dict[str, tuple[tuple[Any, ...], dict[str, Any], str]]] = {
    "a class": ((nn.Linear, drawn(2, 4), "x.onnx"), {}, "no module: got the class Linear"),
    "a function": ((lambda x: x, drawn(2, 4), "x.onnx"), {}, "no module: got function"),
    "compiled": ((px.compile(lambda x: x), drawn(2, 4), "x.onnx"), {}, "no module"),
    "none": ((None, drawn(2, 4), "x.onnx"), {}, "no module: got NoneType"),
    "no inputs": ((linear(), (), "x.onnx"), {}, "the inputs do not fit: got 0: missing"),
    "no path": ((linear(), drawn(2, 4), None), {}, "no path of a file: got None"),
    "a number as path": ((linear(), drawn(2, 4), 3), {}, "no path of a file: got 3"),
    "names of one word": (
        (linear(), drawn(2, 4), "x.onnx"),
        {"names": "x"},
        "names of inputs: got 'x'",
    ),
    "names of numbers": ((linear(), drawn(2, 4), "x.onnx"), {"names": [3]}, "names of inputs"),
    "empty names": ((linear(), drawn(2, 4), "x.onnx"), {"names": [""]}, "names of inputs"),
    "names of weights": (
        (linear(), drawn(2, 4), "x.onnx"),
        {"names": ["weight"]},
        r"names of inputs that are taken: got \['weight'\]",
    ),
    "names twice": (
        (linear(), drawn(2, 4), "x.onnx"),
        {"names": ["a"], "output_names": ["a"]},
        "names of outputs that are taken",
    ),
    "too many outputs": (
        (linear(), drawn(2, 4), "x.onnx"),
        {"output_names": ["a", "b"]},
        "names do not fit the outputs",
    ),
}


@pytest.mark.parametrize("what", WRONG)
def test_wrong_arguments_are_named(
    what: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(tmp_path)
    given, words, says = WRONG[what]
    save: Any = px.onnx.save
    with pytest.raises(px.ArgumentError, match=says):
        save(*given, **words)
    assert not list(tmp_path.iterdir())


# Spellings

TRUTHS: Final = {
    "all": lambda x: px.all(x > -9),
    "invert": lambda x: px.bitwise_invert(x > 0),
    "nextafter": lambda x: px.nextafter(x, x + 1),
    "sort": lambda x: (px.sort(x, axis=-1), px.sort(x, axis=0, descending=True)),
    "ties": lambda x: (px.argsort(x.round()), px.argsort(x.round(), descending=True)),
    "whole": lambda x: (x * 9).astype("int64") // px.asarray([-4, 4, 3, -3], device=DEVICE),
}


@pytest.mark.parametrize("what", TRUTHS)
def test_spellings_that_onnxruntime_takes(what: str, tmp_path: Path) -> None:
    net = Of(TRUTHS[what])
    path = px.onnx.save(net, drawn(3, 4), tmp_path / "x.onnx")
    wanted = px.tree.leaves(net(px.asarray(drawn(3, 4), device=DEVICE)))
    for found, want in zip(onnxruntime(path, drawn(3, 4)), wanted, strict=True):
        np.testing.assert_array_equal(found, want.numpy())


FAR: Final = np.array([-np.inf, -90, -2, -0.999, -1e-3, -1e-9, 0, 1e-9, 1e-3, 0.5, 1, 80, np.inf])


def exact(name: str, tmp_path: Path, *inputs: Any) -> list[Any]:
    """What a file gives in phlox and in the reference of ONNX."""
    single = [np.asarray(x, np.float32) for x in inputs]
    path = px.onnx.save(Of(getattr(px, name)), tuple(single), tmp_path / "x.onnx", verify=False)
    reference = ReferenceEvaluator(str(path))
    with np.errstate(all="ignore"):
        fed = {f"x{i}": x for i, x in enumerate(single)}
        plain: Any = reference.run(None, fed)
        return [plain[0], px.onnx.load(path, device=DEVICE)(*single).numpy()]


@pytest.mark.parametrize("name", ["expm1", "log1p"])
def test_small_numbers_keep_their_digits(name: str, tmp_path: Path) -> None:
    x = FAR.astype(np.float32)
    with np.errstate(all="ignore"):
        want = getattr(np, name)(x.astype(np.float64))
    for found in exact(name, tmp_path, x):
        np.testing.assert_allclose(found, want, rtol=1e-6)


def test_logaddexp_of_the_infinite(tmp_path: Path) -> None:
    a, b = np.meshgrid([-np.inf, -30, 0, 1e4, np.inf], [-np.inf, -20, 0, 1e4, np.inf])
    for found in exact("logaddexp", tmp_path, a, b):
        np.testing.assert_allclose(found, np.logaddexp(a, b), rtol=1e-6, atol=1e-12)


def test_remainders_of_large_numbers_are_exact(tmp_path: Path) -> None:
    x = np.array([1e8, -1e8, 7.5, -7.5, 6, -6], np.float32)
    for y in (3.0, -3.0):
        for found in exact("remainder", tmp_path, x, np.full_like(x, y)):
            np.testing.assert_array_equal(found, np.remainder(x, np.float32(y)))
