"""A program: calls every native function with random arguments, valid ones with changes and
malformed ones, directly and through the ops of phlox. Any answer but a result or an exception is a
failure: a panic, a crash, a report of a sanitizer, a call that does not end.

Usage: python fuzz_boundary.py SEED COUNT [NAME…]   COUNT calls of each function, in this process
       python fuzz_boundary.py --for SECONDS SEED   processes with rising seeds; says what to repeat

test_boundary.py runs it for seconds, `./x test --long` for an hour under AddressSanitizer.
"""

from __future__ import annotations

import faulthandler
import os
import random
import resource
import subprocess
import sys
import time
from collections.abc import Callable, Iterator
from functools import partial
from typing import Any

import numpy as np

from phlox_kernels import Cpu, _native
from phlox_tensor import REGISTRY, DType, as_dtype
from phlox_tensor._call.dispatch import call_by_signature, wrap
from phlox_tensor.testing import LAYOUTS, dtypes_for, samples
from phlox_tensor.testing._conformance import _place

LARGEST = 2 << 30  # bytes of the process: 2^31 are refused
CALLS = 200  # of each function, in a process of many
ENDS = 1200  # seconds after which a process hangs: twenty would do on an idle machine
SMALL, MEDIUM = 1 << 14, 1 << 21  # elements that a call may work on a few times, and once
DTYPES = ["float32", "float64", "float16", "bfloat16", "int64", "int8", "uint64", "bool"]
Arguments = tuple[Any, ...]


def tensor(shape: tuple[int, ...], dtype: str) -> Any:
    size = int(np.prod(shape))
    array = np.resize(np.arange(-3, 4), size).reshape(shape)
    kind = as_dtype(dtype)
    return Cpu().upload(array.astype(kind.numpy), kind)


SHAPES = [
    (),
    (0,),
    (1,),
    (3,),
    (2, 3),
    (0, 3),
    (2, 3, 4),
    (1, 2, 5, 5),
    (1,) * 8,
    (1,) * 16,
    (67,),
    (3, 1, 130),
]
TENSORS = [tensor(shape, dtype) for shape in SHAPES for dtype in DTYPES]
TENSORS += [
    _native.permute_dims(tensor((2, 3), "float32"), (1, 0)),
    _native.flip(tensor((4,), "int64"), (0,)),
    _native.broadcast_to(tensor((), "float32"), (3, 2)),
    _native.broadcast_to(tensor((1,), "int64"), (1 << 20,)),
]
HUGE = [
    _native.broadcast_to(tensor((4,), dtype), shape)
    for dtype in ["float32", "bool", "float16"]
    for shape in [(1 << 54, 4), (1 << 27, 1 << 27, 4), (0, 1 << 50, 4)]
]
NUMBERS: list[Any] = [0, 1, -1, 2, 3, 7, -2, 8, 64, 255, 1 << 31, -(1 << 31), 1 << 40, 1 << 62]
NUMBERS += [(1 << 63) - 1, -(1 << 63), 1 << 63, (1 << 64) - 1, 1 << 70, True, False]
NUMBERS += [0.5, -0.0, 1e300, float("nan"), float("inf")]
OTHERS: list[Any] = [None, "", "float32", "bool", "add", "\udc80", b"x", [], [1], {}, object(), 1j]
OTHERS += [DType, as_dtype("int8"), np.float32(1), np.ones(2), print, (), ((),), ((1, 2),)]


def number(rng: random.Random) -> Any:
    return rng.choice(NUMBERS) if rng.random() < 0.7 else rng.randint(-4, 9)


def operand(rng: random.Random, whole: bool) -> Any:
    """A tensor, as it is or seen otherwise."""
    if whole and rng.random() < 0.05:
        return rng.choice(HUGE)
    given = rng.choice(TENSORS)
    for _ in range(rng.choice((0, 0, 1, 2))):
        given = viewed(rng, given)
    return given


def viewed(rng: random.Random, x: Any) -> Any:
    """Another view of the elements, or of some of them."""
    axes = list(range(len(x.shape)))
    way = rng.randrange(5)
    if way == 0:
        rng.shuffle(axes)
        return _native.permute_dims(x, tuple(axes))
    if way == 1:
        return _native.flip(x, tuple(axis for axis in axes if rng.random() < 0.5))
    if way == 2 and x.size < SMALL and len(axes) < 8:
        return _native.broadcast_to(x, (rng.choice((0, 1, 2, 5)), *x.shape))
    if way == 3:
        step = tuple(rng.choice((1, 1, 2, 3)) for _ in axes)
        size = tuple(rng.randint(0, -(-n // by)) for n, by in zip(x.shape, step, strict=True))
        return _native.slice(x, (0,) * len(axes), size, step)
    return _native.reshape(x, (x.size,))


def argument(rng: random.Random, whole: bool) -> Any:
    """Anything."""
    kind = rng.random()
    if kind < 0.45:
        return operand(rng, whole)
    if kind < 0.6:
        return number(rng)
    if kind < 0.75:
        return tuple(number(rng) for _ in range(rng.randint(0, 9)))
    if kind < 0.8:
        return tuple(operand(rng, whole) for _ in range(rng.randint(0, 4)))
    if kind < 0.87:
        return tuple((number(rng), number(rng)) for _ in range(rng.randint(0, 4)))
    return rng.choice(OTHERS)


def changed(rng: random.Random, given: Any, whole: bool) -> Any:
    """An argument near the given one."""
    if isinstance(given, tuple) and given and rng.random() < 0.7:
        out = list(given)
        place = rng.randrange(len(out))
        way = rng.random()
        if way < 0.6:
            out[place] = changed(rng, out[place], whole)
        elif way < 0.8:
            del out[place]
        else:
            out.insert(place, out[place])
        return tuple(out)
    if isinstance(given, int) and rng.random() < 0.7:
        return number(rng)
    if isinstance(given, _native.RawTensor):
        way = rng.random()
        if way < 0.4:
            return viewed(rng, given)
        if way < 0.6:
            return _native.cast(given, rng.choice(DTYPES))
        if way < 0.85:
            return operand(rng, whole)
    return argument(rng, whole)


class Recorder(Cpu):
    """Notes what the entries are called with."""

    def entry(self, name: str) -> Callable[..., Any] | None:
        function = functions().get(name)
        if function is None:
            return None

        def record(*args: Any) -> Any:
            SEEN.setdefault(name, []).append(args)
            return function(*args)

        return record


SEEN: dict[str, list[Arguments]] = {}


def functions() -> dict[str, Callable[..., Any]]:
    """Every function but those that set what the process goes on with, or measure the machine."""
    settings = {"_bf16_peak", "_fma_peak", "_set_dtype", "_set_num_threads"}
    found = {n: f for n, f in vars(_native).items() if callable(f) and not n.startswith("__")}
    out = {n: f for n, f in found.items() if n not in settings and not isinstance(f, type)}
    return out | {"from_buffer": _native.RawTensor.from_buffer}


def valid_calls(names: set[str]) -> dict[str, list[Arguments]]:
    """Arguments that the entries get in the conformance suite."""
    device = Recorder()
    for name in sorted(names & set(REGISTRY)):
        op = REGISTRY[name]
        for dtype in dtypes_for(op, device)[:3]:
            for sample in list(samples(op, dtype, device))[:4]:
                operands = tuple(_place(o, device, LAYOUTS["transposed"]) for o in sample.operands)
                if op.signature.operands:
                    call_by_signature(op, operands, sample.attributes)
    return {name: [fitting(args) for args in calls] for name, calls in SEEN.items()}


def fitting(args: Arguments) -> Arguments:
    """Attributes are tuples where the entry takes them."""
    return tuple(tuple(arg) if isinstance(arg, list) else arg for arg in args)


def one(rng: random.Random, known: list[Arguments], whole: bool) -> Arguments:
    """Arguments for a call: a known one with a few changes, or anything."""
    if known and rng.random() < 0.85:
        args = list(rng.choice(known))
        for _ in range(rng.choice((0, 1, 1, 2, 3))):
            if args:
                place = rng.randrange(len(args))
                args[place] = changed(rng, args[place], whole)
        return tuple(args)
    return tuple(argument(rng, whole) for _ in range(rng.randint(0, 7)))


def wrapped(given: Any) -> Any:
    """Primitives as tensors."""
    if isinstance(given, _native.RawTensor):
        return wrap(given, Cpu())
    return [wrapped(item) for item in given] if isinstance(given, tuple) else given


def results(given: Any) -> Iterator[Any]:
    if isinstance(given, tuple):
        for item in given:
            yield from results(item)
    elif isinstance(given, _native.RawTensor) and given.size <= MEDIUM:
        yield given


def plain(attributes: Arguments) -> bool:
    """No tensor among them: phlox would read all its elements, one by one."""
    return not any(isinstance(attribute, _native.RawTensor) for attribute in attributes)


def work(args: Arguments) -> int:
    """Elements of the operands."""
    sizes = [work(a) if isinstance(a, tuple) else getattr(a, "size", 0) for a in args]
    return sum(size for size in sizes if isinstance(size, int))


def calls_of(
    name: str, seed: int, count: int, known: list[Arguments]
) -> Iterator[Callable[[], Any]]:
    """Calls of one function, one after the other the same for the same seed."""
    rng = random.Random(f"{seed} {name}")
    function, op = functions()[name], REGISTRY.get(name)
    # The result is no smaller than the operands, so that too large ones are refused at once.
    whole = op is not None and op.op_class.memory_bound
    for _ in range(count):
        try:
            args = one(rng, known, whole)
        except Exception:  # a change that does not fit
            continue
        if not whole and work(args) > MEDIUM:
            continue
        LAST[:] = [name, args]
        if op is not None and plain(args[len(op.signature.operands) :]) and rng.random() < 0.25:
            yield partial(call_by_signature, op, wrapped(args), {})
        else:
            yield partial(function, *args)


LAST: list[Any] = []


def main(seed: int, count: int, names: list[str]) -> int:
    """Call every function, or those of these names, `count` times."""
    faulthandler.enable()
    if "libasan" not in os.environ.get("LD_PRELOAD", ""):  # it reserves much more than it uses
        resource.setrlimit(resource.RLIMIT_AS, (LARGEST, LARGEST))
    table = names or sorted(functions())
    known = valid_calls(set(table))
    calls = errors = 0
    for name in table:
        print(name, end="\r", flush=True)
        for call in calls_of(name, seed, count, known.get(name, [])):
            calls += 1
            try:
                for result in results(call()):
                    _native.contiguous(result)  # reads all of it
            except Exception:  # what a caller can catch
                errors += 1
            except BaseException as error:
                print(f"{LAST[0]}{LAST[1]!r}: {type(error).__name__}: {error}", flush=True)
                return 1
    print(f"{calls} calls, {errors} refused")
    return 0


def long(seconds: float, seed: int) -> int:
    """Run processes until the time is over; returns 1 after the first failure."""
    end, total = time.monotonic() + seconds, 0
    while time.monotonic() < end:
        line = [sys.executable, __file__, str(seed), str(CALLS)]
        try:
            done = subprocess.run(line, check=False, capture_output=True, text=True, timeout=ENDS)
            status, text, report = done.returncode, done.stdout, done.stderr
        except subprocess.TimeoutExpired as error:
            # Bytes, though text was asked for.
            text = (error.stdout or b"").decode()
            status, report = 1, f"no end after {ENDS} s"
        if status:
            name = text.split("\r")[-1].split("(")[0].split(":")[0].strip()
            print(f"{text[-2000:]}\n{report[-6000:]}\nrepeat with: {' '.join(line)} {name}")
            return 1
        total += int(text.split()[-4])
        seed += 1
    print(f"{total} calls, none failed; the next seed is {seed}")
    return 0


if __name__ == "__main__":
    if sys.argv[1] == "--for":
        sys.exit(long(float(sys.argv[2]), int(sys.argv[3])))
    sys.exit(main(int(sys.argv[1]), int(sys.argv[2]), sys.argv[3:]))
