"""Files as source: what a graph does, as a module of layers and lines that a person reads."""

from ._folder import report_of as report_of
from ._folder import write as write
from ._folder import written as written
from ._options import Options as Options
from ._options import Precision as Precision
from ._package import Package as Package
from ._package import package as package
from ._package import source as source
from ._proof import Asked as Asked
from ._proof import Train as Train
from ._verify import Against as Against
from ._verify import verify as verify
from .graph._tied import tied as tied
