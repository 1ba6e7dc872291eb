"""The WebGPU backend of phlox: `Wgpu()` is a device, found under the name "wgpu"."""

from ._backend import Wgpu as Wgpu

__all__ = ["Wgpu"]
