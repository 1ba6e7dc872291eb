"""Choices between programs of equal bits by their time on this machine: PHLOX_AUTOTUNE."""

from __future__ import annotations

import hashlib
import json
import os
import platform
from collections.abc import Mapping, Sequence
from functools import cache
from importlib.metadata import PackageNotFoundError, version
from pathlib import Path
from threading import Lock
from time import perf_counter
from typing import Any, Final

from phlox_tensor import Backend, CompileError, Spec
from phlox_tensor.capture import Lowered, ProgramLimits

from ._fused import Fused, Step, run_steps

_MODES: Final = ("off", "on", "read")
_ROUNDS: Final = 5
_LONGEST: Final = 0.05  # seconds of a round from which there is but one more
_CLEARLY: Final = 0.95  # of the usual time; what is between is noise
_MOST_BYTES: Final = 2**26  # of operands: more are not made for a measurement
_MOST_STORED: Final = 2**22  # bytes of a file


def tuning_mode() -> str:
    """Return the mode in PHLOX_AUTOTUNE, which is off unless it says.

    Raises:
        CompileError: no such mode.
    """
    mode = os.environ.get("PHLOX_AUTOTUNE", "off")
    if mode not in _MODES:
        raise CompileError(
            "autotune",
            "no such mode in PHLOX_AUTOTUNE",
            got=repr(mode),
            expected=", ".join(_MODES),
        )
    return mode


def wide(device: Backend) -> ProgramLimits:
    """Return the limits of a device without those that are a matter of time.

    They stay where the bits of a program may differ from those of its ops.
    """
    limits = device.limits
    if not device.strict or not limits.bindings:
        return limits
    return limits._replace(pays_from=0, folds_from=0, draws_from=0, stages=True, stages_from=0)


def chosen(whole: Lowered, specs: Sequence[Spec], variants: Mapping[str, Sequence[Step]]) -> str:
    """Return the name of the variant that takes least, "usual" where nobody knows.

    Args:
        whole: what all variants do, as one program.
        specs: of the values of the graph.
        variants: steps by name.
    """
    (first, *_) = next(iter(variants.values()))
    device = first.nodes[0].device if isinstance(first, Fused) else first.device
    given = [specs[value] for value in whole.inputs]
    text = f"{whole.program!r} {[(spec.shape, spec.dtype.name) for spec in given]}"
    key = hashlib.sha256(f"{text} {_texts(variants)}".encode()).hexdigest()
    store = _store(_folder() / _file_name(device))
    found = store.find(key)
    if found is None and tuning_mode() == "on":
        found = _fastest(device, whole, given, variants)
        store.keep(key, found)
    return found if found is not None and found in variants else "usual"


def _texts(variants: Mapping[str, Sequence[Step]]) -> list[Any]:
    """What variants are made of, so that a stored choice is never one between others."""
    return [
        (name, [s.lowered.program if isinstance(s, Fused) else s.op.name for s in steps])
        for name, steps in variants.items()
    ]


def _fastest(
    device: Backend, whole: Lowered, given: Sequence[Spec], variants: Mapping[str, Sequence[Step]]
) -> str:
    if sum(spec.nbytes for spec in given) > _MOST_BYTES:
        return "usual"
    full: Any = device.entry("full")  # not through the table, which a recording may watch
    if full is None:
        return "usual"
    values = {
        value: full(spec.shape, 0.75 if spec.dtype.kind == "Float" else 1, spec.dtype)
        for value, spec in zip(whole.inputs, given, strict=True)
    }
    best = dict.fromkeys(variants, float("inf"))
    for turn in range(_ROUNDS):
        for name, steps in variants.items():
            start = perf_counter()
            run_steps(steps, dict(values))
            device.sync()
            if turn:  # the first round warms up
                best[name] = min(best[name], perf_counter() - start)
        if turn and max(best.values()) > _LONGEST:
            break
    name = min(best, key=best.__getitem__)
    return name if best[name] < _CLEARLY * best["usual"] else "usual"


class _Store:
    """What was chosen, in a file that has a line for each choice."""

    def __init__(self, path: Path) -> None:
        self._path = path
        self._lock = Lock()
        self._known: dict[str, str] = {}
        try:
            lines = path.read_text("utf-8").splitlines()
        except (OSError, UnicodeDecodeError):  # none yet, or nothing that this module wrote
            lines = []
        for line in lines:
            try:
                entry = json.loads(line)
                self._known[str(entry["key"])] = str(entry["variant"])
            except (ValueError, TypeError, KeyError):  # cut off, or from somebody else
                continue

    def find(self, key: str) -> str | None:
        return self._known.get(key)

    def keep(self, key: str, variant: str) -> None:
        """Remember a choice, for later processes too where the file can be written."""
        line = json.dumps({"key": key, "variant": variant}) + "\n"
        with self._lock:
            self._known[key] = variant
            try:
                self._path.parent.mkdir(parents=True, exist_ok=True)
                if not self._path.exists() or self._path.stat().st_size < _MOST_STORED:
                    with self._path.open("a", encoding="utf-8") as file:
                        file.write(line)
            except OSError:  # a home that is read-only: the choice holds for this process
                return


@cache
def _store(path: Path) -> _Store:
    return _Store(path)


def _folder() -> Path:
    given = os.environ.get("XDG_CACHE_HOME")
    return (Path(given) if given else Path.home() / ".cache") / "phlox"


@cache
def _file_name(device: Backend) -> str:
    """A name for a device of this machine, and for the code that was measured."""
    threads = os.environ.get("PHLOX_NUM_THREADS"), os.cpu_count()
    facts = (repr(device), device.limits, platform.platform(), _processor(), threads)
    own = type(device).__module__.partition(".")[0].replace("_", "-")
    code = [_version(name) for name in ("phlox-fusion", own)]
    digest = hashlib.sha256(repr((facts, code)).encode()).hexdigest()
    return f"tuned-{device.name}-{digest[:16]}.jsonl"


@cache
def _version(name: str) -> str:
    try:
        return version(name)
    except PackageNotFoundError:  # a backend that belongs to no distribution
        return ""


@cache
def _processor() -> str:
    try:
        lines = Path("/proc/cpuinfo").read_text("utf-8").splitlines()
    except OSError:
        return platform.processor()
    return next((line for line in lines if line.startswith("model name")), platform.processor())
