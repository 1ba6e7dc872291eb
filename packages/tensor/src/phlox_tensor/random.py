"""Random tensors: the same seed gives the same numbers on every backend."""

from typing import TYPE_CHECKING

from ._elsewhere.spellings import unknown_member as _unknown_member
from ._random.distributions import (
    beta,
    categorical,
    choice,
    exponential,
    gamma,
    gumbel_softmax,
    multinomial,
    truncated_normal,
)
from ._random.draws import bernoulli, normal, permutation, randint, uniform
from ._random.poisson import poisson
from ._random.state import Generator, generator, seed, use_generator

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

if not TYPE_CHECKING:

    def __getattr__(name: str) -> object:
        """Say what to type for a name that is not here."""
        raise _unknown_member(name, __name__, __all__)
