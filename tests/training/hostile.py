"""Programs that people write, each of which changes something behind the back of a replay.

Each text defines ``step``. ``args(i)`` gives its arguments, ``before(i)`` is what happens between
calls, and ``after(out)`` says what the program looks at behind a call.
"""

MOVING: dict[str, str] = {
    "a helper counts its calls": """
calls = 0
def rate():
    global calls
    calls += 1
    return 2.0 if calls > 5 else 1.0
def step(x): return x * rate()
""",
    "an object counts its calls": """
class Warmup:
    def __init__(self): self.calls = 0
    def rate(self):
        self.calls += 1
        return min(1.0, self.calls / 10)
warmup = Warmup()
def helper(x): return x * warmup.rate()
def step(x): return helper(x)
""",
    "a history that a helper appends to": """
history = []
def note(x): history.append(1)
def step(x):
    note(x)
    return x * len(history)
""",
    "a history of limited length": """
from collections import deque
history = deque(maxlen=10)
def note(): history.append(0)
def step(x):
    note()
    return x * 2
def after(out): return len(history)
""",
    "metrics in a dict": """
METRICS = {}
def log(name, value): METRICS[name] = value
def step(x):
    loss = (x * x).sum()
    log("loss", loss)
    return loss
def args(i): return (px.full((2,), float(i)),)
def after(out): return METRICS["loss"]
""",
    "a count in a defaultdict": """
from collections import defaultdict
seen = defaultdict(int)
def note(key):
    seen[key] += 1
    return seen[key]
def step(x): return x * (3.0 if note("step") > 6 else 1.0)
""",
    "a Counter": """
from collections import Counter
seen = Counter()
def note(): seen.update(["step"])
def step(x):
    note()
    return x
def after(out): return seen["step"]
""",
    "random.random": """
import random
random.seed(3)
def step(x): return x if random.random() < 0.9 else -x
""",
    "random.choice in a helper": """
import random
random.seed(5)
def sign(): return random.choice([1.0, 1.0, 1.0, 1.0, -1.0])
def step(x): return x * sign()
""",
    "a generator of random's own": """
import random
rng = random.Random(1)
def step(x): return x if rng.random() < 0.95 else -x
""",
    "np.random.rand": """
import numpy as np
np.random.seed(2)
def step(x): return x if np.random.rand() < 0.9 else -x
""",
    "np.random.default_rng": """
import numpy as np
rng = np.random.default_rng(0)
def keep(): return bool(rng.random() < 0.98)
def step(x): return x if keep() else -x
""",
    "a generator in an attribute": """
import numpy as np
class Noise:
    def __init__(self): self.rng = np.random.default_rng(1)
    def keep(self): return bool(self.rng.random() < 0.97)
noise = Noise()
def step(x): return x if noise.keep() else -x
""",
    "next of a generator": """
def rates():
    while True:
        yield from (1.0, 1.0, 1.0, 1.0, 2.0)
schedule = rates()
def step(x): return x * next(schedule)
""",
    "itertools.count": """
from itertools import count
ids = count()
def step(x): return x * (1.0 if next(ids) < 5 else 2.0)
""",
    "itertools.cycle in a helper": """
from itertools import cycle
signs = cycle([1.0, 1.0, 1.0, -1.0])
def sign(): return next(signs)
def step(x): return x * sign()
""",
    "an iterator in an attribute": """
class Plan:
    def __init__(self): self.rates = iter([1.0] * 4 + [2.0] * 100)
plan = Plan()
def step(x): return x * next(plan.rates)
""",
    "a table behind lru_cache": """
from functools import lru_cache
rate = 1.0
@lru_cache
def table(): return rate * 2
def step(x): return x * table()
def before(i):
    global rate
    if i == 5:
        rate = 3.0
        table.cache_clear()
""",
    "lru_cache of a setting": """
from functools import lru_cache
@lru_cache
def scaled(kind): return {"a": 1.0, "b": 2.0}[kind]
kind = "a"
def step(x): return x * scaled(kind)
def before(i):
    global kind
    kind = "a" if i < 5 else "b"
""",
    "a list of 2000 numbers": """
table = [1.0] * 2000
def step(x): return x * table[7]
def before(i): table[7] = 1.0 if i < 5 else 2.0
""",
    "a dict of 2000 numbers": """
table = {str(i): 1.0 for i in range(2000)}
def step(x): return x * table["7"]
def before(i): table["7"] = 1.0 if i < 5 else 2.0
""",
    "a set of 2000 numbers": """
frozen = set(range(2000))
def step(x): return x * (1.0 if 7 in frozen else 2.0)
def before(i):
    if i == 5: frozen.remove(7); frozen.add(-7)
""",
    "a deque of 2000 numbers": """
from collections import deque
table = deque([1.0] * 2000)
def step(x): return x * table[0]
def before(i): table[0] = 1.0 if i < 5 else 2.0
""",
    "a tuple of 2000 lists": """
table = tuple([1.0] for _ in range(2000))
def step(x): return x * table[7][0]
def before(i): table[7][0] = 1.0 if i < 5 else 2.0
""",
    "bytes of a large bytearray": """
table = bytearray(40000)
def step(x): return x * table[7]
def before(i): table[7] = 1 if i < 5 else 2
""",
    "a config nested ten deep": """
config = {"rate": 1.0}
for _ in range(10): config = {"inner": config}
def step(x):
    c = config
    for _ in range(10): c = c["inner"]
    return x * c["rate"]
def before(i):
    c = config
    for _ in range(10): c = c["inner"]
    c["rate"] = 1.0 if i < 5 else 2.0
""",
    "objects nested forty deep": """
class Node:
    def __init__(self, inner): self.inner, self.rate = inner, 1.0
deepest = node = Node(None)
for _ in range(40): node = Node(node)
def step(x):
    c = node
    while c.inner is not None: c = c.inner
    return x * c.rate
def before(i): deepest.rate = 1.0 if i < 5 else 2.0
""",
    "match by keyword": """
class Config:
    def __init__(self): self.rate = 1.0
config = Config()
def step(x):
    match config:
        case Config(rate=r): return x * r
def before(i): config.rate = 1.0 if i < 5 else 2.0
""",
    "match by position": """
from dataclasses import dataclass
class Box:
    __match_args__ = ("width",)
    def __init__(self): self.width = 1.0
box = Box()
def step(x):
    match box:
        case Box(w): return x * w
def before(i): box.width = 1.0 if i < 5 else 2.0
""",
    "match of a dict": """
config = {"rate": 1.0}
def step(x):
    match config:
        case {"rate": r}: return x * r
def before(i): config["rate"] = 1.0 if i < 5 else 2.0
""",
    "getattr with a name of a list": """
class Config: pass
config = Config()
config.rate = 1.0
NAMES = ["rate"]
def step(x):
    for name in NAMES: x = x * getattr(config, name)
    return x
def before(i): config.rate = 1.0 if i < 5 else 2.0
""",
    "getattr with a name put together": """
class Config: pass
config = Config()
config.low_rate = 1.0
kind = "low"
def step(x): return x * getattr(config, kind + "_rate")
def before(i): config.low_rate = 1.0 if i < 5 else 2.0
""",
    "getattr with a name of an f-string": """
class Config: pass
config = Config()
config.low_rate = 1.0
kind = "low"
def step(x): return x * getattr(config, f"{kind}_rate")
def before(i): config.low_rate = 1.0 if i < 5 else 2.0
""",
    "hasattr with a name of a list": """
class Config: pass
config = Config()
NAMES = ["rate"]
def step(x): return x * (2.0 if hasattr(config, NAMES[0]) else 1.0)
def before(i):
    if i == 5: config.rate = 1.0
""",
    "getattr of a class that gets the attribute": """
class Config: pass
def step(x): return x * getattr(Config, "rate", 1.0)
def before(i):
    if i == 5: Config.rate = 2.0
""",
    "hasattr of what gets the attribute by its base": """
class Base: pass
class Config(Base): pass
config = Config()
def step(x): return x * (2.0 if hasattr(config, "rate") else 1.0)
def before(i):
    if i == 5: Base.rate = 2.0
""",
    "vars of a config": """
class Config: pass
config = Config()
config.rate = 1.0
def step(x): return x * vars(config)["rate"]
def before(i): config.rate = 1.0 if i < 5 else 2.0
""",
    "str.format of an attribute": """
class Config: rate = 1.0
config = Config()
def step(x): return x * float("{c.rate}".format(c=config))
def before(i): config.rate = 1.0 if i < 5 else 2.0
""",
    "an f-string of an attribute": """
class Config: rate = 1.0
config = Config()
def step(x): return x * float(f"{config.rate:.2f}")
def before(i): config.rate = 1.0 if i < 5 else 2.0
""",
    "globals by a name of a list": """
rate = 1.0
NAMES = ["rate"]
def step(x): return x * globals()[NAMES[0]]
def before(i):
    global rate
    rate = 1.0 if i < 5 else 2.0
""",
    "a function by name from globals": """
def double(x): return x * 2
def triple(x): return x * 3
kind = "double"
def step(x): return globals()[kind](x)
def before(i):
    global kind
    kind = "double" if i < 5 else "triple"
""",
    "eval of a formula in a list": """
rate = 1.0
FORMULAS = ["rate * 2"]
def step(x): return x * eval(FORMULAS[0])
def before(i):
    global rate
    rate = 1.0 if i < 5 else 2.0
""",
}

# What stands in a package that somebody has installed.
INSTALLED = """
rate = 1.0
options = {"rate": 1.0}
class Config:
    scale = 1.0
    def __init__(self): self.rate = 1.0
config = Config()
"""
