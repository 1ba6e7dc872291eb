"""A program: calls every native function with malformed arguments; any answer but an exception of
Python's or a result is a failure. tests/test_boundary.py runs it apart, since a crash ends it.

Usage: python fuzz_boundary.py SEED COUNT
"""

from __future__ import annotations

import faulthandler
import random
import resource
import sys
from collections.abc import Callable
from typing import Any

import numpy as np

from phlox_kernels import Cpu, _native
from phlox_tensor import REGISTRY, DType, as_dtype
from phlox_tensor._call import call_by_signature
from phlox_tensor.testing import LAYOUTS, dtypes_for, samples
from phlox_tensor.testing._conformance import _place

DEVICE = Cpu()
LARGEST = 4 << 30
Arguments = tuple[Any, ...]


def tensor(shape: tuple[int, ...], dtype: str) -> Any:
    size = int(np.prod(shape))
    array = np.resize(np.arange(-3, 4), size).reshape(shape)
    kind = as_dtype(dtype)
    return DEVICE.upload(array.astype(kind.numpy), kind)


TENSORS = [
    tensor(shape, dtype)
    for shape in [(), (0,), (1,), (3,), (2, 3), (0, 3), (2, 3, 4), (1, 2, 5, 5), (1,) * 8]
    for dtype in ["float32", "float64", "float16", "bfloat16", "int64", "int8", "uint64", "bool"]
]
TENSORS += [
    _native.permute_dims(tensor((2, 3), "float32"), (1, 0)),
    _native.flip(tensor((4,), "int64"), (0,)),
    _native.broadcast_to(tensor((), "float32"), (3, 2)),
    _native.broadcast_to(tensor((1,), "int64"), (1 << 20,)),
]
NUMBERS: list[Any] = [0, 1, -1, 2, 3, 7, -2, 8, 64, 255, 1 << 31, -(1 << 31), 1 << 40, 1 << 62]
NUMBERS += [(1 << 63) - 1, -(1 << 63), 1 << 63, (1 << 64) - 1, 1 << 70, True, False]
NUMBERS += [0.5, -0.0, 1e300, float("nan"), float("inf")]
OTHERS: list[Any] = [None, "", "float32", "bool", "add", "\udc80", b"x", [], [1], {}, object(), 1j]
OTHERS += [DType, as_dtype("int8"), np.float32(1), np.ones(2), print, (), ((),), ((1, 2),)]


def number(rng: random.Random) -> Any:
    return rng.choice(NUMBERS) if rng.random() < 0.7 else rng.randint(-4, 9)


def argument(rng: random.Random) -> Any:
    """Anything."""
    kind = rng.random()
    if kind < 0.45:
        return rng.choice(TENSORS)
    if kind < 0.6:
        return number(rng)
    if kind < 0.75:
        return tuple(number(rng) for _ in range(rng.randint(0, 9)))
    if kind < 0.8:
        return tuple(rng.choice(TENSORS) for _ in range(rng.randint(0, 4)))
    if kind < 0.87:
        return tuple((number(rng), number(rng)) for _ in range(rng.randint(0, 4)))
    return rng.choice(OTHERS)


def changed(rng: random.Random, given: Any) -> Any:
    """An argument near the given one."""
    if isinstance(given, tuple) and given and rng.random() < 0.7:
        out = list(given)
        place = rng.randrange(len(out))
        way = rng.random()
        if way < 0.6:
            out[place] = changed(rng, out[place])
        elif way < 0.8:
            del out[place]
        else:
            out.insert(place, out[place])
        return tuple(out)
    if isinstance(given, int) and rng.random() < 0.7:
        return number(rng)
    if isinstance(given, _native.RawTensor) and rng.random() < 0.8:
        return rng.choice(TENSORS)
    return argument(rng)


def functions() -> dict[str, Callable[..., Any]]:
    """Every function of the module but those that set what the process goes on with."""
    settings = {"_set_num_threads", "_set_dtype", "_fma_peak"}
    found = {n: f for n, f in vars(_native).items() if callable(f) and not n.startswith("__")}
    out = {n: f for n, f in found.items() if n not in settings and not isinstance(f, type)}
    return out | {"from_buffer": _native.RawTensor.from_buffer}


def valid_calls() -> dict[str, list[Arguments]]:
    """Arguments that the entries get in the conformance suite."""
    seen: dict[str, list[Arguments]] = {}
    table = functions()
    for name, op in REGISTRY.items():
        if name not in table:
            continue
        calls = seen.setdefault(name, [])

        def record(*args: Any, _calls: list[Arguments] = calls, _name: str = name) -> Any:
            _calls.append(args)
            return table[_name](*args)

        entry = getattr(DEVICE, name)
        setattr(DEVICE, name, record)
        for dtype in dtypes_for(op, DEVICE)[:3]:
            for sample in list(samples(op, dtype, DEVICE))[:4]:
                place = LAYOUTS["transposed"]
                operands = tuple(_place(o, DEVICE, place) for o in sample.operands)
                call_by_signature(op, operands, sample.attributes)
        setattr(DEVICE, name, entry)
    return seen


def one(rng: random.Random, function: Callable[..., Any], known: list[Arguments]) -> Arguments:
    """Arguments for a call: a known one with a few changes, or anything."""
    if known and rng.random() < 0.8:
        args = list(rng.choice(known))
        for _ in range(rng.randint(1, 2)):
            if args:
                place = rng.randrange(len(args))
                args[place] = changed(rng, args[place])
        return tuple(args)
    return tuple(argument(rng) for _ in range(rng.randint(0, 7)))


def main(seed: int, count: int) -> int:
    """Call every function `count` times."""
    faulthandler.enable()
    resource.setrlimit(resource.RLIMIT_AS, (LARGEST, LARGEST))
    known = valid_calls()
    calls = errors = 0
    for name, function in sorted(functions().items()):
        rng = random.Random(f"{seed} {name}")
        for _ in range(count):
            args = one(rng, function, known.get(name, []))
            calls += 1
            try:
                function(*args)
            except Exception:  # what a caller can catch
                errors += 1
            except BaseException as error:
                print(f"{name}{args!r}: {type(error).__name__}: {error}", flush=True)
                return 1
    print(f"{calls} calls, {errors} refused")
    return 0


if __name__ == "__main__":
    sys.exit(main(int(sys.argv[1]), int(sys.argv[2])))
