"""A command line made from a config: ``cli(main)``, and tyro to read it."""

from __future__ import annotations

import sys
from collections.abc import Callable, Sequence
from dataclasses import MISSING, fields
from functools import reduce
from inspect import isabstract, isroutine, signature
from operator import or_
from pathlib import Path
from types import UnionType
from typing import Any, TypeVar, Union, get_args, get_origin, get_type_hints

from phlox_nn import Config
from phlox_optim import OptimizerConfig
from phlox_tensor import PhloxError, WrongTypeError
from phlox_tensor.needed import needed

R = TypeVar("R")
_HINT = "def main(settings: Settings) -> None, where Settings is a class over nn.Config"


def cli(main: Callable[[Any], R], words: Sequence[str] | None = None) -> R:
    """Call a function with the config that the command line says, and return what it gives.

    Each field is an option, ``--model.hidden 32``. Where a field takes one of several configs its
    class is a word, ``optimizer:sgd-config --optimizer.momentum 0.9``. ``--config FILE`` takes
    all that is not said from a file that a config was saved in, or from the folder of a run.
    ``--help`` tells what docstrings say. Errors are printed, and end the program with status 2.

    Args:
        main: a function of one parameter, whose annotation is a config.
        words: the words of the command line; by default those that the program was given.

    Raises:
        WrongTypeError: for another function.
        ModuleNotFoundError: without tyro.

    Example:
        >>> class Settings(nn.Config):
        ...     rate: float = 1e-3
        >>> def main(settings: Settings) -> float:
        ...     return settings.rate * 2
        >>> cli(main, ["--rate", "0.5"])
        1.0
    """
    config = _config_of(main)
    tyro: Any = needed("cli", "phlox-train[cli]", "tyro")
    given = [*(sys.argv[1:] if words is None else words)]
    try:
        default = _default(config, given)
    except (PhloxError, OSError) as error:
        own = isinstance(error, PhloxError)
        print(error if own else f"[cli] --config cannot be read: got {error}", file=sys.stderr)
        raise SystemExit(2) from None
    about = (config.__doc__ or "").partition("\n")[0]
    registry = tyro.constructors.ConstructorRegistry()
    registry.struct_rule(lambda info: _options(info, tyro))
    with registry:
        settings = tyro.cli(
            config,
            args=given,
            description=f"{about}\n\n--config FILE: settings that are not said here.".strip(),
            config=(tyro.conf.CascadeSubcommandArgs,),
            **({} if default is None else {"default": default}),
        )
    return main(settings)


def _config_of(main: Callable[..., Any]) -> type[Config]:
    """The class that the parameter of a function is annotated with."""
    try:
        names = list(signature(main).parameters)
    except (TypeError, ValueError):  # no function, or none that says what it takes
        names = []
    kind = get_type_hints(main).get(names[0]) if len(names) == 1 else None
    if not (isinstance(kind, type) and issubclass(kind, Config)):
        got = f"{main.__name__}({', '.join(names)})" if isroutine(main) else repr(main)
        what, expected = "main takes no config", "one parameter, annotated with a config"
        raise WrongTypeError("cli", what, got=got, expected=expected, hint=_HINT)
    return kind


def _default(config: type[Config], words: list[str]) -> Config | None:
    """The config of the file that ``--config`` names, which is taken out of the words."""
    for place, word in enumerate(words):
        name, joined, path = word.partition("=")
        if name == "--config":
            del words[place]
            if not joined:
                path = words.pop(place) if place < len(words) else ""
            file = Path(path)
            return config.load(file / "config.json" if path and file.is_dir() else file)
    return None


def _options(info: Any, tyro: Any) -> Any:
    """What tyro gets of a config: its fields, their types, and their descriptions."""
    kind = info.type
    if not (isinstance(kind, type) and issubclass(kind, Config)):
        return None
    from docstring_parser.google import parse  # noqa: PLC0415 - tyro brings it

    hints, made = get_type_hints(kind), tyro.constructors
    said: dict[str, str] = {}
    for base in reversed(kind.__mro__):
        for told in parse(base.__doc__ or "").params:
            said[told.arg_name] = " ".join((told.description or "").split())
    options = []
    for field in fields(info.type):
        if isinstance(info.default, kind):
            value: Any = getattr(info.default, field.name)
        elif field.default is not MISSING:
            value = field.default
        elif field.default_factory is not MISSING:
            value = field.default_factory()
        else:
            value = tyro.MISSING_NONPROP
        hint = _choices(hints[field.name], type(value))
        options.append(made.StructFieldSpec(field.name, hint, value, said.get(field.name)))
    return made.StructConstructorSpec(kind, tuple(options))


def _choices(hint: Any, default: type) -> Any:
    """An annotation with the classes below a base of configs in its place."""
    if get_origin(hint) in (Union, UnionType):
        return reduce(or_, (_choices(each, default) for each in get_args(hint)))
    if isinstance(hint, type) and issubclass(hint, Config) and _is_base(hint):
        below = [kind for kind in _below(hint) if kind is default or not _holds(kind, hint)]
        return reduce(or_, below) if below else hint
    return hint


def _is_base(kind: type[Config]) -> bool:
    """Whether a config is there for others to be made from."""
    return isabstract(kind) or kind is OptimizerConfig


def _below(base: type[Config]) -> list[Any]:
    found = [] if _is_base(base) or base.__name__.startswith("_") else [base]
    for kind in base.__subclasses__():
        found += _below(kind)
    return found


def _holds(kind: type[Config], base: type[Config]) -> bool:
    """Whether a config is made of others of its base, which no end of options could say."""
    todo: list[Any] = list(get_type_hints(kind).values())
    while todo:
        hint = todo.pop()
        if isinstance(hint, type) and issubclass(hint, base):
            return True
        todo += get_args(hint)
    return False
