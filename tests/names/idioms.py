"""What the code of a hint is compared with: by the name of another library, and on which values."""

from __future__ import annotations

from pathlib import Path
from typing import Any, Final

import numpy as np

from tests.names.given import GIVEN, Z


def _floats(values: Any) -> Any:
    return np.array(values, np.float32)


def _read() -> dict[str, tuple[str, list[str]]]:
    """A line of another library by its name, and what x and y are in it."""
    text = Path(__file__).with_name("idioms.txt").read_text(encoding="utf-8")
    rows = [row.split(" ; ") for row in text.splitlines() if not row.startswith("#")]
    return {name: (line, (given or ["x y"])[0].split(", ")) for name, line, *given in rows}


COMPARED: Final = _read()
# Other names of these lines.
VALUES: Final[dict[str, Any]] = {
    "a": 1.5,
    "array": GIVEN["x"],
    "axis": 1,
    "b": _floats([1.0, 2.0, 3.0]),
    "columns": np.array([1, 2]),
    "condition": GIVEN["mask"],
    "count": 3,
    "data": np.arange(4.0).tobytes(),
    "edges": _floats([-1.0, 0.0, 1.0, 2.0]),
    "f": lambda row: row.sum(),
    "indices": np.array([1, 0, 2]),
    "items": [1.0, 2.0],
    "k": 2,
    "key": GIVEN["key"],
    "matrix": GIVEN["spd"] + Z,
    "mask": np.array([True, False, True, True, False, False]),
    "path": str(Path(__file__).with_name("numbers.txt")),
    "places": _floats([-3.0, 0.0, 3.0]),
    "query": GIVEN["query"],
    "rows": np.array([0, 2]),
    "scale": 0.1,
    "seen": GIVEN["seen"],
    "shape": (2, 3),
    "step": 0.5,
    "update": GIVEN["y"],
    "value": 0.5,
    "values": _floats([1.0, 5.0, 2.0]),
    "weighing": _floats([1.0, 2.0, 0.5]),
    "weights": _floats([[1.0, 2.0, 3.0], [0.0, 1.0, 1.0], [2.0, 2.0, 1.0]]),
    "z": Z,
}
_PLACES: Final = {"indices": np.array([[1, 0, 1], [1, 1, 0], [2, 2, 2]])}
_MANY: Final = {"x": np.zeros(20_000, np.float32)}
# Where a line means other values by these names.
OWN: Final[dict[str, dict[str, Any]]] = {
    "baddbmm": {"b": np.ones((2, 3, 3), np.float32)},
    "bilinear": {"weight": np.arange(18.0, dtype=np.float32).reshape(2, 3, 3) - 7},
    "choose": {"indices": np.array([[1, 0, 1], [1, 1, 0], [0, 0, 1]])},
    "dropout": {"x": np.ones(20_000, np.float32)},
    "embedding": {"indices": np.array([[1, 0], [2, 2]]), "weight": GIVEN["x"]},
    "extract": {"mask": GIVEN["mask"]},
    "fromfunction": {"f": lambda i, j: i * 3 + j},
    "gather": _PLACES,
    "geomspace": {"a": 1.0, "b": 100.0},
    "index_select": {"indices": np.array([1, 0, 1])},
    "mask_select": {"mask": GIVEN["mask"]},
    "masked_fill_": {"mask": GIVEN["mask"]},
    "max_unpool2d": {"indices": np.arange(0, 64, 4).reshape(1, 1, 4, 4)},
    "normal_": _MANY,
    "polyval": {"a": 2.0, "b": -1.0, "c": 3.0},
    "put_along_axis": _PLACES,
    "rand_like": _MANY,
    "randn_like": _MANY,
    "ravel_multi_index": {"row": 1, "column": 2, "columns": 5},
    "scaled_dot_product_attention": {"value": GIVEN["value"]},
    "scatter_": _PLACES,
    "scatter_add": _PLACES,
    "scatter_add_": _PLACES,
    "scatter_reduce": _PLACES,
    "take_along_dim": _PLACES,
    "uniform_": _MANY,
    "unravel_index": {"place": 7, "columns": 5},
    "vectorize": {"f": lambda v: v * v + 1},
}
# Of code whose value is not the whole result, or more than it: what is compared.
USED: Final = {
    "argpartition": "x.take_along_axis({}, axis=-1)[..., 2]",
    "eigh": "{}[0]",
    "lstsq": "{}[0]",
    "new_empty": "{}.shape",
    "vectorize": "{}(x)",
}

DRAWS: Final = 20_000
# Draws of NumPy by the names of others; ``n`` draws in the place of a shape.
DRAWN: Final = {
    "bernoulli": "rng.random(n) < 0.5",
    "beta": "rng.beta(2.0, 5.0, n)",
    "binomial": "rng.binomial(5, 0.3, n)",
    "categorical": "rng.choice(3, n, p=[0.2, 0.3, 0.5])",
    "cauchy": "rng.standard_cauchy(n)",
    "chi2": "rng.chisquare(5.0, n)",
    "choice": "rng.choice([3.0, 1.0, 2.0, 2.0, 5.0, -1.0], n)",
    "dirichlet": "rng.dirichlet([2.0, 1.0, 3.0], n)[:, 0]",
    "dropout": "rng.binomial(1, 0.5, n) * 2.0",
    "exponential": "rng.exponential(size=n)",
    "exponential_": "rng.exponential(size=n)",
    "gamma": "rng.gamma(2.0, size=n)",
    "geometric": "rng.geometric(0.3, n)",
    "gumbel": "rng.gumbel(size=n)",
    "integers": "rng.integers(0, 10, n)",
    "laplace": "rng.laplace(size=n)",
    "log_normal": "rng.lognormal(size=n)",
    "logistic": "rng.logistic(size=n)",
    "lognormal": "rng.lognormal(size=n)",
    "multivariate_normal": "rng.normal(1.0, 2.0, n)",
    "negative_binomial": "rng.negative_binomial(5, 0.3, n)",
    "normal": "rng.standard_normal(n)",
    "normal_": "rng.standard_normal(n)",
    "pareto": "rng.pareto(3.0, n)",
    "poisson": "rng.poisson(4.0, n)",
    "rand": "rng.random(n)",
    "rand_like": "rng.random(n)",
    "randint": "rng.integers(0, 10, n)",
    "randn": "rng.standard_normal(n)",
    "randn_like": "rng.standard_normal(n)",
    "random": "rng.random(n)",
    "random_sample": "rng.random(n)",
    "ranf": "rng.random(n)",
    "rayleigh": "rng.rayleigh(size=n)",
    "standard_normal": "rng.standard_normal(n)",
    "standard_t": "rng.standard_t(5.0, n)",
    "trunc_normal_": "scipy.stats.truncnorm.rvs(-2.0, 2.0, size=n, random_state=rng)",
    "truncated_normal": "scipy.stats.truncnorm.rvs(-2.0, 2.0, size=n, random_state=rng)",
    "uniform_": "rng.random(n)",
    "weibull": "rng.weibull(3.0, n)",
}
# What stands for the names of such code; of several numbers a draw, the first.
DRAWN_VALUES: Final[dict[str, Any]] = {
    "a": 3.0,
    "alpha": _floats([2.0, 1.0, 3.0]),
    "covariance": np.diag(_floats([4.0, 1.0, 1.0])),
    "df": 5.0,
    "logits": np.log(np.tile(_floats([0.2, 0.3, 0.5]), (DRAWS, 1))),
    "mean": _floats([1.0, 2.0, 3.0]),
    "n": 5,
    "p": 0.3,
    "shape": (DRAWS,),
    "x": GIVEN["w"],
}
SEVERAL: Final = {"dirichlet", "multivariate_normal"}

_ORDER: Final = "an order at random, which packages/tensor/tests look at"
_SLOPES: Final = "packages/autodiff/tests run it"
_STATE: Final = "sets a state, or asks for one"
_BURN: Final = "of Burn alone: packages/tensor/tests/test_spellings.py"
_BUILT: Final = "made of what others compare"
# Code that is not compared, and why.
APART: Final = {
    "Beta": _BUILT,
    "Categorical": _BUILT,
    "Gamma": _BUILT,
    "PRNGKey": _STATE,
    "Variable": _SLOPES,
    "block_until_ready": "JAX alone has it, and its values stay",
    "cuda": _STATE,
    "default_rng": _STATE,
    "geglu": "no function of the peers",
    "get_device": _STATE,
    "gumbel_softmax": "shares at random, which packages/tensor/tests look at",
    "is_cuda": _STATE,
    "manual_seed": _STATE,
    "multinomial": "several draws of a row, which packages/tensor/tests look at",
    "permutation": _ORDER,
    "randperm": _ORDER,
    "register_hook": _SLOPES,
    "requires_grad_": _SLOPES,
    "retain_grad": _SLOPES,
    "rnn_tanh": "weights in another order: tests/layers compares the layers",
    "seed": _STATE,
    "set_default_device": _STATE,
    "shuffle": _ORDER,
    "to_device": _STATE,
    "tril_mask": _BURN,
    "triu_mask": _BURN,
    "type": _STATE,
}
