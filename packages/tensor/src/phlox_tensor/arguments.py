"""Whether arguments fit their annotations: checks of settings, and errors of calls that failed.

A public function that is no op is written for the arguments that its annotations say. When a call
of one fails in Python's own words, the arguments are compared with the annotations, and the error
names the one that does not fit. A call that works pays for nothing but the ``try``.
"""

from __future__ import annotations

import collections.abc
import re
import sys
import types
import typing
import warnings
from collections.abc import Callable, Iterable, Mapping, Sequence
from contextlib import suppress
from functools import cache, wraps
from inspect import CO_VARARGS, Parameter, Signature, signature, unwrap
from opcode import opmap
from types import FrameType, FunctionType, ModuleType
from typing import Any, Final, Literal, TypeVar, Union, get_args, get_origin, get_type_hints

import numpy as np

from ._device.backend import Backend, told_by
from ._errors.called import AS_CALLED
from ._errors.classes import PhloxError, UnknownArgumentError, WrongTypeError
from ._errors.foreign import is_ours
from ._errors.keywords import KEYWORDS, PLACES, advice_for, refused_keyword
from ._random.state import USE
from ._values.dtype import DType
from ._values.number import Scalar
from ._values.tensor import Tensor
from .names import unknown_argument

# What Python raises where an argument is not what a function was written for.
RAW: Final = (AttributeError, IndexError, KeyError, TypeError, ValueError)
_SHOWN: Final = 60
_FILE: Final = 'model = model.load_file(path, layout="pytorch"), of a file that you have'
# Arguments that only functions of others have: what to type instead.
_ADVICE: Final = {
    "batch_size": "data.DataLoader(dataset, 64)",
    "fit.class_weight": "nn.CrossEntropyLoss(weights=(1.0, 2.0)) in the step",
    "fit.learning_rate": "lr=...",
    "fit.loss": "the step gives it: def step(model, batch), which returns a loss",
    "fit.validation_data": "valid=...",
    "fit.verbose": "show=...",
    "fsdp": "shard_optimizer=True",
    "generator": USE,
    "gradient_accumulation_steps": "microbatches=...",
    "in_dims": "in_axes=...",
    "max_new_tokens": "count=...",
    "num_replicas": "leave it out: run.batches() gives each process its rows",
    "out_dims": "out_axes=...",
    "persistent_workers": "leave it out: workers are threads, which start at once",
    "pin_memory": "leave it out: device=... of a loader is where its batches go",
    "prefetch_factor": "prefetch=..., in whole batches",
    "pretrained": _FILE,
    "requires_grad": "x.to_device(px.Autodiff(x.device)).require_grad()",
    "zero_stage": "shard_optimizer=True",
}
# What annotations may name that their modules import only for type checkers.
_NAMES: Final = {
    **{name: getattr(typing, name) for name in typing.__all__},
    **{name: getattr(collections.abc, name) for name in collections.abc.__all__},
    "Backend": Backend,
    "DType": DType,
    "Tensor": Tensor,
    "np": np,
}


def fits(value: Any, hint: Any) -> bool:  # noqa: PLR0911 - one line per form of annotation
    """Whether a value is of an annotated type; an annotation that says nothing fits everything."""
    origin, args = get_origin(hint), get_args(hint)
    if isinstance(hint, TypeVar):
        return hint.__bound__ is None or fits(value, hint.__bound__)
    if hint is Any:
        return True
    if origin in (Union, types.UnionType):
        return any(fits(value, option) for option in args)
    if origin is Literal:
        return any(type(value) is type(a) and value == a for a in args)
    if origin in (list, Sequence):
        return isinstance(value, list | tuple) and all(fits(v, args[0]) for v in value)
    if origin is tuple:
        if len(args) == 2 and args[1] is Ellipsis:
            return isinstance(value, tuple) and all(fits(v, args[0]) for v in value)
        return (
            isinstance(value, tuple)
            and len(value) == len(args)
            and all(fits(v, a) for v, a in zip(value, args, strict=True))
        )
    if origin in (dict, Mapping):
        return isinstance(value, dict) and all(
            fits(k, args[0]) and fits(v, args[1]) for k, v in value.items()
        )
    if hint is None or hint is type(None):
        return value is None
    if hint is float:
        return isinstance(value, int | float) and not isinstance(value, bool)
    if hint is int:
        return isinstance(value, int) and not isinstance(value, bool)
    kind = hint if origin is None else origin
    unknown = not isinstance(kind, type) or getattr(kind, "_is_protocol", False)
    return unknown or isinstance(value, kind)


F = TypeVar("F", bound=Callable[..., Any])


_CACHE, _POP_TOP = opmap["CACHE"], opmap["POP_TOP"]
_WORD: Final = 2  # bytes of an instruction of CPython


def is_thrown_away(inside: FrameType) -> bool:
    """Whether the line of a user that called a function does nothing with what that gives.

    Args:
        inside: the frame of the function, of which the caller may be ``explained``.
    """
    frame: Any = inside.f_back
    while frame is not None and frame.f_code is _EXPLAINED:
        frame = frame.f_back
    if frame is None or is_ours(frame.f_globals.get("__name__", "")):
        return False
    code, after = frame.f_code.co_code, frame.f_lasti + _WORD
    while after < len(code) and code[after] == _CACHE:
        after += _WORD
    return after < len(code) and code[after] == _POP_TOP


def warn_thrown_away(name: str, code: str, stacklevel: int, of: str = "module") -> None:
    """Warn of a new value that nobody keeps, with code that does; levels count from the caller."""
    what = f"[{name}] the new {of} is thrown away, and the old one is as it was"
    warnings.warn(f"{what}\nhint: {code}", stacklevel=stacklevel + 1)


def explained(function: F) -> F:
    """Return the function, whose calls that fail for an argument of a wrong type say so.

    Raises:
        WrongTypeError: from the call.
    """

    @wraps(function)
    def run(*args: Any, **kwargs: Any) -> Any:
        try:
            return function(*args, **kwargs)
        except RAW as error:
            wrong = (
                None if isinstance(error, PhloxError) else misfit(unwrap(function), args, kwargs)
            )
            if wrong is None:
                raise
            raise wrong from error

    made: Any = run
    made._explained = True  # once is enough
    return made


_EXPLAINED: Final = explained(lambda: None).__code__


def require_callable(op: str, given: object, hint: str) -> None:
    """Refuse what cannot be called where a function is wrapped, not at the call of what is made.

    Raises:
        WrongTypeError: with the hint.
    """
    if not callable(given):
        got = type(given).__name__
        raise WrongTypeError(op, "not a function", got=got, expected="a function", hint=hint)


def accepts(function: Callable[..., Any], *args: Any) -> bool:
    """Whether a function can be called with so many arguments by place."""
    try:
        signature(function).bind(*args)
    except TypeError:
        return False
    except ValueError:  # written in C
        return True
    return True


def explain(*owners: type | ModuleType) -> None:
    """Let all public functions of classes or modules say what does not fit.

    Of a module these are the functions of its package that it exports, but no ops; of a class its
    methods and its constructor, those of bases in the same package among them.
    """
    for owner in owners:
        if isinstance(owner, ModuleType):
            for name, member in list(vars(owner).items()):
                if type(member) is FunctionType and name[0] != "_":
                    setattr(owner, name, explain_function(owner, name, member))
            continue
        package = owner.__module__.partition(".")[0]
        for base in owner.__mro__:
            if base.__module__.partition(".")[0] == package:
                _explain_methods(base)


def classes_of(module: ModuleType) -> list[type]:
    """The classes of its package that a module exports, without devices and errors."""
    package = module.__name__
    return [
        member
        for name, member in vars(module).items()
        if isinstance(member, type)
        and name[0] != "_"
        and member.__module__.partition(".")[0] == package
        and not issubclass(member, Backend | BaseException)
    ]


def _explain_methods(cls: type) -> None:
    for name, member in list(vars(cls).items()):
        bound = isinstance(member, classmethod | staticmethod)
        function = member.__func__ if bound else member
        if name != "__init__" and name[0] == "_":
            continue
        if type(function) is FunctionType and _can_be_misled(function):
            made = explained(function)
            setattr(cls, name, type(member)(made) if bound else made)


def _can_be_misled(method: FunctionType) -> bool:
    """Whether a method takes arguments after the first, and does not say yet which do not fit."""
    code = method.__code__
    several = code.co_argcount + code.co_kwonlyargcount > 1 or code.co_flags & CO_VARARGS
    return bool(several) and not hasattr(method, "_explained")


def _is_own(owner: ModuleType, function: Any) -> bool:
    """Whether a function is one of the package, and none generated for ops, which check all."""
    package, _, rest = function.__module__.partition(".")
    own = package == owner.__name__.partition(".")[0]
    plain = not hasattr(function, "__wrapped__") or function in AS_CALLED
    return own and rest != "_functions.functions" and plain


def explain_function(owner: ModuleType, name: str, function: FunctionType) -> Any:
    """Return what a module exports under a name: a function of its package says what does not fit.

    The new function is put where it is written too, where pickles look for it.
    """
    if not _is_own(owner, function):
        return function
    made = explained(function)
    home = sys.modules[function.__module__]
    if vars(home).get(function.__name__) is function:
        setattr(home, function.__name__, made)
    return made


@cache
def _hints(function: Any) -> dict[str, Any]:
    """The annotations of a function, without those that name what cannot be found."""
    found: dict[str, Any] = {}
    names = dict(_NAMES)
    for package in (__name__.partition(".")[0], function.__module__.partition(".")[0]):
        exported = vars(sys.modules[package]) if package in sys.modules else {}
        names |= {name: kind for name, kind in exported.items() if isinstance(kind, type)}
    names |= function.__globals__
    for name, annotation in function.__annotations__.items():
        one = types.SimpleNamespace(__annotations__={name: annotation})
        with suppress(NameError, TypeError):
            found |= get_type_hints(one, names)
    return found


def misfit(
    function: Any, args: tuple[Any, ...], kwargs: dict[str, Any]
) -> UnknownArgumentError | WrongTypeError | None:
    """Return the error for the first argument that does not fit its annotation; None if all do.

    An argument that the function does not have is one too.
    """
    made_by = signature(function)
    try:
        given = made_by.bind(*args, **kwargs).arguments
    except TypeError as error:
        unknown = unknown_keyword(_called(function), made_by, kwargs, _home(function))
        if unknown is not None and unknown.hint is None and hasattr(function, "_usage"):
            fields = {"got": unknown.got, "expected": unknown.expected, "hint": function._usage}
            return UnknownArgumentError(unknown.op, unknown.what, **fields)
        return unknown or _other_count(function, made_by, args, kwargs, str(error))
    hints = _hints(function)
    for name, value in given.items():
        kind = made_by.parameters[name].kind
        values: Iterable[Any] = value if kind is Parameter.VAR_POSITIONAL else (value,)
        if name not in hints or kind is Parameter.VAR_KEYWORD:
            continue
        for each in values:
            if not fits(each.item() if isinstance(each, np.generic) else each, hints[name]):
                annotation = function.__annotations__[name]
                return _wrong(_called(function), name, each, annotation, hints[name])
    return None


def wrong_settings(
    cls: Any, args: tuple[Any, ...], kwargs: dict[str, Any], error: TypeError
) -> TypeError:
    """Return the error for settings that the constructor of a device does not take."""
    found = None if isinstance(error, PhloxError) else misfit(cls.__init__, (None, *args), kwargs)
    if found is None and not isinstance(error, PhloxError):
        try:
            signature(cls.__init__).bind(None, *args, **kwargs)
        except TypeError as unbound:  # another number of them
            taken = ", ".join([*signature(cls.__init__).parameters][1:])
            found = WrongTypeError(cls.__name__, str(unbound), expected=taken)
    return found or error


told_by.append(wrong_settings)


_HOMES: Final = ("fft", "linalg", "random", "tree")


def _home(function: Any) -> str:
    """What stands before the name of a function of this package, as ``px.linalg.``, or nothing."""
    package = sys.modules[__name__.partition(".")[0]]
    rooms = {"px.": package, **{f"px.{name}.": getattr(package, name) for name in _HOMES}}
    name = function.__name__
    found = (text for text, room in rooms.items() if unwrap(vars(room).get(name, id)) is function)
    return next(found, "")


def unknown_keyword(
    op: str, made_by: Signature, kwargs: Mapping[str, Any], home: str = ""
) -> UnknownArgumentError | None:
    """Return the error for a keyword that a signature does not have; None where it has all."""
    parameters = made_by.parameters.values()
    if any(p.kind is Parameter.VAR_KEYWORD and p.name != "wrong" for p in parameters):
        return None
    kinds = (Parameter.POSITIONAL_OR_KEYWORD, Parameter.KEYWORD_ONLY)
    known = [p.name for p in parameters if p.kind in kinds and p.name != "self"]
    places = [p.name for p in parameters if p.kind is Parameter.POSITIONAL_ONLY]
    for name in kwargs:
        words = {name, *KEYWORDS.get(name, ())}
        if (meant := words.intersection(places)) and words.isdisjoint(known):
            what = f"{meant.pop()} is given by its place"
            if not home:
                call = f"{op}({', '.join(places)})".replace(f"{op}(self, ", f"x.{op}(")
                return UnknownArgumentError(op, what, got=name, hint=call)
            own = {each: _ours(each, [*places, *known]) for each in kwargs}
            texts = {own[each] or each: each for each in kwargs}  # our names -> theirs
            line = [
                _text(kwargs, texts.pop(each), each) if each in texts else each for each in places
            ]
            line += [f"{each}={_text(kwargs, theirs, each)}" for each, theirs in texts.items()]
            return UnknownArgumentError(op, what, got=name, hint=f"{home}{op}({', '.join(line)})")
    wrong = {name: value for name, value in kwargs.items() if name not in known}
    if home and wrong and wrong.keys().isdisjoint(_ADVICE):
        given = {name: value for name, value in kwargs.items() if name in known}
        said = [f"{name}={_text(kwargs, name, name)}" for name in given]
        return refused_keyword(op, wrong, known, given={**given, "said": said})
    advice = {**_ADVICE, **({"weights": _FILE} if "classes" in known else {})}  # of whole models
    return unknown_argument(op, kwargs, known, KEYWORDS, {**advice, **advice_for(op, kwargs)})


def _ours(name: str, known: Sequence[str]) -> str | None:
    return next((each for each in (name, *KEYWORDS.get(name, ())) if each in known), None)


def _text(values: Mapping[str, Any], name: str, own: str) -> str:
    """The text of a value; of one that is long our name of it."""
    value = values[name]
    text = repr(getattr(value, "name", value))  # of an element type
    return text if len(text) < _SHOWN and "\n" not in text else own


def _by_name(
    function: Any, made_by: Signature, args: tuple[Any, ...], kwargs: Mapping[str, Any]
) -> str | None:
    """What to type where arguments by place are taken only by name; None where there are none."""
    name = function.__qualname__.removesuffix(".__init__")
    parameters = made_by.parameters.values()
    named = [p.name for p in parameters if p.kind is Parameter.KEYWORD_ONLY]
    places = [p.name for p in parameters if p.kind < Parameter.VAR_POSITIONAL]
    if not named or len(args) <= len(places):
        return None
    home = _home(function)
    line = [each for each in places if each != "self"]
    taken = dict(zip(places, args, strict=False))
    line = [_text(taken, each, each) for each in line] if home else line
    behind = [*PLACES.get(name, ()), *(each for each in named if each not in PLACES.get(name, ()))]
    values = {**dict(zip(behind, args[len(places) :], strict=False)), **kwargs}
    hints = _hints(function)
    if not all(fits(value, hints.get(each, Any)) for each, value in values.items()):
        return None
    line += [f"{each}={_text(values, each, each)}" for each in values]
    return f"{home}{name}({', '.join(line)})"


def usage(code: str) -> Callable[[F], F]:
    """Let errors of calls with other arguments show one that works."""

    def marked(function: F) -> F:
        function.__dict__["_usage"] = code
        return function

    return marked


def _other_count(
    function: Any, made_by: Signature, args: tuple[Any, ...], kwargs: dict[str, Any], why: str
) -> WrongTypeError:
    """The error for more arguments than a function takes, or fewer."""
    named = [name for name in made_by.parameters if name not in ("self", "wrong")]
    method = "self" in made_by.parameters
    called = function.__qualname__.removesuffix(".__init__")
    given = [*(type(x).__name__ for x in args[method:]), *kwargs]
    return WrongTypeError(
        called,
        why,
        got=", ".join(given) or "no arguments",
        expected=", ".join(named) or "none",
        hint=getattr(function, "_usage", None) or _by_name(function, made_by, args, kwargs),
    )


def _called(function: Any) -> str:
    """What errors call a function; a constructor goes by the name of its class."""
    owner, _, name = function.__qualname__.rpartition(".")
    return owner.rpartition(".")[2] if name == "__init__" else name


def _wrong(op: str, name: str, value: Any, annotation: Any, hint: Any) -> WrongTypeError:
    text = annotation if isinstance(annotation, str) else getattr(hint, "__name__", str(hint))
    shown = repr(value)
    kind = type(value).__name__
    takes_tensors = Tensor in (hint, get_origin(hint), *map(get_origin, get_args(hint)))
    made = takes_tensors and isinstance(value, Scalar | list | np.ndarray)
    return WrongTypeError(
        op,
        f"{name} is not of the type that it takes",
        got=kind if len(shown) > _SHOWN or "\n" in shown else f"{shown} ({kind})",
        expected=re.sub(r"\bTensor\[\w+\]", "Tensor", text),
        hint=f"px.asarray({name})" if made else None,
    )
