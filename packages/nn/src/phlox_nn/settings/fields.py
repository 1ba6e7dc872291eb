"""Values of config fields by their annotations: check, write as plain data, read back."""

from __future__ import annotations

import math
import re
import sys
import types
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import MISSING, fields
from enum import Enum
from inspect import get_annotations, isabstract
from types import SimpleNamespace
from typing import (
    Any,
    ClassVar,
    Final,
    Literal,
    TypeVar,
    Union,
    get_args,
    get_origin,
    get_type_hints,
)
from weakref import WeakKeyDictionary

from phlox_tensor import PhloxError
from phlox_tensor.arguments import fits
from phlox_tensor.capture import Number, plain
from phlox_tensor.public import load_all

from .elsewhere import MADE, NO_VALUES, VALUES, squeezed

_HINTS: WeakKeyDictionary[Any, dict[str, Any]] = WeakKeyDictionary()


# Settings that count what there has to be one of, and sizes, which may be 0.
_COUNTS: Final = frozenset(("d_model", "n_heads", "n_layers"))
_SIZES: Final = frozenset(
    (
        "channels_in", "channels_out", "classes", "d_code", "d_ff", "d_first", "d_head", "d_hidden",
        "d_input", "d_key", "d_memory", "d_output", "d_second", "d_value", "image", "kinds",
        "max_length", "n_embedding", "num_channels", "num_features", "num_parameters", "positions",
        "tags", "width", "words",
    )
)  # fmt: skip


class ConfigError(PhloxError, ValueError):
    """A config has a field or value that its type does not allow."""


class TypedFields:
    """What has fields by annotations, and a word for its class in files; Config is the one."""

    kind: ClassVar[str]


def _error(what: str, got: object, expected: object) -> ConfigError:
    return ConfigError("config", what, got=got, expected=expected)


def _is_config(hint: Any) -> bool:
    return isinstance(hint, type) and issubclass(hint, TypedFields)


def hints(cls: Any) -> dict[str, Any]:
    """The annotations of a config's fields, resolved once."""
    known: dict[str, Any] | None = _HINTS.get(cls)
    if known is None:
        try:
            resolved = get_type_hints(cls)
        except NameError as error:
            raise TypeError(
                f"[config] annotations of {cls.__name__} are not found: got {error}\n"
                "hint: define and import the types at module level, outside of TYPE_CHECKING"
            ) from None
        known = _HINTS[cls] = {f.name: resolved[f.name] for f in fields(cls) if f.init}
    return known


def variables(cls: type) -> dict[str, Any]:
    """The types that a class gives the type variables of its bases, by name."""
    named: dict[str, Any] = {}
    for base in vars(cls).get("__orig_bases__", ()):
        names = [each.__name__ for each in getattr(get_origin(base), "__parameters__", ())]
        named |= dict(zip(names, get_args(base), strict=False))
    return named


def written_out(hint: Any, module: str, named: dict[str, Any]) -> Any:
    """An annotation of a module with types in the place of variables."""
    asked: Any = SimpleNamespace(__annotations__={"hint": hint})
    return get_type_hints(asked, vars(sys.modules[module]), named)["hint"]


def write_out_inherited(cls: Any) -> None:
    """Let a class over ``Base[int]`` have the inherited fields with types for variables."""
    named = {name: kind for name, kind in variables(cls).items() if not isinstance(kind, TypeVar)}
    own = get_annotations(cls)
    found = {}
    for base in reversed(cls.__mro__[1:]):
        for name, hint in get_annotations(base).items():
            if name not in own and named.keys() & set(re.findall(r"\w+", str(hint))):
                found[name] = written_out(hint, base.__module__, named)
    cls.__annotations__ = {**found, **own}


def check(config: Any) -> None:
    """Raise ConfigError for the first field whose value does not fit its annotation."""
    for name, hint in hints(type(config)).items():
        value = getattr(config, name)
        if type(value) is Number:  # of a compiled function, where a setting is one for each value
            value = value.ask(plain)
            object.__setattr__(config, name, value)
        if not fits(value, hint):
            where, wanted = f"{type(config).__name__}.{name}", _show(hint)
            code = _instead(name, value, hint)
            raise ConfigError("config", where, got=repr(value), expected=wanted, hint=code)


def _instead(name: str, value: Any, hint: Any) -> str | None:
    """What to type for a value of another library, or of another form."""
    word = squeezed(value if isinstance(value, str) else getattr(value, "__name__", ""))
    if name == "initializer":
        made = MADE.get(word)
        own = ", or a class of your own over Initializer" if callable(value) else ""
        code = made or ("nn.initializers.Normal(std=0.02)" if own else None)
        return f"initializer={code}{own if not made else ''}" if code else None
    options = {squeezed(option): option for option in _options(hint)}
    for each in (word, squeezed(VALUES.get(word, ""))):
        if each in options:
            return f'{name}="{options[each]}"'
    if word:
        return NO_VALUES.get(f"{name}.{word}")
    if getattr(value, "ndim", 0) and fits((0.0,), hint):
        return f"{name}=tuple(values.tolist())"
    for other in _other_forms(value):
        if fits(other, hint):
            return f"{name}={other!r}"
    return None


def _options(hint: Any) -> list[str]:
    """The words that an annotation allows."""
    if get_origin(hint) is Literal:
        return [option for option in get_args(hint) if isinstance(option, str)]
    return [option for each in get_args(hint) for option in _options(each)]


def _other_forms(value: Any) -> Iterator[Any]:
    """What a value may have been meant as: a tuple, its only part, a whole number."""
    if isinstance(value, list):
        yield tuple(value)
    if isinstance(value, list | tuple) and len(value) == 1:
        yield value[0]
    item = getattr(value, "item", None)
    number = item() if item and not getattr(value, "ndim", 0) else value
    if isinstance(number, float) and number.is_integer():
        yield int(number)
    if isinstance(number, int | float):
        yield from (number, (number,))


def check_sizes(config: Any) -> None:
    """Raise ConfigError for a count below 1 and a size below 0, by their names."""
    for name in hints(type(config)):
        least = 1 if name in _COUNTS else 0
        value = getattr(config, name) if name in _COUNTS | _SIZES else None
        if isinstance(value, int) and value < least:
            what = f"{type(config).__name__}.{name} makes no sense"
            raise ConfigError("config", what, got=value, expected=f"at least {least}")


def _show(hint: Any) -> str:
    name = getattr(hint, "__name__", None) if get_origin(hint) is None else None
    return name or str(hint).replace("typing.", "")


_FLOAT: Final = "$float"
_NUMBERS: Final = {word: float(word) for word in ("inf", "-inf", "nan")}


def to_plain(value: Any) -> Any:
    """Return a value as JSON holds it; configs carry their kind."""
    if _is_config(type(value)):
        plain = {name: to_plain(getattr(value, name)) for name in hints(type(value))}
        return {"kind": value.kind, **plain}
    if isinstance(value, Enum):
        return value.value
    if isinstance(value, list | tuple):
        return [to_plain(v) for v in value]
    if isinstance(value, dict):
        return {k: to_plain(v) for k, v in value.items()}
    if isinstance(value, float) and not math.isfinite(value):
        return {_FLOAT: repr(value)}  # as records in JSON have it, which knows no infinity
    return value


def from_plain(hint: Any, value: Any, where: str) -> Any:
    """Return the value of an annotated type that plain data describes."""
    origin, args = get_origin(hint), get_args(hint)
    if origin not in (dict, Mapping) and isinstance(value, dict) and [*value] == [_FLOAT]:
        word = value[_FLOAT]
        value = _NUMBERS.get(word, value) if isinstance(word, str) else value
    if _is_config(hint):
        return _config_from(hint, value, where)
    if origin in (Union, types.UnionType):
        return _union_from(args, value, where)
    if origin is tuple and isinstance(value, list):
        each = [args[0]] * len(value) if args[-1] is Ellipsis else args
        if len(each) != len(value):
            raise _error(where, f"{len(value)} values", len(each))
        return tuple(
            from_plain(a, v, f"{where}[{i}]")
            for i, (a, v) in enumerate(zip(each, value, strict=True))
        )
    if origin in (list, Sequence) and isinstance(value, list):
        return [from_plain(args[0], v, f"{where}[{i}]") for i, v in enumerate(value)]
    if origin in (dict, Mapping) and isinstance(value, dict):
        return {
            _key(args[0], k, where): from_plain(args[1], v, f"{where}[{k!r}]")
            for k, v in value.items()
        }
    if isinstance(hint, type) and issubclass(hint, Enum):
        try:
            return hint(value)
        except ValueError:
            raise _error(where, repr(value), [e.value for e in hint]) from None
    if not fits(value, hint):
        raise _error(where, repr(value), _show(hint))
    return value


def _key(hint: Any, key: str, where: str) -> Any:
    """JSON has no keys but text."""
    if hint in (int, float):
        try:
            return hint(key)
        except ValueError:
            raise _error(where, f"the key {key!r}", _show(hint)) from None
    return from_plain(hint, key, where)


def _union_from(options: tuple[Any, ...], value: Any, where: str) -> Any:
    configs = [o for o in options if _is_config(o)]
    if isinstance(value, dict) and configs and (len(configs) > 1 or "kind" in value):
        return _config_from(_of_kind(configs, value.get("kind"), where), value, where)
    for option in options:
        try:
            return from_plain(option, value, where)
        except ValueError:
            continue
    raise _error(where, repr(value), " or ".join(map(_show, options)))


def _of_kind(bases: list[Any], kind: Any, where: str) -> Any:
    """The class that a file means: one of these, or a subclass that the program has imported.

    Raises:
        ConfigError: when there is none, or there are several.
    """
    found = [cls for cls in bases if cls.kind == kind and not isabstract(cls)]
    if len(found) == 1:
        return found[0]
    package = sys.modules[__name__.partition(".")[0]]
    for module in (package, package.models):  # a file may mean what nothing has asked for yet
        load_all(module)
    known = [*dict.fromkeys(cls for base in bases for cls in _concrete(base))]
    found = found or [cls for cls in known if cls.kind == kind]
    if not found:
        kinds = sorted({cls.kind for cls in known})
        raise _error(f"{where}.kind", repr(kind), kinds if len(kinds) != 1 else repr(kinds[0]))
    if len(found) > 1:
        raise _error(f"{where}.kind", f"{kind!r}, of {len(found)} classes", f"one of {found}")
    return found[0]


def _concrete(base: Any) -> list[Any]:
    """A config class and those below it, without abstract ones."""
    below = [cls for each in base.__subclasses__() for cls in _concrete(each)]
    return below if isabstract(base) else [base, *below]


def _config_from(cls: Any, value: Any, where: str) -> Any:
    if not isinstance(value, dict):
        raise _error(where, type(value).__name__, f"an object for {cls.__name__}")
    cls = _of_kind([cls], value.get("kind", cls.kind), where)
    known = hints(cls)
    for name in value:
        if name != "kind" and name not in known:
            raise _error(f"{where} has no such field", name, list(known))
    for field in fields(cls):
        required = field.default is MISSING and field.default_factory is MISSING
        if required and field.init and field.name not in value:
            raise _error(f"{where} lacks a field", list(value), field.name)
    given = {k: from_plain(known[k], v, f"{where}.{k}") for k, v in value.items() if k != "kind"}
    return cls(**given)
