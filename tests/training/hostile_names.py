"""More programs as in ``hostile``: what names, attributes and arguments stand for changes."""

from __future__ import annotations

NAMED: dict[str, str] = {
    "a closure over a number": """
def make():
    rate = 1.0
    def step(x): return x * rate
    def set_rate(r):
        nonlocal rate
        rate = r
    return step, set_rate
step, set_rate = make()
def before(i): set_rate(1.0 if i < 5 else 2.0)
""",
    "a closure over a list": """
def make():
    rates = [1.0]
    return (lambda x: x * rates[0]), rates
step, rates = make()
def before(i): rates[0] = 1.0 if i < 5 else 2.0
""",
    "a helper that a notebook defines anew": """
def helper(x): return x * 1.0
def step(x): return helper(x)
def before(i):
    global helper
    if i == 5:
        def helper(x): return x * 2.0
""",
    "a global that a notebook sets anew": """
rate = 1.0
def step(x): return x * rate
def before(i):
    global rate
    rate = float(i)
""",
    "a class attribute": """
class Config: rate = 1.0
def step(x): return x * Config.rate
def before(i): Config.rate = 1.0 if i < 5 else 2.0
""",
    "a class attribute behind inheritance": """
class Base: rate = 1.0
class Config(Base): pass
config = Config()
def step(x): return x * config.rate
def before(i): Base.rate = 1.0 if i < 5 else 2.0
""",
    "a method that somebody patches": """
class Model:
    def scale(self): return 1.0
model = Model()
def step(x): return x * model.scale()
def before(i):
    if i == 5: Model.scale = lambda self: 2.0
""",
    "a method behind super": """
class Base:
    def scale(self): return 1.0
class Model(Base):
    def scale(self): return super().scale() * 3
model = Model()
def step(x): return x * model.scale()
def before(i):
    if i == 5: Base.scale = lambda self: 2.0
""",
    "defaults of a helper": """
def helper(x, rate=1.0): return x * rate
def step(x): return helper(x)
def before(i): helper.__defaults__ = (1.0 if i < 5 else 2.0,)
""",
    "a mutable default": """
def helper(x, seen=[]):
    seen.append(0)
    return x * (1.0 if len(seen) < 6 else 2.0)
def step(x): return helper(x)
""",
    "dataclasses.replace": """
from dataclasses import dataclass, replace
@dataclass(frozen=True)
class Config: rate: float = 1.0
config = Config()
def step(x): return x * config.rate
def before(i):
    global config
    config = replace(config, rate=1.0 if i < 5 else 2.0)
""",
    "a field of a dataclass": """
from dataclasses import dataclass
@dataclass
class Config: rate: float = 1.0
config = Config()
def step(x): return x * config.rate
def before(i): config.rate = 1.0 if i < 5 else 2.0
""",
    "a NamedTuple": """
from typing import NamedTuple
class Config(NamedTuple): rate: float = 1.0
config = Config()
def step(x): return x * config.rate
def before(i):
    global config
    config = config._replace(rate=1.0 if i < 5 else 2.0)
""",
    "a SimpleNamespace": """
from types import SimpleNamespace
config = SimpleNamespace(optim=SimpleNamespace(rate=1.0))
def step(x): return x * config.optim.rate
def before(i): config.optim.rate = 1.0 if i < 5 else 2.0
""",
    "a dict with attributes": """
class Attrs(dict):
    def __getattr__(self, name): return self[name]
config = Attrs(rate=1.0)
def step(x): return x * config.rate
def before(i): config["rate"] = 1.0 if i < 5 else 2.0
""",
    "slots": """
class Config:
    __slots__ = ("rate",)
config = Config()
config.rate = 1.0
def step(x): return x * config.rate
def before(i): config.rate = 1.0 if i < 5 else 2.0
""",
    "a property": """
class Config:
    _rate = 1.0
    @property
    def rate(self): return self._rate
config = Config()
def step(x): return x * config.rate
def before(i): config._rate = 1.0 if i < 5 else 2.0
""",
    "an attribute that was missed before": """
class Config: pass
config = Config()
def step(x):
    try: return x * config.rate
    except AttributeError: return x
def before(i):
    if i == 5: config.rate = 2.0
""",
    "an attribute of an argument that was missed before": """
from contextlib import suppress
class Config: pass
config = Config()
def scaled(x, given): return x * given.rate
def step(x, given):
    with suppress(AttributeError): return scaled(x, given)
    return x
def args(i): return px.ones(2), config
def before(i):
    if i == 5: config.rate = 2.0
""",
    "a method that was missed before": """
class Model: pass
model = Model()
def step(x):
    try: return model.scaled(x)
    except Exception: return x
def before(i):
    if i == 5: Model.scaled = lambda self, x: x * 2
""",
    "a flag of a module": """
DEBUG = False
def step(x): return x * 2 if DEBUG else x
def before(i):
    global DEBUG
    DEBUG = i >= 5
""",
    "os.environ": """
import os
os.environ["PROGRAM_RATE"] = "1.0"
def step(x): return x * float(os.environ["PROGRAM_RATE"])
def before(i): os.environ["PROGRAM_RATE"] = "1.0" if i < 5 else "2.0"
""",
    "os.getenv in a helper": """
import os
def debug(): return os.getenv("PROGRAM_DEBUG", "") == "1"
def step(x): return x * 2 if debug() else x
def before(i): os.environ["PROGRAM_DEBUG"] = "1" if i >= 5 else "0"
""",
    "a rate in a file": """
import tempfile, pathlib
path = pathlib.Path(tempfile.mkdtemp()) / "rate"
path.write_text("1.0")
def step(x): return x * float(path.read_text())
def before(i): path.write_text("1.0" if i < 10 else "2.0")
""",
    "a rate that depends on the time": """
import time
START = time.perf_counter()
def step(x): return x * (time.perf_counter() - START)
""",
    "a clock of one's own": """
class Clock:
    now = 0.0
    def tick(self):
        self.now += 1.0
        return self.now
clock = Clock()
def elapsed(): return clock.tick()
def step(x): return x * (1.0 if elapsed() < 6 else 2.0)
""",
    "a schedule of one's own": """
class Schedule:
    def __init__(self): self.position = 0
    def step(self):
        self.position += 1
        return 1.0 if self.position < 6 else 0.1
schedule = Schedule()
def rate(): return schedule.step()
def step(x): return x * rate()
""",
    "a moving mean of one's own": """
class Mean:
    value = 0.0
    def update(self, x):
        self.value = 0.9 * self.value + 0.1
        return self.value
mean = Mean()
def update(x): return mean.update(x)
def step(x): return x - update(x)
""",
    "a best value that a helper keeps": """
best = {"value": 0.0}
def keep(n): best["value"] = max(best["value"], n)
def step(x, n):
    keep(float(n))
    return x
def args(i): return px.ones(2), i
def after(out): return best["value"]
""",
    "a flag for the first call": """
state = {"ready": False}
def prepare():
    if not state["ready"]: state["ready"] = True
def step(x):
    prepare()
    return x * 2
""",
    "a cache of tensors": """
cache = {}
def mask(n):
    if n not in cache: cache[n] = px.ones(n)
    return cache[n]
def step(x): return x + mask(x.shape[0])
""",
    "a registry of functions": """
ACTIVATIONS = {"act": lambda x: x * 1.0}
def step(x): return ACTIVATIONS["act"](x)
def before(i):
    if i == 5: ACTIVATIONS["act"] = lambda x: x * 2.0
""",
    "a partial": """
from functools import partial
def scaled(x, rate): return x * rate
scale = partial(scaled, rate=1.0)
def step(x): return scale(x)
def before(i): scale.keywords["rate"] = 1.0 if i < 5 else 2.0
""",
    "a tensor bound anew": """
weight = px.ones(2)
def step(x): return x * weight
def before(i):
    global weight
    weight = px.full((2,), float(i))
""",
    "a tensor of a list replaced": """
weights = [px.ones(2)]
def step(x): return x * weights[0]
def before(i): weights[0] = px.full((2,), 1.0 if i < 5 else 2.0)
""",
    "an array that changes in place": """
import numpy as np
weights = np.ones(2, np.float32)
def step(x): return x * px.asarray(weights)
def before(i): weights[:] = 1.0 if i < 5 else 2.0
""",
    "a mask that is told by identity": """
NO_MASK = px.ones(2)
def step(x, mask): return x if mask is NO_MASK else x + mask
def args(i): return px.ones(2), NO_MASK if i % 2 else px.ones(2)
""",
    "a list that is told by identity": """
NOTHING = [px.ones(2)]
def step(x, masks): return x if masks is NOTHING else x + masks[0]
def args(i): return px.ones(2), NOTHING
""",
    "a context variable": """
from contextvars import ContextVar
rate = ContextVar("rate", default=1.0)
def step(x): return x * rate.get()
def before(i): rate.set(1.0 if i < 5 else 2.0)
""",
    "equal objects": """
class Layer:
    def __init__(self, name, rate): self.name, self.rate = name, rate
    def __eq__(self, other): return self.name == other.name
    def __hash__(self): return hash(self.name)
def step(x, layer): return x * layer.rate
def args(i): return px.ones(2), Layer("a", 1.0 if i < 5 else 2.0)
""",
    "a division that fails": """
def share(n):
    try: return 1 / n
    except ZeroDivisionError: return 0.0
def step(x, n): return x * share(n)
def args(i): return px.ones(2), 0 if i < 5 else i
""",
    "an attribute of an installed module": """
import installed_settings as settings
def step(x): return x * settings.rate
def before(i): settings.rate = 1.0 if i < 5 else 2.0
""",
    "a dict of an installed module": """
from installed_settings import options
def step(x): return x * options["rate"]
def before(i): options["rate"] = 1.0 if i < 5 else 2.0
""",
    "an object of an installed module": """
from installed_settings import config
def step(x): return x * config.rate
def before(i): config.rate = 1.0 if i < 5 else 2.0
""",
    "the class of an object of an installed module": """
from installed_settings import Config, config
def step(x): return x * config.scale
def before(i): Config.scale = 1.0 if i < 5 else 2.0
""",
}
