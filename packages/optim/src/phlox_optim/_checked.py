"""The base of all configs of this package: numbers that no setting can be."""

from __future__ import annotations

from math import inf, isnan

from phlox_nn import Config

from ._elsewhere import NO_SETTINGS, SETTINGS


class CheckedConfig(Config):
    """A config whose numbers are numbers, and whose learning rates are finite."""

    _words = SETTINGS, NO_SETTINGS

    def __post_init__(self) -> None:
        """Check every value.

        Raises:
            ConfigError: naming the field.
        """
        for name, value in vars(self).items():
            if isinstance(value, float):
                self.require(name, not isnan(value), "a number")
            if (name == "lr" or name.endswith("_lr")) and isinstance(value, float | int):
                self.require(name, 0 <= value < inf, "finite, at least 0")
        super().__post_init__()
