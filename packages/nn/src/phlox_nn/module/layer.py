"""What the layers of this package have in common: settings in a config, parts made from them."""

from __future__ import annotations

import re
import sys
from abc import ABCMeta
from dataclasses import MISSING, Field, InitVar, field, fields
from functools import cache
from inspect import cleandoc, get_annotations
from math import inf
from operator import attrgetter
from typing import TYPE_CHECKING, Any, ClassVar, Final, Generic, NamedTuple, TypeVar, cast, get_args

from phlox_tensor import Backend

from .._examples import EXAMPLES
from ..settings import fields as _settings
from ..settings.config import Config
from ..settings.fields import variables, written_out
from .module import Module

_EXAMPLE: Final = """

Example:
    >>> import phlox_nn as nn, phlox_tensor as pt
    >>> {}
    {}
"""

# Settings that are sizes of windows, or count them.
_WINDOWS: Final = frozenset(
    ("dilation", "groups", "kernel_size", "offset_groups", "output_size", "stride")
)

# What is said of settings that mean the same everywhere, unless a layer says more.
_SAID: Final = {"reduction": '``"mean"``, ``"sum"`` or ``"none"``.'}

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

    def __init_subclass__(
        cls, config: type[LayerConfig[Any]] | None = None, *, init: bool = True, **options: Any
    ) -> None:
        """Take constructor and documentation from the config that is the type argument.

        ``init=False`` tells type checkers that the constructor is that of another base.
        """
        bases = vars(cls).get("__orig_bases__", ())
        named = [arg for base in bases for arg in get_args(base) if _is_config(arg)]
        config = named[0] if named else config
        super().__init_subclass__(config=config, **options)
        if config is not None:
            config._layer = cls
            settings = _described(config, "Attributes")
            if settings:
                head = cleandoc(config.__doc__ or "").partition("\n\nAttributes:\n")[0]
                config.__doc__ = f"{head}\n\nAttributes:\n{settings}\n"
            if cls.__doc__ and settings:
                head, _, own = cleandoc(cls.__doc__).partition("\n\nArgs:\n")
                more = own.partition("\n\n")[2]
                cls.__doc__ = f"{head}\n\nArgs:\n{settings}\n\n{more}"
        if cls.__doc__ and cls.__name__ in EXAMPLES and __name__.startswith(_package_of(cls)):
            cls.__doc__ = cleandoc(cls.__doc__) + _EXAMPLE.format(*EXAMPLES[cls.__name__])


def _package_of(cls: type) -> str:
    return cls.__module__.partition(".")[0]


def _is_config(kind: Any) -> bool:
    return isinstance(kind, type) and issubclass(kind, LayerConfig)


class _Setting(NamedTuple):
    """A setting of a layer without parameters: its type, its default, where the type is found."""

    hint: Any
    default: Any
    module: str


class _MadeOfFields(LayerConfig[L]):
    """Base of the configs that are made of the fields of layers without parameters."""

    _layer: ClassVar[type[Stateless]]

    def validate(self) -> None:
        """Raise ConfigError for settings that the layer refuses."""
        self._layer._check(cast("Any", self))

    def parts(self, device: Backend | str | None) -> dict[str, Any]:
        """Return the other fields of the layer by name."""
        return self._layer._parts(device)


class Stateless(Layer[Any]):
    """Base of layers without parameters, whose settings are written once: as their fields.

    ``class HuberLoss(Stateless)`` with ``delta: float = 1.0`` has the config ``HuberLossConfig`` in
    its module, with the same fields and what the docstring says in ``Args``. ``loss.delta`` reads
    ``loss.settings.delta``. A class with ``shared=True`` has no config: its fields, and its
    ``Args``, are those of its subclasses. A field of ``field(init=False)`` is no setting, and a
    subclass of a layer that has a config has no config again.
    """

    _own: ClassVar[dict[str, _Setting]] = {}

    if TYPE_CHECKING:
        settings: Any = field(init=False)  # the config, whose type names the layer
        device: InitVar[Backend | str | None] = field(default=None, kw_only=True)

        def require(self, name: str, holds: bool, expected: str) -> None:
            """Raise ConfigError that names a setting, unless its value ``holds``."""

    def __init_subclass__(cls, *, shared: bool = False, **options: Any) -> None:
        """Make the config of a layer from its fields."""
        config = None
        if not any(vars(base).get("_config") for base in cls.__mro__):
            cls._own = {**cls._own, **_taken(cls)}
            config = None if shared else _config_of(cls)
        super().__init_subclass__(config=config, **options)

    def _check(self) -> None:
        """Refuse settings by ``require``. The config runs it on itself: it has the same fields."""

    @classmethod
    def _parts(cls, device: Backend | str | None) -> dict[str, Any]:
        """Return the fields that are no settings by name."""
        return {}


def _taken(cls: Any) -> dict[str, _Setting]:
    """Take the annotated settings out of a class, which reads them from its config instead."""
    found, kept = {}, {}
    lines = dict(re.findall(r"^ +(\w+): (.+)$", _described(cls), re.MULTILINE))
    for name, hint in get_annotations(cls).items():
        default = vars(cls).get(name, MISSING)
        if "ClassVar" in str(hint):
            kept[name] = hint
        elif "KW_ONLY" in str(hint):
            found[name] = _Setting(hint, MISSING, cls.__module__)
        elif isinstance(default, Field) and not default.init:
            delattr(cls, name)
            kept[name] = hint
        else:
            found[name] = _Setting(hint, default, cls.__module__)
            doc = lines.get(name, _SAID.get(name, "A setting."))
            setattr(cls, name, property(attrgetter(f"settings.{name}"), doc=doc))
    cls.__annotations__ = kept
    return found


@cache  # classes share their bases, and all are read when the package is imported
def _section(doc: str, title: str) -> dict[str, str]:
    """The entries of a section of a docstring by name."""
    section = cleandoc(doc).partition(f"\n{title}:\n")[2].partition("\n\n")[0].rstrip()
    return {e.partition(":")[0]: e for e in re.split(r"\n(?=    \w)", section) if e}


def _described(cls: type, title: str = "Args") -> str:
    """What the docstrings of a class and of its bases say of settings, each once."""
    told: dict[str, str] = {}
    for base in reversed(cls.__mro__):
        told |= _section(vars(base).get("__doc__") or "", title)
    names: Any = getattr(cls, "_own", None) or getattr(cls, "__dataclass_fields__", ())
    order = [f"    {name}" for name in names]
    told = {f"    {n}": f"    {n}: {text}" for n, text in _SAID.items() if n in names} | told
    return "\n".join(told[name] for name in sorted(told, key=[*order, *told].index))


def _config_of(cls: Any) -> Any:
    """The config of a layer, in the module of the layer."""
    named = variables(cls)
    hints = {
        name: hint if not named and module == cls.__module__ else written_out(hint, module, named)
        for name, (hint, _, module) in cls._own.items()
    }
    title, described = f"{cls.__name__}Config", _described(cls)
    body = {
        **{name: each.default for name, each in cls._own.items() if each.default is not MISSING},
        "__annotations__": hints,
        "__doc__": f"Settings of ``{cls.__name__}``."
        + (f"\n\nAttributes:\n{described}\n" if described else ""),
        "__module__": cls.__module__,
        "__qualname__": cls.__qualname__ + "Config",
    }
    made: Any = ABCMeta(title, (_MadeOfFields,), body)
    if "." not in cls.__qualname__:
        setattr(sys.modules[cls.__module__], title, made)  # where pickles look for it
    return made
