"""Random tensors: the same seed gives the same numbers on every backend."""

from typing import TYPE_CHECKING

from ._distributions import (
    beta,
    categorical,
    choice,
    exponential,
    gamma,
    gumbel_softmax,
    multinomial,
    truncated_normal,
)
from ._draws import bernoulli, normal, permutation, randint, uniform
from ._poisson import poisson
from ._random_state import Generator, generator, seed, use_generator
from ._spellings import unknown_member as _unknown_member

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
