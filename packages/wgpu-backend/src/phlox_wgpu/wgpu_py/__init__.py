"""The engine that is always there: wgpu-py and Python."""

from .engine import DriverError as DriverError
from .engine import Engine as Engine
from .engine import adapters as adapters
