"""Random tensors: the same seed gives the same numbers on every backend."""

from ._distributions import (
    beta,
    categorical,
    choice,
    exponential,
    gamma,
    gumbel_softmax,
    multinomial,
    poisson,
    truncated_normal,
)
from ._draws import bernoulli, normal, permutation, randint, uniform
from ._random_state import Generator, generator, seed, use_generator

__all__ = [
    "Generator",
    "bernoulli",
    "beta",
    "categorical",
    "choice",
    "exponential",
    "gamma",
    "generator",
    "gumbel_softmax",
    "multinomial",
    "normal",
    "permutation",
    "poisson",
    "randint",
    "seed",
    "truncated_normal",
    "uniform",
    "use_generator",
]
