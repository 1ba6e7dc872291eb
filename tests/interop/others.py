"""What other libraries do with tensors of the default device: run as a script, one name a run."""

from __future__ import annotations

import importlib
import os
import sys
from collections.abc import Callable
from typing import Any

import numpy as np

import phlox as px

os.environ["SCIPY_ARRAY_API"] = "1"  # SciPy and scikit-learn ask for it before they are imported
RANDOM = np.random.default_rng(0)
ARRAY = RANDOM.standard_normal((4, 6))
X: Any = px.asarray(ARRAY)


def module(name: str) -> Any:
    """A library without types, or with others than this one."""
    return importlib.import_module(name)


def same(got: Any, want: Any) -> None:
    """Compare a tensor on the device of X with an array."""
    assert isinstance(got, px.Tensor), type(got)
    assert got.device == X.device
    np.testing.assert_allclose(got.numpy(), want, rtol=1e-9, atol=1e-12)


def einops() -> None:
    """Rearrange, reduce, repeat and pack, beside the same on arrays."""
    ours, theirs = module("einops.array_api"), module("einops")
    same(
        ours.rearrange(X, "a (b c) -> c b a", c=2), theirs.rearrange(ARRAY, "a (b c) -> c b a", c=2)
    )
    for how in ("max", "mean", "min", "prod", "sum"):
        want = theirs.reduce(ARRAY, "a (b c) -> b a", how, c=2)
        same(ours.reduce(X, "a (b c) -> b a", how, c=2), want)
    same(ours.repeat(X, "a b -> a (b c)", c=3), theirs.repeat(ARRAY, "a b -> a (b c)", c=3))
    packed, shapes = ours.pack([X, X[:, :2]], "a *")
    same(packed, np.concatenate([ARRAY, ARRAY[:, :2]], axis=1))
    same(ours.unpack(packed, shapes, "a *")[1], ARRAY[:, :2])


def scipy() -> None:
    """Statistics, special functions, integrals, signals, rotations, beside the same on arrays."""
    stats, special = module("scipy.stats"), module("scipy.special")
    positive = px.abs(X)
    for name in ("entropy", "gmean", "hmean", "kurtosis", "skew"):
        function = getattr(stats, name)
        same(function(positive), function(np.abs(ARRAY)))
    found, want = (stats.ttest_ind(x[:2], x[2:]) for x in (X, ARRAY))
    same(found.statistic, want.statistic)
    same(found.pvalue, want.pvalue)
    for name in ("erf", "expit", "gammaln", "i0e", "log_ndtr", "softmax"):
        function = getattr(special, name)
        same(function(X), function(ARRAY))
    integrate, signal = module("scipy.integrate"), module("scipy.signal")
    same(integrate.trapezoid(X), integrate.trapezoid(ARRAY))
    same(signal.detrend(X), signal.detrend(ARRAY))
    rotation = module("scipy.spatial.transform").Rotation
    want = rotation.from_quat(ARRAY[:, :4]).as_matrix()
    same(rotation.from_quat(X[:, :4]).as_matrix(), want)


def sklearn() -> None:
    """Principal components, a kernel, scores, beside the same on arrays."""
    pca, center = (
        module("sklearn.decomposition").PCA,
        module("sklearn.preprocessing").KernelCenterer,
    )
    metrics, array = module("sklearn.metrics"), RANDOM.standard_normal((40, 6))
    labels = (array[:, 0] > 0).astype(np.int64)
    with module("sklearn").config_context(array_api_dispatch=True):
        x, y = px.asarray(array), px.asarray(labels)
        model, want = (pca(2, svd_solver="full").fit(each) for each in (x, array))
        same(model.transform(x), want.transform(array))
        same(model.explained_variance_, want.explained_variance_)
        same(center().fit_transform(x @ x.mT), center().fit_transform(array @ array.T))
        other = (x[:, 1] > 0).astype("int64")
        share = (array[:, 0] > 0) == (array[:, 1] > 0)
        found = metrics.accuracy_score(y, other)
        np.testing.assert_allclose(found, share.mean(), rtol=1e-6)  # summed in float32
        error = metrics.mean_squared_error(x[:, 0], x[:, 1])
        np.testing.assert_allclose(error, np.mean((array[:, 0] - array[:, 1]) ** 2))


RUNS: dict[str, Callable[[], None]] = {"einops": einops, "scipy": scipy, "sklearn": sklearn}

if __name__ == "__main__":
    for device in (px.Cpu(), px.Numpy()):
        X = px.asarray(ARRAY, device=device)
        with px.use_device(device):
            RUNS[sys.argv[1]]()
