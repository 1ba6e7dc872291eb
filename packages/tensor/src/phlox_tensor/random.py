"""Random tensors: the same seed gives the same numbers on every backend."""

from typing import TYPE_CHECKING as _TYPE_CHECKING

from ._elsewhere.spellings import unknown_member as _unknown_member
from ._random.distributions import beta as beta
from ._random.distributions import categorical as categorical
from ._random.distributions import choice as choice
from ._random.distributions import exponential as exponential
from ._random.distributions import gamma as gamma
from ._random.distributions import gumbel_softmax as gumbel_softmax
from ._random.distributions import multinomial as multinomial
from ._random.distributions import truncated_normal as truncated_normal
from ._random.draws import bernoulli as bernoulli
from ._random.draws import normal as normal
from ._random.draws import permutation as permutation
from ._random.draws import randint as randint
from ._random.draws import uniform as uniform
from ._random.poisson import poisson as poisson
from ._random.state import Generator as Generator
from ._random.state import generator as generator
from ._random.state import seed as seed
from ._random.state import use_generator as use_generator

if not _TYPE_CHECKING:

    def __getattr__(name: str) -> object:
        """Say what to type for a name that is not here."""
        raise _unknown_member(name, __name__, [*globals()])
