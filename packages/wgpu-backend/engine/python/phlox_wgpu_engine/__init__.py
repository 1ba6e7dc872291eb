"""The native engine of phlox-wgpu, which has no API of its own: it records and submits GPU work."""

from ._native import Adapter as Adapter
from ._native import DriverError as DriverError
from ._native import Engine as Engine
from ._native import adapters as adapters
