"""What the layers of this package have in common: settings in a config, parts made from them."""

from __future__ import annotations

from dataclasses import fields
from math import inf
from typing import Any, ClassVar, Final, Generic, TypeVar, cast, get_args, get_origin

from phlox_tensor import Backend

from ..settings import fields as _settings
from ..settings.config import Config
from .module import Module

# Settings that are sizes of windows, or count them.
_WINDOWS: Final = frozenset(
    ("dilation", "groups", "kernel_size", "offset_groups", "output_size", "stride")
)

L = TypeVar("L", bound=Module)
C = TypeVar("C", bound="LayerConfig[Any]")


class LayerConfig(Config, Generic[L]):
    """Base of configs of layers: fields are the settings, ``parts`` makes what they need.

    ``class LinearConfig(LayerConfig["Linear"])`` belongs to ``class Linear(Layer[LinearConfig])``.
    """

    _layer: ClassVar[type[Module]]
    _to_call = "layer = config.init(); layer(x)"

    def __post_init__(self) -> None:
        """Check types, then windows and ``epsilon``, which mean the same in every layer.

        Raises:
            ConfigError: naming the field.
        """
        _settings.check(self)
        _settings.check_sizes(self)
        names = {field.name for field in fields(self)}
        for name in _WINDOWS & names:
            value = getattr(self, name)
            sizes = value if isinstance(value, tuple) else (value,)
            self.require(name, all(n is None or n >= 1 for n in sizes), "at least 1")
        if "epsilon" in names:
            small = 0.0 <= getattr(self, "epsilon", 0.0) < inf
            self.require("epsilon", small, "a small number: 0 <= epsilon")
        self.validate()

    def parts(self, device: Backend | str | None) -> dict[str, Any]:
        """Return the other fields of the layer by name: lazy parameters, whether it trains."""
        return {}

    def init(self, device: Backend | str | None = None) -> L:
        """Return the layer with lazy parameters on ``device``."""
        return cast("L", self._layer.from_fields(settings=self, **self.parts(device)))


class Layer(Module, Generic[C]):
    """Base of layers that are made from a config: their settings are ``layer.settings``.

    The constructor takes the fields of the config and the device.

    Attributes:
        settings: the config that the layer was made from.
    """

    settings: C

    def __init_subclass__(cls, **options: Any) -> None:
        """Take constructor and documentation from the config that is the type argument."""
        bases = vars(cls).get("__orig_bases__", ())
        named = [get_args(base)[0] for base in bases if get_origin(base) is Layer]
        config = named[0] if named else None
        super().__init_subclass__(config=config, **options)
        if config is not None:
            config._layer = cls
            settings = (config.__doc__ or "").partition("Attributes:\n")[2].rstrip()
            if cls.__doc__ and settings:
                cls.__doc__ = f"{cls.__doc__.rstrip()}\n\n    Args:\n{settings}\n"
