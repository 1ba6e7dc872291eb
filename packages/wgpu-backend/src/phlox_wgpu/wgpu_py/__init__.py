"""The engine that is always installed: wgpu-py, called from Python."""

from .engine import DriverError as DriverError
from .engine import Engine as Engine
from .engine import adapters as adapters
