"""Errors of files and texts."""

from phlox_tensor import PhloxError


class TextError(PhloxError, ValueError):
    """A tokenizer, a template or a conversation that cannot be used."""
