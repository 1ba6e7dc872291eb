"""Names of other libraries that we spell otherwise say so; other wrong names say what is near."""

from __future__ import annotations

import copy
import pickle
import re
import subprocess
import sys
from inspect import isfunction, signature
from typing import Any

import numpy as np
import pytest

import phlox_tensor as pt
from phlox_tensor import UnknownNameError
from phlox_tensor._elsewhere.spellings import FOREIGN, SPELLINGS, Hint
from phlox_tensor._errors.keywords import KEYWORDS

ns: Any = pt
TENSOR: Any = pt.Tensor
VALUES = {
    "x": [[1.0, 2.0, 3.0], [4.0, 5.0, 6.0]],
    "y": [[3.0, 2.0, 1.0], [1.0, 1.0, 1.0]],
}


def values_of(text: str) -> str:
    with pytest.raises(UnknownNameError) as caught:
        eval(text, {"pt": pt, "x": pt.ones((2, 3))})
    return str(caught.value)


@pytest.mark.parametrize(
    ("code", "text"),
    [
        ("pt.cat", "[cat] phlox calls this concat\nhint: pt.concat([x, y], axis=0)"),
        ("pt.float", "[float] phlox writes this otherwise\nhint: pt.float32"),
        ("pt.randn", "[randn] phlox calls this random.normal\nhint: pt.random.normal((2, 3))"),
        ("pt.sofmax", "[sofmax] no such name in phlox_tensor\nhint: pt.softmax"),
        (
            "pt.imag",
            "[imag] complex numbers: tensors are real, pairs are px.fft.Spectrum\n"
            "hint: pt.fft.fft(x).imag",
        ),
        ("pt.linalg.expm", "[expm] phlox writes this otherwise\nhint: px.linalg.matrix_exp(x)"),
        ("pt.linalg.solv", "[solv] no such name in px.linalg\nhint: px.linalg.solve"),
        ("pt.fft.rffts", "[rffts] no such name in px.fft\nhint: px.fft.rfft"),
        (
            "pt.fft.dct",
            "[dct] phlox writes this otherwise\nhint: px.asarray(scipy.fft.dct(x.numpy()))",
        ),
        ("pt.fft.fft2", "[fft2] phlox writes this otherwise\nhint: px.fft.fftn(x, axes=(-2, -1))"),
        ("pt.linalg.kron", "[kron] an op, but no name of px.linalg\nhint: px.kron"),
        (
            "pt.random.rand",
            "[rand] phlox calls this random.uniform\nhint: px.random.uniform((2, 3))",
        ),
        ("pt.wholly_else", "[wholly_else] no such name in phlox_tensor"),
        ("x.clamp", "[clamp] phlox calls this clip\nhint: x.clip(0.0, 1.0)"),
        ("x.cuda", '[cuda] phlox writes this otherwise\nhint: x.to_device("wgpu")'),
        ("x.permute", "[permute] phlox calls this permute_dims\nhint: x.permute_dims(1, 0)"),
        ("x.unsqueeze", "[unsqueeze] phlox calls this expand_dims\nhint: px.expand_dims(x, 0)"),
        ("x.view", "[view] phlox calls this reshape\nhint: x.reshape(2, 3)"),
        ("pt.Tensor.mm", "[mm] phlox calls this matmul\nhint: x @ y"),
    ],
)
def test_a_name_of_another_library_says_what_to_type(code: str, text: str) -> None:
    assert values_of(code) == text


@pytest.mark.parametrize("name", ["eig", "eigvals"])
def test_what_is_complex_says_what_to_type(name: str) -> None:
    with pytest.raises(UnknownNameError, match=rf"\[{name}\] complex numbers.*") as caught:
        getattr(pt.linalg, name)
    code = re.findall(r"(?:px|numpy)\.linalg\.\w+\(x[.a-z()]*\)", str(caught.value))
    assert len(code) == 2
    x = pt.asarray([[2.0, 1.0], [1.0, 2.0]])
    ours, theirs = (eval(each, {"px": pt, "numpy": np, "x": x}) for each in code)
    if name == "eig":
        ours, theirs = ours[0], theirs[0]
    assert sorted(theirs) == pytest.approx(ours.tolist())
    assert not hasattr(pt.linalg, "__wrapped__")


def test_a_name_that_is_not_there_is_still_an_attribute_error() -> None:
    x: Any = pt.ones(2)
    assert not hasattr(x, "view")
    assert not hasattr(pt.Tensor, "view")
    assert not hasattr(pt, "cat")
    assert getattr(x, "view", None) is None
    with pytest.raises(AttributeError) as caught:
        _ = x.view
    assert str(pickle.loads(pickle.dumps(caught.value))) == str(caught.value)
    assert copy.copy(x) is x


def test_dir_lists_what_is_there_alone() -> None:
    x = pt.ones((2, 2))
    assert "reshape" in dir(x)
    assert "concat" in dir(pt)
    assert all(hasattr(x, name) for name in dir(x))
    assert all(hasattr(pt, name) for name in dir(pt))


def test_python_names_what_is_near_to_an_unknown_attribute_of_a_tensor() -> None:
    code = "import phlox_tensor as pt\npt.ones(2, device='numpy').reshap"
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=False)
    assert "Did you mean: 'reshape'" in done.stderr


def test_attributes_of_tensors_take_the_fast_path() -> None:
    assert "__getattr__" not in vars(pt.Tensor)
    assert "__getattribute__" not in vars(pt.Tensor)


def test_an_op_of_a_user_may_have_a_name_of_another_library() -> None:
    assert isinstance(vars(TENSOR)["powf"], Hint)
    pt.ops.elementwise("powf", "x: Float -> Float", expand=lambda x: x * x, doc="A test.")
    try:
        x: Any = pt.asarray([3.0])
        assert x.powf().tolist() == [9.0]
    finally:
        del pt.REGISTRY["powf"]
        setattr(TENSOR, "powf", Hint("powf"))  # noqa: B010 - not a declared member


def named(ours: str) -> object:
    value: object = pt
    for part in ours.split("."):
        value = getattr(value, part)
    return value


def test_rows_of_the_table_are_sorted_and_name_what_there_is() -> None:
    ours = [row.ours for row in SPELLINGS]
    assert ours == sorted(ours)
    assert len(set(ours)) == len(ours)
    for name in ours:
        named(name)


def test_a_foreign_name_has_code_to_type_and_that_code_names_what_there_is() -> None:
    for row in SPELLINGS:
        foreign = {row.numpy, row.torch, row.burn} - {"", "="}
        assert row.code or not foreign, row.ours
    for name, (_, code) in FOREIGN.items():
        text = code.format(ns="pt")
        for word in re.findall(r"\bpt\.([A-Za-z0-9_.]+)", text):
            named(word)
        for word in re.findall(r"\bx\.([A-Za-z0-9_]+)", text):
            assert hasattr(pt.ones((2, 2)), word), (name, word)


@pytest.mark.parametrize(
    ("name", "x", "wanted"),
    [
        ("hstack", [1.0, 2.0], np.hstack),
        ("hstack", [[1.0], [2.0]], np.hstack),
        ("vstack", [1.0, 2.0], np.vstack),
        ("nanmax", [1.0, np.nan], lambda xs: np.nanmax(xs[0])),
        ("nanmean", [1.0, np.nan, 3.0], lambda xs: np.nanmean(xs[0])),
        ("nanmin", [1.0, np.nan], lambda xs: np.nanmin(xs[0])),
        ("nansum", [1.0, np.nan], lambda xs: np.nansum(xs[0])),
        ("percentile", [1.0, 2.0, 3.0], lambda xs: np.percentile(xs[0], 50.0)),
        ("scatter_add", [1.0, 2.0], None),
    ],
)
def test_the_code_for_a_foreign_name_gives_what_the_name_gives(
    name: str, x: Any, wanted: Any
) -> None:
    code = FOREIGN[name][1].format(ns="pt")
    given = {"x": pt.asarray(x), "y": pt.asarray(x), "pt": pt}
    given |= {"indices": pt.asarray([0, 0]), "update": pt.asarray([3.0, 4.0])}
    want = [8.0, 2.0] if wanted is None else wanted([x, x]).tolist()
    assert eval(code, given).tolist() == want


X, Y = np.array(VALUES["x"]), np.array(VALUES["y"])
SAME: list[tuple[str, tuple[Any, ...], Any]] = [
    ("array_split", (), [3, 3, 2, 2]),
    ("atleast_2d", (X[0],), np.atleast_2d(X[0])),
    ("cbrt", (-X,), np.cbrt(-X)),
    ("cholesky_solve", ([[2.0], [3.0]], [[2.0, 0.0], [1.0, 1.0]]), [[-0.5], [2.0]]),
    ("column_stack", (X[0], Y[0]), np.column_stack([X[0], Y[0]])),
    ("combinations", (X[0],), [[1.0, 2.0], [1.0, 3.0], [2.0, 3.0]]),
    ("cond", (X,), np.linalg.cond(X)),
    ("convolve", (X[0], Y[0]), np.convolve(X[0], Y[0])),
    ("correlate", (X[0], Y[0, :2]), np.correlate(X[0], Y[0, :2])),
    ("delete", (X[0],), np.delete(X[0], 1)),
    ("diag_embed", (X[0],), np.diag(X[0])),
    ("diag_indices", (), np.diag_indices(3)),
    ("ediff1d", (X,), np.ediff1d(X)),
    ("entr", ([0.0, 2.0],), [0.0, -2.0 * np.log(2.0)]),
    ("expit", (X,), 1.0 / (1.0 + np.exp(-X))),
    ("flatnonzero", ([[0.0, 1.0], [2.0, 0.0]],), [1, 2]),
    ("fmax", ([np.nan, 1.0, 2.0], [1.0, np.nan, 3.0]), [1.0, 1.0, 3.0]),
    ("fmin", ([np.nan, 1.0, 2.0], [1.0, np.nan, 3.0]), [1.0, 1.0, 2.0]),
    ("heaviside", ([-1.0, 0.0, 2.0], [7.0, 7.0, 7.0]), [0.0, 7.0, 1.0]),
    ("indices", (), np.indices((2, 3))),
    ("inner", (X, Y), np.inner(X, Y)),
    ("insert", (X[0], Y[0]), np.insert(X[0], 1, Y[0])),
    ("intersect1d", (X, Y), np.intersect1d(X, Y)),
    ("logspace", (), np.logspace(0, 2, 5)),
    ("nanargmax", ([1.0, np.nan, 3.0],), 2),
    ("nanprod", ([2.0, np.nan, 3.0],), 6.0),
    ("nanstd", ([1.0, np.nan, 3.0],), 1.0),
    ("percentile", (X,), np.percentile(X, 50)),
    ("polyfit", (X[0], Y[1] * X[0] ** 2), [1.0, 0.0, 0.0]),
    ("ptp", (X,), 5.0),
    ("renorm", ([[3.0, 4.0], [0.3, 0.4]],), [[0.6, 0.8], [0.3, 0.4]]),
    ("rint", ([0.5, 1.5],), [0.0, 2.0]),
    ("setdiff1d", (X, Y), np.setdiff1d(X, Y)),
    ("sinc", ([0.0, 0.5],), np.sinc([0.0, 0.5])),
    ("tri", (), np.tri(3)),
    ("tril_indices", (), np.tril_indices(3)),
    ("tril_mask", (), ~np.tril(np.ones((3, 3), bool))),
    ("union1d", (X[0], Y[0]), np.union1d(X[0], Y[0])),
    ("unique_consecutive", ([1, 1, 2, 1],), [1, 2, 1]),
    ("vander", (X[0],), np.vander(X[0])),
    ("vdot", (X, Y), np.vdot(X, Y)),
    ("xlogy", ([0.0, 2.0], [0.0, 1.0]), [0.0, 0.0]),
]


@pytest.mark.parametrize(("name", "arrays", "wanted"), SAME, ids=[row[0] for row in SAME])
def test_formulas_for_names_of_others_give_what_those_give(
    name: str, arrays: tuple[Any, ...], wanted: Any
) -> None:
    given: dict[str, Any] = dict(zip("xy", map(pt.asarray, arrays), strict=False))
    given = given or {"x": pt.arange(10)}
    found = eval(FOREIGN[name][1].format(ns="pt"), {"pt": pt, **given})
    if name == "array_split":
        found = [len(part) for part in found]
    elif isinstance(found, tuple | list):
        found = pt.stack(list(found))
    np.testing.assert_allclose(np.asarray(found), np.asarray(wanted), rtol=1e-5, atol=1e-6)


def test_what_is_alike_and_means_another_thing_is_no_hint() -> None:
    for name in ("complex", "igamma", "zeta", "spectrogram"):
        with pytest.raises(UnknownNameError) as caught:
            getattr(pt, name)
        assert "pt.fft" in str(caught.value.hint) or caught.value.hint is None, name
    with pytest.raises(UnknownNameError, match=r"hint: px\.random\.uniform\(\(2, 3\)\)"):
        ns.random.random((3,))
    with pytest.raises(UnknownNameError) as caught:
        ns.random.binomial(3, 0.5)
    assert "bernoulli" not in str(caught.value.hint)


def test_keywords_of_others_point_at_arguments_of_ours() -> None:
    spaces = (pt, pt.fft, pt.linalg, pt.random)
    functions = [f for ns in spaces for f in vars(ns).values() if isfunction(f)]
    ours = {name for f in functions for name in signature(f).parameters}
    assert list(KEYWORDS) == sorted(KEYWORDS)
    for name, words in KEYWORDS.items():
        assert set(words) <= ours, name


@pytest.mark.parametrize(
    ("call", "hint"),
    [
        ("pt.add(x, other=x)", "x2=other"),
        ("pt.concat([x], dim=0)", "axis=0"),
        ("pt.ctc_loss(log_probs=x)", "px.ctc_loss(x, targets)"),
        ("pt.exp(input=x)", "px.exp(x)"),
        ("pt.gelu(x, approximate='tanh')", "x.gelu_tanh()"),
        ("pt.interpolate(x, scale_factor=2)", "px.interpolate(x, [2 * n for n in x.shape[2:]])"),
        ("pt.max_pool2d(x, kernel_size=2)", "kernel=2"),
        ("pt.one_hot(x, num_classes=3)", "classes=3"),
        (
            "pt.pad(x, ((1, 1),), mode='reflect')",
            "px.pad_border(x, mode='reflect', padding=((1, 1),))",
        ),
        ("pt.roll(x, shifts=1, dims=0)", "shift=1, axis=0"),
        ("pt.round(x, decimals=2)", "(x * 10**2).round() / 10**2"),
        ("pt.searchsorted(x, x, right=True)", 'side="right"'),
        ("pt.softplus(x, beta=2.0)", "(2.0 * x).softplus() / 2.0"),
        ("pt.stack(tensors=[x])", "px.stack(xs, axis)"),
        ("pt.std(x, ddof=1)", "correction=1"),
        ("pt.triu(x, 1)", "px.triu(x, k=1)"),
        ("pt.fft.fft(x, 3)", "px.fft.fft(x, n=3)"),
        ("pt.where(x > 0)", "px.nonzero(mask), or px.where(condition, x1, x2)"),
        ("pt.zeros(size=(2, 3))", "shape=(2, 3)"),
        ("x.repeat(n=2)", "repeats=2"),
        ("x.reshape(newshape=(3, 2))", "x.reshape((3, 2))"),
    ],
)
def test_a_keyword_of_others_says_what_to_type_whatever_else_is_missing(
    call: str, hint: str
) -> None:
    with pytest.raises(pt.ArgumentError) as caught:
        eval(call, {"pt": pt, "x": pt.ones((2, 3))})
    assert isinstance(caught.value, TypeError)
    assert caught.value.hint == hint


def test_an_argument_that_is_missing_is_named() -> None:
    for call in ("pt.add(x)", "pt.add()", "x.take()", "pt.matmul(x)", "pt.max_pool2d(x)"):
        with pytest.raises(TypeError, match=r"missing argument: expected \w+\nhint: px\."):
            eval(call, {"pt": pt, "x": pt.ones((2, 3))})


def test_weights_of_others_are_those_of_numpy() -> None:
    """What the hints say, done: numbers at an edge are in the bin behind it."""
    ns: Any = pt
    x, weights = np.asarray([0.0, 1.0, 1.0, 2.0, 0.5]), np.asarray([1.0, 10.0, 100.0, 1000.0, 5.0])
    given = pt.asarray(x)
    names: dict[str, Any] = {"px": pt, "x": given, "weights": pt.asarray(weights), "bins": 2}
    names["edges"] = pt.histogram(given, bins=2)[1]
    code = _hint_of(lambda: ns.histogram(given, weights=weights))
    want = np.histogram(x, 2, weights=weights)[0]
    np.testing.assert_allclose(_done(code, names).numpy(), want, rtol=1e-12)
    rows = np.random.default_rng(0).normal(size=(3, 5))
    names["x"] = pt.asarray(rows)
    code = _hint_of(lambda: ns.cov(given, aweights=weights))
    want = np.cov(rows, aweights=weights, ddof=0)
    np.testing.assert_allclose(_done(code, names).numpy(), want, rtol=1e-12)


def _hint_of(call: Any) -> str:
    with pytest.raises(pt.UnknownArgumentError) as caught:
        call()
    return str(caught.value.hint)


def _done(code: str, names: dict[str, Any]) -> Any:
    """The value of a hint, whose remark says what a name stands for."""
    expression, _, remark = code.partition("  # where ")
    name, _, value = remark.partition(" = ")
    return eval(expression, {**names, name: eval(value, names)})


@pytest.mark.parametrize(
    ("code", "hint"),
    [
        ("pt.Module", "nn.Module"),
        ("pt.Tensor([1.0])", "px.asarray(values, device=device)"),
        ("pt.autocast", "px.Mixed("),
        ("pt.conv2d(pt.ones((1, 8, 8, 3)), pt.ones((4, 3, 3, 3)))", "x.permute_dims(0, 3, 1, 2)"),
        ("pt.load", "model.load_file(path)"),
        ("pt.save", "model.save_file(path)"),
        ("pt.set_default_dtype", 'px.Cpu(float="float64")'),
        ("pt.synchronize", "x.numpy()"),
        ("x.triu()", "px.triu(x)"),
    ],
)
def test_what_a_user_of_pytorch_types_is_answered(code: str, hint: str) -> None:
    with pytest.raises(pt.PhloxError) as caught:
        eval(code, {"pt": pt, "x": pt.ones((2, 2))})
    assert hint in str(caught.value.hint)


@pytest.mark.parametrize(
    ("call", "hint"),
    [
        ("pt.batch_norm(x, one, one)", "px.batch_norm(x, weight, bias, mean=mean, var=var)"),
        (
            "pt.batch_norm(x, one, one, one, one)",
            "px.batch_norm(x, weight, bias, mean=mean, var=var)  # PyTorch's have mean first",
        ),
        ("pt.diff(x, 2, 0)", "n=2, axis=0"),
        ("pt.cartesian_prod(one, one)", "px.cartesian_prod([x, y])"),
        ("pt.embedding_bag(i, x)", "px.embedding_bag(weight, indices), in this order"),
        ("pt.embedding_bag(x, i, 'sum')", "px.embedding_bag(weight, indices, mode='sum')"),
        ("pt.linalg.matrix_norm(x, 1)", "px.linalg.matrix_norm(x, ord=1)"),
        ("pt.linalg.vector_norm(x, 1)", "px.linalg.vector_norm(x, ord=1)"),
        ("pt.max(x, x)", "px.maximum(x, y)"),
        ("pt.ones(2, 3, pt.int32)", "px.ones((2, 3), dtype='int32')"),
        ("pt.pad(x, (1, 2, 3, 4))", "padding=((3, 4), (1, 2))  # as PyTorch's"),
        (
            "pt.pad(x, (1, 2))",
            "padding=((1, 2),)  # as PyTorch's; NumPy's is padding=((1, 2), (1, 2))",
        ),
        ("pt.sum(x, axis=0, where=x > 0)", None),
        ("pt.cross(x, x, axisa=0)", None),
        ("pt.quantile(x, one)", "q=q.tolist()"),
        ("pt.tile(x, 2, 3)", "px.tile(x, repetitions=(2, 3))"),
        ("pt.where(x, x > 0, x)", "px.where(condition, x1, x2), in this order"),
        ("pt.where(x, x, x)", 'condition.astype("bool")'),
        ("pt.zeros(3, pt.float64)", "px.zeros(3, dtype='float64')"),
        ("x * 'a'", None),
        ("x.add(x, x)", None),
        ("x.clamp_", "x = x.clip(0.0, 1.0)"),
        ("x.index_add(0, i[0], x)", "px.index_add(x, indices, values, axis=...), in this order"),
        ("x.relu_", "x = px.relu(x)"),
        ("x.round(2)", "(x * 10**2).round() / 10**2"),
        ("x.scatter(0, i, x)", "px.scatter(x, indices, values, axis=...), in this order"),
        ("x.where(x > 0, x)", "px.where(condition, x1, x2), in this order"),
    ],
)
def test_a_call_in_the_way_of_another_library_says_what_to_type(
    call: str, hint: str | None
) -> None:
    given = {"i": pt.asarray([[0, 1], [1, 0]]), "one": pt.ones(3), "pt": pt, "x": pt.ones((2, 3))}
    with pytest.raises(pt.PhloxError) as caught:
        eval(call, given)
    assert caught.value.hint == hint


def test_sizes_in_the_place_of_a_weight_and_words_for_a_padding_say_what_gives_the_same() -> None:
    x = pt.asarray([[1.0, 2.0, 6.0], [0.0, 0.0, 3.0]])
    given = {"px": pt, "x": x, "kernel": (3, 2)}
    for call, wanted in (
        ("px.layer_norm(x, (3,))", pt.layer_norm(x)),
        ("px.rms_norm(x, (3,))", pt.rms_norm(x, epsilon=2.0**-23)),
    ):
        with pytest.raises(pt.ArgumentError) as caught:
            eval(call, given)
        assert eval(str(caught.value.hint), given).tolist() == wanted.tolist()
    image, weight = pt.ones((1, 1, 5, 4)), pt.ones((1, 1, 3, 2))
    for word, shape in (("same", (1, 1, 5, 4)), ("valid", (1, 1, 3, 3))):
        with pytest.raises(pt.ArgumentError, match="padding is a word") as caught:
            pt.conv2d(image, weight, padding=word)  # type: ignore[arg-type]
        padding = eval(str(caught.value.hint).removeprefix("padding="), given)
        assert pt.conv2d(image, weight, padding=padding).shape == shape
