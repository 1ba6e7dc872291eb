"""CPU backend of phlox: kernels in Rust."""

from phlox_kernels._backend import Cpu as Cpu

__all__ = ["Cpu"]
