"""The base of all configs of this package: numbers that no setting can be."""

from __future__ import annotations

from math import inf, isnan
from typing import ClassVar

from phlox_nn import Config, ConfigError

from ._elsewhere import NO_SETTINGS, SETTINGS


class CheckedConfig(Config):
    """A config whose numbers are numbers, and whose learning rates are finite."""

    _words = SETTINGS, NO_SETTINGS
    # What to type instead of making a part of other configs of it; None where it may be one.
    _not_inside_hint: ClassVar[str | None] = None

    def __post_init__(self) -> None:
        """Check every value.

        Raises:
            ConfigError: naming the field.
        """
        for name, value in vars(self).items():
            self._refuse_inside(name, value)
            if isinstance(value, float):
                self.require(name, not isnan(value), "a number")
            rate = name in {"epsilon", "lr"} or name.endswith("_lr")
            if rate and isinstance(value, float | int):
                self.require(name, 0 <= value < inf, "finite, at least 0")
        super().__post_init__()

    def _refuse_inside(self, name: str, value: object) -> None:
        """Say what to type in place of a part that takes more than others do at each step."""
        parts = [*value.values()] if isinstance(value, dict) else value
        for part in parts if isinstance(parts, list | tuple) else [parts]:
            if isinstance(part, CheckedConfig) and part._not_inside_hint is not None:
                got = type(part).__name__
                what = f"{type(self).__name__}.{name} cannot be made of a {got}"
                raise ConfigError("config", what, got=got, hint=part._not_inside_hint)
