"""Configs: typed settings with defaults that know how to become a module and a JSON file."""

from __future__ import annotations

import json
from abc import ABC
from collections.abc import Mapping
from dataclasses import MISSING, dataclass, field, fields
from functools import wraps
from inspect import get_annotations
from pathlib import Path
from typing import TYPE_CHECKING, Any, ClassVar, Never, Self, dataclass_transform

from phlox_record import Record
from phlox_tensor import (
    Backend,
    PhloxError,
    Tensor,
    UnknownNameError,
    WrongTypeError,
    as_device,
    random,
    tree,
)
from phlox_tensor.names import unknown_argument, unknown_name

from . import fields as _settings
from .elsewhere import NO_SETTINGS, SETTINGS, advice_for
from .fields import ConfigError


@dataclass_transform(frozen_default=True, field_specifiers=(field,))
class Config(_settings.TypedFields, ABC):
    """Base of configs: a frozen dataclass that saves to JSON.

    Fields are numbers, strings, booleans, None, lists, tuples, dicts and configs, by their
    annotations. A config file names no code: a nested config is of the annotated class, or of
    one below it that the program has imported and the ``kind`` beside its fields names.
    """

    # Words of PyTorch for settings, and what to do instead of settings that have no word here.
    _words: ClassVar[tuple[Mapping[str, tuple[str, ...]], Mapping[str, str]]] = (
        SETTINGS,
        NO_SETTINGS,
    )

    _by_name: ClassVar[str] = ""  # for who gives more values by their place than there are
    _to_call: ClassVar[str] = "config.init() makes the {}"  # for who calls the config itself

    def __init_subclass__(cls, **options: Any) -> None:
        """Turn the subclass into a frozen dataclass.

        Raises:
            TypeError: when a field is called ``kind``, the word that files keep the class under.
        """
        super().__init_subclass__(**options)
        if "kind" in get_annotations(cls):
            raise TypeError(f"[config] {cls.__name__}: a field may not be called 'kind'")
        cls.kind = cls.__name__.removesuffix("Config")
        own = "__init__" in vars(cls)
        _settings.write_out_inherited(cls)
        dataclass(frozen=True)(cls)
        if not own:
            _explain_names(cls)

    def __post_init__(self) -> None:
        """Check every value against its annotation, then by ``validate``.

        Raises:
            ConfigError: naming the field.
        """
        _settings.check(self)
        self.validate()

    # Type checkers would take any name for one that exists, and let any config be called.
    if not TYPE_CHECKING:

        def __call__(self, *args: Any, **kwargs: Any) -> Never:
            """Say that what it describes has yet to be made."""
            owner = type(self)
            raise WrongTypeError(
                owner.__name__,
                "a config is called, which only describes",
                got=owner.__name__,
                expected=f"the {owner.kind} that it makes",
                hint=self._to_call.format(owner.kind),
            )

        def __getattr__(self, name: str) -> Never:
            """Say which setting is near, or that what it describes has yet to be made."""
            owner = type(self)
            if name.startswith("_"):
                raise AttributeError(f"{owner.__name__!r} object has no attribute {name!r}")
            near = unknown_name(name, "config", {}, [f.name for f in fields(owner)])
            made = f"config.init() makes the {owner.kind}" if owner.init is not Config.init else ""
            hint = "; ".join(filter(None, (near.hint, made))) or None
            raise UnknownNameError(name, f"no such name in {owner.__name__}", hint=hint)

    def validate(self) -> None:
        """Raise ConfigError for settings that make no sense though their types are right."""

    def require(self, name: str, holds: bool, expected: str) -> None:
        """Raise ConfigError that names a field, unless its value ``holds``."""
        if not holds:
            what = f"{type(self).__name__}.{name} makes no sense"
            raise ConfigError("config", what, got=repr(getattr(self, name)), expected=expected)

    def init(self, *args: Any, **kwargs: Any) -> Any:
        """Return what the config describes; that of a module takes the device.

        Raises:
            WrongTypeError: when it describes nothing that could be made.
        """
        what = f"{type(self).__name__} describes no module: it defines no init(device)"
        raise WrongTypeError("init", what)

    def init_with(self, record: Record, device: Backend | str | None = None) -> Any:
        """Return the module with the parameters of a record; none is initialized first.

        Args:
            record: what ``into_record`` gave or a recorder loaded.
            device: where the module goes; by default where the record's tensors are.

        Raises:
            RecordError: when the record is of another module.
        """
        target = as_device(device) if device is not None else _device_of(record)
        # The first values and ids are never used, so they cost no place in the random stream.
        with random.use_generator(random.Generator()):
            module: Any = self.init(target)
        return module.load_record(record, target)

    def replace(self, **changes: Any) -> Self:
        """Return the config with some fields changed.

        Raises:
            ConfigError: when there is no such field, or a value does not fit.
        """
        names = list(_settings.hints(type(self)))  # those that the constructor takes
        unknown = unknown_argument("replace", changes, names, *self._words)
        if unknown is not None:
            raise ConfigError(
                "replace",
                f"{type(self).__name__} has no such field",
                got=unknown.got,
                expected=names,
                hint=unknown.hint,
            )
        return type(self)(**{**{n: getattr(self, n) for n in names}, **changes})

    def to_dict(self) -> dict[str, Any]:
        """Return the fields as plain values that JSON holds."""
        return _settings.to_plain(self)

    @classmethod
    def from_dict(cls, values: dict[str, Any]) -> Self:
        """Return the config that ``to_dict`` described.

        Raises:
            ConfigError: unknown or missing fields, values of the wrong type.
        """
        return _settings.from_plain(cls, values, cls.__name__)

    def save(self, path: str | Path) -> Path:
        """Write the config as JSON and return the path.

        Raises:
            ConfigError: for a path that no file can have.
        """
        target = _place("save", path)
        target.write_text(json.dumps(self.to_dict(), indent=2) + "\n", encoding="utf-8")
        return target

    @classmethod
    def load(cls, path: str | Path) -> Self:
        """Read a config from JSON.

        Raises:
            ConfigError: when the file is not JSON or does not fit the class.
            FileNotFoundError: when there is no such file.
        """
        data = _place("load", path).read_bytes()
        try:
            values = json.loads(data)
        except (ValueError, RecursionError) as error:
            raise ConfigError("load", f"{path} is not JSON", got=str(error)) from None
        if not isinstance(values, dict):
            raise ConfigError("load", f"{path} holds no object", got=type(values).__name__)
        return cls.from_dict(values)


tree.register_leaf(Config)


def _explain_names(cls: Any) -> None:
    """Let the generated constructor of a config say what it calls a setting."""
    made = vars(cls)["__init__"]

    @wraps(made)
    def init(self: Any, *args: Any, **kwargs: Any) -> None:
        try:
            made(self, *args, **kwargs)
        except TypeError as error:
            known = [f.name for f in fields(cls) if f.init]
            words, advice = cls._words
            given = {**dict(zip(known, args, strict=False)), **kwargs}
            advice = {**advice, **advice_for(cls.__name__, given, known)}
            unknown = unknown_argument(cls.__name__, kwargs, known, words, advice)
            wrong = unknown or _misfit(cls, args, kwargs)
            if isinstance(error, PhloxError) or wrong is None:
                raise
            raise wrong from None

    cls.__init__ = init


def _misfit(cls: Any, args: tuple[Any, ...], kwargs: Mapping[str, Any]) -> WrongTypeError | None:
    """The error for settings that have no value, or for more values than settings."""
    settings = [f for f in fields(cls) if f.init]
    names = [f.name for f in settings if not f.kw_only]
    if len(args) > len(names):
        by_name = ", ".join(f"{f.name}=..." for f in settings if f.kw_only)
        return WrongTypeError(
            cls.__name__,
            f"more values than settings{' that have a place' if by_name else ''}",
            got=len(args),
            expected=", ".join(names) or "none",
            hint=f"by name: {by_name}{cls._by_name}" if by_name else None,
        )
    given = {*names[: len(args)], *kwargs}
    needed = [f.name for f in settings if f.default is MISSING and f.default_factory is MISSING]
    lacking = [name for name in needed if name not in given]
    if not lacking:
        return None
    return WrongTypeError(
        cls.__name__,
        "settings without a value",
        got=", ".join(sorted(given, key=[f.name for f in settings].index)) or "none",
        expected=", ".join(needed),
        hint=", ".join(f"{name}=..." for name in lacking),
    )


def _device_of(record: Record) -> Backend | None:
    """The device of the first tensor in a record."""
    work: list[Any] = [record]
    while work:
        item = work.pop()
        tensor = getattr(item, "tensor", item)
        if isinstance(tensor, Tensor):
            return tensor.device
        if isinstance(item, dict):
            work += reversed(item.values())
    return None


def _place(op: str, path: str | Path) -> Path:
    if "\0" in str(path):
        raise ConfigError(op, "the path has a NUL character", got=repr(str(path)))
    return Path(path)
