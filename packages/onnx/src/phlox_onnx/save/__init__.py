"""The way back: what a module does with example inputs, as a file of ONNX."""

from ._save import save as save
