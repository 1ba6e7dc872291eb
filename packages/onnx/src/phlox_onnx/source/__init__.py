"""Files as source: what a graph does, as a module of layers and lines that a person reads."""

from ._package import Package as Package
from ._package import source as source
from ._package import write as write
from ._verify import feeds_of as feeds_of
from ._verify import verify as verify
