"""The engine of browsers: navigator.gpu, called from Python in Pyodide."""

from .engine import DriverError as DriverError
from .engine import Engine as Engine
from .engine import adapters as adapters
